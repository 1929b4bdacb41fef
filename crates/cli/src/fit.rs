//! `lockworks fit`: values of the simulation that bring it closest to a few published points.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use cobyla::{RhoBeg, StopTols, minimize};
use indicatif::ProgressBar;
use itertools::Itertools;

use crate::experiment::{Experiment, Fit, Fitted, figure_error};
use crate::output::Destination;
use crate::sim::{progress, set};

/// Fit values of machine, workload or model to a few points of a published table.
#[derive(clap::Args)]
#[command(after_help = "\
Minimises the mean absolute error of the headline column's speedups, and half of that of the
baseline's figures where they are published, at the given points; of all figures, in a table without
a headline. The rest of the table remains to judge the fit by. Of several tables the mean is taken.
Where all values are lists, each combination is tried. Writes TOML, as in experiments/fit.toml, which `lockworks
reproduce` uses when built in.

Examples:
  lockworks fit cna_locktorture --points 8,32,108 --value workload.division_cycles=32..96
  lockworks fit hq_locktorture_kunpeng920_gain_percent --points 8,16 \\
      --value workload.gather_threads=1,2,4,8")]
pub struct Args {
    /// The tables, of one workload
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<String>,

    /// Thread counts to fit at; counts of nodes, of a machine that was restricted to some
    #[arg(long, value_name = "N", value_delimiter = ',', required = true)]
    points: Vec<usize>,

    /// A value to fit: with its bounds, or KEY=A,B,... with those to choose from
    #[arg(long, value_name = "KEY=LOW..HIGH", required = true, value_parser = candidates)]
    value: Vec<Candidates>,

    /// At most so many simulations of all points, where values have bounds
    #[arg(long, value_name = "N", default_value_t = 60)]
    evaluations: usize,

    /// Virtual time of each run, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = crate::sim::milliseconds)]
    ms: f64,

    #[command(flatten)]
    destination: Destination,
}

/// What a value may become.
#[derive(Clone, Debug)]
struct Candidates {
    key: String,
    low: f64,
    high: f64,
    /// Empty: anything between these.
    list: Vec<f64>,
}

