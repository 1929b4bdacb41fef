//! The `lockworks` command.

mod check;
mod compare;
mod demo;
mod fit;
mod kernel;
mod locks;
mod machines;
mod names;
mod new;
mod output;
mod plot;
mod profile;
mod program;
mod published;
mod reproduce;
mod run;
mod sim;
mod table;
mod torture;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as MissingSubcommand;
use clap::{Parser, Subcommand};

/// Scalable NUMA-aware locks: run, compare, simulate and check them.
#[derive(Parser)]
#[command(
    name = "lockworks",
    version,
    after_help = "Exit status: 0 all is well, 1 a run found a violation, 2 bad input, 3 a check ended at a limit\n\
                  before it was complete, 130 interrupted; those of `run` and `profile` are their program's.\n\
                  Colours and progress bars show on terminals only; NO_COLOR=1 turns colours off."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Torture(torture::Args),
    Locks(locks::Args),
    Machines(machines::Args),
    Check(Box<check::Args>),
    Kernel(kernel::Args),
    Sim(sim::Args),
    Reproduce(reproduce::Args),
    Run(run::Args),
    Compare(compare::Args),
    Profile(profile::Args),
    Fit(fit::Args),
    Demo(demo::Args),
    New(new::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != MissingSubcommand => {
            eprintln!("lockworks: {}", in_one_line(&error));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lockworks: {error:#}");
            let refusal = error.downcast_ref();
            ExitCode::from(refusal.map_or(2, program::Refusal::status))
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    ctrlc::set_handler(|| {
        if std::io::stderr().is_terminal() {
            eprintln!();
        }
        lockworks_kernel::lab::children::stop_all();
        output::exit_between_files(130);
    })?;
    match command {
        Command::Torture(args) => torture::command(args),
        Command::Locks(args) => locks::command(args),
        Command::Machines(args) => machines::run(args),
        Command::Check(args) => check::command(args),
        Command::Kernel(args) => kernel::command(args),
        Command::Sim(args) => sim::command(args),
        Command::Reproduce(args) => reproduce::command(args),
        Command::Run(args) => run::command(args),
        Command::Compare(args) => compare::command(args),
        Command::Profile(args) => profile::command(args),
        Command::Fit(args) => fit::command(args),
        Command::Demo(args) => demo::command(args),
        Command::New(args) => new::command(args),
    }
}

/// What is wrong and any tip, without the usage that follows.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .map(|line| {
            line.trim_start_matches("error: ")
                .trim_start_matches("tip: ")
        })
        .collect();
    format!("{}; see --help", said.join("; ").replace(":; ", ": "))
}
