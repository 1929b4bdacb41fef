//! Published tables, and their experiments repeated in simulation.

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use lockworks_machine::Machine;
use lockworks_sim::{Placement, Run, Scenario, Settings};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::names::unknown;
use crate::sim::{find_lock, find_workload, set};

macro_rules! tables {
    ($($name:literal),*) => {
        &[$((
            include_str!(concat!("../../../experiments/", $name, ".toml")),
            include_str!(concat!("../../../experiments/published/", $name, ".csv")),
        )),*]
    };
}

/// Description and published figures of each table.
const TABLES: &[(&str, &str)] = tables!(
    "cna_locktorture",
    "cna_will_it_scale_open1",
    "cna_will_it_scale_lock2",
    "cna_leveldb_readrandom"
);

/// What `lockworks fit` has found, on one table, for the machine and the model.
const FIT: &str = include_str!("../../../experiments/fit.toml");

/// How a published table came about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the table.
    pub name: String,
    /// What was run.
    pub title: String,
    /// Where the figures were published.
    pub source: String,
    /// On which machine.
    pub machine: String,
    /// Which workload.
    pub workload: String,
    placement: Placing,
    /// Over so many random placements the mean is taken, fewer with more threads.
    placements: u64,
    /// What the published figures count.
    pub unit: String,
    per_second: f64,
    /// The column that speedups are relative to.
    pub baseline: String,
    /// The column that the works are about.
    pub headline: String,
    /// The most that the mean error of the headline's speedups may be, for `make bench`.
    pub limit_percent: f64,
    /// What had to be assumed (I).
    pub assumptions: Vec<String>,
    #[serde(rename = "column")]
    columns: Vec<Column>,
    #[serde(skip)]
    published: Vec<Published>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Placing {
    Compact,
    Scatter,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    lock: String,
    #[serde(default = "yes")]
    shuffle_reduction: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug)]
struct Published {
    threads: usize,
    /// Of each column.
    figures: Vec<f64>,
    deviations: Vec<f64>,
}

/// A fit, as saved.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The table it was made on.
    pub table: String,
    /// At which thread counts.
    pub points: Vec<usize>,
    /// The values it changed.
    #[serde(rename = "value")]
    pub values: Vec<Fitted>,
}

/// One fitted value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// Its name.
    pub key: String,
    /// What the fit found.
    pub value: f64,
    /// What it could choose from.
    pub low: f64,
    /// Likewise.
    pub high: f64,
}

/// One figure of a table, published and simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Number of threads.
    pub threads: usize,
    /// The table's column.
    pub column: String,
    /// The lock simulated for it.
    pub lock: String,
    /// In the table's unit.
    pub published: f64,
    /// Standard deviation of the published runs.
    pub published_sd: f64,
    /// In the table's unit.
    pub simulated: f64,
    /// Of the simulated figure.
    pub error_percent: f64,
    /// Relative to the baseline column, as published in full digits.
    pub published_speedup: f64,
    /// Relative to the simulated baseline.
    pub simulated_speedup: f64,
    /// Of the simulated speedup.
    pub speedup_error_percent: f64,
}

/// The saved fit.
pub fn saved_fit() -> Fit {
    toml::from_str(FIT).expect("the saved fit is well formed")
}

impl Experiment {
    /// All of them.
    pub fn all() -> Vec<Self> {
        TABLES
            .iter()
            .map(|(description, figures)| {
                let mut experiment: Self =
                    toml::from_str(description).expect("built-in descriptions are well formed");
                experiment.published = experiment.read(figures);
                experiment
            })
            .collect()
    }

    /// The experiment behind this table.
    pub fn find(name: &str) -> Result<Self> {
        let all = Self::all();
        let names: Vec<String> = all.iter().map(|e| e.name.clone()).collect();
        all.into_iter()
            .find(|e| e.name == name)
            .ok_or_else(|| unknown("table", name, names.iter().map(String::as_str)))
    }

    fn read(&self, figures: &str) -> Vec<Published> {
        let mut reader = csv::Reader::from_reader(figures.as_bytes());
        let header = reader.headers().expect("published tables are CSV").clone();
        let at = |name: &str| {
            header
                .iter()
                .position(|h| h == name)
                .unwrap_or_else(|| panic!("{} has no column {name}", self.name))
        };
        let number = |record: &csv::StringRecord, name: &str| -> f64 {
            record[at(name)]
                .parse()
                .expect("published figures are numbers")
        };
        let columns = |record: &csv::StringRecord, suffix: &str| {
            self.columns
                .iter()
                .map(|c| number(record, &format!("{}{suffix}", c.name)))
                .collect()
        };
        reader
            .records()
            .map(|record| {
                let record = record.expect("published tables are CSV");
                Published {
                    threads: number(&record, "threads") as usize,
                    figures: columns(&record, ""),
                    deviations: columns(&record, "_sd"),
                }
            })
            .collect()
    }

    /// Thread counts of the table.
    pub fn threads(&self) -> Vec<usize> {
        self.published.iter().map(|p| p.threads).collect()
    }

    /// Its machine and workload, with values as described.
    pub fn scenario(&self) -> Result<Scenario> {
        Ok(Scenario::new(
            Machine::find(&self.machine)?,
            find_workload(&self.workload)?,
        ))
    }

