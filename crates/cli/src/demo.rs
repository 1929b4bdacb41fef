//! `lockworks demo`: a first impression, in a table and a figure.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::experiment::{Experiment, Row};
use crate::output;
use crate::plot::{self, Panel, Point, Series};
use crate::sim::progress;
use crate::torture::{self, Host, Pin, Plan, Preset, Results, Subject, Workload};

/// Measure a few locks on this machine, show and draw what they achieve.
#[derive(clap::Args)]
#[command(after_help = "\
Runs `lockworks torture` on a few locks, for about half a minute on a small machine, simulates a
published table as `lockworks reproduce cna_locktorture` does, and writes
  DIR/torture.json                figures of this machine
  DIR/figure.svg, DIR/figure.png  this machine, the simulated one and what was published, drawn

Examples:
  lockworks demo
  lockworks demo --output /tmp/demo")]
pub struct Args {
    /// Write the files into DIR, which need not be there yet
    #[arg(short, long, value_name = "DIR", default_value = "demo")]
    output: PathBuf,
}

/// One of each kind: FIFO, NUMA-aware, and one that sleeps.
const LOCKS: [&str; 4] = ["ticket", "qspinlock", "cna", "pthread_mutex"];

/// What is simulated, and drawn beside its published figures.
const TABLE: &str = "cna_locktorture";
/// Of each simulated run.
const VIRTUAL_SECONDS: f64 = 0.005;

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let directory = args.output.display();
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create {directory}; name another with --output"))?;
    let plan = Plan {
        subjects: LOCKS
            .iter()
            .map(|name| Subject::find(name))
            .collect::<Result<_>>()?,
        threads: torture::usual_threads(Host::look()?.cpus),
        duration: Duration::from_millis(300),
        rounds: 3,
        workload: Workload {
            preset: Preset::Plain,
            critical_ns: 0,
            think_ns: 0,
        },
        pin: Pin::None,
    };
    let results = torture::run_with_bar(&plan)?;

    output::write_file(
        &args.output.join("torture.json"),
        output::json(&results)?.as_bytes(),
    )?;
    let experiment = Experiment::find(TABLE)?;
    let rows = simulate(&experiment)?;
    let panels = [
        measured(&results),
        reproduced(&experiment, "Simulated", &rows, |row| Point {
            threads: row.threads,
            throughput: row.simulated,
            spread: None,
            fairness: None,
        }),
        reproduced(&experiment, "Published", &rows, |row| Point {
            threads: row.threads,
            throughput: row.published,
            spread: Some((
                row.published - row.published_sd,
                row.published + row.published_sd,
            )),
            fairness: None,
        }),
    ];
    plot::figure(&args.output.join("figure"), &panels)?;
    output::print(&format!(
        "{}\nWritten: {directory}/torture.json, {directory}/figure.svg, {directory}/figure.png\n",
        torture::table(&results)
    ))?;
    Ok(torture::verdict(&results))
}

/// The published table, simulated with values of the literature.
fn simulate(experiment: &Experiment) -> Result<Vec<Row>> {
    let threads = experiment.threads();
    let bar = progress(experiment.runs(&threads), "simulating");
    let rows = experiment.simulate(&experiment.scenario()?, &threads, VIRTUAL_SECONDS, &bar);
    bar.finish_and_clear();
    rows
}

/// A table's stock lock and the one it is about.
fn reproduced(
    experiment: &Experiment,
    what: &str,
    rows: &[Row],
    point: impl Fn(&Row) -> Point,
) -> Panel {
    let series = [&experiment.baseline, &experiment.headline].map(|column| {
        let rows = || rows.iter().filter(|row| row.column == *column);
        Series {
            name: rows().next().map_or(column, |row| &row.lock).clone(),
            points: rows().map(&point).collect(),
        }
    });
    Panel {
        title: format!("{what}: {} on {}", experiment.workload, experiment.machine),
        unit: experiment.unit.clone(),
        series: series.into(),
    }
}

/// What this machine has come to.
fn measured(results: &Results) -> Panel {
    let series = |lock: &str| Series {
        name: lock.to_owned(),
        points: results
            .rows
            .iter()
            .filter(|row| row.lock == lock)
            .map(|row| Point {
                threads: row.threads,
                throughput: row.operations_per_second / 1e6,
                spread: Some((
                    row.operations_per_second_min / 1e6,
                    row.operations_per_second_max / 1e6,
                )),
                fairness: row.fairness,
            })
            .collect(),
    };
    Panel {
        title: format!("Measured: two counters on {} CPUs", results.machine.cpus),
        unit: "million operations a second".to_owned(),
        series: LOCKS.into_iter().map(series).collect(),
    }
}
