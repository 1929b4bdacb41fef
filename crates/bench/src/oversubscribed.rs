//! More threads than CPUs, where the throughput of locks that spin collapses.

use std::time::Duration;

use anyhow::Result;

use crate::comparison::{Comparison, Figures};
use crate::contention;
use crate::host::Host;
use crate::lock::Lock;
use crate::progress::Progress;
use crate::scale::Scale;
use crate::series::{Series, order};

/// Threads for each CPU.
const FACTORS: [usize; 2] = [2, 4];
/// The locks that are measured: enough to show which ones collapse.
const SHOWN: [&str; 16] = [
    "lw_qspinlock",
    "lw_cna",
    "lw_hq",
    "lw_mutex",
    "lw_pv",
    "lw_unfair",
    "lw_tas",
    "lw_mcs",
    "ck_mcs",
    "ck_ticket",
    "pthread_spin",
    "pthread_mutex",
    "pthread_adaptive",
    "nsync",
    "abseil",
    "parking_lot",
];
const REFERENCE: &str = "pthread_mutex";

fn shown(locks: &[&'static Lock]) -> Vec<&'static Lock> {
    let mut locks = locks.to_vec();
    locks.retain(|lock| SHOWN.contains(&lock.name()));
    locks
}

/// How many measurements [`measure`] makes.
pub fn steps(scale: &Scale, locks: &[&'static Lock]) -> usize {
    FACTORS.len() * scale.rounds_oversubscribed * shown(locks).len()
}

/// Measures with twice and with four times as many threads as CPUs.
pub fn measure(
    host: &Host,
    scale: &Scale,
    locks: &[&'static Lock],
    progress: &Progress,
) -> Result<Vec<Comparison>> {
    let locks = shown(locks);
    let mut sections = Vec::new();
    for factor in FACTORS {
        let threads = factor * host.cpus.len();
        let name = format!("oversubscribed-{factor}x");
        let mut figures = vec![Series::default(); locks.len()];
        let mut fairness = vec![Series::default(); locks.len()];
        for round in 0..scale.rounds_oversubscribed {
            for index in order(locks.len(), round) {
                progress.step(locks[index].name(), &name);
                let time = Duration::from_millis(scale.oversubscribed_ms);
                let outcome = contention::run(locks[index], threads, &[], time)?;
                figures[index].push(outcome.million_per_second);
                fairness[index].push(outcome.fairness);
            }
        }
        let mut table = Figures::new(&locks, figures, REFERENCE);
        table.fairness = Some(fairness);
        sections.push(table.compare(
            &name,
            format!(
                "More threads than CPUs: {threads} on {} CPUs, where FIFO locks that spin collapse",
                host.cpus.len()
            ),
            threads,
        ));
    }
    Ok(sections)
}
