//! What a torture came to, over all rounds.

use std::collections::BTreeMap;

use anyhow::Result;
use hdrhistogram::Histogram;
use lockworks::{Statistics, Tunable, fairness, topology, tunables};
use serde::Serialize;

use super::Plan;
use super::host::{Host, Pin, Withheld};
use super::round::{Handoffs, Outcome};
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
    /// The lock that ratios are to.
    pub reference: &'static str,
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
    /// Operations a second by those of the reference with as many threads, round by round; none
    /// where that did nothing.
    pub ratio: Option<Range>,
    /// Median of the rounds; none if nothing was done in any.
    pub fairness: Option<f64>,
    /// Operations completed.
    pub operations: u64,
    /// Of acquisitions that were timed.
    pub latency_ns: Option<Latency>,
    /// How many those were.
    pub latency_samples: u64,
    /// The 99.9th percentile by that of the reference, round by round.
    pub p999_ratio: Option<Range>,
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
    /// Round by round, what medians are taken of.
    pub by_round: Vec<Round>,
}

/// One round of a lock.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    /// Of all threads together.
    pub operations_per_second: f64,
    /// Of acquisitions that were timed.
    pub latency_ns: Option<Latency>,
}

/// Of several rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Range {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Range {
    /// Of no rounds there is none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        Some(Self {
            median: median(&values)?,
            min: values[0],
            max: values[values.len() - 1],
        })
    }

    /// Of a figure by that of others, where both have one that is not 0.
    fn of_ratios(
        rounds: &[Round],
        to: &[Round],
        figure: impl Fn(&Round) -> Option<f64>,
    ) -> Option<Self> {
        let pairs = rounds.iter().zip(to);
        Self::of(pairs.filter_map(|(round, to)| {
            let to = figure(to).filter(|&to| to > 0.0)?;
            Some(figure(round)? / to)
        }))
    }
}

/// Percentiles of the time from asking for the lock to having it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half were faster. Of several rounds the median, as all percentiles.
    pub p50: u64,
    /// 1 % were slower.
    pub p99: u64,
    /// 0.1 % were slower.
    pub p999: u64,
    /// The slowest seen, in any round.
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
        let reference = plan.subjects.iter().position(|s| *s == plan.reference);
        let reference = reference.expect("the reference is tortured");
        let of = plan
            .threads
            .iter()
            .zip(self.outcomes.chunks(plan.subjects.len()));
        let rows: Vec<Row> = of
            .flat_map(|(&threads, outcomes)| {
                let reference = rounds(&outcomes[reference]);
                let locks = plan.subjects.iter().zip(outcomes);
                locks.map(move |(&subject, outcomes)| row(subject, threads, outcomes, &reference))
            })
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
            reference: plan.reference.name(),
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

fn rounds(outcomes: &[Outcome]) -> Vec<Round> {
    let round = |outcome: &Outcome| Round {
        operations_per_second: outcome.operations_per_second(),
        latency_ns: Latency::of(&outcome.latency),
    };
    outcomes.iter().map(round).collect()
}

fn row(subject: Subject, threads: usize, outcomes: &[Outcome], reference: &[Round]) -> Row {
    let rounds = rounds(outcomes);
    let rate = |round: &Round| round.operations_per_second;
    let rates = Range::of(rounds.iter().map(rate)).expect("there is a round");
    let fairness = outcomes.iter().filter_map(|o| fairness(&o.operations));
    let mut handoffs = Handoffs::default();
    for outcome in outcomes {
        handoffs += outcome.handoffs;
    }
    let withheld: Withheld = outcomes.iter().map(|round| round.withheld).sum();
    Row {
        lock: subject.name(),
        threads,
        operations_per_second: rates.median,
        operations_per_second_min: rates.min,
        operations_per_second_max: rates.max,
        ratio: Range::of_ratios(&rounds, reference, |round| Some(rate(round))),
        fairness: median(&sorted(fairness)),
        operations: outcomes.iter().flat_map(|o| &o.operations).sum(),
        latency_ns: Latency::medians(&rounds),
        latency_samples: outcomes.iter().map(|o| o.latency.len()).sum(),
        p999_ratio: Range::of_ratios(&rounds, reference, |round| {
            Some(round.latency_ns?.p999 as f64)
        }),
        local_handoffs: handoffs.local,
        remote_handoffs: handoffs.remote,
        reacquisitions: handoffs.reacquisitions,
        events: events(subject, outcomes),
        violations: outcomes.iter().map(|round| round.violations).sum(),
        involuntary_switches: withheld.involuntary_switches,
        runqueue_wait_ns: withheld.runqueue_wait_ns,
        runqueue_wait_share: withheld
            .runqueue_wait_ns
            .map(|ns| ns as f64 / withheld.presence_ns.max(1) as f64),
        steal_ticks: outcomes.iter().map(|round| round.steal_ticks).sum(),
        by_round: rounds,
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

    /// Of the rounds that have any.
    fn medians(rounds: &[Round]) -> Option<Self> {
        let latencies: Vec<Self> = rounds.iter().filter_map(|round| round.latency_ns).collect();
        let middle = |percentile: fn(&Self) -> u64| {
            median(&sorted(latencies.iter().map(|l| percentile(l) as f64))).map(|ns| ns as u64)
        };
        Some(Self {
            p50: middle(|l| l.p50)?,
            p99: middle(|l| l.p99)?,
            p999: middle(|l| l.p999)?,
            max: latencies.iter().map(|l| l.max).max()?,
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
    use super::{Latency, Range, Round, median};

    fn round(operations_per_second: f64, ns: u64) -> Round {
        let latency_ns = (ns > 0).then_some(Latency {
            p50: ns,
            p99: 10 * ns,
            p999: 100 * ns,
            max: 1000 * ns,
        });
        Round {
            operations_per_second,
            latency_ns,
        }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let rounds = [
            round(1.0, 1),
            round(20.0, 3),
            round(300.0, 9),
            round(5.0, 0),
        ];
        let to = [
            round(2.0, 1),
            round(20.0, 1),
            round(100.0, 0),
            round(0.0, 1),
        ];
        let rates = |round: &Round| Some(round.operations_per_second);
        let range = Range::of_ratios(&rounds, &to, rates).expect("three ratios");
        assert_eq!((range.min, range.median, range.max), (0.5, 1.0, 3.0));
        let p999 = |round: &Round| Some(round.latency_ns?.p999 as f64);
        let range = Range::of_ratios(&rounds, &to, p999).expect("two ratios");
        assert_eq!((range.min, range.median, range.max), (1.0, 2.0, 3.0));
        assert!(Range::of_ratios(&[], &[], rates).is_none());
    }

    #[test]
    fn percentiles_are_medians_and_the_longest_wait_is_the_longest() {
        let latency =
            Latency::medians(&[round(1.0, 9), round(1.0, 1), round(1.0, 3), round(1.0, 0)]);
        let latency = latency.expect("of three rounds");
        assert_eq!((latency.p50, latency.p99, latency.p999), (3, 30, 300));
        assert_eq!(latency.max, 9000);
        assert!(Latency::medians(&[round(1.0, 0)]).is_none());
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
    }
}