fn candidates(text: &str) -> Result<Candidates, String> {
    let parse = || {
        let (key, values) = text.split_once('=')?;
        let separator = if values.contains("..") { ".." } else { "," };
        let mut values: Vec<f64> = values
            .split(separator)
            .map(|value| value.parse().ok())
            .collect::<Option<_>>()?;
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        if separator == ".." {
            if values != [low, high] {
                return None;
            }
            values.clear();
        }
        (low < high).then(|| Candidates {
            key: key.to_owned(),
            low,
            high,
            list: values,
        })
    };
    parse().ok_or_else(|| {
        "give KEY=LOW..HIGH, as machine.rmw_cycles=15..25, or KEY=A,B,...".to_owned()
    })
}

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    args.destination.check()?;
    let experiments = args
        .tables
        .iter()
        .map(|name| Experiment::find(name))
        .collect::<Result<Vec<_>>>()?;
    let first = &experiments[0];
    for experiment in &experiments {
        ensure!(
            experiment.workload == first.workload,
            "{} is of another workload than {}; fit them one by one",
            experiment.name,
            first.name
        );
        ensure!(
            experiment.points().iter().any(|n| args.points.contains(n)),
            "{} has rows for {:?}; choose of these too",
            experiment.name,
            experiment.points()
        );
    }
    for n in &args.points {
        ensure!(
            experiments.iter().any(|e| e.points().contains(n)),
            "no table has a row for {n} threads; {} has {:?}",
            first.name,
            first.points()
        );
    }
    let keys = || args.value.iter().map(|value| value.key.clone());
    ensure!(
        args.tables.iter().all_unique() && args.points.iter().all_unique() && keys().all_unique(),
        "give each table, point and value once"
    );
    let lists = args.value.iter().filter(|v| !v.list.is_empty()).count();
    ensure!(
        lists == 0 || lists == args.value.len(),
        "give bounds for all values, or lists for all"
    );
    let described = first.scenario(&first.machine)?;
    for value in &args.value {
        set(&mut described.clone(), &value.key, value.low)?;
        set(&mut described.clone(), &value.key, value.high)?;
    }
    let error = |values: &[f64]| -> Result<f64> {
        let settings: Vec<_> = keys().zip(values.iter().copied()).collect();
        let mut sum = 0.0;
        for experiment in &experiments {
            let rows = experiment.simulate(
                &experiment.scenarios(&settings)?,
                &args.points,
                args.ms / 1e3,
                &ProgressBar::hidden(),
            )?;
            sum += experiment.error(&rows);
            if !experiment.headline.is_empty() {
                sum += figure_error(&rows, &experiment.baseline) / 2.0;
            }
        }
        Ok(sum / experiments.len() as f64)
    };
    let (error, values) = if lists > 0 {
        try_all(&args.value, error)?
    } else {
        let start: Vec<f64> = keys()
            .map(|key| {
                let values = described.values();
                let value = values.iter().find(|v| v.key == key);
                value.expect("it could be set").value
            })
            .collect();
        descend(&args.value, &start, args.evaluations, error)?
    };
    ensure!(
        error.is_finite(),
        "the fit came to no finite error; choose other values"
    );
    let fit = Fit {
        tables: args.tables.clone(),
        points: args.points.clone(),
        values: args
            .value
            .iter()
            .zip(values)
            .map(|(candidates, value)| Fitted {
                key: candidates.key.clone(),
                value,
                low: candidates.low,
                high: candidates.high,
            })
            .collect(),
    };
    args.destination.write(&format!(
        "# By: lockworks {}\n# Objective: {error:.2} %\n{}",
        std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        toml::to_string(&fit)?
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Of all combinations of the lists' values, the best, with its error.
fn try_all(
    values: &[Candidates],
    error: impl Fn(&[f64]) -> Result<f64>,
) -> Result<(f64, Vec<f64>)> {
    let lists = values.iter().map(|value| value.list.iter().copied());
    let combinations: Vec<_> = lists.multi_cartesian_product().collect();
    let bar = progress(combinations.len(), "fitting");
    let mut best = (f64::INFINITY, Vec::new());
    for combination in combinations {
        let error = error(&combination)?;
        if error < best.0 {
            best = (error, combination);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(best)
}

/// The best within the bounds that an optimiser finds from `start` on, with its error.
fn descend(
    values: &[Candidates],
    start: &[f64],
    evaluations: usize,
    error: impl Fn(&[f64]) -> Result<f64>,
) -> Result<(f64, Vec<f64>)> {
    // With four digits, so that what is saved is what was tried.
    let scaled = |x: &[f64]| -> Result<Vec<f64>> {
        let scale = |(v, x): (&Candidates, &f64)| {
            let value = v.low + x.clamp(0.0, 1.0) * (v.high - v.low);
            Ok(format!("{value:.3e}").parse()?)
        };
        values.iter().zip(x).map(scale).collect()
    };
    let bar = progress(evaluations, "fitting");
    // The optimiser's own result is where it ended; the best it has seen may be another.
    let best = RefCell::new((f64::INFINITY, Vec::new()));
    let objective = |x: &[f64], _: &mut ()| -> f64 {
        let error = scaled(x).and_then(|values| {
            let error = error(&values)?;
            if error < best.borrow().0 {
                *best.borrow_mut() = (error, values);
            }
            Ok(error)
        });
        bar.inc(1);
        error.unwrap_or(f64::INFINITY)
    };
    let start: Vec<f64> = values
        .iter()
        .zip(start)
        .map(|(v, start)| ((start - v.low) / (v.high - v.low)).clamp(0.0, 1.0))
        .collect();
    let unconstrained: Vec<fn(&[f64], &mut ()) -> f64> = Vec::new();
    let _ = minimize(
        objective,
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
    bar.finish_and_clear();
    Ok(best.into_inner())
}
