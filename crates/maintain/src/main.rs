//! The tools of those who maintain Lockworks: benchmarks beside the locks of others, and fits of the
//! simulator to published tables. They are not installed.

mod bench;
mod fit;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use lockworks_ui::{interruption, usage};

/// Measure Lockworks beside its peers, and fit the simulator to published tables.
#[derive(Parser)]
#[command(name = "lockworks-maintain", version, after_help = HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Examples:
  lockworks-maintain bench --only uncontended
  lockworks-maintain fit cna_locktorture --points 8,32,108 --value workload.division_cycles=32..96";

#[derive(Subcommand)]
enum Command {
    Bench(bench::BenchArgs),
    Fit(fit::FitArgs),
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let cli: Cli = match usage::parse(usage::refined(Cli::command()), &arguments) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let handled = ctrlc::set_handler(|| {
        lockworks_programs::children::stop_all();
        interruption::exit_between_files(130);
    });
    let done = handled
        .map_err(Into::into)
        .and_then(|()| match &cli.command {
            Command::Bench(args) => bench::command(args),
            Command::Fit(args) => fit::command(args),
        });
    done.unwrap_or_else(|error| {
        eprintln!("lockworks-maintain: {error:#}");
        ExitCode::from(2)
    })
}
