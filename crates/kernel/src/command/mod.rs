//! The commands of `lockworks kernel` that change a tree, or write the series.

mod apply;
mod figures;
mod series;
mod status;

use std::process::ExitCode;

use anyhow::Result;

pub use figures::remote_share;

#[derive(clap::Subcommand)]
#[allow(missing_docs)]
pub enum SeriesCommand {
    Apply(apply::ApplyArgs),
    Revert(apply::RevertArgs),
    Status(status::StatusArgs),
    Series(series::SeriesArgs),
}

impl SeriesCommand {
    /// Runs the command.
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Apply(args) => apply::apply(args),
            Self::Revert(args) => apply::revert(args),
            Self::Status(args) => status::command(args),
            Self::Series(args) => series::command(args),
        }
    }
}
