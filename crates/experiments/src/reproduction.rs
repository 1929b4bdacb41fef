//! A published table beside its simulation, with what that is worth.

use anyhow::{Context, Result};
use lockworks_sim::ScenarioValue;
use serde::Serialize;

use crate::against_usl::AgainstUsl;
use crate::comparison::{ComparedFigure, Misordered, figure_error, speedup_error};
use crate::saved_fit::SavedFit;
use crate::table::PublishedTable;

/// A published table, simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The table's name.
    pub table: String,
    /// The measurement, in one line.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// The simulated machines.
    pub machines: Vec<String>,
    /// The workload.
    pub workload: String,
    /// The unit of the figures.
    pub unit: String,
    /// Whether errors are percentage points rather than percent.
    #[serde(skip)]
    pub errors_are_points: bool,
    /// The column that speedups are relative to.
    #[serde(skip)]
    pub baseline: String,
    /// Virtual time of each run.
    pub virtual_milliseconds: f64,
    /// The mean absolute error with values as described, on all points: of the headline column's
    /// speedups, or of all figures if there is no headline.
    pub mean_absolute_error_percent: f64,
    /// The error that has a limit.
    pub judged_error_percent: f64,
    /// The points and values that the judged error is of.
    pub judged_on: JudgedOn,
    /// The greatest judged error that passes.
    pub limit_percent: f64,
    /// The figures with values as described.
    pub rows: Vec<ComparedFigure>,
    /// Pairs in the wrong order, with fitted values where there are some.
    pub misordered: Vec<Misordered>,
    /// The errors of each column with values as described.
    pub columns: Vec<ColumnErrors>,
    /// All values of the first machine's scenario.
    pub values: Vec<ScenarioValue>,
    /// The assumptions about what was not published.
    pub assumptions: Vec<String>,
    /// The errors beside those of the universal scalability law through the first three points. None:
    /// the figures are no rates by number of threads.
    pub against_usl: Option<AgainstUsl>,
    /// The same with fitted values. None where no saved fit holds for the table.
    pub fitted: Option<FittedReproduction>,
}

/// The points and values that a judged error is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgedOn {
    /// All points, with values as described: none of them is fitted.
    AllPoints,
    /// All points of a table with which no value and no rule was chosen.
    UnusedPoints,
    /// All points, with values that were chosen on these points.
    PointsOfOwnValues,
    /// The points that the fit has not seen, with fitted values.
    PointsNotFitted,
}

/// The errors of a column.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnErrors {
    /// The column.
    pub column: String,
    /// The mean absolute error of its speedups, if it has some.
    pub speedup_mean_absolute_error_percent: Option<f64>,
    /// The mean absolute error of its figures.
    pub mean_absolute_error_percent: f64,
}

/// A table simulated with fitted values.
#[derive(Clone, Debug, Serialize)]
pub struct FittedReproduction {
    /// The saved fit.
    pub fit: SavedFit,
    /// The mean absolute error on all points.
    pub mean_absolute_error_percent: f64,
    /// The mean absolute error on the points that the fit has not seen. These are all points if the
    /// fit was made on another table.
    pub mean_absolute_error_percent_not_fitted: f64,
    /// The figures.
    pub rows: Vec<ComparedFigure>,
}

/// Simulates a table with values as described, and again with the saved fit if one holds for it.
///
/// The settings, name and value, are set after those of the description and of the fit. Each run
/// takes `seconds` of virtual time; `on_run` is called after each.
///
/// # Errors
/// A setting is of an unknown value or out of its range, or a simulation failed.
pub fn reproduce(
    table: &PublishedTable,
    settings: &[(String, f64)],
    seconds: f64,
    on_run: &(dyn Fn() + Sync),
) -> Result<Reproduction> {
    let points = table.points();
    let scenarios = table.scenarios(settings)?;
    let rows = table.compare(&scenarios, &points, seconds, on_run)?;
    let fitted = table
        .fit()
        .map(|fit| {
            let settings = [fit.settings(), settings.to_vec()].concat();
            let rows = table.compare(&table.scenarios(&settings)?, &points, seconds, on_run)?;
            fitted_reproduction(table, fit, rows)
        })
        .transpose()?;
    let as_described = table.error(&rows).context("the table has no figures")?;
    let (judged_error_percent, judged_on) = match &fitted {
        Some(fitted) if table.description.limit_is_for_fitted => (
            fitted.mean_absolute_error_percent_not_fitted,
            JudgedOn::PointsNotFitted,
        ),
        _ if table.description.values_from_table => (as_described, JudgedOn::PointsOfOwnValues),
        _ if table.description.unused => (as_described, JudgedOn::UnusedPoints),
        _ => (as_described, JudgedOn::AllPoints),
    };
    let description = &table.description;
    let columns = description.columns.iter().map(|column| {
        Some(ColumnErrors {
            column: column.name.clone(),
            speedup_mean_absolute_error_percent: speedup_error(&rows, &column.name),
            mean_absolute_error_percent: figure_error(&rows, &column.name)?,
        })
    });
    Ok(Reproduction {
        table: table.name().to_owned(),
        title: description.title.clone(),
        source: description.source.clone(),
        machines: scenarios
            .iter()
            .map(|scenario| scenario.machine.name.clone())
            .collect(),
        workload: description.workload.clone(),
        unit: description.unit.clone(),
        errors_are_points: table.errors_are_points(),
        baseline: table.baseline().to_owned(),
        virtual_milliseconds: seconds * 1e3,
        mean_absolute_error_percent: as_described,
        judged_error_percent,
        judged_on,
        limit_percent: description.limit_percent,
        misordered: table.misordered(fitted.as_ref().map_or(&rows, |fitted| &fitted.rows)),
        columns: columns
            .collect::<Option<_>>()
            .context("a column has no figures")?,
        values: scenarios[0].values(),
        assumptions: description.assumptions.clone(),
        against_usl: table
            .has_rates_by_threads()
            .then(|| AgainstUsl::of(&rows, table.baseline(), table.headline()))
            .flatten(),
        rows,
        fitted,
    })
}

