//! `lockworks kernel build`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_ui::output;

use super::options::{Source, Steps};
use crate::cache::Cache;

/// Build a kernel with Lockworks in it, and print its path.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct BuildArgs {
    #[command(flatten)]
    source: Source,
}

const HELP: &str = "\
Sources come from the Debian package linux-source-VERSION, which apt fetches if it is not \
installed. Sources and builds are kept in $LOCKWORKS_CACHE or ~/.cache/lockworks, 2.5 GB for each \
version. A first build takes some minutes. Later builds compile only what has changed, and take a \
second if nothing has. To build anew, remove the build's directory there.

Examples:
  lockworks kernel build --version 6.12
  lockworks kernel build --arch arm64
  lockworks kernel build --tree ~/linux --config paravirt";

impl BuildArgs {
    /// Builds the kernel, or updates an earlier build. Returns its path.
    pub fn build(&self) -> Result<PathBuf> {
        self.source.check()?;
        let built = self.source.build(&Cache::open()?, &Steps::new())?;
        Ok(built.image())
    }
}

/// Runs the command.
pub fn command(args: &BuildArgs) -> Result<ExitCode> {
    output::print(&format!("{}\n", args.build()?.display()))?;
    Ok(ExitCode::SUCCESS)
}
