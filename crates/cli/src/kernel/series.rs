//! `lockworks kernel series`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_kernel::{Author, Series, Tree, patches, write_patches};

use crate::{interruption, output, terminal};

/// Write Lockworks as a patch series to a kernel's source tree.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct SeriesArgs {
    /// Top directory of a Linux source tree, which does not change
    tree: PathBuf,

    /// Directory for the patches, made if it is missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Author of the patches [default: the author that git knows in the tree]
    #[arg(long, value_name = "NAME <MAIL>")]
    from: Option<String>,

    /// Add the author's Signed-off-by
    #[arg(short, long)]
    signoff: bool,
}

const HELP: &str = "\
Writes a patch for each step, by `git format-patch`. Patches of an earlier run are replaced. `git \
am` applies them, with the same result as `lockworks kernel apply`.

Examples:
  lockworks kernel series linux-6.12 -o patches --signoff
  git -C linux-6.12 am \"$PWD\"/patches/*.patch";

/// Runs the command.
pub fn command(args: &SeriesArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let author = Author::of(tree.root(), args.from.as_deref())?;
    let files = patches(&series, &tree, &author, args.signoff)?;
    {
        let _whole = interruption::put_off();
        write_patches(&files, &args.output)?;
    }
    if !tree.is_tested() {
        terminal::warn(&format!(
            "the series is not tested with Linux {}; build and torture it before you use it",
            tree.version()
        ));
    }
    let names = files.iter();
    let names = names.map(|file| format!("{}\n", args.output.join(&file.name).display()));
    output::print(&names.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
