//! `lockworks-maintain fit`: finds the values with which the simulation comes closest to published points.

use std::process::ExitCode;

use anyhow::Result;
use lockworks_experiments::{Candidates, FitPlan, FitResult, fit};

use lockworks_experiments::command_line as published;
use lockworks_sim::command_line as simulations;
use lockworks_ui::output::Destination;
use lockworks_ui::progress;

/// Fit values of machine, workload or model to a few points of a published table
#[derive(clap::Args)]
#[command(
    override_usage = "lockworks-maintain fit [OPTIONS] --points <N> --value <VALUE> <TABLE>...",
    after_help = "\
The fit minimises the mean of the tables' errors. The error of a table is the mean absolute error \
of the headline column's speedups at the given points. Half of the mean absolute error of the \
baseline's figures is added, if they are published. In a table without a headline column, all \
figures count. The other points of a table remain to judge the fit by.

An optimiser searches values with bounds. If all values have candidates, every combination is \
tried. The output is TOML. `lockworks reproduce` uses it once it is saved in experiments/fits/ and \
built in.

Examples:
  lockworks-maintain fit cna_locktorture --points 8,32,108 \\
      --value workload.division_cycles=32..96
  lockworks-maintain fit hq_locktorture_kunpeng920_gain_percent --points 8,16 \\
      --value workload.gather_threads=1,2,4,8"
)]
pub struct FitArgs {
    /// The tables to fit to, all of one workload
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<String>,

    /// Numbers of threads of the rows to fit to; numbers of nodes in a table that varies the nodes
    #[arg(long, value_name = "N", value_delimiter = ',', required = true)]
    points: Vec<usize>,

    /// A value to fit, with its bounds, or with its candidates as KEY=A,B,...
    #[arg(long, value_name = "KEY=LOW..HIGH", required = true, value_parser = candidates)]
    value: Vec<Candidates>,

    /// Greatest number of times that all points are simulated, for values with bounds
    #[arg(long, value_name = "N", default_value_t = 60)]
    evaluations: usize,

    /// Virtual time of each run, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = simulations::milliseconds)]
    ms: f64,

    #[command(flatten)]
    destination: Destination,
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
        "neither bounds nor a list; give KEY=LOW..HIGH, as machine.rmw_cycles=15..25, or KEY=A,B,..."
            .to_owned()
    })
}

/// Runs the command.
pub fn command(args: &FitArgs) -> Result<ExitCode> {
    args.destination.check()?;
    let named = args.tables.iter().map(|name| published::find(name));
    let plan = FitPlan {
        tables: named.collect::<Result<_>>()?,
        points: args.points.clone(),
        values: args.value.clone(),
        evaluations: args.evaluations,
        seconds: args.ms / 1e3,
    };
    plan.check()?;
    for value in &args.value {
        let ends = [(value.key.as_str(), value.low), (&value.key, value.high)];
        published::check_settings(&plan.tables[0], ends)?;
    }
    let bar = progress::runs(plan.most_evaluations(), "fitting");
    let FitResult { fit, objective } = fit(&plan, &|| {
        bar.inc(1);
        tracing::debug!(number = bar.position(), "evaluated");
    })?;
    bar.finish_and_clear();
    let command: Vec<String> = std::env::args().skip(1).collect();
    args.destination.write(format!(
        "# By: lockworks-maintain {}\n# Objective: {objective:.2} %\n{}",
        command.join(" "),
        toml::to_string(&fit)?
    ))?;
    Ok(ExitCode::SUCCESS)
}
