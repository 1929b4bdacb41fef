//! The runs of all contestants, and the summary of each contestant.

use lockworks_measurements::{Range, median, sorted};

use super::report::{ComparisonReport, ContestantSummary};
use super::runs::{Contestant, Failure, Measure, ProgramRun, RunOutcome};
use super::significance::{Beside, Ratio};

/// All runs so far.
pub struct Comparison {
    /// The number of rounds that are planned.
    pub rounds: u32,
    /// The value that is compared.
    pub measure: Measure,
    /// The runs of each contestant, glibc first.
    runs: Vec<ContestantRuns>,
}

/// The runs of one contestant.
struct ContestantRuns {
    contestant: Contestant,
    /// The failed run of the contestant, which was its last run.
    failure: Option<Failure>,
    /// The runs that count, in the order of rounds.
    runs: Vec<ProgramRun>,
    /// Whether a run was served by the contestant.
    is_served: bool,
    /// The warning of the preload library.
    warning: Option<String>,
}

impl ContestantRuns {
    fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.value).collect()
    }

    /// The ratio to another contestant's runs. None: a run failed.
    fn ratio(&self, to: &Self, comparisons: usize) -> Option<Ratio> {
        let whole = self.failure.is_none();
        whole.then(|| Ratio::of(&self.values(), &to.values(), comparisons))?
    }
}

impl Comparison {
    /// A comparison without runs.
    pub fn new(rounds: u32, measure: Measure, contestants: Vec<Contestant>) -> Self {
        let row = |contestant| ContestantRuns {
            contestant,
            runs: Vec::new(),
            failure: None,
            is_served: false,
            warning: None,
        };
        Self {
            rounds,
            measure,
            runs: contestants.into_iter().map(row).collect(),
        }
    }

    /// Adds the runs of a round, each with the place of its contestant. A warm-up round does not count.
    pub fn add_round(&mut self, outcomes: Vec<(usize, RunOutcome)>, counts: bool) {
        for (row, outcome) in outcomes {
            let row = &mut self.runs[row];
            match outcome {
                RunOutcome::Ended(mut run) => {
                    row.is_served |= run.is_served;
                    row.warning = run.warning.take().or(row.warning.take());
                    if counts {
                        row.runs.push(run);
                    }
                }
                RunOutcome::Failed(failure) => row.failure = Some(failure),
            }
        }
    }

    /// The contestants, glibc first.
    pub fn contestants(&self) -> impl Iterator<Item = Contestant> {
        self.runs.iter().map(|runs| runs.contestant.clone())
    }

    /// The contestants that failed, each with why.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.runs.iter().filter_map(|runs| {
            let failure = runs.failure.as_ref()?;
            Some(format!("FAIL: {}: {failure}", runs.contestant.name()))
        })
    }

    /// Whether no lock, of those that did not fail, has served a process with threads.
    pub fn served_none(&self) -> bool {
        let mut sound = self.runs[1..].iter().filter(|row| row.failure.is_none());
        sound.clone().next().is_some() && !sound.any(|row| row.is_served)
    }

    /// Whether a round is complete.
    pub fn has_rounds(&self) -> bool {
        self.rounds_made() > 0
    }

    /// Whether the contestant at this place has failed and is left out.
    pub fn has_failed(&self, row: usize) -> bool {
        self.runs[row].failure.is_some()
    }

    /// The number of complete rounds that count.
    fn rounds_made(&self) -> usize {
        self.runs[0].runs.len()
    }

    /// The report on the runs.
    pub fn report(&self) -> ComparisonReport<'_> {
        let glibc = &self.runs[0];
        let comparisons = self.runs.len() - 1;
        let lower = self.measure.lower_is_better();
        let locks: Vec<ContestantSummary> = self
            .runs
            .iter()
            .map(|row| {
                let ratio = row.ratio(glibc, comparisons);
                let middle =
                    |figure: fn(&ProgramRun) -> f64| median(&sorted(row.runs.iter().map(figure)));
                ContestantSummary {
                    lock: row.contestant.name(),
                    value: Range::of(row.runs.iter().map(|run| run.value)),
                    ratio,
                    beside_glibc: ratio.map(|ratio| ratio.beside(lower)),
                    cpu_s: middle(|run| run.user_s + run.system_s),
                    switches: middle(|run| {
                        (run.voluntary_switches + run.involuntary_switches) as f64
                    }),
                    failed: row.failure.as_ref().map(Failure::status),
                    warning: row.warning.as_deref(),
                    by_round: &row.runs,
                }
            })
            .collect();
        let best = self.best(&locks);
        let mut report = ComparisonReport {
            command: std::env::args().collect(),
            measure: match &self.measure {
                Measure::WallTime => "wall time, s",
                Measure::Figure { pattern, .. } => pattern.as_str(),
            },
            lower_is_better: lower,
            rounds: self.rounds,
            rounds_made: self.rounds_made(),
            best: best.map(|best| locks[best].lock),
            level_with_best: best.map_or_else(Vec::new, |best| self.level_with(best)),
            locks,
            served_none: self.served_none(),
            verdict: String::new(),
            caution: None,
        };
        report.verdict = report.verdict();
        report.caution = report.caution();
        report
    }

    /// The place of the lock that is better than glibc by the greatest ratio.
    fn best(&self, locks: &[ContestantSummary]) -> Option<usize> {
        let gain = |row: &usize| {
            let ratio = locks[*row].ratio.map_or(1.0, |ratio| ratio.median);
            match self.measure.lower_is_better() {
                true => 1.0 / ratio,
                false => ratio,
            }
        };
        (1..locks.len())
            .filter(|&row| locks[row].beside_glibc == Some(Beside::Better))
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// The locks that do not differ from the best beyond the noise.
    fn level_with(&self, best: usize) -> Vec<&'static str> {
        let others = self.runs.iter().enumerate().skip(1);
        let others = others.filter(|(row, _)| *row != best);
        let comparisons = self.runs.len() - 1;
        others
            .filter(|(_, row)| {
                row.ratio(&self.runs[best], comparisons)
                    .is_some_and(|ratio| ratio.beside(true) == Beside::Level)
            })
            .map(|(_, row)| row.contestant.name())
            .collect()
    }
}
