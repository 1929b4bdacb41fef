//! Simulations of several locks with several numbers of threads.

use crate::doubt::Doubt;
use crate::{EngineCounts, Placement, Run, Scenario, Sharing, SharingCounts, SimulationOutcome};
use anyhow::{Context, Result};
use lockworks::{LockType, Settings, fairness};
use lockworks_measurements::{Latency, Range, Timeline};
use rayon::prelude::*;
use serde::Serialize;

/// The most threads of a run. Each thread needs a slot for queue nodes, and there are this many.
pub const MOST_THREADS: usize = 4096;

/// Counts of the events of threads that share CPUs.
#[derive(Clone, Serialize)]
pub struct SharedCpus {
    /// The number of CPUs that are shared.
    pub cpus: usize,
    /// Halts of virtual CPUs, and sleeps of threads.
    pub halts: u64,
    /// Halts that ended while the hypervisor still polled.
    pub polls_successful: u64,
    /// Wake-ups.
    pub kicks: u64,
    /// Preemptions by another thread or virtual CPU.
    pub preemptions: u64,
    /// Moves to another CPU.
    pub migrations: u64,
    /// Exits from the guest by pause-loop exiting.
    pub pause_exits: u64,
    /// Yields to a certain virtual CPU after such an exit.
    pub directed_yields: u64,
    /// The share of the time in which threads waited for a CPU.
    pub steal_percent: f64,
    /// The share of the time in which they were preempted while they held a lock.
    pub preempted_holder_percent: f64,
}

/// One lock with one number of threads.
#[derive(Clone, Serialize)]
pub struct SimulationRow {
    /// The lock.
    pub lock: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Operations of all threads in a second of virtual time: the median over the seeds. The other
    /// figures are those of the run that had it.
    pub operations_per_second: f64,
    /// Operations a second with each seed, in the order of the seeds.
    pub operations_per_second_by_seed: Vec<f64>,
    /// Operations a second over those of the reference lock with the same seed. None: the reference
    /// did not run, or made no operation.
    pub reference_ratio: Option<Range>,
    /// The time that the workload's whole job takes at the rate of all threads together. None: the
    /// workload has no end.
    pub job_seconds: Option<f64>,
    /// The fairness factor, as in torture. None if there was no operation.
    pub fairness: Option<f64>,
    /// Waits for the lock, uncontended ones included. None: there was no acquisition.
    pub wait_ns: Option<Latency>,
    /// The part of the acquisitions for which a thread asked while another had the lock. None: there was no
    /// acquisition.
    pub contended: Option<f64>,
    /// Hand-offs to a thread of the same NUMA node.
    pub local_handoffs: u64,
    /// Hand-offs to a thread of another NUMA node.
    pub remote_handoffs: u64,
    /// Acquisitions by the thread that held the lock before.
    reacquisitions: u64,
    /// Atomic read-modify-writes of the locks, to acquire and to release. None: there was no
    /// acquisition.
    pub rmws_per_acquisition: Option<f64>,
    /// Counts of the lock's own events.
    pub events: serde_json::Map<String, serde_json::Value>,
    /// The acquisitions that did not exclude another thread.
    pub violations: u64,
    /// Counts of the sharing. None: each thread has a CPU of its own.
    pub sharing: Option<SharedCpus>,
    engine: EngineWork,
    /// The events of threads at the beginning of the run with the first seed, if the plan asks for them.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
}

#[derive(Clone, Serialize)]
struct EngineWork {
    acquisitions: u64,
    events: u64,
    operations: u64,
    line_transfers: u64,
}