    /// The values of a fit that apply here: of one made on another table, not the workload's.
    fn applicable<'a>(&self, fit: &'a Fit) -> impl Iterator<Item = &'a Fitted> {
        let own = fit.table == self.name;
        fit.values
            .iter()
            .filter(move |fitted| own || !fitted.key.starts_with("workload."))
    }

    /// Does the fit change anything here?
    pub fn is_changed_by(&self, fit: &Fit) -> bool {
        self.applicable(fit).next().is_some()
    }

    /// The scenario with a fit's values.
    pub fn fitted_scenario(&self, fit: &Fit) -> Result<Scenario> {
        let mut scenario = self.scenario()?;
        for fitted in self.applicable(fit) {
            set(&mut scenario, &fitted.key, fitted.value)?;
        }
        Ok(scenario)
    }

    fn placements(&self, threads: usize) -> u64 {
        match threads {
            0..=4 => self.placements,
            5..=36 => self.placements.div_ceil(4),
            _ => 1,
        }
    }

    /// How many runs a simulation of all columns at these thread counts takes.
    pub fn runs(&self, threads: &[usize]) -> usize {
        self.points(threads).len()
    }

    /// Published row, column and placement of each run.
    fn points(&self, threads: &[usize]) -> Vec<(usize, usize, u64)> {
        let mut points = Vec::new();
        for (row, published) in self.published.iter().enumerate() {
            if !threads.contains(&published.threads) {
                continue;
            }
            for column in 0..self.columns.len() {
                for placement in 0..self.placements(published.threads) {
                    points.push((row, column, placement));
                }
            }
        }
        points
    }

    /// Simulates the table at these thread counts, `seconds` of virtual time a run.
    pub fn simulate(
        &self,
        scenario: &Scenario,
        threads: &[usize],
        seconds: f64,
        bar: &ProgressBar,
    ) -> Result<Vec<Row>> {
        let points = self.points(threads);
        let rates: Vec<f64> = points
            .par_iter()
            .map(|&(row, column, placement)| {
                let threads = self.published[row].threads;
                let column = &self.columns[column];
                let outcome = Run {
                    scenario,
                    lock: find_lock(&column.lock)?,
                    threads,
                    placement: match self.placement {
                        Placing::Compact => Placement::Compact,
                        Placing::Scatter => Placement::Scatter(placement + 1),
                    },
                    seconds,
                    tunables: Settings {
                        shuffle_reduction: column.shuffle_reduction,
                        ..Settings::default()
                    },
                    odd_threads_have_priority: false,
                    seed: placement + 1,
                }
                .run();
                bar.inc(1);
                let outcome =
                    outcome.with_context(|| format!("{} with {threads} threads", column.lock))?;
                anyhow::ensure!(outcome.violations == 0, "{} failed to exclude", column.lock);
                Ok(self.figure(outcome.operations_per_second))
            })
            .collect::<Result<_>>()?;

        let mean = |row: usize, column: usize| {
            let mine: Vec<f64> = points
                .iter()
                .zip(&rates)
                .filter(|((r, c, _), _)| (*r, *c) == (row, column))
                .map(|(_, rate)| *rate)
                .collect();
            mine.iter().sum::<f64>() / mine.len() as f64
        };
        let baseline = self.column(&self.baseline);
        let percent = |value: f64, of: f64| 100.0 * (value / of - 1.0);
        let mut rows = Vec::new();
        for (at, published) in self.published.iter().enumerate() {
            if !threads.contains(&published.threads) {
                continue;
            }
            for (column, described) in self.columns.iter().enumerate() {
                let simulated = mean(at, column);
                let simulated_speedup = simulated / mean(at, baseline);
                let figure = published.figures[column];
                let published_speedup = figure / published.figures[baseline];
                rows.push(Row {
                    threads: published.threads,
                    column: described.name.clone(),
                    lock: described.lock.clone(),
                    published: figure,
                    published_sd: published.deviations[column],
                    simulated,
                    error_percent: percent(simulated, figure),
                    published_speedup,
                    simulated_speedup,
                    speedup_error_percent: percent(simulated_speedup, published_speedup),
                });
            }
        }
        Ok(rows)
    }

    /// Operations a second in the table's unit.
    pub fn figure(&self, operations_per_second: f64) -> f64 {
        operations_per_second * self.per_second
    }

    fn column(&self, name: &str) -> usize {
        self.columns
            .iter()
            .position(|c| c.name == name)
            .expect("descriptions name their own columns")
    }

    /// The lock behind a column.
    pub fn lock(&self, column: &str) -> &str {
        &self.columns[self.column(column)].lock
    }

    /// The published speedup of a column over the baseline.
    pub fn published_speedup(&self, column: &str, threads: usize) -> f64 {
        let row = self.published.iter().find(|p| p.threads == threads);
        row.map_or(f64::NAN, |p| {
            p.figures[self.column(column)] / p.figures[self.column(&self.baseline)]
        })
    }

    /// The published figures, column by column.
    pub fn published_series(&self) -> Vec<PublishedSeries<'_>> {
        self.columns
            .iter()
            .enumerate()
            .map(|(at, column)| PublishedSeries {
                column: &column.name,
                lock: &column.lock,
                points: self
                    .published
                    .iter()
                    .map(|p| (p.threads, p.figures[at], p.deviations[at]))
                    .collect(),
            })
            .collect()
    }
}

/// A column of a published table.
pub struct PublishedSeries<'a> {
    /// Its name.
    pub column: &'a str,
    /// The lock behind it.
    pub lock: &'a str,
    /// Threads, figure and standard deviation.
    pub points: Vec<(usize, f64, f64)>,
}

/// Mean absolute error, in percent, of the rows' speedups in a column.
pub fn speedup_error<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> f64 {
    mean(
        rows.into_iter()
            .filter(|r| r.column == column)
            .map(|r| r.speedup_error_percent.abs()),
    )
}

/// Mean absolute error, in percent, of the rows' figures in a column.
pub fn figure_error<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> f64 {
    mean(
        rows.into_iter()
            .filter(|r| r.column == column)
            .map(|r| r.error_percent.abs()),
    )
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    sum / f64::from(n.max(1))
}
