//! Benchmarks of Lockworks beside its peers. All ratios are between measurements of one run.

mod arena;
mod checker;
mod comparison;
mod contended;
mod contention;
mod host;
mod lock;
mod output;
mod oversubscribed;
mod programs;
mod progress;
mod references;
mod report;
mod reproduction;
mod requirement;
mod scale;
mod series;
mod simulator;
mod tables;
mod uncontended;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

use host::Host;
use output::Destination;
use progress::Progress;
use report::BenchmarkReport;
use scale::{FULL, QUICK, Scale};

/// Measures Lockworks and its peers side by side on this machine.
///
/// Every round measures every lock, in a different order. Ratios are taken within a round, and
/// tables show their medians. A run takes about a minute; the machine should do nothing else.
#[derive(Parser)]
#[command(
    name = "lockworks-bench",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 everything was measured, even if a requirement is not met; 1 a \
                  lock did not exclude, or a measurement failed; 2 bad arguments."
)]
struct Cli {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Write the report to FILE instead of standard output; FILE changes only if the run succeeds
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only test that everything runs, in a few seconds; the figures mean little
    #[arg(long)]
    quick: bool,
    /// Measure only these parts
    #[arg(long, value_delimiter = ',', value_name = "PART,...")]
    only: Vec<Part>,
    #[command(subcommand)]
    child: Option<Child>,
}

/// A part of the benchmarks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// One thread
    Uncontended,
    /// Two threads on two CPUs
    TwoThreads,
    /// More threads than CPUs
    Oversubscribed,
    /// Lockrefs with one thread, with two, and with more threads than CPUs
    References,
    /// The simulator's speed and memory
    Simulator,
    /// The simulator's error in the published tables
    Reproduction,
    /// The model checker's speed and memory
    Checker,
    /// memcached, leveldb, redis, MariaDB and stress-ng with Lockworks' locks and with glibc's
    Programs,
}

/// A measurement that has a process to itself.
#[derive(Subcommand)]
enum Child {
    /// Run the simulator once
    #[command(hide = true)]
    Simulate(simulator::SimulationJob),
    /// Run the model checker once
    #[command(hide = true)]
    Check(checker::CheckJob),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.child {
        Some(Child::Simulate(job)) => job.run(),
        Some(Child::Check(job)) => job.run(),
        None => match Destination::open(cli.output.as_deref()) {
            Ok(destination) => bench(&cli, destination),
            Err(error) => {
                eprintln!("lockworks-bench: {error:#}");
                return ExitCode::from(2);
            }
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockworks-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(cli: &Cli, destination: Destination) -> Result<()> {
    let report = measure(cli)?;
    destination.write(&if cli.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        report.text()
    })
}

fn measure(cli: &Cli) -> Result<BenchmarkReport> {
    let wanted = |part| cli.only.is_empty() || cli.only.contains(&part);
    let scale = if cli.quick { &QUICK } else { &FULL };
    let host = Host::find()?;
    let locks = lock::all();

    let mut steps = 0;
    if wanted(Part::Uncontended) {
        steps += uncontended::steps(scale);
    }
    if wanted(Part::TwoThreads) {
        steps += contended::steps(scale, &locks);
    }
    if wanted(Part::Oversubscribed) {
        steps += oversubscribed::steps(scale, &locks);
    }
    if wanted(Part::References) {
        steps += references::steps(scale);
    }
    if wanted(Part::Simulator) {
        steps += simulator::steps(scale);
    }
    if wanted(Part::Checker) {
        steps += checker::steps(scale);
    }
    let tables = if wanted(Part::Reproduction) && !cli.quick {
        reproduction::tables()?
    } else {
        Vec::new()
    };
    steps += tables.len();
    let loads = if wanted(Part::Programs) && !cli.quick {
        programs::loads()
    } else {
        Vec::new()
    };
    steps += programs::steps(scale, &loads);
    let progress = Progress::new(steps);

    let mut report = BenchmarkReport {
        version: env!("CARGO_PKG_VERSION"),
        machine: host.clone(),
        quick: cli.quick,
        notes: notes(cli.quick, scale),
        sections: Vec::new(),
        simulator: Vec::new(),
        reproduction: Vec::new(),
        checker: Vec::new(),
        programs: Vec::new(),
    };
    if wanted(Part::Uncontended) {
        let sections = uncontended::measure(&host, scale, &locks, &progress)?;
        report.sections.extend(sections);
    }
    if wanted(Part::TwoThreads) {
        let section = contended::measure(&host, scale, &locks, &progress)?;
        report.sections.push(section);
    }
    if wanted(Part::Oversubscribed) {
        let sections = oversubscribed::measure(&host, scale, &locks, &progress)?;
        report.sections.extend(sections);
    }
    if wanted(Part::References) {
        let sections = references::measure(&host, scale, &progress)?;
        report.sections.extend(sections);
    }
    if wanted(Part::Simulator) {
        report.simulator = simulator::measure(&host, scale, &progress)?;
    }
    if wanted(Part::Reproduction) {
        report.reproduction = reproduction::measure(&tables, &progress)?;
        if tables.is_empty() && !cli.quick {
            let note = "The published tables are not reproduced, since `lockworks reproduce` does not run: \
                        build `lockworks` with `make`.";
            report.notes.push(note.to_string());
        }
    }
    if wanted(Part::Checker) {
        report.checker = checker::measure(&host, scale, &progress)?;
    }
    if wanted(Part::Programs) && !cli.quick {
        report.programs = programs::measure(scale, &loads, &progress)?;
        report.notes.extend(programs::missing());
    }
    progress.finish();
    Ok(report)
}

fn notes(quick: bool, scale: &Scale) -> Vec<String> {
    let mut notes = vec![format!(
        "Medians of {} rounds with one thread, {} with two, {} with more threads than CPUs and \
         {} of programs. Ratios are taken within each round.",
        scale.rounds, scale.rounds_contended, scale.rounds_oversubscribed, scale.rounds_programs
    )];
    if quick {
        notes.push("--quick: these figures only show that everything runs.".to_string());
    }
    if let Some(missing) = lockworks_peers::missing() {
        notes.push(format!("This is {missing}."));
    }
    notes
}
