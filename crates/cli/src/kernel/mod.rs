//! `lockworks kernel`: put Lockworks into a Linux tree, build it, boot it, judge it.

use std::process::ExitCode;

use anyhow::Result;

/// Put Lockworks into a Linux tree, build it, boot it, judge it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {}

pub fn command(args: &Args) -> Result<ExitCode> {
    match args.command {}
}
