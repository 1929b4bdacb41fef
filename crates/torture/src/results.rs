//! The results of a torture over all rounds.

use std::collections::BTreeMap;

use anyhow::Result;
use lockworks::{Statistics, Tunable, fairness, topology, tunables};
use lockworks_measurements::{Latency, Range, Timeline, median, sorted};
use serde::Serialize;

use crate::contender::Contender;
use crate::host::{Host, Pin, Withheld};
use crate::plan::TorturePlan;
use crate::quota::Throttling;
use crate::round::{Handoffs, RunOutcome};
use crate::workload::Preset;
use lockworks_ui::plot::figure::{Chart, Column, Data, Draw, FAIRNESS, Figure, few_series};

/// The results, as JSON has them.
#[derive(Clone, Debug, Serialize)]
pub struct TortureResults {
    /// The machine that the torture ran on.
    pub machine: Host,
    /// The work of the threads.
    pub preset: Preset,
    /// Nanoseconds of work with the lock held.
    pub critical_ns: u64,
    /// Nanoseconds of work without the lock.
    pub think_ns: u64,
    /// The share of acquisitions as a reader, in percent.
    pub readers_percent: f64,
    /// How threads were bound to CPUs.
    pub pin: Pin,
    /// The CPU quota. None: there was none.
    pub quota: Option<Throttling>,
    /// The values of the tunables.
    pub tunables: TunablesSet,
    /// The length of each run in seconds.
    pub seconds: f64,
    /// The number of rounds.
    pub rounds: usize,
    /// The lock that ratios are relative to.
    pub reference: &'static str,
    /// Warnings about the machine or the measurement.
    pub warnings: Vec<String>,
    /// A row for each lock and number of threads.
    pub rows: Vec<TortureRow>,
}

/// The values of the tunables.
#[derive(Clone, Debug, Serialize)]
pub struct TunablesSet {
    numa_spinlock: bool,
    numa_spinlock_threshold_ms: u32,
    shuffle_reduction: bool,
    priority_waiters: bool,
    /// The tunables of single locks.
    by_name: BTreeMap<&'static str, u64>,
}

/// One lock with one number of threads. Counts are sums over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct TortureRow {
    /// The name of the lock.
    pub lock: &'static str,
    /// The number of threads.
    pub threads: usize,
    /// The operations of all threads in a second, median of the rounds.
    pub operations_per_second: f64,
    /// The operations a second in the slowest round.
    pub operations_per_second_min: f64,
    /// The operations a second in the fastest round.
    pub operations_per_second_max: f64,
    /// The operations a second, divided by those of the reference with as many threads in the same
    /// round. None: the reference did nothing.
    pub ratio: Option<Range>,
    /// The fairness factor, median of the rounds. None: no round completed an operation.
    pub fairness: Option<f64>,
    /// The operations completed.
    pub operations: u64,
    /// The waits of the timed acquisitions. None: none was timed.
    pub latency_ns: Option<Latency>,
    /// The number of timed acquisitions.
    pub latency_samples: u64,
    /// The 99.9th percentile, divided by that of the reference in the same round.
    pub p999_ratio: Option<Range>,
    /// Hand-offs between threads of one node.
    pub local_handoffs: u64,
    /// Hand-offs between nodes.
    pub remote_handoffs: u64,
    /// Acquisitions by the thread that had held the lock before.
    pub reacquisitions: u64,
    /// The events that the lock counted. Empty: the lock is a peer.
    pub events: BTreeMap<&'static str, u64>,
    /// Failures of mutual exclusion.
    pub violations: u64,
    /// The share of the time in which the lock was free although a thread waited for it, for at least 1 us
    /// at a time. None: there were readers, who acquire the lock unnoticed.
    pub free_share: Option<f64>,
    /// The share of the time of CPUs in which these were idle, of as many CPUs as there were threads at
    /// most. None: the system does not report it.
    pub idle_share: Option<f64>,
    /// An upper bound, from the two above, on the share of the CPUs' time that was lost because a CPU was
    /// idle while the lock was free and a thread waited for it.
    pub idle_while_free_share: Option<f64>,
    /// How often a thread was preempted.
    pub involuntary_switches: Option<u64>,
    /// Nanoseconds in which threads could run but had no CPU.
    pub runqueue_wait_ns: Option<u64>,
    /// `runqueue_wait_ns` as a share of the time of all threads.
    pub runqueue_wait_share: Option<f64>,
    /// Clock ticks that the hypervisor gave to other guests.
    pub steal_ticks: Option<u64>,
    /// The figures of each round, of which medians are taken.
    pub by_round: Vec<RoundFigures>,
    /// The events of threads at the beginning of the first round, if the plan asks for them.
    #[serde(skip)]
    pub timeline: Timeline,
}

