//! `lockworks kernel apply` and `revert`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_ui::{interruption, output};

use crate::{FileKind, Series, Tree, status};

/// Apply Lockworks to a kernel's source tree.
#[derive(clap::Args)]
#[command(after_help = APPLY_HELP)]
pub struct ApplyArgs {
    /// Top directory of a Linux source tree
    tree: PathBuf,
}

const APPLY_HELP: &str = "\
Adds Lockworks' own directory, and a few lines to files of the kernel, in full or not at all. A tree \
that has them already does not change. A tree that lacks a line beside which something is added, or a \
function that Lockworks' code uses, is refused. The message names all that is missing.

Examples:
  lockworks kernel apply linux-6.12
  lockworks kernel revert linux-6.12";

/// Remove Lockworks from a kernel's source tree, to the byte.
#[derive(clap::Args)]
#[command(after_help = REVERT_HELP)]
pub struct RevertArgs {
    /// Top directory of a Linux source tree
    tree: PathBuf,
}

const REVERT_HELP: &str = "\
Removes what `apply` or the patches of `series` added, and the products of builds in Lockworks' own \
directory, in full or not at all. Other changes to the same files stay.

Example:
  lockworks kernel revert linux-6.12";

/// Runs `apply`.
pub fn apply(args: &ApplyArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let changed = {
        let _whole = interruption::put_off();
        crate::apply(&series, &tree)?
    };
    say(&series, &tree, changed, ["applied", "added", "edited"])
}

/// Runs `revert`.
pub fn revert(args: &RevertArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let changed = {
        let _whole = interruption::put_off();
        crate::revert(&series, &tree)?
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
        false => "already in this state, nothing was written".to_owned(),
    };
    let untested = match tree.is_tested() {
        true => "",
        false => "; not tested with this version",
    };
    output::print(&format!(
        "{}, Linux {}: {state}; {done}{untested}\n",
        tree.root().display(),
        tree.version()
    ))?;
    Ok(ExitCode::SUCCESS)
}
