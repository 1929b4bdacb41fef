//! The `lockworks` command.

mod bench;
mod check;
mod compare;
mod figures;
mod fit;
mod interruption;
mod kernel;
mod locks;
mod machines;
mod names;
mod new;
mod output;
mod plot;
mod preload;
mod profile;
mod program;
mod progress;
mod published;
mod regret;
mod report;
mod reproduce;
mod run;
mod sim;
mod sweep;
mod table;
mod terminal;
mod timeline;
mod torture;
mod usage;
mod validate;
mod waiters;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as MissingSubcommand;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use itertools::Itertools;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Scalable NUMA-aware locks: run, compare, simulate and check them.
#[derive(Parser)]
#[command(name = "lockworks", version = sweep::point::VERSION, after_help = HELP)]
struct Cli {
    /// Report on standard error what is run, where files are and how long it takes
    #[arg(long, global = true)]
    verbose: bool,

    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Exit status: 0 all is well, 1 a run found a violation, 2 bad input, 3 a check ended at a limit \
before it was complete, 130 interrupted. `run` and `profile` end with the status of their program.

Colours and progress bars appear on terminals only; NO_COLOR=1 turns colours off.

Examples:
  lockworks run -- redis-server --io-threads 4
  lockworks torture --lock qspinlock,cna,pthread_mutex --threads 1,2,4
  lockworks check --lock cna --threads 3 --nodes 2
  lockworks --verbose machines this -o here.toml";

#[derive(Subcommand)]
enum Command {
    Torture(torture::TortureArgs),
    Bench(bench::BenchArgs),
    Locks(locks::LocksArgs),
    Machines(machines::MachinesArgs),
    Check(Box<check::CheckArgs>),
    Kernel(kernel::KernelArgs),
    Sim(sim::SimArgs),
    Sweep(Box<sweep::SweepArgs>),
    Regret(regret::RegretArgs),
    Reproduce(reproduce::ReproduceArgs),
    Validate(validate::ValidateArgs),
    Run(run::RunArgs),
    Compare(compare::CompareArgs),
    Profile(profile::ProfileArgs),
    Fit(fit::FitArgs),
    Report(report::ReportArgs),
    New(new::NewArgs),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut command = usage::with_negative_numbers(Cli::command());
    let parsed = command.try_get_matches_from_mut(&arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != MissingSubcommand => {
            eprintln!("lockworks: {}", usage::in_one_line(&error));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    if cli.verbose {
        log_to_standard_error();
    }
    let begin = Instant::now();
    let words = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .join(" ");
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(command = words, version, "begins");
    let result = run(&cli.command);
    tracing::info!(seconds = begin.elapsed().as_secs_f64(), "ends");
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lockworks: {error:#}");
            let refusal = error.downcast_ref();
            ExitCode::from(refusal.map_or(2, program::Refusal::status))
        }
    }
}

/// Logs what Lockworks does, but not what its libraries do.
fn log_to_standard_error() {
    let ours = Targets::new().with_target("lockworks", tracing::Level::DEBUG);
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::DEBUG)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(false)
        .finish()
        .with(ours)
        .init();
}

fn run(command: &Command) -> Result<ExitCode> {
    ctrlc::set_handler(|| {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            // The terminal may be gone.
            let _ = writeln!(stderr);
        }
        lockworks_kernel::lab::restore_terminal();
        lockworks_programs::children::stop_all();
        interruption::exit_between_files(130);
    })?;
    match command {
        Command::Torture(args) => torture::command(args),
        Command::Bench(args) => bench::command(args),
        Command::Locks(args) => locks::command(args),
        Command::Machines(args) => machines::run(args),
        Command::Check(args) => check::command(args),
        Command::Kernel(args) => kernel::command(args),
        Command::Sim(args) => sim::command(args),
        Command::Sweep(args) => sweep::command(args),
        Command::Regret(args) => regret::command(args),
        Command::Reproduce(args) => reproduce::command(args),
        Command::Validate(args) => validate::command(args),
        Command::Run(args) => run::command(args),
        Command::Compare(args) => compare::command(args),
        Command::Profile(args) => profile::command(args),
        Command::Fit(args) => fit::command(args),
        Command::Report(args) => report::command(args),
        Command::New(args) => new::command(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every subcommand that has no subcommands of its own, with the words that call it.
    fn subcommands(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
        let path = format!("{path} {}", command.get_name()).trim().to_owned();
        if !command.has_subcommands() {
            return vec![(path, command.clone())];
        }
        let below = command.get_subcommands();
        below.flat_map(|below| subcommands(below, &path)).collect()
    }

    #[test]
    fn every_subcommand_has_examples() {
        let mut without = Vec::new();
        for (path, command) in subcommands(&Cli::command(), "") {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let examples = help.lines().skip_while(|line| !line.starts_with("Example"));
            let examples = examples.skip(1).take_while(|line| line.starts_with(' '));
            if !examples.clone().any(|example| example.contains(&path)) {
                without.push(path);
            }
            for example in examples {
                assert!(example.len() <= 100, "too wide: {example}");
            }
        }
        assert!(without.is_empty(), "no example: {}", without.join(", "));
    }
}
