//! `lockworks kernel apply` and `revert`: Lockworks into a tree, and out of it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_kernel::{FileKind, Series, Tree, status};

use crate::{interruption, output};

/// Put Lockworks into a kernel's source tree.
#[derive(clap::Args)]
#[command(after_help = APPLY_HELP)]
pub struct ApplyArgs {
    /// Top directory of a Linux source tree
    tree: PathBuf,
}

const APPLY_HELP: &str = "\
Adds Lockworks' own directory, and a few lines to files of the kernel's, in full or not at all. A \
tree that has them is left as it is; one that was changed is refused, with what is in the way.

Exit status: 0 Lockworks is in the tree, 2 refused.

Examples:
  lockworks kernel apply linux-6.12
  lockworks kernel revert linux-6.12";

/// Take Lockworks out of a kernel's source tree, to the byte.
#[derive(clap::Args)]
#[command(after_help = REVERT_HELP)]
pub struct RevertArgs {
    /// Top directory of a Linux source tree
    tree: PathBuf,
}

const REVERT_HELP: &str = "\
Removes what `apply` or the patches of `series` put there, and what a build left in Lockworks' \
own directory, in full or not at all. Other changes to the same files stay.

Exit status: 0 Lockworks is not in the tree, 2 refused.

Example:
  lockworks kernel revert linux-6.12";

/// Runs `apply`.
pub fn apply(args: &ApplyArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let changed = {
        let _whole = interruption::put_off();
        lockworks_kernel::apply(&series, &tree)?
    };
    say(&series, &tree, changed, ["applied", "added", "edited"])
}

/// Runs `revert`.
pub fn revert(args: &RevertArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let changed = {
        let _whole = interruption::put_off();
        lockworks_kernel::revert(&series, &tree)?
    };
    say(
        &series,
        &tree,
        changed,
        ["not applied", "removed", "restored"],
    )
}

fn say(series: &Series, tree: &Tree, changed: bool, words: [&str; 3]) -> Result<ExitCode> {
    let [state, added, edited] = words;
    let files = status(series, tree)?.files;
    let count = |kind| files.iter().filter(|file| file.kind == kind).count();
    let done = match changed {
        true => format!(
            "{} files {added}, {} {edited}",
            count(FileKind::Added),
            count(FileKind::Edited)
        ),
        false => "it was so, and nothing was written".to_owned(),
    };
    output::print(&format!(
        "{}, Linux {}: {state}; {done}\n",
        tree.root().display(),
        tree.version()
    ))?;
    Ok(ExitCode::SUCCESS)
}
