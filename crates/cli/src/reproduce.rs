//! `lockworks reproduce`: a published table beside its simulation.

use std::process::ExitCode;

use anyhow::Result;
use comfy_table::CellAlignment;
use lockworks_machine::Mark;
use lockworks_sim::ScenarioValue;
use serde::Serialize;

use crate::experiment::{Experiment, Fit, Misordered, Row, figure_error, speedup_error};
use crate::output::{self, Destination};
use crate::sim::progress;

/// Simulate a published table and put both side by side, point by point.
#[derive(clap::Args)]
#[command(after_help = "\
A table is simulated with its values as described, and again with those that a fit on a few points
of tables of the same workload has changed (see `lockworks fit`). The error of a fit counts on the
points that it has not seen. Errors are those of the speedup over stock; published figures have
their own spread, given as a standard deviation.

Examples:
  lockworks reproduce                       the tables there are
  lockworks reproduce cna_locktorture
  lockworks reproduce all --json -o tables.json")]
pub struct Args {
    /// A table, or `all`
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// Virtual time of each run, in milliseconds [default: the table's, mostly 5]
    #[arg(long, value_name = "MS", value_parser = crate::sim::milliseconds)]
    ms: Option<f64>,

    /// Change a value of machine, workload or model, to see what it does
    #[arg(long, value_name = "KEY=VALUE", value_parser = crate::sim::setting)]
    set: Vec<(String, f64)>,

    /// Give JSON rather than a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

/// A table, reproduced.
#[derive(Serialize)]
struct Reproduction {
    table: String,
    title: String,
    source: String,
    machines: Vec<String>,
    workload: String,
    unit: String,
    #[serde(skip)]
    is_in_points: bool,
    virtual_milliseconds: f64,
    /// Of the headline column's speedups, or of all figures, with values as described.
    mean_absolute_error_percent: f64,
    /// The error that has a limit: as above, or with fitted values.
    judged_error_percent: f64,
    limit_percent: f64,
    rows: Vec<Row>,
    /// With the fit, where there is one.
    misordered: Vec<Misordered>,
    columns: Vec<ColumnError>,
    /// Of the first machine.
    values: Vec<ScenarioValue>,
    assumptions: Vec<String>,
    /// None where the fit changes no value.
    fitted: Option<Fitted>,
}

#[derive(Serialize)]
struct ColumnError {
    column: String,
    speedup_mean_absolute_error_percent: Option<f64>,
    mean_absolute_error_percent: f64,
}

/// The same with fitted values.
#[derive(Serialize)]
struct Fitted {
    fit: Fit,
    mean_absolute_error_percent: f64,
    /// On the points that the fit has not seen; all points, if it was made on another table.
    mean_absolute_error_percent_not_fitted: f64,
    rows: Vec<Row>,
}

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    args.destination.check()?;
    let experiments = match args.table.as_deref() {
        None => return list(args),
        Some("all") => Experiment::all(),
        Some(name) => vec![Experiment::find(name)?],
    };
    let runs = experiments
        .iter()
        .map(|e| e.runs(&e.points()) * if e.fit.is_some() { 2 } else { 1 })
        .sum();
    let bar = progress(runs, "simulating");
    let reproductions = experiments
        .iter()
        .map(|experiment| reproduce(experiment, args, &bar))
        .collect::<Result<Vec<_>>>()?;
    bar.finish_and_clear();

