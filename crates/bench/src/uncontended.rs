//! One thread on one CPU, without contention.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::arena::Arena;
use crate::comparison::{Comparison, Figures};
use crate::host::{self, Host};
use crate::lock::{BARE, Lock, OURS};
use crate::progress::Progress;
use crate::requirement::Requirement;
use crate::scale::Scale;
use crate::series::{Series, order};

/// The least ratio of the queued spinlocks to the bare compare-and-swap and store.
const OF_BARE: f64 = 0.95;
/// The least ratio of the HQ-spinlock to the plain queued spinlock.
const HQ_OF_PLAIN: f64 = 0.97;
/// The peers than which the queued spinlocks must be faster.
const PEERS: [&str; 4] = ["pthread_spin", "pthread_mutex", "ck_mcs", "ck_ticket"];

/// The work in the critical section.
#[derive(Clone, Copy)]
pub enum Variant {
    /// The holder increments two counters.
    Counted,
    /// The critical section is empty.
    Pure,
}

/// How many measurements [`measure`] makes.
pub fn steps(scale: &Scale) -> usize {
    2 * scale.rounds
}

/// Measures every lock in both variants.
pub fn measure(
    host: &Host,
    scale: &Scale,
    locks: &[&'static Lock],
    progress: &Progress,
) -> Result<Vec<Comparison>> {
    let cpu = host.cpus[0];
    // A second thread, since some locks omit atomic operations in a process with one thread.
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                host::pin(cpu)?;
                Ok(vec![
                    section(Variant::Counted, cpu, scale, locks, progress)?,
                    section(Variant::Pure, cpu, scale, locks, progress)?,
                ])
            })
            .join()
            .expect("the measuring thread does not panic")
    })
}

fn section(
    variant: Variant,
    cpu: usize,
    scale: &Scale,
    locks: &[&'static Lock],
    progress: &Progress,
) -> Result<Comparison> {
    let (name, work) = match variant {
        Variant::Counted => ("uncontended", "lock, two increments, unlock"),
        Variant::Pure => ("uncontended-pure", "lock, unlock"),
    };
    let mut figures = vec![Series::default(); locks.len()];
    for round in 0..scale.rounds {
        progress.step(&format!("round {}", round + 1), name);
        for (figures, best) in figures
            .iter_mut()
            .zip(measure_round(variant, scale, locks, round)?)
        {
            figures.push(best);
        }
    }
    let mut table = Figures::new(locks, figures, BARE);
    for ours in OURS {
        table.require(Requirement::at_least(ours, BARE, OF_BARE));
        for peer in PEERS {
            table.require(Requirement::ahead(ours, peer));
        }
    }
    table.require(Requirement::at_least("lw_hq", OURS[0], HQ_OF_PLAIN));
    table.require(Requirement::ahead("lw_mutex", "pthread_mutex"));
    Ok(table.compare(
        name,
        format!("Uncontended: {work}; one thread on CPU {cpu}"),
        1,
    ))
}

/// Measures one round. Returns for each lock its fastest burst, in millions of acquisitions a second.
///
/// The fastest burst counts, since interruptions and busy neighbours can only slow a burst down. The
/// bursts of a lock are spread over the round, so that all locks may meet the same quiet moments.
pub fn measure_round(
    variant: Variant,
    scale: &Scale,
    locks: &[&'static Lock],
    round: usize,
) -> Result<Vec<f64>> {
    let mut best = vec![0.0; locks.len()];
    for burst in 0..scale.bursts {
        for index in order(locks.len(), round * scale.bursts + burst) {
            let million = run_burst(variant, locks[index], scale.burst_operations)?;
            best[index] = f64::max(best[index], million);
        }
    }
    Ok(best)
}

fn run_burst(variant: Variant, lock: &'static Lock, n: u64) -> Result<f64> {
    let mut arena = Arena::new(lock, 1);
    let start = Instant::now();
    match variant {
        Variant::Counted => arena.counted(n),
        Variant::Pure => arena.pure(n),
    }
    let seconds = start.elapsed().as_secs_f64();
    if let Variant::Counted = variant {
        ensure!(
            arena.counters() == [n, n],
            "{} lost increments without contention",
            lock.name()
        );
    }
    Ok(n as f64 / seconds / 1e6)
}
