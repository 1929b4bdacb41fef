//! Description files: where they come from, and what is wrong with one, at which line.
//!
//! Machines and workloads are described in TOML files. Those that are part of Lockworks are compiled
//! in from a directory, so that adding a file is all that it takes to add a machine or a workload.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::str::from_utf8;

use include_dir::Dir;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use crate::Error;
use crate::names::{nearest, unknown};

/// A description that is part of Lockworks.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// The name of the file without `.toml`, which is also the name in it.
    pub name: &'static str,
    /// The TOML.
    pub text: &'static str,
}

/// The descriptions of one kind that are part of Lockworks.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// The kind of thing that they describe, for messages: `machine`.
    pub kind: &'static str,
    /// The directory of their files, relative to the root of the repository.
    pub directory: &'static str,
    /// The command that lists them.
    pub command: &'static str,
    /// The files.
    pub files: &'static Dir<'static>,
}

impl Library {
    /// All descriptions by name; numbers in names count as numbers, so that `nps4` precedes `nps12`.
    ///
    /// # Errors
    ///
    /// If a file is not UTF-8.
    pub fn all(&self) -> Result<Vec<Builtin>, Error> {
        let mut all: Vec<Builtin> = self
            .files
            .files()
            .filter_map(|file| {
                let name = file.path().file_name()?.to_str()?.strip_suffix(".toml")?;
                let origin = || self.origin(name);
                Some(utf8(file.contents(), origin).map(|text| Builtin { name, text }))
            })
            .collect::<Result<_, _>>()?;
        all.sort_by_key(|builtin| natural_order(builtin.name));
        Ok(all)
    }

    /// The file of the description of this name, for messages.
    pub fn origin(&self, name: &str) -> String {
        format!("{}/{name}.toml", self.directory)
    }

    /// The text and the origin of a description: the built-in one of that name, or a file. A path
    /// has a `/` in it or ends in `.toml`, and is relative to `directory`.
    ///
    /// # Errors
    ///
    /// If there is no such description, or the file cannot be read.
    pub fn open(
        &self,
        name_or_path: &str,
        directory: &Path,
    ) -> Result<(Cow<'static, str>, String), Error> {
        let all = self.all()?;
        if let Some(known) = all.iter().find(|b| b.name == name_or_path) {
            return Ok((known.text.into(), self.origin(known.name)));
        }
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            let path = directory.join(name_or_path);
            return match std::fs::read_to_string(&path) {
                Ok(text) => Ok((text.into(), path.display().to_string())),
                Err(cause) => Err(Error::Read {
                    kind: self.kind,
                    path,
                    cause,
                    command: self.command,
                }),
            };
        }
        Err(Error::Unknown {
            kind: self.kind,
            name: name_or_path.into(),
            nearest: nearest(name_or_path, all.iter().map(|b| b.name)),
            command: self.command,
        })
    }
}

/// The text of a file that was compiled in.
///
/// # Errors
///
/// If the file is not UTF-8. The message names the file and the line.
pub fn utf8(contents: &[u8], origin: impl FnOnce() -> String) -> Result<&str, Error> {
    from_utf8(contents).map_err(|error| {
        let message = "these bytes are no UTF-8; save the file as UTF-8";
        error_at(contents, error.valid_up_to(), &origin(), message)
    })
}

/// The error that something is wrong with the byte at this place.
fn error_at(text: &[u8], place: usize, origin: &str, message: &str) -> Error {
    let before = &text[..place.min(text.len())];
    Error::Description {
        origin: origin.to_owned(),
        line: 1 + before.iter().filter(|b| **b == b'\n').count(),
        message: one_line(message),
    }
}

/// Splits a name into pieces of text, each with the number that follows it.
fn natural_order(name: &str) -> Vec<(&str, u64)> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit();
        let number = rest.find(is_digit).unwrap_or(rest.len());
        let text = &rest[..number];
        rest = &rest[number..];
        let end = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
        pieces.push((text, rest[..end].parse().unwrap_or(0)));
        rest = &rest[end..];
    }
    pieces
}

/// A mistake in a description, with the bytes of the text that it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The bytes.
    pub span: Range<usize>,
    /// A message that says what is wrong, what is allowed, and what to do.
    pub message: String,
}

impl Fault {
    /// Says that something is wrong with `at`.
    pub fn at<T>(at: &Spanned<T>, message: impl Into<String>) -> Fault {
        Fault {
            span: at.span(),
            message: message.into(),
        }
    }

    /// Names the file and the line.
    pub fn locate(self, text: &str, origin: &str) -> Error {
        error_at(text.as_bytes(), self.span.start, origin, &self.message)
    }

    /// Says what the parser found wrong with a text.
    pub fn of_toml(text: &str, error: toml::de::Error) -> Fault {
        if error.message() != "duplicate key" {
            return error.into();
        }
        let span = error.span().unwrap_or_default();
        let key = text.get(span.clone()).unwrap_or_default();
        Fault {
            span,
            message: format!("a key or table `{key}` stands above; keep one"),
        }
    }
}

/// A message with escapes for line ends and other control characters, which a description may have in
/// its texts.
fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for character in message.chars() {
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Fault {
        Fault {
            span: error.span().unwrap_or_default(),
            message: plain(&error.message().trim().replace('\n', ", ")),
        }
    }
}

