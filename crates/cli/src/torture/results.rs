//! What a torture came to, over all rounds.

use std::collections::BTreeMap;

use anyhow::Result;
use hdrhistogram::Histogram;
use lockworks::{Statistics, Tunable, fairness, topology, tunables};
use serde::Serialize;

use super::Plan;
use super::host::{Host, Pin, Withheld};
use super::round::{self, Handoffs, Outcome};
use super::subject::Subject;
use super::workload::Preset;

/// Everything, as JSON has it.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Where it ran.
    pub machine: Host,
    /// What the threads did.
    pub preset: Preset,
    /// Work with the lock held.
    pub critical_ns: u64,
    /// Work without it.
    pub think_ns: u64,
    /// How threads were bound to CPUs.
    pub pin: Pin,
    /// How the locks were set.
    pub tunables: Tunables,
    /// Length of each run.
    pub seconds: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// What to know when reading the rest.
    pub warnings: Vec<String>,
    /// One for each lock and number of threads.
    pub rows: Vec<Row>,
}

/// How the locks were set.
#[derive(Clone, Debug, Serialize)]
pub struct Tunables {
    numa_spinlock: bool,
    numa_spinlock_threshold_ms: u32,
    shuffle_reduction: bool,
    priority_waiters: bool,
    /// Of single locks.
    by_name: BTreeMap<&'static str, u64>,
}

/// One lock with one number of threads. Counts are sums over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the lock.
    pub lock: &'static str,
    /// How many threads.
    pub threads: usize,
    /// Median of the rounds.
    pub operations_per_second: f64,
    /// Slowest round.
    pub operations_per_second_min: f64,
    /// Fastest round.
    pub operations_per_second_max: f64,
    /// Median of the rounds; none if nothing was done in any.
    pub fairness: Option<f64>,
    /// Operations completed.
    pub operations: u64,
    /// Of sampled acquisitions.
    pub latency_ns: Option<Latency>,
    /// How many those were.
    pub latency_samples: u64,
    /// Hand-offs between threads of one node.
    pub local_handoffs: u64,
    /// Hand-offs between nodes.
    pub remote_handoffs: u64,
    /// Acquisitions by the thread that had held the lock last.
    pub reacquisitions: u64,
    /// What the lock itself counted, if it is one of ours.
    pub events: BTreeMap<&'static str, u64>,
    /// Failures of mutual exclusion.
    pub violations: u64,
    /// Times that the scheduler took a thread off its CPU.
    pub involuntary_switches: Option<u64>,
    /// Time that threads could run but had no CPU.
    pub runqueue_wait_ns: Option<u64>,
    /// That time, as a share of the threads' time.
    pub runqueue_wait_share: Option<f64>,
    /// Clock ticks that the hypervisor gave to others.
    pub steal_ticks: Option<u64>,
}

/// Percentiles of the time from asking for the lock to having it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half were faster.
    pub p50: u64,
    /// 1 % were slower.
    pub p99: u64,
    /// 0.1 % were slower.
    pub p999: u64,
    /// The slowest seen.
    pub max: u64,
}

/// The outcomes of all rounds so far.
pub struct Collected<'a> {
    plan: &'a Plan,
    /// By threads, then by lock.
    outcomes: Vec<Vec<Outcome>>,
}

impl<'a> Collected<'a> {
    /// None yet.
    pub fn new(plan: &'a Plan) -> Self {
        let rows = plan.threads.len() * plan.subjects.len();
        Self {
            plan,
            outcomes: (0..rows).map(|_| Vec::new()).collect(),
        }
    }

    /// One run's outcome, of the lock and threads at these places in the plan.
    pub fn add(&mut self, threads: usize, lock: usize, outcome: Outcome) {
        self.outcomes[threads * self.plan.subjects.len() + lock].push(outcome);
    }

