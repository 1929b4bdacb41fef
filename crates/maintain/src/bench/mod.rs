//! `lockworks-maintain bench`: Lockworks beside its peers. All ratios are between measurements of one run.

mod arena;
mod burst;
mod comparison;
mod jobs;
mod lock;
mod programs;
mod reproduction;
mod rows;
mod sections;

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use comparison::Comparison;
use jobs::{CheckedConfig, Simulation};
use lockworks_experiments::command_line as published;
use lockworks_torture::{Host, allowed_cpus};
use lockworks_ui::output::{self, Destination};
use lockworks_ui::progress;
use programs::ProgramUnderLock;
use reproduction::Reproduction;
use rows::{Row, write_rows};

/// Measure Lockworks and its peers side by side on this machine.
#[derive(clap::Args)]
#[command(after_help = "\
Every round measures every lock, in a different order. Ratios are taken within a round, and tables \
show their medians. A run takes a few minutes; the machine should do nothing else.

Examples:
  lockworks-maintain bench
  lockworks-maintain bench --only uncontended,two-threads --json")]
pub struct BenchArgs {
    /// Measure only these parts
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,

    /// Only test that everything runs, in a few seconds; the figures mean little
    #[arg(long)]
    quick: bool,

    /// Run the simulator or the checker once, as this JSON says
    #[arg(long, hide = true)]
    job: Option<String>,

    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

/// A part of the benchmarks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
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
    /// memcached, leveldb, RocksDB, redis, MariaDB, Unbound and stress-ng with Lockworks' locks and with
    /// glibc's
    Programs,
}

/// The numbers of rounds of a run, and the length of each measurement.
pub struct Scale {
    /// Rounds without contention. Each measures every lock.
    rounds: usize,
    /// Bursts of each lock in such a round. The fastest one counts.
    bursts: usize,
    /// Acquisitions in a burst without contention.
    burst_operations: u64,
    /// Rounds with two threads.
    rounds_contended: usize,
    /// Milliseconds of a burst with two threads.
    contended_ms: u64,
    /// Rounds with more threads than CPUs.
    rounds_oversubscribed: usize,
    /// Milliseconds of a burst with more threads than CPUs.
    oversubscribed_ms: u64,
    /// Runs of each simulation.
    rounds_simulator: usize,
    /// Virtual milliseconds of a simulation.
    simulated_ms: f64,
    /// Runs of each check.
    rounds_checker: usize,
    /// The most threads that a check may have.
    checked_threads: usize,
    /// Rounds of the programs. Each runs every program under every lock.
    rounds_programs: usize,
}

/// The scale of a run with meaningful figures.
const FULL: Scale = Scale {
    rounds: 15,
    bursts: 7,
    burst_operations: 100_000,
    rounds_contended: 75,
    contended_ms: 3,
    rounds_oversubscribed: 5,
    oversubscribed_ms: 200,
    rounds_simulator: 5,
    simulated_ms: 20.0,
    rounds_checker: 3,
    checked_threads: usize::MAX,
    rounds_programs: 3,
};

/// The scale of a run that only tests that everything works.
const QUICK: Scale = Scale {
    rounds: 1,
    bursts: 1,
    burst_operations: 10_000,
    rounds_contended: 1,
    contended_ms: 2,
    rounds_oversubscribed: 1,
    oversubscribed_ms: 5,
    rounds_simulator: 1,
    simulated_ms: 1.0,
    rounds_checker: 1,
    checked_threads: 2,
    rounds_programs: 1,
};

/// The places by which the order is rotated in each round. Odd, so that every second round goes
/// backwards; more than one, so that few rounds begin in different parts of a long list.
const STRIDE: usize = 5;

/// The order in which a round measures `count` locks.
fn order(count: usize, round: usize) -> Vec<usize> {
    lockworks_measurements::turns(count, STRIDE * round)
}

/// The machine that everything was measured on.
#[derive(Serialize)]
struct Machine {
    processor: String,
    /// The CPUs that this process may use.
    cpus: Vec<usize>,
}

/// Everything that was measured.
#[derive(Serialize)]
struct BenchmarkReport {
    version: &'static str,
    machine: Machine,
    /// Whether this was a short run, whose figures mean little.
    quick: bool,
    /// Sentences that a reader needs to understand the figures.
    notes: Vec<String>,
    sections: Vec<Comparison>,
    simulator: Vec<Simulation>,
    reproduction: Vec<Reproduction>,
    checker: Vec<CheckedConfig>,
    programs: Vec<ProgramUnderLock>,
}

