//! The answer: which lock to take, and how sure that is.

use std::ffi::OsString;
use std::path::Path;

use super::{GLIBC, parking};
use crate::validate::TrustReport;
use lockworks_preload::compare::ComparisonReport;
use lockworks_sweep::regret::RegretReport;
use lockworks_torture::{Host, TortureResults};
use lockworks_ui::plot::page::Heading;

fn heading(title: String, what: String, how_sure: String, lock: &str) -> Heading {
    Heading {
        title,
        what,
        how_sure,
        lock: lock.to_owned(),
        ..Heading::default()
    }
}

/// For another machine: what `lockworks regret` recommends.
pub fn for_machine(machine: &str, predicted: Option<&RegretReport>) -> Heading {
    let contested = predicted.map_or_else(String::new, |report| report.contested.join(" "));
    let how_sure = format!(
        "This is predicted: nothing was measured on {machine}. `lockworks reproduce all` shows how far \
         predictions of published tables are off, and `lockworks machines validate` those for the machine it \
         runs on. {contested}"
    );
    let answer = predicted.map_or_else(String::new, |report| report.answer.clone());
    let taken = predicted.and_then(RegretReport::taken).unwrap_or("mutex");
    heading(format!("Which lock on {machine}?"), answer, how_sure, taken)
}

/// For a program: what `lockworks compare` found.
pub fn for_program(program: &[OsString], compared: Option<&ComparisonReport>) -> Heading {
    let name = Path::new(&program[0]).file_name().unwrap_or(&program[0]);
    let title = format!("Which lock for {}?", name.to_string_lossy());
    let Some(report) = compared else {
        let failed = "The comparison failed, so no lock can be named.".to_owned();
        return heading(title, failed, String::new(), "");
    };
    let verdict = match report.best {
        Some(_) => report.verdict.clone(),
        None => format!("Keep glibc's mutex. {}", report.verdict),
    };
    let how_sure = format!(
        "Each lock ran {} times, in turns; a difference counts if its 95 % interval excludes 1.",
        report.rounds_made
    );
    heading(title, verdict, how_sure, report.best.unwrap_or("glibc"))
}

/// For this machine: the parking lock that is nearest to the best one over all numbers of threads.
pub fn for_this_machine(
    host: &Host,
    measured: Option<&TortureResults>,
    validated: Option<&TrustReport>,
) -> Heading {
    let title = format!(
        "Which lock on {} CPUs ({})?",
        host.cpus,
        host.model.as_deref().unwrap_or("this machine")
    );
    let rows = measured.map_or(&[][..], |results| &results.rows);
    let row = |lock: &str, threads: usize| {
        let mut rows = rows.iter();
        rows.find(|row| row.lock == lock && row.threads == threads)
    };
    let rate = |lock: &str, threads| Some(row(lock, threads)?.operations_per_second);
    let own = rows.iter().filter(|row| row.lock == GLIBC);
    let threads: Vec<usize> = own.map(|row| row.threads).collect();
    let share = |lock: &str| {
        let shares = threads.iter().filter_map(|&n| {
            let rates = parking().filter_map(|other| rate(other, n));
            Some((rate(lock, n)? / rates.reduce(f64::max)?).ln())
        });
        let shares: Vec<f64> = shares.collect();
        (shares.iter().sum::<f64>() / shares.len().max(1) as f64).exp()
    };
    let (Some(results), Some(&most)) = (measured, threads.last()) else {
        let none = "Nothing could be measured.".to_owned();
        return heading(title, none, "Not at all.".to_owned(), "mutex");
    };
    let best = parking().max_by(|a, b| share(a).total_cmp(&share(b)));
    let best = best.expect("glibc's mutex parks");
    let times = |n: usize| match (rate(best, n), rate(GLIBC, n)) {
        (Some(rate), Some(of_glibc)) => format!("{:.2}", rate / of_glibc),
        _ => "-".to_owned(),
    };
    let apart = row(best, most).zip(row(GLIBC, most));
    let apart = apart.is_some_and(|(best, glibc)| {
        best.operations_per_second_min > glibc.operations_per_second_max
    });
    let what = format!(
        "Take {best}: with 1 to {most} threads it makes {:.0} % of what the best lock for programs makes \
         here, in geometric mean, and with {most} threads {} times what pthread_mutex makes (with one \
         thread {}).",
        100.0 * share(best),
        times(most),
        times(1),
    );
    let how_sure = format!(
        "Measured on two counters under one lock; the ranges of {} rounds {} with {most} threads. {}",
        results.rounds,
        if apart { "do not overlap" } else { "overlap" },
        validated.map_or("", |report| &report.here),
    );
    heading(title, what, how_sure, best)
}
