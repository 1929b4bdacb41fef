//! The throughput of locks by number of threads, with its noise: as a table and as a panel.

use lockworks_experiments::PublishedTable;

use crate::output;
use crate::plot::{Panel, Point, Series};
use crate::sim::runs::SimulationRow;
use crate::table::Table;
use crate::torture::TortureResults;

/// The throughput of a lock with a number of threads, over several rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Throughput {
    /// The lock.
    pub lock: String,
    /// The number of threads.
    pub threads: usize,
    /// The median of the rounds, or the published mean.
    pub median: f64,
    /// The lowest round, or the mean less a standard deviation.
    pub low: f64,
    /// The highest round, or the mean plus a standard deviation.
    pub high: f64,
    /// The fairness factor, if known.
    pub fairness: Option<f64>,
}

impl Throughput {
    /// Whether the ranges of two figures overlap, so that neither is known to be the higher one.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The same figure under a name that says that it was published.
    pub fn named_published(&self) -> Self {
        Self {
            lock: format!("{}, published", self.lock),
            ..self.clone()
        }
    }
}

/// The figures of one lock with one number of threads.
pub fn find<'a>(all: &'a [Throughput], lock: &str, threads: usize) -> Option<&'a Throughput> {
    all.iter().find(|t| t.lock == lock && t.threads == threads)
}

/// Measured figures, in operations a second.
pub fn measured(results: &TortureResults) -> Vec<Throughput> {
    let rows = results.rows.iter();
    rows.map(|row| Throughput {
        lock: row.lock.to_owned(),
        threads: row.threads,
        median: row.operations_per_second,
        low: row.operations_per_second_min,
        high: row.operations_per_second_max,
        fairness: row.fairness,
    })
    .collect()
}

/// Simulated figures of several rounds, each with the same locks and numbers of threads. `unit`
/// converts operations a second.
pub fn simulated(rounds: &[&[SimulationRow]], unit: impl Fn(f64) -> f64) -> Vec<Throughput> {
    let first = rounds.first().copied().unwrap_or_default();
    let of_all_rounds = |at: usize| {
        let mut rates: Vec<(f64, Option<f64>)> = rounds
            .iter()
            .map(|rows| (unit(rows[at].operations_per_second), rows[at].fairness))
            .collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        rates
    };
    let figures = first.iter().enumerate().map(|(at, row)| {
        let rates = of_all_rounds(at);
        let (median, fairness) = rates[rates.len() / 2];
        Throughput {
            lock: row.lock.to_owned(),
            threads: row.threads,
            median,
            low: rates[0].0,
            high: rates[rates.len() - 1].0,
            fairness,
        }
    });
    figures.collect()
}

/// The published figures of the baseline and the headline column, under the names of their locks.
pub fn published(table: &PublishedTable) -> Vec<Throughput> {
    let series = table.published_series().into_iter();
    series
        .filter(|series| [table.baseline(), table.headline()].contains(&series.column))
        .flat_map(|series| {
            let points = series.points.into_iter();
            points.map(move |(threads, mean, deviation)| Throughput {
                lock: series.lock.to_owned(),
                threads,
                median: mean,
                low: mean - deviation,
                high: mean + deviation,
                fairness: None,
            })
        })
        .collect()
}

/// Each name once, in order.
fn locks(all: &[Throughput]) -> Vec<&str> {
    let mut names = Vec::new();
    for figure in all {
        if !names.contains(&figure.lock.as_str()) {
            names.push(&figure.lock);
        }
    }
    names
}

/// A line for each lock and a column for each number of threads, with the range of each figure.
pub fn table(all: &[Throughput], text: impl Fn(f64) -> String) -> Table {
    let mut threads: Vec<usize> = all.iter().map(|figure| figure.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let counts: Vec<String> = threads.iter().map(usize::to_string).collect();
    let mut header = vec!["lock"];
    header.extend(counts.iter().map(String::as_str));
    let mut table = output::table(&header);
    for lock in locks(all) {
        let cells = threads.iter().map(|&threads| {
            let range = |t: &Throughput| format!("{}..{}", text(t.low), text(t.high));
            find(all, lock, threads).map_or_else(String::new, range)
        });
        table.add_row([lock.to_owned()].into_iter().chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table
}

/// A panel of the figure. Figures are multiplied by `scale` to be in `unit`.
pub fn panel(title: String, unit: &str, scale: f64, all: &[Throughput]) -> Panel {
    let series = |lock: &str| Series {
        name: lock.to_owned(),
        points: all
            .iter()
            .filter(|figure| figure.lock == lock)
            .map(|figure| Point {
                threads: figure.threads,
                throughput: scale * figure.median,
                spread: Some((scale * figure.low, scale * figure.high)),
                fairness: figure.fairness,
            })
            .collect(),
    };
    Panel {
        title,
        unit: unit.to_owned(),
        series: locks(all).into_iter().map(series).collect(),
    }
}
