//! The answer of a torture about the locks, in a few sentences.

use itertools::Itertools;

use lockworks_torture::{TortureResults, TortureRow};
use lockworks_ui::figures::{counted, percent};

/// Locks whose means differ by less than this are level.
const LEVEL: f64 = 0.05;

/// What one loop cannot tell, and what can.
const NO_PROGRAM: &str = "This is one loop. `lockworks report` says which lock to take, from several \
    loads; `lockworks compare -- PROGRAM` tries it in a program.";

/// The locks that are nearest to the fastest one, with a CPU for each thread and beyond. None: one
/// lock only.
pub fn answer(results: &TortureResults) -> Option<String> {
    let cpus = results.machine.cpus;
    let (own, shared): (Vec<_>, Vec<_>) = results.rows.iter().partition(|row| row.threads <= cpus);
    let shared_note = format!(
        " More threads than CPUs measure parking and the scheduler of {} as much as the lock.",
        counted(cpus as u64, "CPU")
    );
    let own = nearest(&own).map(|text| format!("With a CPU for each thread, {text}."));
    let shared =
        nearest(&shared).map(|text| format!("With more threads than CPUs, {text}.{shared_note}"));
    let sentences = own.into_iter().chain(shared).join("\n");
    (!sentences.is_empty()).then(|| format!("{sentences}\n{NO_PROGRAM}"))
}

/// The lock with the greatest geometric mean of its rate over the fastest lock's.
fn nearest(rows: &[&TortureRow]) -> Option<String> {
    let locks: Vec<&str> = rows.iter().map(|row| row.lock).unique().collect();
    let threads: Vec<usize> = rows.iter().map(|row| row.threads).unique().collect();
    if locks.len() < 2 {
        return None;
    }
    let of = |lock: &str, n: usize| {
        let row = rows
            .iter()
            .find(|row| row.lock == lock && row.threads == n)?;
        Some(row.operations_per_second)
    };
    let share = |lock: &str| {
        let shares = threads.iter().filter_map(|&n| {
            let rates = locks.iter().filter_map(|other| of(other, n));
            Some((of(lock, n)? / rates.reduce(f64::max)?).ln())
        });
        (shares.sum::<f64>() / threads.len() as f64).exp()
    };
    let order = locks.iter().map(|lock| (*lock, share(lock)));
    let order: Vec<_> = order.sorted_by(|a, b| b.1.total_cmp(&a.1)).collect();
    let (best, mean) = order[0];
    let level = order[1..].iter().filter(|(_, other)| mean - other < LEVEL);
    let level = level.map(|(lock, _)| *lock).join(", ");
    let most = *threads.last()?;
    let also = match level.is_empty() {
        true => String::new(),
        false => format!("; level with it: {level}"),
    };
    let range = match threads.as_slice() {
        [one] => counted(*one as u64, "thread"),
        several => format!("{} to {most} threads", several[0]),
    };
    Some(format!(
        "{best} is nearest to the fastest lock: {} of it in geometric mean with {range}{also}",
        percent(mean),
    ))
}
