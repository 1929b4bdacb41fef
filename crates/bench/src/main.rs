//! Side-by-side benchmarks of Lockworks against its peers: ratios, all measured in one run.

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
use report::Report;
use scale::{FULL, QUICK, Scale};

/// Measures Lockworks and its peers side by side on this machine.
///
/// Every round measures every lock, in another order; ratios are taken within a round, and tables
/// show their median. Takes about a minute, on a machine that should do nothing else.
#[derive(Parser)]
#[command(
    name = "lockworks-bench",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 everything was measured, whatever the verdicts; 1 a lock failed to \
                  exclude or something else broke; 2 bad arguments."
)]
struct Cli {
    /// Print JSON rather than tables
    #[arg(long)]
    json: bool,
    /// Write to FILE, in full or not at all, rather than to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only see that everything runs: a few seconds, and figures that mean little
    #[arg(long)]
    quick: bool,
    /// Measure only these
    #[arg(long, value_delimiter = ',', value_name = "PART,...")]
    only: Vec<Part>,
    #[command(subcommand)]
    child: Option<Child>,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// One thread, alone
    Uncontended,
    /// Two threads on two CPUs
    TwoThreads,
    /// More threads than CPUs
    Oversubscribed,
    /// Lockrefs, by one thread, two, and more than CPUs
    References,
    /// The simulator's speed and memory
    Simulator,
    /// The simulator against the published tables
    Reproduction,
    /// The model checker's speed and memory
    Checker,
    /// memcached, leveldb, redis, MariaDB and stress-ng under locks of ours and under glibc
    Programs,
}

/// What a process of its own does for the run.
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

fn measure(cli: &Cli) -> Result<Report> {
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

    let mut report = Report {
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
            let note = "Published tables are not reproduced: `lockworks reproduce` is not there.";
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
        "Medians of {} rounds alone, {} of two threads, {} past the CPU count, {} of programs; \
         ratios are taken within each round.",
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
