//! What all runs came to, for people and as JSON.

use comfy_table::CellAlignment;
use serde::Serialize;

use super::figures::{Beside, Ratio, rounds_needed};
use super::runs::{Contestant, Failure, Measure, Outcome, Run};
use crate::output;
use crate::torture::results::{Range, median, sorted};
use crate::torture::scaled;

/// The runs so far.
pub struct Results {
    /// How many rounds there are to be.
    pub rounds: u32,
    /// What is compared.
    pub measure: Measure,
    /// glibc first.
    pub rows: Vec<Row>,
}

/// The runs of one contestant.
pub struct Row {
    /// What serves.
    pub contestant: Contestant,
    /// It has left out the rest.
    pub failure: Option<Failure>,
    /// Those that count, in the order of rounds.
    runs: Vec<Run>,
    warning: Option<String>,
}

impl Row {
    fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.value).collect()
    }

    /// Of those that count, nothing can be said of one that failed.
    fn ratio(&self, to: &Row, comparisons: usize) -> Option<Ratio> {
        let whole = self.failure.is_none();
        whole.then(|| Ratio::of(&self.values(), &to.values(), comparisons))?
    }
}

impl Results {
    /// No runs yet.
    pub fn new(rounds: u32, measure: Measure, contestants: Vec<Contestant>) -> Self {
        let row = |contestant| Row {
            contestant,
            runs: Vec::new(),
            failure: None,
            warning: None,
        };
        Self {
            rounds,
            measure,
            rows: contestants.into_iter().map(row).collect(),
        }
    }

    /// One round more, which may be one that does not count: who ran, and how that ended.
    pub fn add_round(&mut self, outcomes: Vec<(usize, Outcome)>, counts: bool) {
        for (row, outcome) in outcomes {
            let row = &mut self.rows[row];
            match outcome {
                Outcome::Ended(mut run) => {
                    row.warning = run.warning.take().or(row.warning.take());
                    if counts {
                        row.runs.push(run);
                    }
                }
                Outcome::Failed(failure) => row.failure = Some(failure),
            }
        }
    }

    /// Is there anything to tell?
    pub fn has_rounds(&self) -> bool {
        self.rounds_made() > 0
    }

    /// Is this row left out from now on?
    pub fn has_failed(&self, row: usize) -> bool {
        self.rows[row].failure.is_some()
    }

    /// Those that count.
    fn rounds_made(&self) -> usize {
        self.rows[0].runs.len()
    }

    /// All of it.
    pub fn report(&self) -> Report<'_> {
        let glibc = &self.rows[0];
        let comparisons = self.rows.len() - 1;
        let lower = self.measure.lower_is_better();
        let locks: Vec<Summary> = self
            .rows
            .iter()
            .map(|row| {
                let ratio = row.ratio(glibc, comparisons);
                let middle = |figure: fn(&Run) -> f64| median(&sorted(row.runs.iter().map(figure)));
                Summary {
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
        let mut report = Report {
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
            verdict: String::new(),
        };
        report.verdict = report.verdict();
        report
    }

    /// The lock that is better than glibc, by most.
    fn best(&self, locks: &[Summary]) -> Option<usize> {
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

    /// Those between which and the best there is no difference beyond the noise.
    fn level_with(&self, best: usize) -> Vec<&'static str> {
        let others = self.rows.iter().enumerate().skip(1);
        let others = others.filter(|(row, _)| *row != best);
        let comparisons = self.rows.len() - 1;
        others
            .filter(|(_, row)| {
                row.ratio(&self.rows[best], comparisons)
                    .is_some_and(|ratio| ratio.beside(true) == Beside::Level)
            })
            .map(|(_, row)| row.contestant.name())
            .collect()
    }
}

/// As JSON.
#[derive(Serialize)]
pub struct Report<'a> {
    command: Vec<String>,
    /// What is compared: wall time, or the expression that finds the figure.
    measure: &'a str,
    lower_is_better: bool,
    rounds: u32,
    /// Fewer, if it was interrupted.
    rounds_made: usize,
    /// glibc first.
    locks: Vec<Summary<'a>>,
    /// The lock that is better than glibc, by most; none if none is.
    best: Option<&'static str>,
    level_with_best: Vec<&'static str>,
    verdict: String,
}

/// One row.
#[derive(Serialize)]
struct Summary<'a> {
    lock: &'static str,
    value: Option<Range>,
    ratio: Option<Ratio>,
    beside_glibc: Option<Beside>,
    cpu_s: Option<f64>,
    switches: Option<f64>,
    failed: Option<String>,
    warning: Option<&'a str>,
    by_round: &'a [Run],
}

