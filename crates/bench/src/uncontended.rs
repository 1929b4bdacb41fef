//! One thread on one CPU, and nobody else.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::Scale;
use crate::arena::Arena;
use crate::host::{self, Host};
use crate::lock::{BARE, Lock, OURS};
use crate::progress::Progress;
use crate::report::{Requirement, Section, Table};
use crate::series::{Series, order};

/// The least that the queued spinlocks must reach of the bare compare-and-swap and store.
const OF_BARE: f64 = 0.95;
/// Who must be behind them.
const PEERS: [&str; 4] = ["pthread_spin", "pthread_mutex", "ck_mcs", "ck_ticket"];

/// What is done with the lock held.
#[derive(Clone, Copy)]
enum Variant {
    Counted,
    Pure,
}

/// How many measurements [`measure`] makes.
pub fn steps(scale: &Scale, locks: &[&Lock]) -> usize {
    2 * scale.rounds * locks.len()
}

/// Both variants.
pub fn measure(
    host: &Host,
    scale: &Scale,
    locks: &[&'static Lock],
    progress: &Progress,
) -> Result<Vec<Section>> {
    let cpu = host.cpus[0];
    // A thread beside the main one: some locks omit the atomics in processes of one thread.
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
) -> Result<Section> {
    let (name, work) = match variant {
        Variant::Counted => ("uncontended", "lock, two increments, unlock"),
        Variant::Pure => ("uncontended-pure", "lock, unlock"),
    };
    let mut figures = vec![Series::default(); locks.len()];
    for round in 0..scale.rounds {
        for index in order(locks.len(), round) {
            progress.step(locks[index].name(), name);
            figures[index].push(best(variant, scale, locks[index])?);
        }
    }
    let mut table = Table::new(locks, figures, BARE);
    for ours in OURS {
        table.require(Requirement::at_least(ours, BARE, OF_BARE));
        for peer in PEERS {
            table.require(Requirement::ahead(ours, peer));
        }
    }
    Ok(table.section(
        name,
        format!("Uncontended: {work}; one thread on CPU {cpu}"),
        1,
    ))
}

/// Million a second in the fastest of some bursts, as interruptions only ever slow one down.
fn best(variant: Variant, scale: &Scale, lock: &'static Lock) -> Result<f64> {
    let mut best: f64 = 0.0;
    for _ in 0..scale.bursts {
        let mut arena = Arena::new(lock, 1);
        let n = scale.burst_operations;
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
        best = best.max(n as f64 / seconds / 1e6);
    }
    Ok(best)
}