/// The figures of one round of a lock.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundFigures {
    /// The operations a second of all threads together.
    pub operations_per_second: f64,
    /// The waits of the timed acquisitions. None: none was timed.
    pub latency_ns: Option<Latency>,
}

impl TortureResults {
    /// The greatest share of time for which other work kept threads from running although there were enough CPUs
    /// for them, if it is more than figures bear. A quota keeps threads from running, as is meant.
    pub fn disturbance(&self) -> Option<f64> {
        const BEARABLE: f64 = 0.05;
        let own = self
            .rows
            .iter()
            .filter(|row| row.threads <= self.machine.cpus);
        let shares = own.filter_map(|row| row.runqueue_wait_share);
        shares
            .reduce(f64::max)
            .filter(|share| *share > BEARABLE && self.quota.is_none())
    }

    /// What several measurements warn of: the warnings of the most disturbed one, since all warn alike.
    pub fn warnings_of<'a>(all: impl IntoIterator<Item = &'a Self>) -> &'a [String] {
        let share = |one: &Self| one.disturbance().unwrap_or_default();
        let most = all.into_iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        most.map_or(&[], |one| &one.warnings)
    }

    /// The failures of mutual exclusion, in words.
    pub fn violations(&self) -> impl Iterator<Item = String> {
        let broken = self.rows.iter().filter(|row| row.violations > 0);
        broken.map(|row| {
            format!(
                "VIOLATION: {} with {} threads failed to exclude {} times",
                row.lock, row.threads, row.violations
            )
        })
    }
}

/// The runs of all rounds so far.
pub struct Collected<'a> {
    plan: &'a TorturePlan,
    /// The runs by number of threads, then by lock.
    outcomes: Vec<Vec<RunOutcome>>,
}

impl<'a> Collected<'a> {
    /// A collection without runs.
    pub fn new(plan: &'a TorturePlan) -> Self {
        let rows = plan.threads.len() * plan.contenders.len();
        Self {
            plan,
            outcomes: (0..rows).map(|_| Vec::new()).collect(),
        }
    }

    /// Adds a run of the lock and the number of threads at these places in the plan.
    pub fn add(&mut self, threads: usize, lock: usize, outcome: RunOutcome) {
        self.outcomes[threads * self.plan.contenders.len() + lock].push(outcome);
    }