impl Report<'_> {
    /// The table and what it says.
    pub fn table(&self) -> String {
        let mut table = output::table(&[
            "lock",
            "median",
            "min..max",
            "/ glibc",
            "95 % sure",
            "is",
            "CPU s",
            "switches",
        ]);
        table.add_rows(self.locks.iter().map(cells));
        for column in [1, 2, 3, 4, 6, 7] {
            let column = table.column_mut(column).expect("it is in the header");
            column.set_cell_alignment(CellAlignment::Right);
        }
        let better = match self.lower_is_better {
            true => "less",
            false => "more",
        };
        let mut text = format!(
            "{}: {better} is better; rounds: {} of {}.\n{table}\n",
            self.measure, self.rounds_made, self.rounds
        );
        for lock in &self.locks {
            text.extend(lock.warning.map(|warning| format!("{warning}\n")));
        }
        text.push_str(&format!("{}\n", self.verdict));
        text
    }

    fn verdict(&self) -> String {
        let locks = &self.locks[1..];
        let those = |what| -> Vec<&str> {
            let those = locks.iter().filter(|lock| lock.beside_glibc == Some(what));
            those.map(|lock| lock.lock).collect()
        };
        let sound = locks.iter().filter(|lock| lock.failed.is_none()).count();
        if sound == 0 {
            return "The program failed under every lock.".to_owned();
        }
        if !those(Beside::Unknown).is_empty() {
            let needed = rounds_needed(locks.len());
            return format!("Too few rounds to tell a difference from noise: --rounds {needed}.");
        }
        let worse = those(Beside::Worse);
        let best = locks.iter().find(|lock| Some(lock.lock) == self.best);
        match best.and_then(|best| Some((best.lock, best.ratio?))) {
            Some((name, ratio)) => {
                let level = match self.level_with_best.as_slice() {
                    [] => String::new(),
                    level => format!(
                        " No difference from it beyond the noise: {}.",
                        level.join(", ")
                    ),
                };
                format!(
                    "{name} served it best: {:.2} of glibc's.{level}",
                    ratio.median
                )
            }
            None if worse.len() == sound => "glibc served it best.".to_owned(),
            None if worse.is_empty() => "No difference beyond the noise.".to_owned(),
            None => format!(
                "No lock is better than glibc beyond the noise; worse: {}.",
                worse.join(", ")
            ),
        }
    }
}

fn cells(row: &Summary) -> [String; 8] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let beside = match (row.beside_glibc, &row.failed) {
        (_, Some(_)) => "FAILED",
        (Some(Beside::Better), _) => "better",
        (Some(Beside::Worse), _) => "worse",
        (Some(Beside::Unknown), _) => "?",
        (Some(Beside::Level) | None, _) => "level",
    };
    let reference = row.lock == Contestant::Glibc.name();
    let ratio = row.ratio.filter(|_| !reference);
    let interval = ratio.and_then(|ratio| ratio.interval);
    [
        row.lock.to_owned(),
        or_dash(row.value.map(|value| figure(value.median))),
        or_dash(
            row.value
                .map(|value| format!("{}..{}", figure(value.min), figure(value.max))),
        ),
        or_dash(ratio.map(|ratio| format!("{:.2}", ratio.median))),
        or_dash(interval.map(|[low, high]| format!("{low:.2}..{high:.2}"))),
        match reference {
            true => "-".to_owned(),
            false => beside.to_owned(),
        },
        or_dash(row.cpu_s.map(|s| format!("{s:.2}"))),
        or_dash(row.switches.map(scaled)),
    ]
}

/// Three digits, also of short times.
fn figure(value: f64) -> String {
    match value {
        _ if value < 1.0 => format!("{value:.3}"),
        _ => scaled(value),
    }
}
