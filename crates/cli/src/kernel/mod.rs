//! `lockworks kernel`: apply Lockworks to a Linux tree, build the kernel, boot it, judge it.

mod apply;
mod boot;
mod build;
mod compare;
mod guest;
mod run;
mod series;
mod status;
mod torture;

use std::process::ExitCode;

use anyhow::Result;

/// Apply Lockworks to a Linux tree, build the kernel, boot it in a guest, and judge it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Apply(apply::ApplyArgs),
    Revert(apply::RevertArgs),
    Status(status::StatusArgs),
    Series(series::SeriesArgs),
    Build(build::BuildArgs),
    Boot(boot::BootArgs),
    Torture(Box<torture::TortureArgs>),
    Run(run::RunArgs),
    Compare(compare::CompareArgs),
}

pub fn command(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Apply(args) => apply::apply(args),
        Command::Revert(args) => apply::revert(args),
        Command::Status(args) => status::command(args),
        Command::Series(args) => series::command(args),
        Command::Build(args) => build::command(args),
        Command::Boot(args) => boot::command(args),
        Command::Torture(args) => torture::command(args),
        Command::Run(args) => run::command(args),
        Command::Compare(args) => compare::command(args),
    }
}
