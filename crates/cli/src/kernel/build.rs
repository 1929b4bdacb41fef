//! `lockworks kernel build`.

use std::process::ExitCode;

use anyhow::Result;
use lockworks_kernel::lab::Cache;

use super::guest::{Source, Steps};
use lockworks_ui::output;

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
version. A first build takes some minutes. Later builds compile only what has changed.

Examples:
  lockworks kernel build --version 6.12
  lockworks kernel build --arch arm64
  lockworks kernel build --tree ~/linux --config paravirt";

/// Runs the command.
pub fn command(args: &BuildArgs) -> Result<ExitCode> {
    args.source.check()?;
    let cache = Cache::open()?;
    let steps = Steps::new();
    let built = args.source.build(&cache, &steps)?;
    steps.end();
    output::print(&format!("{}\n", built.image().display()))?;
    Ok(ExitCode::SUCCESS)
}
