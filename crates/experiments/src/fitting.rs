//! The search for values of the simulation that bring it closest to a few published rows.

use std::cell::RefCell;

use anyhow::{Result, ensure};
use cobyla::{RhoBeg, StopTols, minimize};
use itertools::Itertools;

use crate::comparison::figure_error;
use crate::saved_fit::{FittedValue, SavedFit};
use crate::table::PublishedTable;

/// The values to fit, and the rows to fit them to.
#[derive(Clone, Debug)]
pub struct FitPlan {
    /// The tables, all of one workload.
    pub tables: Vec<PublishedTable>,
    /// The thread or node counts of the rows to fit to.
    pub points: Vec<usize>,
    /// The values to fit: all with bounds, or all with lists.
    pub values: Vec<Candidates>,
    /// The greatest number of simulations of all points, where values have bounds.
    pub evaluations: usize,
    /// Virtual time of each run.
    pub seconds: f64,
}

/// The candidates for a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    /// Its name, as in `lockworks sim --json`.
    pub key: String,
    /// The least candidate.
    pub low: f64,
    /// The greatest candidate.
    pub high: f64,
    /// The candidates; if empty, all numbers between these two.
    pub list: Vec<f64>,
}

/// A fit, and how good it is on the points that it was made on.
#[derive(Clone, Debug)]
pub struct FitResult {
    /// The fit.
    pub fit: SavedFit,
    /// The minimised error, in percent.
    pub objective: f64,
}

impl FitPlan {
    /// Whether all candidates are lists.
    fn is_of_lists(&self) -> bool {
        self.values.iter().all(|value| !value.list.is_empty())
    }

    fn combinations(&self) -> impl Iterator<Item = Vec<f64>> {
        let lists = self.values.iter().map(|value| value.list.iter().copied());
        lists.multi_cartesian_product()
    }

    /// The greatest number of evaluations that [`fit`] makes.
    pub fn most_evaluations(&self) -> usize {
        if self.is_of_lists() {
            self.combinations().count()
        } else {
            self.evaluations
        }
    }

    /// Whether the plan makes sense.
    ///
    /// # Errors
    /// Tables, points or values do not go together; the message says what to change.
    pub fn check(&self) -> Result<()> {
        let Some((first, others)) = self.tables.split_first() else {
            anyhow::bail!("no table to fit to; name at least one");
        };
        for other in others {
            ensure!(
                other.workload() == first.workload(),
                "{} is of the workload {}, {} of {}; fit each by itself",
                first.name(),
                first.workload(),
                other.name(),
                other.workload()
            );
        }
        for table in &self.tables {
            let points = table.points();
            ensure!(
                points.iter().any(|point| self.points.contains(point)),
                "{} has no row for {:?}; choose some of {points:?} too",
                table.name(),
                self.points
            );
            ensure!(
                points.iter().any(|point| !self.points.contains(point)),
                "no row of {} would be left to judge the fit by; choose fewer points than {points:?}",
                table.name()
            );
        }
        for point in &self.points {
            ensure!(
                self.tables
                    .iter()
                    .any(|table| table.points().contains(point)),
                "no table has a row for {point}; {} has {:?}",
                first.name(),
                first.points()
            );
        }
        let mut keys = self.values.iter().map(|value| &value.key);
        let mut names = self.tables.iter().map(PublishedTable::name);
        ensure!(
            names.all_unique() && self.points.iter().all_unique() && keys.all_unique(),
            "give each table, point and value once"
        );
        let lists = self
            .values
            .iter()
            .filter(|value| !value.list.is_empty())
            .count();
        ensure!(
            lists == 0 || lists == self.values.len(),
            "some values have bounds and some have lists; give bounds for all values, or lists for all"
        );
        Ok(())
    }

    /// The mean error over the tables, in percent, with these values.
    fn objective(&self, values: &[f64]) -> Result<f64> {
        let keys = self.values.iter().map(|value| value.key.clone());
        let settings: Vec<_> = keys.zip(values.iter().copied()).collect();
        let mut sum = 0.0;
        for table in &self.tables {
            let scenarios = table.scenarios(&settings)?;
            let figures = table.compare(&scenarios, &self.points, self.seconds, &|| {})?;
            sum += table.error(&figures).unwrap_or_default();
            if !table.headline().is_empty() {
                sum += figure_error(&figures, table.baseline()).unwrap_or_default() / 2.0;
            }
        }
        Ok(sum / self.tables.len() as f64)
    }

