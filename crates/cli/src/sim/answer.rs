//! The answer of a simulation: the best lock, by how much, and how sure that is.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use lockworks_sim::comparison::{SimulationPlan, SimulationRow};
use lockworks_sim::doubt::Deciding;
use lockworks_ui::figures::{counted, three_digits};

/// The answer over all rows.
#[derive(Serialize)]
pub struct Answer {
    /// The fastest lock of each number of threads.
    pub by_threads: Vec<Fastest>,
    /// The locks by their distance from the fastest over all numbers of threads, nearest first. Empty
    /// if there is one number of threads only.
    pub overall: Vec<Distance>,
    /// The locks whose fairness factor says little, because the runs are too short for it.
    pub too_short_for_fairness: Vec<ShortRun>,
    #[serde(skip)]
    reference: &'static str,
    #[serde(skip)]
    doubt: bool,
    #[serde(skip)]
    seeds: usize,
    #[serde(skip)]
    ms: f64,
}

/// The fastest lock of a number of threads.
#[derive(Serialize)]
pub struct Fastest {
    /// The number of threads.
    pub threads: usize,
    /// The number of CPUs that they share. None: each has one.
    pub cpus: Option<usize>,
    /// The lock.
    pub lock: &'static str,
    /// Its operations a second over those of the reference, median over the seeds.
    pub reference_ratio: Option<f64>,
    /// The least and the greatest of these ratios.
    pub reference_ratio_range: Option<[f64; 2]>,
    /// The other locks that are at least as fast with one of the seeds.
    pub level: Vec<&'static str>,
    /// The number of seeds with which the lock is the fastest: with doubt, the number of machines.
    pub fastest_with: usize,
    /// With doubt: the value of the machine that decides most about the ratio to the second lock.
    pub decided_by: Option<Deciding>,
    /// Whether no lock is faster than another by 1 %: in the median, and with doubt on each machine.
    pub all_level: bool,
}

/// A lock's distance from the fastest lock, over all numbers of threads.
#[derive(Serialize)]
pub struct Distance {
    /// The lock.
    pub lock: &'static str,
    /// The geometric mean of its operations a second over those of the fastest lock.
    pub of_fastest: f64,
    /// The least of these ratios.
    pub worst: f64,
    /// The number of threads with the least ratio.
    pub worst_threads: usize,
}

/// A run in which a lock changed the NUMA node that it prefers too rarely for a fairness factor.
#[derive(Serialize)]
pub struct ShortRun {
    /// The number of threads.
    pub threads: usize,
    /// The lock.
    pub lock: &'static str,
    /// The number of times that the lock changed the NUMA node that it prefers.
    pub changes: u64,
}

/// The least number of times, for each NUMA node, that a lock must change the node that it prefers.
/// In a shorter run, chance decides which nodes it serves more often, and so its fairness factor.
const CHANGES_PER_NODE: u64 = 10;

/// The milliseconds of a run in which threads that share CPUs take many turns. A turn takes up to 24
/// under CFS (`model.scheduler_latency_us`), and a lock that spins collapses in the course of several.
const ENOUGH_MS: f64 = 400.0;

impl Answer {
    /// The answer that these rows of the plan give, with `reference` as the lock that others are
    /// compared with.
    pub fn of(rows: &[SimulationRow], reference: &'static str, plan: &SimulationPlan) -> Self {
        let (nodes, ms) = (plan.scenario.machine.nodes(), plan.ms);
        let by_threads: Vec<&[SimulationRow]> =
            rows.chunk_by(|a, b| a.threads == b.threads).collect();
        let compared = by_threads.iter().filter(|rows| rows.len() > 1);
        Self {
            by_threads: compared
                .filter_map(|rows| fastest(rows, reference, plan))
                .collect(),
            overall: overall(&by_threads),
            too_short_for_fairness: rows
                .iter()
                .filter_map(|row| {
                    let changes = preference_changes(row)?;
                    (changes < CHANGES_PER_NODE * nodes as u64).then_some(ShortRun {
                        threads: row.threads,
                        lock: row.lock,
                        changes,
                    })
                })
                .collect(),
            reference,
            doubt: plan.doubt.is_some(),
            ms,
            seeds: rows
                .first()
                .map_or(0, |row| row.operations_per_second_by_seed.len()),
        }
    }

