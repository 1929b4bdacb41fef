//! `lockworks fit`: values of the simulation that bring it closest to a few published points.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use cobyla::{RhoBeg, StopTols, minimize};
use indicatif::ProgressBar;

use crate::experiment::{Experiment, Fit, Fitted, figure_error};
use crate::output::Destination;
use crate::sim::set;

/// Fit values of machine, workload or model to a few points of a published table.
#[derive(clap::Args)]
#[command(after_help = "\
Minimises the mean absolute error of the headline column's speedups, and half of that of the
baseline's figures, at the given points; of all figures, in a table without a headline. The rest of
the table remains to judge the fit by. Of several tables the mean is taken. Writes TOML, as in
experiments/fit.toml, which `lockworks reproduce` uses when built in.

Example:
  lockworks fit cna_locktorture --points 8,32,108 --value workload.division_cycles=32..96")]
pub struct Args {
    /// The tables, of one workload
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<String>,

    /// Thread counts to fit at
    #[arg(long, value_name = "N", value_delimiter = ',', required = true)]
    points: Vec<usize>,

    /// A value to fit, with its bounds
    #[arg(long, value_name = "KEY=LOW..HIGH", required = true, value_parser = bounds)]
    value: Vec<(String, f64, f64)>,

    /// At most so many simulations of all points
    #[arg(long, value_name = "N", default_value_t = 60)]
    evaluations: usize,

    /// Virtual time of each run, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = crate::sim::milliseconds)]
    ms: f64,

    #[command(flatten)]
    destination: Destination,
}

fn bounds(text: &str) -> Result<(String, f64, f64), String> {
    let parse = || {
        let (key, range) = text.split_once('=')?;
        let (low, high) = range.split_once("..")?;
        Some((key.to_owned(), low.parse().ok()?, high.parse().ok()?))
    };
    match parse() {
        Some((key, low, high)) if low < high => Ok((key, low, high)),
        _ => Err("give KEY=LOW..HIGH, as machine.rmw_cycles=15..25".to_owned()),
    }
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
        for n in &args.points {
            ensure!(
                experiment.threads().contains(n),
                "{} has no row for {n} threads; choose from {:?}",
                experiment.name,
                experiment.threads()
            );
        }
    }
    let described = first.scenario(first.machines()[0])?;
    let mut start = Vec::new();
    for (key, low, high) in &args.value {
        set(&mut described.clone(), key, *low)?;
        set(&mut described.clone(), key, *high)?;
        let value = described
            .values()
            .into_iter()
            .find(|v| v.key == *key)
            .expect("it could be set")
            .value;
        start.push(((value - low) / (high - low)).clamp(0.0, 1.0));
    }

    let bar = ProgressBar::new(args.evaluations as u64).with_message("fitting");
    let scaled = |x: &[f64]| -> Vec<f64> {
        args.value
            .iter()
            .zip(x)
            .map(|((_, low, high), x)| low + x.clamp(0.0, 1.0) * (high - low))
            .collect()
    };
    // The optimiser's own result is where it ended; the best it has seen may be another.
    let best = RefCell::new((f64::INFINITY, start.clone()));
    let objective = |x: &[f64], _: &mut ()| -> f64 {
        let settings: Vec<_> = args
            .value
            .iter()
            .zip(scaled(x))
            .map(|((key, ..), value)| (key.clone(), value))
            .collect();
        let error = |experiment: &Experiment| -> Result<f64> {
            let rows = experiment.simulate(
                &experiment.scenarios(&settings)?,
                &args.points,
                args.ms / 1e3,
                &ProgressBar::hidden(),
            )?;
            Ok(experiment.error(&rows)
                + if experiment.headline.is_empty() {
                    0.0
                } else {
                    figure_error(&rows, &experiment.baseline) / 2.0
                })
        };
        let errors: Result<Vec<f64>> = experiments.iter().map(error).collect();
        let error = errors.map_or(f64::INFINITY, |errors| {
            errors.iter().sum::<f64>() / errors.len() as f64
        });
        bar.inc(1);
        if error < best.borrow().0 {
            *best.borrow_mut() = (error, x.to_vec());
        }
        error
    };
    let unconstrained: Vec<fn(&[f64], &mut ()) -> f64> = Vec::new();
    let unit = vec![(0.0, 1.0); start.len()];
    let ended = minimize(
        objective,
        &start,
        &unit,
        &unconstrained,
        (),
        args.evaluations,
        RhoBeg::All(0.25),
        Some(StopTols {
            xtol_rel: 1e-3,
            ..StopTols::default()
        }),
    );
    bar.finish_and_clear();
    let (error, x) = best.into_inner();
    if !error.is_finite() {
        bail!("the fit failed, {ended:?}; choose other bounds");
    }
    let fit = Fit {
        tables: args.tables.clone(),
        points: args.points.clone(),
        values: args
            .value
            .iter()
            .zip(scaled(&x))
            .map(|((key, low, high), value)| Fitted {
                key: key.clone(),
                value: (value * 100.0).round() / 100.0,
                low: *low,
                high: *high,
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
