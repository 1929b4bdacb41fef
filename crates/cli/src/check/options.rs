//! The options of `lockworks check` in three parts: what is checked, its limits, and the output.
//!
//! The part of an option says what it means in a plan of `lockworks sweep`. What is checked is the point
//! and in its key, a limit is obeyed and in no key, and any other option is refused.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Command, Id};
use lockworks::LockType;
use lockworks_check::command_line::{Checked, find_subject, subjects};
use lockworks_check::{COND, Limits, load_source};
use lockworks_ui::output::Destination;

/// The options of a check.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    pub checked: Checked,

    /// Compile and check the lock in FILE, a C file that uses the operations and ends with
    /// LW_DESCRIBE()
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lock", "variant", "fork"])]
    pub source: Option<PathBuf>,

    /// Check only the few small configurations that each lock has, up to 200,000 states each; this
    /// tests a change in seconds
    #[arg(long, conflicts_with_all = ids::<Checked>().filter(|id| id != "lock"))]
    pub quick: bool,

    /// Look for weaker memory orders with which the lock still passes, in this check and in the small
    /// ones of --quick
    #[arg(long, conflicts_with_all = ["quick", "random", "variant", "keep", "trace"])]
    pub optimize: bool,

    /// Repeat the run of this token, which a broken promise prints, and show each step
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true,
          conflicts_with_all = ids::<Checked>().chain(ids::<Limits>()).chain(["quick".into(), "optimize".into()]))]
    pub replay: Option<String>,

    #[command(flatten)]
    pub limits: Limits,

    #[command(flatten)]
    pub output: Output,
}

/// Where the results go.
#[derive(Args)]
pub struct Output {
    /// Keep the search in FILE if a limit or ^C ends it, and go on with the search that FILE holds
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = ["quick", "random", "replay"])]
    pub keep: Option<PathBuf>,

    /// Draw the run in FILE: .html, or .pftrace for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Print JSON instead of text: an object for one check, an array for several
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub destination: Destination,
}

/// The options of a part.
fn ids<Part: Args>() -> impl Iterator<Item = Id> {
    let command = Part::augment_args(Command::new("check"));
    let ids: Vec<Id> = command
        .get_arguments()
        .map(|arg| arg.get_id().clone())
        .collect();
    ids.into_iter()
}

impl Options {
    /// The locks to check, lockrefs and condition variable included.
    pub fn subjects(&self) -> Result<Vec<(&'static str, &'static LockType)>> {
        let Checked { lock, config, .. } = &self.checked;
        if !lock.is_empty() {
            return lock.iter().map(|name| find_subject(name)).collect();
        }
        if let Some(source) = &self.source {
            return Ok(vec![find_subject(load_source(source)?)?]);
        }
        if let Some(variant) = &config.variant {
            return Ok(vec![find_subject(&variant.lock)?]);
        }
        Ok(subjects()
            .filter(|(_, lock)| !lock.is_broken())
            // A lockref or condition variable is checked alone.
            .filter(|(name, lock)| config.locks == 1 || *name == lock.name())
            .filter(|(name, _)| config.nesting == 0 || *name != COND)
            .filter(|(name, lock)| !config.cancel || (lock.can_time_out() && *name == lock.name()))
            .collect())
    }
}
