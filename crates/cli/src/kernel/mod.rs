//! `lockworks kernel`: apply Lockworks to a Linux tree, build the kernel, boot it, judge it.

mod apply;
mod boot;
mod build;
mod compare;
mod figures;
mod guest;
mod run;
mod series;
mod soak;
mod status;
mod torture;

use std::process::ExitCode;

use anyhow::Result;

/// Apply Lockworks to a Linux tree, build the kernel, boot it in a guest, and judge it.
#[derive(clap::Args)]
pub struct KernelArgs {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(clap::Subcommand)]
enum KernelCommand {
    Apply(apply::ApplyArgs),
    Revert(apply::RevertArgs),
    Status(status::StatusArgs),
    Series(series::SeriesArgs),
    Build(build::BuildArgs),
    Boot(boot::BootArgs),
    Torture(Box<torture::GuestTortureArgs>),
    Run(run::GuestRunArgs),
    Compare(compare::GuestCompareArgs),
}

pub fn command(args: &KernelArgs) -> Result<ExitCode> {
    match &args.command {
        KernelCommand::Apply(args) => apply::apply(args),
        KernelCommand::Revert(args) => apply::revert(args),
        KernelCommand::Status(args) => status::command(args),
        KernelCommand::Series(args) => series::command(args),
        KernelCommand::Build(args) => build::command(args),
        KernelCommand::Boot(args) => boot::command(args),
        KernelCommand::Torture(args) => torture::command(args),
        KernelCommand::Run(args) => run::command(args),
        KernelCommand::Compare(args) => compare::command(args),
    }
}
