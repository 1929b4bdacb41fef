//! `lockworks demo`: a first impression, in a table and a figure.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::output;
use crate::plot::{self, Panel, Point, Series};
use crate::torture::{self, Host, Pin, Plan, Preset, Results, Subject, Workload};

/// Measure a few locks on this machine, show and draw what they achieve.
#[derive(clap::Args)]
#[command(after_help = "\
Runs `lockworks torture` on a few locks, for about half a minute on a small machine, and writes
  DIR/torture.json               all figures
  DIR/figure.svg, DIR/figure.png throughput and fairness, drawn

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
    plot::figure(&args.output.join("figure"), &[panel(&results)])?;
    output::print(&format!(
        "{}\nWritten: {directory}/torture.json, {directory}/figure.svg, {directory}/figure.png\n",
        torture::table(&results)
    ))?;
    Ok(torture::verdict(&results))
}

/// The results as a column of a figure.
fn panel(results: &Results) -> Panel {
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
        title: format!("This machine, {} CPUs", results.machine.cpus),
        unit: "million operations a second".to_owned(),
        series: LOCKS.into_iter().map(series).collect(),
    }
}
