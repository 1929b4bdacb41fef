//! Messages for mistakes on the command line. One line says what is wrong with the value, what is
//! allowed and what to type.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use itertools::Itertools;
use lockworks_machine::names::did_you_mean;

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

/// A message of one line that says what is wrong with the arguments.
pub fn message(error: &Error, command: &Command, arguments: &[OsString]) -> String {
    let mut path = vec![command.get_name().to_owned()];
    let mut given_to = command;
    for argument in arguments {
        if let Some(subcommand) = given_to.find_subcommand(argument) {
            path.push(subcommand.get_name().to_owned());
            given_to = subcommand;
        }
    }
    let mistake = Mistake {
        error,
        command,
        path,
    };
    format!(
        "{}; `{} --help` says more",
        mistake.text(),
        mistake.path.join(" ")
    )
}

/// A mistake, and the subcommand that found it.
struct Mistake<'a> {
    error: &'a Error,
    /// The top command, `lockworks`.
    command: &'a Command,
    /// `lockworks` and the names of its subcommand.
    path: Vec<String>,
}

impl Mistake<'_> {
    fn text(&self) -> String {
        let arg = self.context(ContextKind::InvalidArg).unwrap_or_default();
        let value = self.context(ContextKind::InvalidValue).unwrap_or_default();
        let name = option_name(&arg);
        match self.error.kind() {
            ErrorKind::ValueValidation => {
                format!("{name} cannot be '{value}': {}", self.what_is_allowed(name))
            }
            ErrorKind::InvalidValue if value.is_empty() => {
                format!("{name} needs a value{}", self.values(": "))
            }
            ErrorKind::InvalidValue => {
                let suggested = self.suggestion(ContextKind::SuggestedValue);
                format!(
                    "{name} cannot be '{value}'{suggested}{}",
                    self.values(": choose from ")
                )
            }
            ErrorKind::UnknownArgument if name.starts_with('-') => {
                let suggested = self.suggestion(ContextKind::SuggestedArg);
                format!(
                    "{name} is not an option of `{}`{suggested}",
                    self.path.join(" ")
                )
            }
            ErrorKind::UnknownArgument => {
                format!(
                    "'{name}' is one argument more than `{}` takes",
                    self.path.join(" ")
                )
            }
            ErrorKind::InvalidSubcommand => {
                let given = self
                    .context(ContextKind::InvalidSubcommand)
                    .unwrap_or_default();
                let suggested = self.suggestion(ContextKind::SuggestedSubcommand);
                format!(
                    "'{given}' is not a command of `{}`{suggested}",
                    self.path.join(" ")
                )
            }
            ErrorKind::MissingRequiredArgument => format!("{arg} is missing"),
            ErrorKind::ArgumentConflict => {
                let prior = self.context(ContextKind::PriorArg).unwrap_or_default();
                if let Some(given) = self.context(ContextKind::InvalidSubcommand) {
                    return format!("'{given}' cannot be used with {prior}");
                }
                match option_name(&prior) {
                    "" => format!("{name} cannot be used with other arguments"),
                    prior if prior == name => format!("{name} is given twice"),
                    prior => format!("{name} cannot be used with {prior}"),
                }
            }
            _ => first_line(&self.error.render().to_string()),
        }
    }

    /// The values that an option allows. Errors of the parsers in this crate name them. For
    /// numbers, clap's error says only that they do not parse.
    fn what_is_allowed(&self, option: &str) -> String {
        let Some(source) = self.error.source() else {
            return "it is not allowed".to_owned();
        };
        let text = source.to_string();
        if source.is::<ParseFloatError>() {
            return "give a number".to_owned();
        }
        if !source.is::<ParseIntError>() && !text.contains(NOT_IN) {
            return text;
        }
        match self
            .limits(option)
            .as_deref()
            .and_then(|limits| limits.split_once(".."))
        {
            Some((low, high)) => format!(
                "give a whole number from {low} to {}",
                high.trim_start_matches('=')
            ),
            None => "give a whole number".to_owned(),
        }
    }

    /// The range that clap names when a value is out of it, as `1..=100`.
    fn limits(&self, option: &str) -> Option<String> {
        let arguments = self
            .path
            .iter()
            .map(String::as_str)
            .chain([option, HIGHEST]);
        let refused = self.command.clone().try_get_matches_from(arguments).err()?;
        let text = refused.source()?.to_string();
        text.split_once(NOT_IN).map(|(_, range)| range.to_owned())
    }

    fn values(&self, introduction: &str) -> String {
        match self.context(ContextKind::ValidValue) {
            Some(values) if !values.is_empty() => format!("{introduction}{values}"),
            _ => String::new(),
        }
    }

    fn suggestion(&self, kind: ContextKind) -> String {
        match self.context(kind) {
            Some(suggested) => format!("; {}", did_you_mean(suggested)),
            None => String::new(),
        }
    }

    fn context(&self, kind: ContextKind) -> Option<String> {
        match self.error.get(kind)? {
            ContextValue::String(text) => Some(text.clone()),
            ContextValue::Strings(texts) => Some(texts.iter().join(", ")),
            other => Some(other.to_string()),
        }
    }
}

/// How clap says that a number is out of its range.
const NOT_IN: &str = " is not in ";

/// A number above most ranges.
const HIGHEST: &str = "9223372036854775807";

/// The option without its value: `--rounds` of `--rounds <N>`.
fn option_name(arg: &str) -> &str {
    match arg.split_once(' ') {
        Some((name, _)) if name.starts_with('-') => name,
        _ => arg,
    }
}

fn first_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}