    /// The results of all runs. `quota` is what the kernel says of the quota, if there was one.
    pub fn results(&self, quota: Option<Throttling>) -> Result<TortureResults> {
        let plan = self.plan;
        let machine = Host::look()?;
        let reference = plan.contenders.iter().position(|s| *s == plan.reference);
        let reference = reference.expect("the reference is tortured");
        let of = plan
            .threads
            .iter()
            .zip(self.outcomes.chunks(plan.contenders.len()));
        let rows: Vec<TortureRow> = of
            .flat_map(|(&threads, outcomes)| {
                let reference = rounds(&outcomes[reference]);
                let locks = plan.contenders.iter().zip(outcomes);
                locks.map(move |(&contender, outcomes)| {
                    row(contender, threads, outcomes, &reference)
                })
            })
            .collect();
        let warnings = topology::warning().into_iter().map(str::to_owned);
        let mut results = TortureResults {
            machine,
            preset: plan.workload.preset,
            critical_ns: plan.workload.critical_ns,
            think_ns: plan.workload.think_ns,
            readers_percent: plan.workload.readers,
            pin: plan.pin,
            quota,
            tunables: TunablesSet {
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
            warnings: warnings.collect(),
            rows,
        };
        let disturbed = results.disturbance().map(|share| {
            format!(
                "other work kept threads from running for up to {:.0} % of their time although they \
                 were not more than the CPUs; measure on an idle machine",
                100.0 * share
            )
        });
        results.warnings.extend(disturbed);
        Ok(results)
    }
}

impl Draw for TortureResults {
    fn figures(&self, command: &str) -> Vec<Figure> {
        type Row = TortureRow;
        type Point<'a> = &'a dyn Fn(&Row) -> [f64; 3];
        let figure = |id: &str, what, text, (y, log): (&str, _), point: Point, columns: &[_]| {
            let point = |row: &Row| (row.lock, row.threads, point(row));
            let (series, left_out) = few_series(command, self.rows.iter().map(point));
            let y = y.to_owned();
            Figure {
                id: id.to_owned(),
                title: format!("{what}, measured here"),
                text: format!("{text}{left_out}"),
                command: command.to_owned(),
                chart: Some(Chart::Lines { y, log, series }),
                data: Data::of(&self.rows, columns),
            }
        };
        let lock: Column<Row> = ("lock", &|row| row.lock.into());
        let threads: Column<Row> = ("threads", &|row| row.threads.into());
        let wait = |row: &Row, of: fn(Latency) -> u64| row.latency_ns.map(of).into();
        vec![
            figure(
                "throughput",
                "Throughput",
                format!(
                    "Threads take one lock in a loop and increment two counters, on {} CPUs and {} \
                     NUMA node(s). Median of {} rounds; bars show the lowest and the highest round.",
                    self.machine.cpus, self.machine.nodes, self.rounds
                ),
                ("operations a second", true),
                &|row| {
                    let (low, high) =
                        (row.operations_per_second_min, row.operations_per_second_max);
                    [row.operations_per_second, low, high]
                },
                &[
                    lock,
                    threads,
                    ("operations a second", &|row| {
                        row.operations_per_second.into()
                    }),
                    ("lowest", &|row| row.operations_per_second_min.into()),
                    ("highest", &|row| row.operations_per_second_max.into()),
                ],
            ),
            figure(
                "fairness",
                "Fairness",
                format!("{FAIRNESS} The same runs."),
                ("fairness factor", false),
                &|row| [row.fairness.unwrap_or(f64::NAN); 3],
                &[
                    lock,
                    threads,
                    ("fairness factor", &|row| row.fairness.into()),
                ],
            ),
            figure(
                "waits",
                "Long waits",
                "One wait in a thousand is longer than this. The same runs.".to_owned(),
                ("wait in ns, 99.9th percentile", true),
                &|row| [row.latency_ns.map_or(1.0, |wait| wait.p999.max(1) as f64); 3],
                &[
                    lock,
                    threads,
                    ("median ns", &|row| wait(row, |wait| wait.p50)),
                    ("99.9th percentile ns", &|row| wait(row, |wait| wait.p999)),
                    ("longest ns", &|row| wait(row, |wait| wait.max)),
                ],
            ),
        ]
    }
}

/// A figure divided by that of the reference, for each round in which both have one that is not 0.
fn ratios(
    rounds: &[RoundFigures],
    to: &[RoundFigures],
    figure: impl Fn(&RoundFigures) -> Option<f64>,
) -> Option<Range> {
    let pairs = rounds.iter().zip(to);
    Range::of(pairs.filter_map(|(round, to)| {
        let to = figure(to).filter(|&to| to > 0.0)?;
        Some(figure(round)? / to)
    }))
}

fn rounds(outcomes: &[RunOutcome]) -> Vec<RoundFigures> {
    let round = |outcome: &RunOutcome| RoundFigures {
        operations_per_second: outcome.operations_per_second(),
        latency_ns: Latency::of(&outcome.latency),
    };
    outcomes.iter().map(round).collect()
}

fn row(
    contender: Contender,
    threads: usize,
    outcomes: &[RunOutcome],
    reference: &[RoundFigures],
) -> TortureRow {
    let rounds = rounds(outcomes);
    let rate = |round: &RoundFigures| round.operations_per_second;
    let rates = Range::of(rounds.iter().map(rate)).expect("there is a round");
    let fairness = outcomes.iter().filter_map(|o| fairness(&o.operations));
    let mut handoffs = Handoffs::default();
    for outcome in outcomes {
        handoffs += outcome.handoffs;
    }
    let mean = |share: fn(&RunOutcome) -> Option<f64>| {
        let sum: Option<f64> = outcomes.iter().map(share).sum();
        Some(sum? / outcomes.len() as f64)
    };
    let (free, idle) = (mean(|o| o.free_share), mean(|o| o.idle_share));
    let withheld: Withheld = outcomes.iter().map(|round| round.withheld).sum();
    TortureRow {
        lock: contender.name(),
        threads,
        operations_per_second: rates.median,
        operations_per_second_min: rates.min,
        operations_per_second_max: rates.max,
        ratio: ratios(&rounds, reference, |round| Some(rate(round))),
        fairness: median(&sorted(fairness)),
        operations: outcomes.iter().flat_map(|o| &o.operations).sum(),
        latency_ns: medians(&rounds),
        latency_samples: outcomes.iter().map(|o| o.latency.len()).sum(),
        p999_ratio: ratios(&rounds, reference, |round| {
            Some(round.latency_ns?.p999 as f64)
        }),
        local_handoffs: handoffs.local,
        remote_handoffs: handoffs.remote,
        reacquisitions: handoffs.reacquisitions,
        events: events(contender, outcomes),
        violations: outcomes.iter().map(|round| round.violations).sum(),
        free_share: free,
        idle_share: idle,
        idle_while_free_share: free.zip(idle).map(|(free, idle)| free.min(idle)),
        involuntary_switches: withheld.involuntary_switches,
        runqueue_wait_ns: withheld.runqueue_wait_ns,
        runqueue_wait_share: withheld
            .runqueue_wait_ns
            .map(|ns| ns as f64 / withheld.presence_ns.max(1) as f64),
        steal_ticks: outcomes.iter().map(|round| round.steal_ticks).sum(),
        by_round: rounds,
        timeline: outcomes[0].timeline.clone(),
    }
}

/// The medians over the rounds that have any. None: no round has.
fn medians(rounds: &[RoundFigures]) -> Option<Latency> {
    let latencies: Vec<Latency> = rounds.iter().filter_map(|round| round.latency_ns).collect();
    let middle = |percentile: fn(&Latency) -> u64| {
        median(&sorted(latencies.iter().map(|l| percentile(l) as f64))).map(|ns| ns as u64)
    };
    Some(Latency {
        p50: middle(|l| l.p50)?,
        p99: middle(|l| l.p99)?,
        p999: middle(|l| l.p999)?,
        max: latencies.iter().map(|l| l.max).max()?,
    })
}

fn events(contender: Contender, rounds: &[RunOutcome]) -> BTreeMap<&'static str, u64> {
    let rounds = match contender {
        Contender::Lock(_) => rounds,
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

#[cfg(test)]
mod tests {
    use super::{Latency, RoundFigures, medians, ratios};

    fn round(operations_per_second: f64, ns: u64) -> RoundFigures {
        let latency_ns = (ns > 0).then_some(Latency {
            p50: ns,
            p99: 10 * ns,
            p999: 100 * ns,
            max: 1000 * ns,
        });
        RoundFigures {
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
        let rates = |round: &RoundFigures| Some(round.operations_per_second);
        let range = ratios(&rounds, &to, rates).expect("three ratios");
        assert_eq!((range.min, range.median, range.max), (0.5, 1.0, 3.0));
        let p999 = |round: &RoundFigures| Some(round.latency_ns?.p999 as f64);
        let range = ratios(&rounds, &to, p999).expect("two ratios");
        assert_eq!((range.min, range.median, range.max), (1.0, 2.0, 3.0));
        assert!(ratios(&[], &[], rates).is_none());
    }

    #[test]
    fn percentiles_are_medians_and_the_longest_wait_is_the_longest() {
        let latency = medians(&[round(1.0, 9), round(1.0, 1), round(1.0, 3), round(1.0, 0)]);
        let latency = latency.expect("of three rounds");
        assert_eq!((latency.p50, latency.p99, latency.p999), (3, 30, 300));
        assert_eq!(latency.max, 9000);
        assert!(medians(&[round(1.0, 0)]).is_none());
    }
}
