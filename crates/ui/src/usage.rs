//! Values of options, help, and mistakes on the command line as clap words them.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::Error;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as MissingSubcommand;
use clap::{Arg, ArgAction, Command, FromArgMatches};
use itertools::Itertools;

/// The length of a run in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number from 0.001 to 86400".to_owned()),
    }
}

/// The command with what all commands have in common.
pub fn refined(command: Command) -> Command {
    with_help_on_a_screen(with_negative_numbers(command), "")
}

/// The options that these words give a command. Prints help and exits where that is asked for; a
/// mistake is printed in one line.
///
/// # Errors
/// There is a mistake. It has the status with which the command ends.
pub fn parse<Options: FromArgMatches>(
    mut command: Command,
    words: &[OsString],
) -> Result<Options, ExitCode> {
    let parsed = command.try_get_matches_from_mut(words);
    match parsed.and_then(|matches| Options::from_arg_matches(&matches)) {
        Ok(options) => Ok(options),
        Err(error) if error.use_stderr() && error.kind() != MissingSubcommand => {
            eprintln!("{}: {}", command.get_name(), in_one_line(&error));
            Err(ExitCode::from(2))
        }
        Err(help) => help.exit(),
    }
}

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

/// The word in the help of a subcommand that its examples follow.
const EXAMPLES: &str = "\nExample";

/// Gives a command and those below it two helps. `--help` begins with the examples and fits a screen.
/// `--help-all` also has the rare options, and says what figures mean. A command's help is written
/// with the examples at its end; `above` are the words that call the command above it.
fn with_help_on_a_screen(command: Command, above: &str) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let text = format!("\n{}", text.unwrap_or_default());
    let (details, examples) = text.split_at(text.find(EXAMPLES).unwrap_or(text.len()));
    let (details, examples) = (details.trim().to_owned(), examples.trim().to_owned());
    let path = format!("{above} {}", command.get_name()).trim().to_owned();
    // The command itself has few options, so it has room for the rest.
    let in_short = if above.is_empty() {
        details.clone()
    } else {
        String::new()
    };
    let help = Arg::new("help").short('h').long("help");
    let all = Arg::new("help-all").long("help-all");
    command
        .disable_help_flag(true)
        .arg(
            help.action(ArgAction::HelpShort)
                .help("Print help that fits a screen"),
        )
        .arg(
            all.action(ArgAction::HelpLong)
                .help("Print all options, and what the figures mean"),
        )
        .before_help(examples)
        .after_help(in_short)
        .after_long_help(details)
        .help_template(
            "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}",
        )
        .mut_subcommands(|below| with_help_on_a_screen(below, &path))
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