    /// The value of each key in the first table's description.
    fn described(&self) -> Result<Vec<f64>> {
        let first = &self.tables[0];
        let described = first.scenario(first.machine())?.values();
        let mut of_keys = Vec::new();
        for candidates in &self.values {
            let value = described.iter().find(|value| value.key == candidates.key);
            let Some(value) = value else {
                anyhow::bail!("there is no value {}", candidates.key);
            };
            of_keys.push(value.value);
        }
        Ok(of_keys)
    }
}

/// Searches the values with the least mean error. Calls `on_evaluation` after each evaluation.
///
/// The error of a table is that of its headline's speedups, plus half of that of the baseline's
/// figures where they are published; without a headline, it is that of all figures.
///
/// # Errors
/// The plan makes no sense, a simulation failed, or no combination of values has a finite error.
pub fn fit(plan: &FitPlan, on_evaluation: &dyn Fn()) -> Result<FitResult> {
    plan.check()?;
    let start = plan.described()?;
    let objective = |values: &[f64]| {
        let error = plan.objective(values);
        on_evaluation();
        error
    };
    let (objective, values) = if plan.is_of_lists() {
        try_all(plan.combinations(), objective)?
    } else {
        descend(&plan.values, &start, plan.evaluations, objective)
    };
    ensure!(
        objective.is_finite(),
        "no combination of the values has a finite error; choose other bounds or values"
    );
    let fitted = plan
        .values
        .iter()
        .zip(values)
        .map(|(candidates, value)| FittedValue {
            key: candidates.key.clone(),
            value,
            low: candidates.low,
            high: candidates.high,
        });
    Ok(FitResult {
        fit: SavedFit {
            tables: plan
                .tables
                .iter()
                .map(|table| table.name().to_owned())
                .collect(),
            points: plan.points.clone(),
            values: fitted.collect(),
        },
        objective,
    })
}

/// The best of some combinations of values, with its error.
fn try_all(
    combinations: impl Iterator<Item = Vec<f64>>,
    objective: impl Fn(&[f64]) -> Result<f64>,
) -> Result<(f64, Vec<f64>)> {
    let mut best = (f64::INFINITY, Vec::new());
    for combination in combinations {
        let error = objective(&combination)?;
        if error < best.0 {
            best = (error, combination);
        }
    }
    Ok(best)
}

/// The best values within the bounds that an optimiser finds from `start` on, with their error.
fn descend(
    values: &[Candidates],
    start: &[f64],
    evaluations: usize,
    objective: impl Fn(&[f64]) -> Result<f64>,
) -> (f64, Vec<f64>) {
    // Values have four digits, so that those tried are those saved.
    let scaled = |x: &[f64]| -> Result<Vec<f64>> {
        let scale = |(v, x): (&Candidates, &f64)| {
            let value = v.low + x.clamp(0.0, 1.0) * (v.high - v.low);
            Ok(format!("{value:.3e}").parse()?)
        };
        values.iter().zip(x).map(scale).collect()
    };
    // The optimiser returns the values at which it ended, which need not be the best that it tried.
    let best = RefCell::new((f64::INFINITY, Vec::new()));
    let error_at = |x: &[f64], _: &mut ()| -> f64 {
        let error = scaled(x).and_then(|values| {
            let error = objective(&values)?;
            if error < best.borrow().0 {
                *best.borrow_mut() = (error, values);
            }
            Ok(error)
        });
        error.unwrap_or(f64::INFINITY)
    };
    let start: Vec<f64> = values
        .iter()
        .zip(start)
        .map(|(v, start)| ((start - v.low) / (v.high - v.low)).clamp(0.0, 1.0))
        .collect();
    let unconstrained: Vec<fn(&[f64], &mut ()) -> f64> = Vec::new();
    let _ = minimize(
        error_at,
        &start,
        &vec![(0.0, 1.0); start.len()],
        &unconstrained,
        (),
        evaluations,
        RhoBeg::All(0.25),
        Some(StopTols {
            xtol_rel: 1e-3,
            ..StopTols::default()
        }),
    );
    best.into_inner()
}