    let text = match (args.json, reproductions.as_slice()) {
        (true, [one]) => output::json(one)?,
        (true, several) => output::json(&several)?,
        (false, several) => several.iter().map(text).collect::<Vec<_>>().join("\n"),
    };
    args.destination.write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(args: &Args) -> Result<ExitCode> {
    #[derive(Serialize)]
    struct Entry {
        table: String,
        title: String,
        machine: String,
    }
    let entries: Vec<_> = Experiment::all()
        .into_iter()
        .map(|e| Entry {
            machine: e.machines().join(", "),
            table: e.name,
            title: e.title,
        })
        .collect();
    let text = if args.json {
        output::json(&entries)?
    } else {
        let mut table = output::table(&["table", "machine", "what"]);
        for e in entries {
            table.add_row([e.table, e.machine, e.title]);
        }
        format!("{table}\n")
    };
    args.destination.write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn reproduce(
    experiment: &Experiment,
    args: &Args,
    bar: &indicatif::ProgressBar,
) -> Result<Reproduction> {
    let seconds = args.ms.unwrap_or(experiment.milliseconds) / 1e3;
    let simulate =
        |scenarios: &[_]| experiment.simulate(scenarios, &experiment.points(), seconds, bar);
    let scenarios = experiment.scenarios(&args.set)?;
    let rows = simulate(&scenarios)?;
    let fitted = match experiment.fit.clone() {
        None => None,
        Some(fit) => {
            let values = fit
                .values
                .iter()
                .map(|value| (value.key.clone(), value.value));
            let settings: Vec<_> = values.chain(args.set.iter().cloned()).collect();
            let rows = simulate(&experiment.scenarios(&settings)?)?;
            let unseen = rows.iter().filter(|row| {
                !fit.tables.contains(&experiment.name) || !fit.points.contains(&row.point)
            });
            Some(Fitted {
                mean_absolute_error_percent: experiment.error(&rows),
                mean_absolute_error_percent_not_fitted: experiment.error(unseen),
                fit,
                rows,
            })
        }
    };
    let described = experiment.error(&rows);
    let misordered = experiment.misordered(fitted.as_ref().map_or(&rows, |fitted| &fitted.rows));
    Ok(Reproduction {
        mean_absolute_error_percent: described,
        judged_error_percent: match &fitted {
            Some(fitted) if experiment.limit_is_for_fitted => fitted.mean_absolute_error_percent,
            _ => described,
        },
        limit_percent: experiment.limit_percent,
        columns: experiment
            .published_series()
            .iter()
            .map(|series| ColumnError {
                column: series.column.to_owned(),
                speedup_mean_absolute_error_percent: speedup_error(&rows, series.column),
                mean_absolute_error_percent: figure_error(&rows, series.column),
            })
            .collect(),
        fitted,
        table: experiment.name.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        machines: scenarios.iter().map(|s| s.machine.name.clone()).collect(),
        workload: experiment.workload.clone(),
        unit: experiment.unit.clone(),
        is_in_points: experiment.is_in_points(),
        misordered,
        virtual_milliseconds: seconds * 1e3,
        rows,
        values: scenarios[0].values(),
        assumptions: experiment.assumptions.clone(),
    })
}

fn text(r: &Reproduction) -> String {
    let mut header = vec!["threads", "column", "published", "simulated", "error"];
    let speedups = r.rows.iter().any(|row| row.speedup.is_some());
    if speedups {
        header.extend(["speedup", "simulated", "error"]);
    }
    let unit = if r.is_in_points { "points" } else { "%" };
    if r.fitted.is_some() {
        header.extend(["fitted", "error"]);
    }
    let mut table = output::table(&header);
    for (at, row) in r.rows.iter().enumerate() {
        let spread = |sd: f64| format!(" ±{sd:.3}");
        let mut cells = vec![
            match &row.circumstances {
                Some(circumstances) => format!("{} on {circumstances}", row.threads),
                None => row.threads.to_string(),
            },
            row.column.clone(),
            format!(
                "{:.3}{}",
                row.published,
                row.published_sd.map_or_else(String::new, spread)
            ),
            format!("{:.3}", row.simulated),
            format!("{:+.1} {unit}", row.error_percent),
        ];
        // Speedups of the baseline over itself say nothing.
        let shown = |row: &Row| {
            row.speedup
                .clone()
                .filter(|s| (s.published, s.simulated) != (1.0, 1.0))
        };
        match shown(row) {
            Some(speedup) => cells.extend([
                format!("{:.3}", speedup.published),
                format!("{:.3}", speedup.simulated),
                format!("{:+.1} %", speedup.error_percent),
            ]),
            None if speedups => cells.extend([const { String::new() }; 3]),
            None => {}
        }
        if let Some(fitted) = &r.fitted {
            let row = &fitted.rows[at];
            match (shown(row), &row.speedup) {
                (Some(speedup), _) => cells.extend([
                    format!("{:.3}", speedup.simulated),
                    format!("{:+.1} %", speedup.error_percent),
                ]),
                (None, Some(_)) => cells.extend([const { String::new() }; 2]),
                (None, None) => cells.extend([
                    format!("{:.3}", row.simulated),
                    format!("{:+.1} {unit}", row.error_percent),
                ]),
            }
        }
        table.add_row(cells);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if at != 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    let mut text = format!(
        "{}: {}\n{}; on {}, in {}\n{table}\n",
        r.table,
        r.title,
        r.source,
        r.machines.join(", "),
        r.unit
    );
    text.push_str(
        "Mean absolute error with values as described, speedup and figures themselves:\n",
    );
    for column in &r.columns {
        text.push_str(&format!(
            "  {:16} {}  {:5.1} {unit}\n",
            column.column,
            column
                .speedup_mean_absolute_error_percent
                .map_or_else(|| "      -".to_owned(), |error| format!("{error:5.1} %")),
            column.mean_absolute_error_percent
        ));
    }
    match &r.fitted {
        Some(fitted) => {
            let of_nodes = r.rows.iter().any(|row| row.circumstances.is_some());
            let points = if of_nodes { "nodes" } else { "threads" };
            text.push_str(&fit_text(fitted, &r.values, points, unit));
        }
        None => text.push_str("The saved fit changes nothing here.\n"),
    }
    for pair in &r.misordered {
        text.push_str(&format!(
            "With {} threads {} is not slower than {}, as published\n",
            pair.threads, pair.slower, pair.faster
        ));
    }
    let marks = |mark: Mark| r.values.iter().filter(move |v| v.mark == mark);
    text.push_str(&format!(
        "Values: {} measured on the part (E), {} on a sibling (S), {} recalled (R), {} inferred (I)",
        marks(Mark::E).count(),
        marks(Mark::S).count(),
        marks(Mark::R).count(),
        marks(Mark::I).count()
    ));
    text.push_str(&format!(".\n{}\n", crate::sim::inferred(&r.values)));
    for assumption in &r.assumptions {
        text.push_str(&format!("Assumed (I): {assumption}.\n"));
    }
    text
}

fn fit_text(fitted: &Fitted, described: &[ScenarioValue], points_are: &str, unit: &str) -> String {
    let fit = &fitted.fit;
    let points: Vec<String> = fit.points.iter().map(usize::to_string).collect();
    let mut text = format!(
        "With {} fitted on {} at {} {points_are}: {:.1} {unit}, on points not fitted {:.1} {unit}\n",
        if fit.values.len() == 1 {
            "one value".to_owned()
        } else {
            format!("{} values", fit.values.len())
        },
        fit.tables.join(", "),
        points.join(", "),
        fitted.mean_absolute_error_percent,
        fitted.mean_absolute_error_percent_not_fitted
    );
    for value in &fit.values {
        if let Some(before) = described.iter().find(|v| v.key == value.key) {
            text.push_str(&format!(
                "  {:32} {:8.2} -> {:8.2}, of {}..{}\n",
                value.key, before.value, value.value, value.low, value.high
            ));
        }
    }
    text
}