/// Reads a table of a description. By itself, serde would take a list for one too.
///
/// # Errors
///
/// If the value is no table, or its content is wrong.
pub fn table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct TableVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(TableVisitor(PhantomData))
}

/// A message of serde in words for people who do not know Rust.
fn plain(message: &str) -> String {
    if message == "cannot recurse further; max recursion depth met" {
        return "lists or tables are nested too deeply; use fewer levels".into();
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{field} is missing; add it");
    }
    let Some((problem, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    for (prefix, what, all) in [
        ("unknown field ", "key", "the keys here are"),
        ("unknown variant ", "value", "choose from"),
    ] {
        if let Some(given) = problem.strip_prefix(prefix) {
            let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            let given = given.trim_matches('`');
            let meant = nearest(given, names.iter().copied());
            let allowed = || format!("{all} {}", names.join(", "));
            return unknown(what, given, '`', meant, allowed);
        }
    }
    let expected = match expected {
        "f64" => "a number",
        "usize" | "u32" | "u64" => "a whole number that is not negative",
        "a nonzero usize" => "a whole number above 0",
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "true or false",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some(given) = problem.strip_prefix(prefix) {
            return format!("{} does not fit here; give {expected}", article(given));
        }
    }
    match problem {
        "string values must be quoted" => {
            "this is no value; give a number, true or false, a text in quotes, a list or a table"
                .into()
        }
        "unexpected key or value" => {
            "a value ends before this; put texts into quotes, and each key on a line of its own"
                .into()
        }
        "invalid key-value pair" => "this is no key; write `KEY = VALUE`".into(),
        _ if expected == "nothing" => format!("{problem}; remove it"),
        // The parser says which sign it misses.
        _ => format!("{problem}; write {expected} here"),
    }
}

/// The kind of a value as serde names it, with what people call that kind.
fn article(given: &str) -> String {
    let (kind, value) = given.split_once(' ').unwrap_or((given, ""));
    let kind = match kind {
        "sequence" => "a list",
        "map" => "a table",
        "integer" | "floating" => "the number",
        "boolean" => "the word",
        "string" => "the text",
        other => other,
    };
    let value = value.trim_start_matches("point ");
    format!("{kind} {value}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["a-nps12", "b-1", "a-nps2", "a-nps1", "a-nps12x4", "a-nps4"];
        names.sort_by_key(|name| natural_order(name));
        let sorted = ["a-nps1", "a-nps2", "a-nps4", "a-nps12", "a-nps12x4", "b-1"];
        assert_eq!(names, sorted);
    }

    #[test]
    fn a_file_that_is_not_utf8_is_refused_by_its_line() {
        let error = utf8(b"name = 1\ntitle = \"\xff\"", || "x.toml".into());
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            "x.toml:2: these bytes are no UTF-8; save the file as UTF-8"
        );
    }

    #[test]
    fn messages_are_not_in_rust() {
        for (serde, plain_words) in [
            ("missing field `title`", "`title` is missing; add it"),
            (
                "unknown field `titel`, expected one of `name`, `title`",
                "unknown key `titel`; did you mean `title`?",
            ),
            (
                "unknown field `x`, expected `name`",
                "unknown key `x`; the keys here are name",
            ),
            (
                "unknown variant `Q`, expected one of `E`, `S`",
                "unknown value `Q`; choose from E, S",
            ),
            (
                "invalid value: integer `0`, expected a nonzero usize",
                "the number `0` does not fit here; give a whole number above 0",
            ),
            (
                "invalid type: floating point `3.0`, expected struct Unchecked",
                "the number `3.0` does not fit here; give a table",
            ),
            (
                "invalid type: string \"x\", expected f64",
                "the text \"x\" does not fit here; give a number",
            ),
            (
                "invalid type: map, expected a string",
                "a table does not fit here; give a string",
            ),
            (
                "invalid type: sequence, expected a map",
                "a list does not fit here; give a table",
            ),
        ] {
            assert_eq!(plain(serde), plain_words);
        }
    }

    #[test]
    fn mistakes_that_the_parser_finds_come_with_advice() {
        let message = |text: &str| {
            let error = toml::from_str::<toml::Table>(text).unwrap_err();
            Fault::of_toml(text, error).message
        };
        let deep = format!("a = {}", "[".repeat(1000));
        assert!(message(&deep).ends_with("nested too deeply; use fewer levels"));
        for text in ["a = 1\na = 2", "[a]\n[a]", "[b]\na = {a = 1, a = 2}"] {
            assert_eq!(
                message(text),
                "a key or table `a` stands above; keep one",
                "{text}"
            );
        }
        let no_value = "this is no value; give a number, true or false, a text in quotes, a list \
                        or a table";
        for (text, advice) in [
            ("a = x", no_value),
            ("a =", no_value),
            ("a", "key with no value; write `=` here"),
            ("a = = 1", "extra `=`; remove it"),
            ("[a", "unclosed table; write `]` here"),
            ("a = [1,", "unclosed array; write `]` here"),
            (
                "a = [{} {}]",
                "missing comma between array elements; write `,` here",
            ),
            ("a = \"x", "invalid basic string; write `\"` here"),
            ("{}", "this is no key; write `KEY = VALUE`"),
            (
                "a = \"x\" b",
                "a value ends before this; put texts into quotes, and each key on a line of its \
                 own",
            ),
        ] {
            assert_eq!(message(text), advice, "{text}");
        }
    }
}
