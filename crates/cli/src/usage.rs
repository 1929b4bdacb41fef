//! Mistakes on the command line, as clap words them, in one line.

use clap::Command;
use clap::error::Error;
use itertools::Itertools;

/// Lets options take negative numbers. A negative number is then refused as out of range, not as an
/// unknown option.
pub fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|arg| {
            let takes_values = !arg.is_positional() && arg.get_action().takes_values();
            arg.allow_negative_numbers(takes_values)
        })
        .mut_subcommands(with_negative_numbers)
}

/// The message without the usage, in one line.
pub fn in_one_line(error: &Error) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    let lines = text.lines().map(str::trim);
    let lines =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    lines
        .filter(|line| !line.is_empty())
        .join("; ")
        .replace(":; ", ": ")
}