    /// The answer in sentences. Empty if only one lock ran.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let crowded = |fastest: &&Fastest| fastest.cpus.is_some_and(|cpus| cpus < fastest.threads);
        for fastest in &self.by_threads {
            let seeds = if crowded(&fastest) && self.ms < ENOUGH_MS && !self.doubt {
                1
            } else {
                self.seeds
            };
            fastest.write(self.reference, seeds, self.doubt, &mut text);
        }
        if let Some(crowded) = self.by_threads.iter().rfind(crowded) {
            let threads = crowded.threads;
            let cpus = counted(crowded.cpus.unwrap_or_default() as u64, "CPU");
            let _ = match self.ms < ENOUGH_MS {
                false => writeln!(
                    text,
                    "{threads} threads on {cpus} measure parking and the scheduler as much as the lock."
                ),
                true => writeln!(
                    text,
                    "{} ms are too short for {threads} threads on {cpus}: they have had few turns, and another \
                     lock may be the fastest. --ms 500 tells.",
                    self.ms
                ),
            };
        }
        if let [best, others @ ..] = self.overall.as_slice() {
            let others: String = others
                .iter()
                .take(2)
                .map(|d| format!("; then {} {}", d.lock, three_digits(d.of_fastest)))
                .collect();
            let _ = writeln!(
                text,
                "Over all these numbers of threads, {} is nearest to the fastest: {} of it in \
                 geometric mean, {} at worst, with {}{others}.",
                best.lock,
                three_digits(best.of_fastest),
                three_digits(best.worst),
                counted(best.worst_threads as u64, "thread"),
            );
        }
        if self.seeds == 1 && !self.by_threads.is_empty() {
            text += "One seed does not tell chance from a difference; --seeds 3 does.\n";
        }
        let short: BTreeSet<&str> = self.too_short_for_fairness.iter().map(|s| s.lock).collect();
        if let Some(least) = self.too_short_for_fairness.iter().map(|s| s.changes).min() {
            let _ = writeln!(
                text,
                "The fairness of {} says little here: the NUMA node that it prefers {}. Longer runs \
                 tell more, such as --ms 1000.",
                Vec::from_iter(short).join(" and "),
                match least {
                    0 => "did not change in a run".to_owned(),
                    n => format!("changed only {} in a run", counted(n, "time")),
                },
            );
        }
        text
    }
}

impl Fastest {
    fn write(&self, reference: &str, seeds: usize, doubt: bool, text: &mut String) {
        if self.all_level {
            let threads = counted(self.threads as u64, "thread");
            let _ = writeln!(text, "{threads}: no lock is faster than another by 1 %.");
            return;
        }
        let _ = write!(
            text,
            "{}: {} is fastest",
            counted(self.threads as u64, "thread"),
            self.lock
        );
        if let (Some(ratio), Some([least, most])) =
            (self.reference_ratio, self.reference_ratio_range)
            && self.lock != reference
        {
            let _ = write!(text, ", {} times {reference}", three_digits(ratio));
            if seeds > 1 {
                let (least, most) = (three_digits(least), three_digits(most));
                let _ = write!(text, " ({least} to {most})");
            }
        }
        if doubt {
            let _ = write!(
                text,
                ", in {} of {seeds} machines like this one",
                self.fastest_with
            );
        } else if seeds > 1 {
            *text += match self.level.is_empty() {
                true => ", with every seed",
                false => ", but not with every seed faster than ",
            };
            *text += &self.level.join(", ");
        }
        if let Some(Deciding { key, correlation }) = &self.decided_by {
            let _ = write!(
                text,
                "; {key} decides most (correlation with its lead {correlation:.1})"
            );
        }
        *text += ".\n";
    }
}

/// Whether neither of two rates is greater than the other by 1 %.
fn are_level(a: f64, b: f64) -> bool {
    a <= 1.01 * b && b <= 1.01 * a
}

