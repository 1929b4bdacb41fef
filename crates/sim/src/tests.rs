//! Tests of whole runs: locks, workloads and engine together.

mod client;
mod cna;
mod lockref;
mod made_up;
mod mutex;
mod properties;
mod runs;
mod sharing;
mod workload_files;
mod workload_keys;
mod workloads;

use lockworks::LockType;
use lockworks_machine::Machine;

use crate::{Placement, Run, Scenario, Settings, SimulationOutcome, Workload, lock_types};

fn lock(name: &str) -> &'static LockType {
    lock_types().find(|lock| lock.name() == name).unwrap()
}

fn working_locks() -> impl Iterator<Item = &'static LockType> {
    lock_types().filter(|lock| !lock.is_broken())
}

fn scenario(machine: &str, workload: &str) -> Scenario {
    Scenario::new(
        Machine::find(machine).unwrap(),
        Workload::find(workload).unwrap(),
    )
}

/// A run of this number of threads for a millisecond.
fn brief<'a>(scenario: &'a Scenario, lock: &'static LockType, threads: usize) -> Run<'a> {
    Run {
        scenario,
        lock,
        threads,
        placement: Placement::Scatter(1),
        sharing: None,
        seconds: 1e-3,
        tunables: Settings::kernel(),
        odd_threads_have_priority: false,
        seed: 1,
    }
}

fn count(outcome: &SimulationOutcome, event: &str) -> u64 {
    let of_name = |(name, _): &&(&str, u64)| *name == event;
    outcome.events.iter().find(of_name).unwrap().1
}
