//! Getting and putting references: lockrefs, compared with a lock and a count, and with a count
//! alone.

use std::time::Duration;

use anyhow::Result;

use crate::comparison::{Comparison, Figures};
use crate::contended;
use crate::contention;
use crate::host::{self, Host};
use crate::lock::{self, Lock};
use crate::progress::Progress;
use crate::requirement::Requirement;
use crate::scale::Scale;
use crate::series::{Series, order};
use crate::uncontended::{self, Variant};

/// The reference: an atomic count without a lock, which costs the least.
const LIMIT: &str = "atomic";
/// Another lock and count than which each lockref must be faster.
const MUTEX: &str = "pthread_mutex + count";
/// Lockrefs, and the lock and count than which each must be faster.
const OURS: [(&str, &str); 3] = [
    ("lw_lockref_qspinlock", "lw_qspinlock + count"),
    ("lw_lockref_cna", "lw_cna + count"),
    ("lw_lockref_hq", "lw_hq + count"),
];
/// Threads for each CPU in the measurement with more threads than CPUs.
const FACTOR: usize = 2;

/// How many measurements [`measure`] makes.
pub fn steps(scale: &Scale) -> usize {
    let each = scale.rounds_contended + scale.rounds_oversubscribed;
    scale.rounds + each * lock::references().len()
}

/// Measures with one thread, with two, and with more threads than CPUs.
pub fn measure(host: &Host, scale: &Scale, progress: &Progress) -> Result<Vec<Comparison>> {
    let all = lock::references();
    let mut sections = vec![alone(host, scale, &all, progress)?];
    if let [first, second, ..] = host.cpus[..] {
        let measure = |lock| contended::burst(scale, lock, &[first, second]);
        let rounds = scale.rounds_contended;
        sections.push(contend(2, rounds, &all, progress, measure)?);
    }
    let threads = FACTOR * host.cpus.len();
    let time = Duration::from_millis(scale.oversubscribed_ms);
    let measure = |lock| contention::run(lock, threads, &[], time);
    let rounds = scale.rounds_oversubscribed;
    sections.push(contend(threads, rounds, &all, progress, measure)?);
    Ok(sections)
}

fn alone(
    host: &Host,
    scale: &Scale,
    all: &[&'static Lock],
    progress: &Progress,
) -> Result<Comparison> {
    let mut figures = vec![Series::default(); all.len()];
    let cpu = host.cpus[0];
    // A second thread, as for locks without contention.
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                host::pin(cpu)?;
                for round in 0..scale.rounds {
                    progress.step(&format!("round {}", round + 1), "references");
                    let best = uncontended::measure_round(Variant::Pure, scale, all, round)?;
                    figures.iter_mut().zip(best).for_each(|(f, b)| f.push(b));
                }
                Ok(())
            })
            .join()
            .expect("the measuring thread does not panic")
    })
    .map(|()| section(1, all, figures, None))
}

fn contend(
    threads: usize,
    rounds: usize,
    all: &[&'static Lock],
    progress: &Progress,
    measure: impl Fn(&'static Lock) -> Result<contention::Burst>,
) -> Result<Comparison> {
    let mut figures = vec![Series::default(); all.len()];
    let mut fairness = vec![Series::default(); all.len()];
    for round in 0..rounds {
        for index in order(all.len(), round) {
            progress.step(all[index].name(), "references");
            let outcome = measure(all[index])?;
            figures[index].push(outcome.million_per_second);
            fairness[index].push(outcome.fairness);
        }
    }
    Ok(section(threads, all, figures, Some(fairness)))
}

fn section(
    threads: usize,
    all: &[&'static Lock],
    figures: Vec<Series>,
    fairness: Option<Vec<Series>>,
) -> Comparison {
    let mut table = Figures::new(all, figures, LIMIT);
    table.fairness = fairness;
    for (ours, locked) in OURS {
        table.require(Requirement::ahead(ours, locked));
        table.require(Requirement::ahead(ours, MUTEX));
    }
    let noun = if threads == 1 { "thread" } else { "threads" };
    table.compare(
        &format!("references-{threads}"),
        format!("References: get and put, never the last one; {threads} {noun}"),
        threads,
    )
}