fn fitted_reproduction(
    table: &PublishedTable,
    fit: &SavedFit,
    rows: Vec<ComparedFigure>,
) -> Result<FittedReproduction> {
    let not_fitted = rows
        .iter()
        .filter(|row| !fit.has_seen(table.name(), row.point));
    Ok(FittedReproduction {
        mean_absolute_error_percent: table.error(&rows).context("the table has no figures")?,
        mean_absolute_error_percent_not_fitted: table
            .error(not_fitted)
            .context("the fit has seen all figures that count")?,
        fit: fit.clone(),
        rows,
    })
}

impl PublishedTable {
    /// The number of runs that [`reproduce`] makes.
    pub fn runs_to_reproduce(&self) -> usize {
        let simulations = if self.fit().is_some() { 2 } else { 1 };
        simulations * self.runs(&self.points()).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quickly(table: &str) -> Reproduction {
        let table = PublishedTable::find(table).unwrap().expect("a table");
        reproduce(&table, &[], 0.002, &|| {}).expect("a reproduction")
    }

    /// The mean absolute error of the speedups after a change, in a table with the columns
    /// "jpm_before" and "jpm_after".
    fn mean_error<'a>(rows: impl Iterator<Item = &'a ComparedFigure>) -> f64 {
        let errors: Vec<f64> = rows
            .filter(|row| row.column == "jpm_after")
            .map(|row| row.speedup.as_ref().expect("a speedup").error_percent.abs())
            .collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    }

    #[test]
    fn fitted_values_are_judged_on_points_that_the_fit_has_not_seen() {
        let reproduction = quickly("mutex_aim7_high_systime_jpm");
        let fitted = reproduction.fitted.expect("a fit");
        assert_eq!(fitted.fit.points, [1, 2]);
        let nodes_seen = |row: &&ComparedFigure| {
            let nodes = row.circumstances.as_ref().expect("nodes");
            nodes.starts_with("1 nodes") || nodes.starts_with("2 nodes")
        };
        let not_seen = mean_error(fitted.rows.iter().filter(|row| !nodes_seen(row)));
        let seen = mean_error(fitted.rows.iter().filter(nodes_seen));
        assert!(seen < not_seen / 2.0, "{seen} and {not_seen}");
        assert_eq!(reproduction.judged_error_percent, not_seen);
        assert_eq!(reproduction.judged_on, JudgedOn::PointsNotFitted);
    }

    #[test]
    fn a_table_that_nothing_was_fitted_to_is_judged_on_all_points() {
        let mean_error = |rows: &[ComparedFigure]| {
            let errors = rows.iter().map(|row| row.error_percent.abs());
            errors.sum::<f64>() / rows.len() as f64
        };
        let pinned = quickly("pv_kernel_build_westmere_ex_pinned_seconds");
        assert!(pinned.fitted.is_none());
        assert_eq!(pinned.judged_error_percent, mean_error(&pinned.rows));
        assert_eq!(pinned.judged_on, JudgedOn::PointsOfOwnValues);

        // A fit that was made on another table has seen no point of this one.
        let other = quickly("mutex_aim7_workloads_change_percent");
        let fitted = other.fitted.expect("a fit");
        assert_eq!(other.judged_error_percent, mean_error(&fitted.rows));
        assert_eq!(other.judged_on, JudgedOn::PointsNotFitted);
    }
}
