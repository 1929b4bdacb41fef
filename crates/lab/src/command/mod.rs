//! The commands of `lockworks kernel` that build kernels and boot them in guests.

mod boot;
mod build;
mod compare;
mod options;
mod run;
mod soak;
mod torture;

use std::process::ExitCode;

use anyhow::Result;

pub use build::BuildArgs;
pub use run::GuestRunArgs;

#[derive(clap::Subcommand)]
#[allow(missing_docs)]
pub enum GuestCommand {
    Build(BuildArgs),
    Boot(boot::BootArgs),
    Torture(Box<torture::GuestTortureArgs>),
    Run(GuestRunArgs),
    Compare(compare::GuestCompareArgs),
}

impl GuestCommand {
    /// Runs the command.
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Build(args) => build::command(args),
            Self::Boot(args) => boot::command(args),
            Self::Torture(args) => torture::command(args),
            Self::Run(args) => run::command(args),
            Self::Compare(args) => compare::command(args),
        }
    }
}
