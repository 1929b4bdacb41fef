//! `lockworks kernel status`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_ui::output;
use lockworks_ui::terminal::fitted;

use crate::{FileKind, Series, State, Status, Tree};

/// Show whether Lockworks is in a kernel's source tree.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct StatusArgs {
    /// Top directory of a Linux source tree
    tree: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
The state is derived from the tree alone, so it does not matter whether `apply` or `git am` was used.

Examples:
  lockworks kernel status linux-6.12
  lockworks kernel status linux-6.12 --json";

/// Runs the command.
pub fn command(args: &StatusArgs) -> Result<ExitCode> {
    let series = Series::embedded()?;
    let tree = Tree::open(&args.tree, &series)?;
    let status = crate::status(&series, &tree)?;
    output::print(&match args.json {
        true => output::json(&status)?,
        false => text(&tree, &status),
    })?;
    Ok(ExitCode::from(u8::from(status.obstacle.is_some())))
}

fn text(tree: &Tree, status: &Status) -> String {
    let mut table = output::table(&["file", "whose", "state"]);
    for file in &status.files {
        let whose = match file.kind {
            FileKind::Edited => "the kernel's",
            FileKind::Added => "Lockworks'",
        };
        table.add_row([file.path.clone(), whose.to_owned(), file.state.to_string()]);
    }
    let next = match (&status.obstacle, status.state) {
        (None, _) => String::new(),
        (Some(obstacle), State::NotApplied) => format!("cannot be applied: {obstacle}\n"),
        (Some(obstacle), State::Applied) => format!("cannot be reverted: {obstacle}\n"),
        (Some(obstacle), State::Changed) => format!("{obstacle}\n"),
    };
    let heading = format!(
        "{}, Linux {}: {}\n{next}",
        tree.root().display(),
        status.version,
        status.state
    );
    format!("{}{table}\n", fitted(&heading))
}
