//! Cells, the points of each, and what was measured there.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use lockworks_ui::figures::counted;
use serde::Serialize;

use crate::point::Point;
use crate::store::Results;

/// A machine, a workload and a number of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The machine: its name, or the path of its file.
    pub machine: String,
    /// The workload: its name, or the path of its file.
    pub workload: String,
    /// The number of threads.
    pub threads: usize,
    /// The number of CPUs that the threads share. None: all of the machine.
    pub cpus: Option<usize>,
}

/// A file is named without its directory.
fn short(name: &str) -> &str {
    let file = Path::new(name).file_name().and_then(|name| name.to_str());
    file.map_or(name, |file| file.strip_suffix(".toml").unwrap_or(file))
}

impl Cell {
    /// The machine and the workload.
    pub fn place(&self) -> String {
        format!("{} {}", short(&self.machine), short(&self.workload))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = counted(self.threads as u64, "thread");
        write!(f, "{}, {threads}", self.place())?;
        self.cpus
            .map_or(Ok(()), |cpus| write!(f, " on {cpus} CPUs"))
    }
}

/// A cell with its points.
#[derive(Clone)]
pub struct PlannedCell {
    /// The cell.
    pub cell: Cell,
    /// The points of each lock, one of each seed, with their keys.
    pub points: Vec<Vec<(String, Point)>>,
}

impl PlannedCell {
    /// All points.
    pub fn points(&self) -> impl Iterator<Item = &(String, Point)> {
        self.points.iter().flatten()
    }
}

/// All that is simulated, and how it is judged.
#[derive(Clone)]
pub struct Plan {
    /// The cells.
    pub cells: Vec<PlannedCell>,
    /// All locks that run, in the order of the points of a cell.
    pub locks: Vec<&'static str>,
    /// The locks to judge.
    pub judged: Vec<String>,
    /// The greatest fairness factor of a fair lock.
    pub fair: f64,
    /// The number of worst cells to list.
    pub listed: usize,
    /// The number of seeds.
    pub seeds: usize,
    /// Whether each seed has machines of its own.
    pub doubt: bool,
}

/// The figures of a lock in a cell.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Operations a second: the median over the seeds.
    pub operations_per_second: f64,
    /// The least and the greatest of the seeds.
    pub range: [f64; 2],
    /// The fairness factor. 1 if there was no operation.
    pub fairness: f64,
}

/// A cell in which all locks have run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The cell.
    pub cell: Cell,
    /// The figures of each lock, in the order of [`Plan::locks`].
    pub figures: Vec<Figures>,
    /// The best lock, by its place in [`Plan::locks`].
    pub best: usize,
}

impl Measured {
    fn new(cell: Cell, figures: Vec<Figures>, fair: f64) -> Self {
        let limit = if cell.cpus.is_some() { 1.0 } else { fair };
        let fastest = |limit: f64| {
            let fair = (0..figures.len()).filter(|lock| figures[*lock].fairness <= limit);
            let rate = |lock: &usize| figures[*lock].operations_per_second;
            fair.max_by(|a, b| rate(a).total_cmp(&rate(b)))
        };
        // Perhaps no lock is fair.
        let best = fastest(limit).or_else(|| fastest(f64::INFINITY));
        Self {
            best: best.expect("a lock ran"),
            cell,
            figures,
        }
    }

    /// The throughput of a lock over that of the best.
    pub fn share(&self, lock: usize) -> f64 {
        self.over(lock, self.best)
    }

    /// The throughput of a lock over that of another.
    pub fn over(&self, lock: usize, other: usize) -> f64 {
        let [rate, other] = [lock, other].map(|lock| self.figures[lock].operations_per_second);
        rate / other.max(f64::MIN_POSITIVE)
    }
}

impl Plan {
    /// The place of a lock in [`Plan::locks`].
    pub fn lock(&self, name: &str) -> Option<usize> {
        self.locks.iter().position(|lock| *lock == name)
    }

    /// The cells that are finished, with the medians over the seeds.
    pub fn measured(&self, results: &Results) -> Result<Vec<Measured>> {
        self.measured_with(results, 0..self.seeds)
    }

    /// The cells that are finished, with the medians over some of the seeds.
    pub fn measured_with(&self, results: &Results, seeds: Range<usize>) -> Result<Vec<Measured>> {
        let finished = |(key, _): &(String, Point)| results.has(key) && !results.failed(key);
        let cells = self
            .cells
            .iter()
            .filter(|planned| planned.points().all(finished));
        cells
            .map(|planned| {
                let figures = planned
                    .points
                    .iter()
                    .map(|points| median(&points[seeds.clone()], results));
                let figures: Vec<Figures> = figures.collect::<Result<_>>()?;
                Ok(Measured::new(planned.cell.clone(), figures, self.fair))
            })
            .collect()
    }

    /// The points that failed: the command of each, and why.
    pub fn failures(&self, results: &Results) -> Result<Vec<(String, String)>> {
        let points = self.cells.iter().flat_map(PlannedCell::points);
        let failed = points.filter(|(key, _)| results.failed(key));
        failed
            .map(|(key, point)| {
                let error = results.outcome(key)?.error.unwrap_or_default();
                Ok((point.command(), error))
            })
            .collect()
    }
}

/// The figures of the run whose throughput is the median over the seeds.
fn median(points: &[(String, Point)], results: &Results) -> Result<Figures> {
    let mut figures = Vec::new();
    for (key, _) in points {
        let found = results.outcome(key)?.figures();
        let operations_per_second = found.operations_per_second.unwrap_or(0.0);
        figures.push(Figures {
            operations_per_second,
            range: [operations_per_second; 2],
            fairness: found.fairness.unwrap_or(1.0),
        });
    }
    figures.sort_by(|a, b| a.operations_per_second.total_cmp(&b.operations_per_second));
    let rate = |at: usize| figures[at].operations_per_second;
    Ok(Figures {
        range: [rate(0), rate(figures.len() - 1)],
        ..figures[(figures.len() - 1) / 2]
    })
}
