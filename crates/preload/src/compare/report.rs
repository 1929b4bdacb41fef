//! The report of a comparison, for people and as JSON.

use comfy_table::CellAlignment;
use itertools::Itertools;
use lockworks_measurements::{Range, median, sorted};
use serde::Serialize;
use serde_json::json;

use super::results::Comparison;
use super::runs::{Contestant, ProgramRun};
use super::significance::{Beside, Ratio, rounds_needed};
use lockworks_ui::figures::{or_dash, scaled};
use lockworks_ui::plot::figure::{Bar, Chart, Data, Draw, Figure};
use lockworks_ui::table::Table;
use lockworks_ui::terminal;

/// The report, as JSON has it.
#[derive(Serialize)]
pub struct ComparisonReport<'a> {
    /// The command line of `lockworks`.
    pub command: Vec<String>,
    /// The measure: wall time, or the expression that finds the figure.
    pub measure: &'a str,
    /// Whether a lower value is better.
    pub lower_is_better: bool,
    /// The number of rounds that were planned.
    pub rounds: u32,
    /// The number of complete rounds: fewer if it was interrupted.
    pub rounds_made: usize,
    /// The contestants, glibc first.
    pub locks: Vec<ContestantSummary<'a>>,
    /// The lock that is better than glibc by the greatest ratio. None: none is better.
    pub best: Option<&'static str>,
    /// The locks that do not differ from the best beyond the noise.
    pub level_with_best: Vec<&'static str>,
    /// Whether no lock served a process with threads.
    pub served_none: bool,
    /// The result in words.
    pub verdict: String,
    /// Why the runs cannot tell much. None: they can.
    pub caution: Option<&'static str>,
}

/// The figures of a contestant's runs. They are none if the contestant has no run that counts.
#[derive(Serialize)]
pub struct ContestantSummary<'a> {
    /// The name of the lock, or glibc.
    pub lock: &'static str,
    /// The value that is compared.
    pub value: Option<Range>,
    /// The value divided by glibc's.
    pub ratio: Option<Ratio>,
    /// The meaning of that ratio.
    pub beside_glibc: Option<Beside>,
    /// Median of the seconds on CPUs.
    pub cpu_s: Option<f64>,
    /// Median of the context switches.
    pub switches: Option<f64>,
    /// How its failed run ended. None: no run failed.
    pub failed: Option<String>,
    /// The warning of the preload library.
    pub warning: Option<&'a str>,
    /// The runs that count.
    pub by_round: &'a [ProgramRun],
}

/// What is said if no lock served a process with threads.
pub const SERVED_NONE: &str = "No lock served the program: neither it nor a program that it starts has \
                               threads and locks a pthread mutex.";

/// The wall time of a run below which the program's start counts.
const LEAST_SECONDS: f64 = 0.05;

impl ComparisonReport<'_> {
    /// The table, and the result in a sentence.
    pub fn table(&self) -> String {
        let mut table = Table::new(&[
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
        let warnings = self.locks.iter().filter_map(|lock| lock.warning);
        text.extend(warnings.unique().map(|text| terminal::prose(text) + "\n"));
        let caution = self.caution.iter().copied();
        let sentences = std::iter::once(self.verdict.as_str()).chain(caution);
        text.extend(sentences.map(|sentence| terminal::prose(sentence) + "\n"));
        text
    }

    /// Why no lock served the program. None: one did.
    pub fn not_served(&self) -> Option<String> {
        let why = self.warned().next().map_or_else(
            || SERVED_NONE.to_owned(),
            |text| {
                let mut chars = text.chars();
                let first = chars.next().into_iter().flat_map(char::to_uppercase);
                format!("{}{}.", first.collect::<String>(), chars.as_str())
            },
        );
        self.served_none.then_some(why)
    }

    /// What the preload library warns of.
    fn warned(&self) -> impl Iterator<Item = &str> {
        let lines = self.locks.iter().filter_map(|lock| lock.warning);
        lines.filter_map(|line| line.strip_prefix("lockworks: warning: "))
    }

    /// Why the runs cannot tell much: what ran, and how long with glibc.
    pub fn caution(&self) -> Option<&'static str> {
        if self.served_none && self.warned().next().is_none() {
            return Some(SERVED_NONE);
        }
        let glibc = self.locks.first()?.by_round;
        let wall_s = median(&sorted(glibc.iter().map(|run| run.wall_s)))?;
        (wall_s < LEAST_SECONDS).then_some(
            "A run takes less than 50 ms, so starting the program may be most of it: give it more to do.",
        )
    }

    /// The result in a sentence.
    pub fn verdict(&self) -> String {
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

impl Draw for Comparison {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let report = self.report();
        let bars = report.locks.iter().filter_map(|row| {
            let Ratio { median, interval } = row.ratio?;
            let [low, high] = interval.unwrap_or([median; 2]);
            Some(Bar {
                name: row.lock.to_owned(),
                low,
                middle: median,
                high,
            })
        });
        let better = match report.lower_is_better {
            true => "lower",
            false => "higher",
        };
        vec![Figure {
            id: "compare".to_owned(),
            title: "The program with other locks".to_owned(),
            text: format!(
                "{}, divided by that with glibc in the same round; {better} is better. Bars are 95 % \
                 intervals. {}",
                report.measure, report.verdict
            ),
            command: command.to_owned(),
            chart: Some(Chart::Intervals {
                unit: "of glibc".to_owned(),
                bars: bars.collect(),
            }),
            data: Data::of(
                &report.locks,
                &[
                    ("lock", &|row| row.lock.into()),
                    ("value", &|row| row.value.map(|value| value.median).into()),
                    ("of glibc", &|row| {
                        row.ratio.map(|ratio| ratio.median).into()
                    }),
                    ("verdict", &|row| json!(row.beside_glibc)),
                    ("failed", &|row| row.failed.as_deref().into()),
                ],
            ),
        }]
    }
}

fn cells(row: &ContestantSummary) -> [String; 8] {
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

/// Three digits, also of values below 1.
fn figure(value: f64) -> String {
    match value {
        _ if value < 1.0 => format!("{value:.3}"),
        _ => scaled(value),
    }
}