/// Runs the command.
pub fn command(args: &BenchArgs) -> Result<ExitCode> {
    if let Some(job) = &args.job {
        output::print(&jobs::run(job)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    args.destination.check()?;
    let report = match measure(args) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("lockworks-maintain: {error:#}");
            return Ok(ExitCode::FAILURE);
        }
    };
    args.destination.write(&match args.json {
        true => output::json(&report)?,
        false => report.text(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &BenchArgs) -> Result<BenchmarkReport> {
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let scale = if args.quick { &QUICK } else { &FULL };
    let machine = Machine {
        processor: Host::look()?
            .model
            .unwrap_or(std::env::consts::ARCH.to_owned()),
        cpus: allowed_cpus()?,
    };
    let sections = sections::sections(wanted, scale, &machine.cpus);
    let simulations = jobs::simulations(scale, wanted(Part::Simulator));
    let checks = jobs::checks(scale, wanted(Part::Checker));
    let tables = match wanted(Part::Reproduction) && !args.quick {
        true => published::names()?,
        false => Vec::new(),
    };
    let loads = match wanted(Part::Programs) && !args.quick {
        true => programs::loads(),
        false => Vec::new(),
    };
    let steps = sections.iter().map(sections::Section::steps).sum::<usize>()
        + simulations.len() * scale.rounds_simulator
        + checks.len() * scale.rounds_checker
        + tables.len()
        + programs::steps(scale, &loads);
    // It is drawn between measurements only, so that it does not disturb them.
    let bar = progress::bar(steps, "{bar:30} {pos}/{len}  {eta} left  {msg}");
    let step = |what: &str| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    };
    let cpu = machine.cpus[0];
    let mut report = BenchmarkReport {
        version: env!("CARGO_PKG_VERSION"),
        quick: args.quick,
        notes: notes(args.quick, scale),
        sections: sections
            .iter()
            .map(|s| s.measure(scale, &step))
            .collect::<Result<_>>()?,
        simulator: jobs::simulate(scale, cpu, &simulations, &step)?,
        reproduction: reproduction::measure(&tables, &step)?,
        checker: jobs::check(scale, cpu, &checks, &step)?,
        programs: programs::measure(scale, &loads, &step)?,
        machine,
    };
    if wanted(Part::TwoThreads) && report.machine.cpus.len() < 2 {
        let note = "Two threads are not measured, since this process may use only one CPU.";
        report.notes.push(note.to_owned());
    }
    if wanted(Part::Programs) && !args.quick {
        report.notes.extend(programs::missing());
    }
    bar.finish_and_clear();
    Ok(report)
}

fn notes(quick: bool, scale: &Scale) -> Vec<String> {
    let mut notes = vec![format!(
        "Medians of {} rounds with one thread, {} with two, {} with more threads than CPUs and \
         {} of programs. Ratios are taken within each round.",
        scale.rounds, scale.rounds_contended, scale.rounds_oversubscribed, scale.rounds_programs
    )];
    if quick {
        notes.push("--quick: these figures only show that everything runs.".to_owned());
    }
    notes.extend(lockworks_peers::missing().map(|missing| format!("This is {missing}.")));
    notes
}

impl BenchmarkReport {
    /// The report as tables.
    fn text(&self) -> String {
        let mut text = format!(
            "Lockworks {} on {} CPUs of {}\n{}\n\n",
            self.version,
            self.machine.cpus.len(),
            self.machine.processor,
            self.notes.join("\n")
        );
        for section in &self.sections {
            section.write(&mut text);
        }
        write_rows(&mut text, &self.simulator);
        write_rows(&mut text, &self.reproduction);
        write_rows(&mut text, &self.checker);
        write_rows(&mut text, &self.programs);
        self.write_verdict(&mut text);
        text
    }

    fn write_verdict(&self, text: &mut String) {
        let compared = self.sections.iter().flat_map(Comparison::outcomes);
        let (measured, missing): (Vec<_>, Vec<_>) = compared.partition(Option::is_some);
        let judged: Vec<Result<(), String>> = (measured.into_iter().flatten())
            .chain(self.simulator.iter().filter_map(Row::judged))
            .chain(self.reproduction.iter().filter_map(Row::judged))
            .chain(self.checker.iter().filter_map(Row::judged))
            .chain(self.programs.iter().filter_map(Row::judged))
            .collect();
        let failures: Vec<&String> = judged.iter().filter_map(|j| j.as_ref().err()).collect();
        let _ = writeln!(
            text,
            "Requirements: {} met, {} not met, {} not measured.",
            judged.len() - failures.len(),
            failures.len(),
            missing.len()
        );
        for failure in failures {
            let _ = writeln!(text, "  not met: {failure}");
        }
    }
}
