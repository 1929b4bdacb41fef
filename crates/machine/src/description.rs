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
use lockworks_names::nearest;

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
            message: error.message().trim().replace('\n', ", "),
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
}