    /// All of it.
    pub fn results(&self) -> Result<Results> {
        let plan = self.plan;
        let machine = Host::look()?;
        let of = plan
            .threads
            .iter()
            .flat_map(|&threads| plan.subjects.iter().map(move |&subject| (subject, threads)));
        let rows: Vec<Row> = of
            .zip(&self.outcomes)
            .map(|((subject, threads), rounds)| row(subject, threads, rounds))
            .collect();
        let mut warnings: Vec<String> =
            topology::warning().into_iter().map(str::to_owned).collect();
        warnings.extend(disturbance(&rows, machine.cpus));
        Ok(Results {
            machine,
            preset: plan.workload.preset,
            critical_ns: plan.workload.critical_ns,
            think_ns: plan.workload.think_ns,
            pin: plan.pin,
            tunables: Tunables {
                numa_spinlock: tunables::numa_spinlock_active(),
                numa_spinlock_threshold_ms: tunables::numa_spinlock_threshold(),
                shuffle_reduction: tunables::shuffle_reduction(),
                priority_waiters: tunables::priority_waiters(),
                by_name: Tunable::all()
                    .iter()
                    .map(|tunable| (tunable.name, tunable.get()))
                    .collect(),
            },
            seconds: plan.duration.as_secs_f64(),
            rounds: plan.rounds,
            warnings,
            rows,
        })
    }
}

/// Threads that wait for a CPU although there are enough are kept from it by something else.
fn disturbance(rows: &[Row], cpus: usize) -> Option<String> {
    const BEARABLE: f64 = 0.05;
    let share = rows
        .iter()
        .filter(|row| row.threads <= cpus)
        .filter_map(|row| row.runqueue_wait_share)
        .fold(0.0, f64::max);
    (share > BEARABLE).then(|| {
        format!(
            "other work kept threads from running for up to {:.0} % of their time although they \
             were not more than the CPUs; measure on an idle machine",
            100.0 * share
        )
    })
}

fn row(subject: Subject, threads: usize, rounds: &[Outcome]) -> Row {
    let rates = sorted(rounds.iter().map(Outcome::operations_per_second));
    let fairness = sorted(
        rounds
            .iter()
            .filter_map(|round| fairness(&round.operations)),
    );
    let mut latency = round::latencies();
    let mut handoffs = Handoffs::default();
    for round in rounds {
        latency.add(&round.latency).expect("the same bounds");
        handoffs += round.handoffs;
    }
    let withheld: Withheld = rounds.iter().map(|round| round.withheld).sum();
    Row {
        lock: subject.name(),
        threads,
        operations_per_second: median(&rates).unwrap_or(0.0),
        operations_per_second_min: rates.first().copied().unwrap_or(0.0),
        operations_per_second_max: rates.last().copied().unwrap_or(0.0),
        fairness: median(&fairness),
        operations: rounds.iter().flat_map(|round| &round.operations).sum(),
        latency_ns: Latency::of(&latency),
        latency_samples: latency.len(),
        local_handoffs: handoffs.local,
        remote_handoffs: handoffs.remote,
        reacquisitions: handoffs.reacquisitions,
        events: events(subject, rounds),
        violations: rounds.iter().map(|round| round.violations).sum(),
        involuntary_switches: withheld.involuntary_switches,
        runqueue_wait_ns: withheld.runqueue_wait_ns,
        runqueue_wait_share: withheld
            .runqueue_wait_ns
            .map(|ns| ns as f64 / withheld.presence_ns.max(1) as f64),
        steal_ticks: rounds.iter().map(|round| round.steal_ticks).sum(),
    }
}

impl Latency {
    fn of(latency: &Histogram<u64>) -> Option<Self> {
        (!latency.is_empty()).then(|| Self {
            p50: latency.value_at_quantile(0.5),
            p99: latency.value_at_quantile(0.99),
            p999: latency.value_at_quantile(0.999),
            max: latency.max(),
        })
    }
}

fn events(subject: Subject, rounds: &[Outcome]) -> BTreeMap<&'static str, u64> {
    let rounds = match subject {
        Subject::Lock(_) => rounds,
        _ => &[],
    };
    let events = rounds.iter().map(|round| round.events.clone());
    events
        .reduce(|all, round| all.with(&round))
        .iter()
        .flat_map(Statistics::iter)
        .map(|(name, _, count)| (name, count))
        .collect()
}

pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values.
pub fn median(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
    }
}
