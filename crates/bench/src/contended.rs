//! Two threads, each on a CPU of its own, and one lock.
//!
//! The host of a virtual machine may move its CPUs, so the distance between the two may change in
//! a run. The rounds are therefore many and short: a ratio compares bursts that are close in time.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Result;
use lockworks_peers::Order;

use crate::comparison::{Comparison, Figures};
use crate::contention::{self, Burst};
use crate::host::Host;
use crate::lock::{Lock, OURS, is_ours};
use crate::progress::Progress;
use crate::requirement::Requirement;
use crate::scale::Scale;
use crate::series::{Series, order};

/// Preemptions in an undisturbed burst. The main thread preempts one of the two threads when it
/// notices that both have begun, and again when it ends the burst.
const EXPECTED_PREEMPTIONS: i64 = 2;
/// The most bursts that are tried until one is not disturbed.
const ATTEMPTS: usize = 4;

/// How many measurements [`measure`] makes.
pub fn steps(scale: &Scale, locks: &[&Lock]) -> usize {
    scale.rounds_contended * locks.len()
}

/// Measures every lock with two threads.
pub fn measure(
    host: &Host,
    scale: &Scale,
    locks: &[&'static Lock],
    progress: &Progress,
) -> Result<Comparison> {
    let name = "two-threads";
    let [first, second, ..] = host.cpus[..] else {
        return Ok(Comparison::skipped(
            name,
            "Two threads: skipped, since this process may use only one CPU",
        ));
    };
    let mut figures = vec![Series::default(); locks.len()];
    let mut fairness = vec![Series::default(); locks.len()];
    let mut disturbances = 0;
    for round in 0..scale.rounds_contended {
        for index in order(locks.len(), round) {
            progress.step(locks[index].name(), name);
            let outcome = burst(scale, locks[index], &[first, second])?;
            disturbances += usize::from(disturbed(&outcome));
            figures[index].push(outcome.million_per_second);
            fairness[index].push(outcome.fairness);
        }
    }
    let mut table = Figures::new(locks, figures, OURS[0]);
    table.fairness = Some(fairness);
    for ours in OURS {
        for peer in locks {
            if peer.order == Order::Fifo && !is_ours(peer) {
                table.require(Requirement::ahead(ours, peer.name()));
            }
        }
    }
    let mut title =
        format!("Two threads, on CPUs {first} and {second}: lock, two shared counters, unlock");
    if disturbances > 0 {
        let _ = write!(
            title,
            "\n{disturbances} of {} bursts were disturbed by other processes: measure on an idle machine",
            steps(scale, locks)
        );
    }
    Ok(table.compare(name, title, 2))
}

/// Measures a burst, and repeats it while it is disturbed. Returns the least disturbed one.
pub fn burst(scale: &Scale, lock: &'static Lock, cpus: &[usize]) -> Result<Burst> {
    let time = Duration::from_millis(scale.contended_ms);
    let mut best = contention::run(lock, 2, cpus, time)?;
    for _ in 1..ATTEMPTS {
        if !disturbed(&best) {
            break;
        }
        let outcome = contention::run(lock, 2, cpus, time)?;
        if outcome.preemptions < best.preemptions {
            best = outcome;
        }
    }
    Ok(best)
}

fn disturbed(outcome: &Burst) -> bool {
    outcome.preemptions > EXPECTED_PREEMPTIONS
}