/// The fastest of these rows, which have the same number of threads. Of equal locks it is the
/// reference.
fn fastest(rows: &[SimulationRow], reference: &str, plan: &SimulationPlan) -> Option<Fastest> {
    let order = |a: &&SimulationRow, b: &&SimulationRow| {
        let rate = a.operations_per_second.total_cmp(&b.operations_per_second);
        rate.then((a.lock == reference).cmp(&(b.lock == reference)))
    };
    let best = rows.iter().max_by(order)?;
    let others = rows.iter().filter(|row| row.lock != best.lock);
    let beaten_with_each_seed = |other: &SimulationRow| {
        let rates = &best.operations_per_second_by_seed;
        let pairs = rates.iter().zip(&other.operations_per_second_by_seed);
        pairs.into_iter().all(|(best, other)| best > other)
    };
    let rates = |row: &SimulationRow| row.operations_per_second_by_seed.clone();
    let second = others.clone().max_by(order);
    let lead = second.map(|second| {
        let pairs = rates(best).into_iter().zip(rates(second));
        pairs
            .map(|(best, second)| best / second)
            .collect::<Vec<f64>>()
    });
    let doubt = plan.doubt.as_ref().zip(lead.filter(|_| best.threads > 1));
    let beaten_with = |seed: usize| {
        let mut others = others.clone();
        others.any(|row| row.operations_per_second_by_seed[seed] > rates(best)[seed])
    };
    let seeds = 0..best.operations_per_second_by_seed.len();
    Some(Fastest {
        fastest_with: seeds.filter(|&seed| !beaten_with(seed)).count(),
        decided_by: doubt
            .and_then(|(doubt, lead)| doubt.deciding(&plan.scenario, plan.seed, &lead)),
        threads: best.threads,
        cpus: best.sharing.as_ref().map(|sharing| sharing.cpus),
        lock: best.lock,
        reference_ratio: best.reference_ratio.map(|ratio| ratio.median),
        reference_ratio_range: best.reference_ratio.map(|ratio| [ratio.min, ratio.max]),
        level: others
            .clone()
            .filter(|row| !beaten_with_each_seed(row))
            .map(|row| row.lock)
            .collect(),
        all_level: rows.iter().all(|row| {
            let (own, best_rates) = (rates(row), rates(best));
            let on_each = || own.iter().zip(&best_rates).all(|(a, b)| are_level(*a, *b));
            are_level(row.operations_per_second, best.operations_per_second)
                && (plan.doubt.is_none() || on_each())
        }),
    })
}

fn overall(by_threads: &[&[SimulationRow]]) -> Vec<Distance> {
    let Some(first) = by_threads.first().filter(|rows| rows.len() > 1) else {
        return Vec::new();
    };
    if by_threads.len() < 2 {
        return Vec::new();
    }
    let distance = |lock: &'static str| {
        let ratios: Option<Vec<(f64, usize)>> = by_threads
            .iter()
            .map(|rows| {
                let own = rows.iter().find(|row| row.lock == lock)?;
                let best = rows.iter().map(|row| row.operations_per_second);
                let best = best.fold(0.0, f64::max);
                (own.operations_per_second > 0.0)
                    .then_some((own.operations_per_second / best, own.threads))
            })
            .collect();
        let ratios = ratios?;
        let logs: f64 = ratios.iter().map(|(ratio, _)| ratio.ln()).sum();
        let worst = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Distance {
            lock,
            of_fastest: (logs / ratios.len() as f64).exp(),
            worst: worst.0,
            worst_threads: worst.1,
        })
    };
    let mut distances: Vec<Distance> = first.iter().filter_map(|row| distance(row.lock)).collect();
    distances.sort_by(|a, b| b.of_fastest.total_cmp(&a.of_fastest));
    distances
}

/// The number of times that a lock changed the NUMA node that it prefers. None: it prefers none, or its
/// events do not tell.
fn preference_changes(row: &SimulationRow) -> Option<u64> {
    let event = |name: &str| row.events.get(name).and_then(serde_json::Value::as_u64);
    let moved = event("secondary_moves")?;
    (moved > 0)
        .then(|| event("threshold_flushes").unwrap_or(0) + event("empty_flushes").unwrap_or(0))
}
