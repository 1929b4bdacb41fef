//! Options of commands that others run.

use std::ffi::OsString;

use anyhow::{Result, anyhow};
use clap::{Args, Command};

/// The options of a command from words, of which the first is its name.
///
/// # Errors
///
/// If they are wrong.
pub fn parse<Options: Args>(words: impl IntoIterator<Item = OsString>) -> Result<Options> {
    let command = Options::augment_args(Command::new("lockworks"));
    let matches = command.try_get_matches_from(words).map_err(|error| {
        // The rest is about --help, of a command that was not typed.
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        anyhow!("{}", line.trim_start_matches("error: "))
    })?;
    Ok(Options::from_arg_matches(&matches)?)
}