fn shared(counts: SharingCounts, sharing: Sharing, outcome: &SimulationOutcome) -> SharedCpus {
    let wall = outcome.thread_seconds();
    let percent = |picoseconds: u64| 100.0 * picoseconds as f64 / 1e12 / wall;
    SharedCpus {
        cpus: sharing.cpus,
        halts: counts.halts,
        polls_successful: counts.polls_successful,
        kicks: counts.kicks,
        preemptions: counts.preemptions,
        migrations: counts.migrations,
        pause_exits: counts.pause_exits,
        directed_yields: counts.directed_yields,
        steal_percent: percent(counts.steal),
        preempted_holder_percent: percent(counts.preempted_holder),
    }
}

fn row(
    lock: &LockType,
    threads: usize,
    sharing: Option<Sharing>,
    job: Option<f64>,
    mut outcomes: Vec<SimulationOutcome>,
) -> SimulationRow {
    let by_seed = outcomes.iter().map(|o| o.operations_per_second).collect();
    outcomes.sort_by(|a, b| a.operations_per_second.total_cmp(&b.operations_per_second));
    let outcome = &outcomes[(outcomes.len() - 1) / 2];
    let EngineCounts {
        events,
        operations,
        transfers,
    } = outcome.engine;
    SimulationRow {
        lock: lock.name(),
        threads,
        operations_per_second: outcome.operations_per_second,
        operations_per_second_by_seed: by_seed,
        reference_ratio: None,
        job_seconds: job
            .map(|operations| operations / outcome.operations_per_second)
            .filter(|seconds| seconds.is_finite()),
        fairness: fairness(&outcome.operations),
        wait_ns: Latency::of(&outcome.waits),
        contended: (outcome.acquisitions > 0)
            .then(|| outcome.contended as f64 / outcome.acquisitions as f64),
        local_handoffs: outcome.handoffs.local,
        remote_handoffs: outcome.handoffs.remote,
        reacquisitions: outcome.handoffs.reacquisitions,
        rmws_per_acquisition: (outcome.acquisitions > 0)
            .then(|| outcome.lock_rmws as f64 / outcome.acquisitions as f64),
        events: outcome
            .events
            .iter()
            .map(|&(name, count)| (name.to_owned(), count.into()))
            .collect(),
        violations: outcome.violations,
        sharing: outcome
            .sharing
            .zip(sharing)
            .map(|(counts, sharing)| shared(counts, sharing, outcome)),
        engine: EngineWork {
            acquisitions: outcome.acquisitions,
            events,
            operations,
            line_transfers: transfers,
        },
        timeline: None,
    }
}

/// A simulation of every lock with every number of threads.
pub struct SimulationPlan {
    /// Machine, workload and model.
    pub scenario: Scenario,
    /// The locks.
    pub locks: Vec<&'static LockType>,
    /// The numbers of threads to run each lock with; of each guest, where there are guests.
    pub threads: Vec<usize>,
    /// The CPUs that the threads run on.
    pub host: SimulatedHost,
    /// The placement of the threads on CPUs.
    pub placement: Placement,
    /// Virtual milliseconds of each run.
    pub ms: f64,
    /// The settings of the locks.
    pub tunables: Settings,
    /// Threads with an odd number wait with priority.
    pub odd_priority: bool,
    /// The first seed of all random choices.
    pub seed: u64,
    /// The number of seeds. Each lock runs with each; a random placement differs, too.
    pub seeds: u64,
    /// The number of events in the timeline of a row. 0: rows have none.
    pub recorded: usize,
    /// With doubt, each seed has a machine of its own. None: all have the machine of the scenario.
    pub doubt: Option<Doubt>,
}

/// Gives each row its ratio to the row of the reference lock with as many threads.
pub fn compare_with(reference: &str, rows: &mut [SimulationRow]) {
    let references: Vec<(usize, Vec<f64>)> = rows
        .iter()
        .filter(|row| row.lock == reference)
        .map(|row| (row.threads, row.operations_per_second_by_seed.clone()))
        .collect();
    for row in rows {
        let of_reference = references
            .iter()
            .find(|(threads, _)| *threads == row.threads);
        row.reference_ratio = of_reference.and_then(|(_, of_reference)| {
            let pairs = row.operations_per_second_by_seed.iter().zip(of_reference);
            Range::of(pairs.filter(|(_, r)| **r > 0.0).map(|(own, r)| own / r))
        });
    }
}

