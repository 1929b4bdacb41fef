//! `lockworks kernel`: apply Lockworks to a Linux tree, build the kernel, boot it, judge it.

use std::process::ExitCode;

use anyhow::Result;
use lockworks_kernel::SeriesCommand;
use lockworks_lab::GuestCommand;

/// Apply Lockworks to a Linux tree, build the kernel, boot it in a guest, and judge it.
#[derive(clap::Args)]
pub struct KernelArgs {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(clap::Subcommand)]
enum KernelCommand {
    #[command(flatten)]
    Series(SeriesCommand),
    #[command(flatten)]
    Guest(GuestCommand),
}

pub fn command(args: &KernelArgs) -> Result<ExitCode> {
    match &args.command {
        KernelCommand::Series(command) => command.run(),
        KernelCommand::Guest(command) => command.run(),
    }
}
