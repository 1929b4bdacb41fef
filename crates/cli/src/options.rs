//! Options of commands that others run.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Args, Command};

/// The options of a command from words, of which the first is its name.
///
/// # Errors
///
/// If they are wrong.
pub fn parse<Options: Args>(words: impl IntoIterator<Item = OsString>) -> Result<Options> {
    let matches = Options::augment_args(Command::new("lockworks")).try_get_matches_from(words)?;
    Ok(Options::from_arg_matches(&matches)?)
}