/// The CPUs that threads run on, and how they share them.
#[derive(Clone, Copy)]
pub struct SimulatedHost {
    /// CPUs of the machine.
    pub cpus: usize,
    /// The number of guests whose virtual CPUs the threads are, if any.
    pub guests: Option<usize>,
    /// Keeps each virtual CPU on one CPU.
    pub pinned: bool,
}

/// How many times as long runs are in which threads share CPUs, since the threads take turns.
pub const LONGER: f64 = 10.0;

impl SimulatedHost {
    /// How `threads` threads share CPUs. None: each has a CPU of its own. Virtual CPUs always
    /// share, since they can halt.
    pub fn sharing(&self, threads: usize) -> Option<Sharing> {
        (self.guests.is_some() || threads > self.cpus).then_some(Sharing {
            cpus: self.cpus,
            guests: self.guests,
            pinned: self.pinned,
        })
    }
}

impl SimulationPlan {
    /// The numbers of threads and locks of all runs, sorted by threads, then locks.
    pub fn points(&self) -> Vec<(usize, &'static LockType)> {
        let threads = self.threads.iter();
        let points = threads.flat_map(|&n| self.locks.iter().map(move |&lock| (n, lock)));
        points.collect()
    }
}

/// Runs the plan on all CPUs of this machine. Rows are in the order of its points; `finished` sees
/// each.
pub fn run(
    plan: &SimulationPlan,
    finished: impl Fn(&Result<SimulationRow>) + Sync,
) -> Vec<Result<SimulationRow>> {
    let points = plan.points();
    let rows = points.par_iter().map(|&(threads, lock)| {
        let row = simulate(plan, lock, threads);
        finished(&row);
        row
    });
    rows.collect()
}

/// Runs one lock with one number of threads as the plan says.
pub fn simulate(
    plan: &SimulationPlan,
    lock: &'static LockType,
    threads: usize,
) -> Result<SimulationRow> {
    let guests = plan.host.guests.unwrap_or(1);
    // Each guest does the whole job.
    let job = plan.scenario.workload.job().map(|job| job * guests as f64);
    let all_threads = threads * guests;
    let sharing = plan.host.sharing(all_threads);
    let run = |by: u64| {
        let seed = plan.seed.wrapping_add(by);
        let other = plan
            .doubt
            .as_ref()
            .map(|doubt| doubt.machine(&plan.scenario, seed));
        let run = Run {
            scenario: other.as_ref().unwrap_or(&plan.scenario),
            lock,
            threads: all_threads,
            placement: plan.placement.with_seed_moved(by),
            sharing,
            seconds: plan.ms / 1e3,
            tunables: plan.tunables,
            odd_threads_have_priority: plan.odd_priority,
            seed,
        };
        let recorded = if by == 0 { plan.recorded } else { 0 };
        let outcome = run.record(recorded);
        tracing::debug!(lock = lock.name(), threads, by, "simulated");
        outcome
    };
    let outcomes: Result<Vec<_>, _> = (0..plan.seeds).into_par_iter().map(run).collect();
    outcomes
        .map(|outcomes| {
            let (outcomes, mut timelines): (_, Vec<_>) = outcomes.into_iter().unzip();
            SimulationRow {
                timeline: (plan.recorded > 0).then(|| timelines.swap_remove(0)),
                ..row(lock, threads, sharing, job, outcomes)
            }
        })
        .with_context(|| format!("{} with {threads} threads", lock.name()))
}

/// The numbers of threads to simulate unless the user chooses others: 1, 2, 4 and so on, up to the
/// number of CPUs.
pub fn doubled(cpus: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |n| Some(n * 2))
        .take_while(|&n| n < cpus)
        .chain([cpus])
        .collect()
}
