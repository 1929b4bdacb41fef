//! Published figures beside simulated ones, and the errors of the latter.

use anyhow::Result;
use itertools::Itertools;
use lockworks::fairness;
use lockworks_sim::Scenario;
use serde::Serialize;

use crate::description::{Column, Measure};
use crate::published::PublishedRow;
use crate::simulation::{Outcomes, scenario_of};
use crate::table::PublishedTable;

/// One figure of a table, published and simulated.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedFigure {
    /// The number of threads.
    pub threads: usize,
    /// The conditions of the row besides, as "4 nodes".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<String>,
    /// The number of threads or nodes that fits choose the row by.
    #[serde(skip)]
    pub point: usize,
    /// The table's column.
    pub column: String,
    /// The lock simulated for it.
    pub lock: String,
    /// The machine simulated for it.
    pub machine: String,
    /// The published figure, in the table's unit.
    pub published: f64,
    /// The standard deviation of the published runs, where it was published.
    pub published_sd: Option<f64>,
    /// The simulated figure, in the table's unit.
    pub simulated: f64,
    /// The error of the simulated figure. It is that of the speedup where the figure is a gain or a
    /// latency, and in percentage points where it is a share.
    pub error_percent: f64,
    /// The speedup, where there is a baseline.
    pub speedup: Option<Speedup>,
}

/// The rate of a lock relative to that of the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Speedup {
    /// The published speedup, in full digits.
    pub published: f64,
    /// The simulated speedup.
    pub simulated: f64,
    /// The error of the simulated speedup.
    pub error_percent: f64,
}

/// Two columns whose simulated order is not the published one.
#[derive(Clone, Debug, Serialize)]
pub struct Misordered {
    /// The number of threads.
    pub threads: usize,
    /// The column that is slower as published.
    pub slower: String,
    /// The column that is faster as published.
    pub faster: String,
}

impl PublishedTable {
    /// Simulates these points as [`PublishedTable::simulate`] does, and compares each figure.
    pub(crate) fn compare(
        &self,
        scenarios: &[Scenario],
        points: &[usize],
        seconds: f64,
        on_run: &(dyn Fn() + Sync),
    ) -> Result<Vec<ComparedFigure>> {
        let outcomes = self.simulate(scenarios, points, seconds, on_run)?;
        let columns = self.description.columns.iter().enumerate();
        let figures = self.rows_at(points).cartesian_product(columns);
        Ok(figures
            .map(|(row, (at, column))| self.compared(row, at, column, scenarios, &outcomes))
            .collect())
    }

    fn compared(
        &self,
        row: &PublishedRow,
        at: usize,
        column: &Column,
        scenarios: &[Scenario],
        outcomes: &Outcomes,
    ) -> ComparedFigure {
        let published = row.figures[at];
        let case = self.case(row, column);
        let speedup = self.baseline_case(row, column).map(|baseline| {
            let simulated = outcomes.rate(case) / outcomes.rate(baseline);
            let published = self.speedup_of(row, column, published);
            Speedup {
                published,
                simulated,
                error_percent: percent_above(simulated, published),
            }
        });
        let job = || {
            let workload = &scenario_of(scenarios, case.machine).workload;
            workload
                .job()
                .expect("tables are checked when they are read")
        };
        let (simulated, error_percent) = match (column.measure, &speedup) {
            (Measure::Gain, Some(speedup)) => {
                (percent_above(speedup.simulated, 1.0), speedup.error_percent)
            }
            (Measure::Latency, Some(speedup)) => {
                (percent_above(1.0, speedup.simulated), speedup.error_percent)
            }
            (Measure::Fairness, _) => {
                let simulated =
                    outcomes.mean(case, |outcome| fairness(&outcome.operations).unwrap_or(1.0));
                (simulated, 100.0 * (simulated - published))
            }
            (Measure::Rmws, _) => {
                let simulated = outcomes.mean(case, |outcome| 100.0 * outcome.lock_rmw_share);
                (simulated, simulated - published)
            }
            (Measure::Seconds, _) => {
                let simulated = job() / outcomes.rate(case);
                (simulated, percent_above(simulated, published))
            }
            (Measure::Jobs, _) => {
                let simulated = 60.0 * outcomes.rate(case) / job();
                (simulated, percent_above(simulated, published))
            }
            (Measure::Rate | Measure::Gain | Measure::Latency, _) => {
                let simulated = self.figure(outcomes.rate(case));
                (simulated, percent_above(simulated, published))
            }
        };
        ComparedFigure {
            threads: case.threads,
            circumstances: row.circumstances.clone(),
            point: row.point,
            column: column.name.clone(),
            lock: column.lock.clone(),
            machine: case.machine.to_owned(),
            published,
            published_sd: row.deviations.as_ref().map(|deviations| deviations[at]),
            simulated,
            error_percent,
            speedup,
        }
    }

    /// The speedup that a published figure stands for.
    fn speedup_of(&self, row: &PublishedRow, column: &Column, figure: f64) -> f64 {
        match column.measure {
            Measure::Gain => 1.0 + figure / 100.0,
            Measure::Latency => 1.0 / (1.0 + figure / 100.0),
            _ => {
                let baseline = self.column(self.baseline()).expect("tables are checked");
                figure / row.figures[baseline]
            }
        }
    }

    /// The mean absolute error, in percent: of the headline's speedups, or of all figures if there is
    /// no headline. None without figures.
    pub(crate) fn error<'a>(
        &self,
        figures: impl IntoIterator<Item = &'a ComparedFigure>,
    ) -> Option<f64> {
        if self.headline().is_empty() {
            mean(figures.into_iter().map(|figure| figure.error_percent.abs()))
        } else {
            speedup_error(figures, self.headline())
        }
    }

    /// Pairs of columns of seconds whose simulated order is not the published one, though the
    /// published figures are more than 5 % apart.
    pub(crate) fn misordered(&self, figures: &[ComparedFigure]) -> Vec<Misordered> {
        let is_seconds = |figure: &&ComparedFigure| {
            let at = self.column(&figure.column).expect("a column of the table");
            self.description.columns[at].measure == Measure::Seconds
        };
        let seconds = || figures.iter().filter(is_seconds);
        seconds()
            .cartesian_product(seconds())
            .filter(|(a, b)| a.threads == b.threads && a.published > 1.05 * b.published)
            .filter(|(a, b)| a.simulated <= b.simulated)
            .map(|(a, b)| Misordered {
                threads: a.threads,
                slower: a.column.clone(),
                faster: b.column.clone(),
            })
            .collect()
    }
}

/// The mean absolute error, in percent, of a column's speedups. None if it has none.
pub(crate) fn speedup_error<'a>(
    figures: impl IntoIterator<Item = &'a ComparedFigure>,
    column: &str,
) -> Option<f64> {
    let of_column = figures.into_iter().filter(|figure| figure.column == column);
    let speedups = of_column.filter_map(|figure| figure.speedup.as_ref());
    mean(speedups.map(|speedup| speedup.error_percent.abs()))
}

/// The mean absolute error, in percent, of a column's figures. None if it has none.
pub(crate) fn figure_error<'a>(
    figures: impl IntoIterator<Item = &'a ComparedFigure>,
    column: &str,
) -> Option<f64> {
    let of_column = figures.into_iter().filter(|figure| figure.column == column);
    mean(of_column.map(|figure| figure.error_percent.abs()))
}

fn percent_above(value: f64, reference: f64) -> f64 {
    100.0 * (value / reference - 1.0)
}

fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
