//! Patches as mail, in the form that `git format-patch` gives them and `git am` takes.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::Offset;

use crate::error::Error;

/// Whose patches they are, and when they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Author {
    name: String,
    mail: String,
    date: String,
}

impl Author {
    /// The author that git knows in a directory, or else the one given as `Name <mail>`.
    pub fn of(directory: &Path, given: Option<&str>) -> Result<Self, Error> {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(directory)
            .args(["var", "GIT_AUTHOR_IDENT"]);
        if let Some(given) = given {
            let (name, mail) = identity(given).ok_or_else(|| {
                Error::Author(format!("'{given}' is not of the form Name <mail>"))
            })?;
            git.env("GIT_AUTHOR_NAME", name)
                .env("GIT_AUTHOR_EMAIL", mail);
        }
        let output = git
            .output()
            .map_err(|error| Error::Author(format!("cannot run git: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().rfind(|line| !line.is_empty());
            return Err(Error::Author(said.unwrap_or("git names none").to_owned()));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Self::parse(&said).ok_or_else(|| Error::Author(format!("git names '{}'", said.trim())))
    }

    /// `Name <mail> seconds offset`
    fn parse(text: &str) -> Option<Self> {
        let (who, when) = text.trim().rsplit_once("> ")?;
        let (name, mail) = who.split_once(" <")?;
        let (seconds, offset) = when.split_once(' ')?;
        let offset: i32 = offset.parse().ok()?;
        let offset = Offset::from_seconds((offset / 100 * 60 + offset % 100) * 60).ok()?;
        let time = offset.to_datetime(Timestamp::from_second(seconds.parse().ok()?).ok()?);
        let date = strtime::format("%a, %-d %b %Y %H:%M:%S", time).ok()?;
        Some(Self {
            name: name.to_owned(),
            mail: mail.to_owned(),
            date: format!("{date} {}", when.split_once(' ')?.1),
        })
    }

    fn address(&self) -> String {
        let Self { name, mail, .. } = self;
        if !name.is_ascii() {
            // An encoded word of RFC 2047.
            let mut word = String::new();
            for byte in name.bytes() {
                match byte {
                    byte if byte.is_ascii_alphanumeric() => word.push(byte.into()),
                    byte => word += &format!("={byte:02X}"),
                }
            }
            format!("=?UTF-8?q?{word}?= <{mail}>")
        } else if name.contains(|c| "()<>[]:;@\\,.\"".contains(c)) {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{name}\" <{mail}>")
        } else {
            format!("{name} <{mail}>")
        }
    }
}

fn identity(text: &str) -> Option<(&str, &str)> {
    let (name, mail) = text.trim().strip_suffix('>')?.split_once('<')?;
    let (name, mail) = (name.trim(), mail.trim());
    (!name.is_empty() && !mail.is_empty() && !mail.contains(['<', '>'])).then_some((name, mail))
}

/// First line of a patch; git puts a commit's name there.
pub(crate) const FIRST_LINE: &str =
    "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n";

/// What stands behind the patch; the version follows.
pub(crate) const TRAILER: &str = "\n-- \nLockworks ";

/// What makes a patch a mail.
pub(crate) struct Mail<'a> {
    pub author: &'a Author,
    pub signoff: bool,
    /// Its number, and how many there are.
    pub place: (usize, usize),
    pub subject: &'a str,
    pub body: &'a str,
    /// Diffstat and diffs.
    pub patch: &'a str,
}

impl Mail<'_> {
    pub fn text(&self) -> String {
        let author = self.author;
        let (number, count) = self.place;
        let width = count.to_string().len();
        let mut text = format!(
            "{FIRST_LINE}From: {}\nDate: {}\nSubject: [PATCH {number:0width$}/{count}] {}\n",
            author.address(),
            author.date,
            self.subject
        );
        let mut body = self.body.to_owned();
        if self.signoff {
            let gap = if body.is_empty() { "" } else { "\n\n" };
            let _ = write!(
                body,
                "{gap}Signed-off-by: {} <{}>",
                author.name, author.mail
            );
        }
        if !body.is_ascii() || !self.patch.is_ascii() {
            text += "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n\
                     Content-Transfer-Encoding: 8bit\n";
        }
        let version = env!("CARGO_PKG_VERSION");
        let patch = self.patch;
        let _ = write!(text, "\n{body}\n---\n{patch}{}{version}\n\n", &TRAILER[1..]);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(text: &str) -> Author {
        Author::parse(text).unwrap()
    }

    #[test]
    fn dates_are_those_of_mail() {
        let text = "A B <a@b.example> 1700000000 -0330\n";
        assert_eq!(author(text).date, "Tue, 14 Nov 2023 18:43:20 -0330");
        assert_eq!(Author::parse("A <a@b.example> 17"), None);
    }

    #[test]
    fn names_are_quoted_for_mail() {
        for (name, address) in [
            ("A B", "A B <m>"),
            ("A. B", "\"A. B\" <m>"),
            ("Ä B", "=?UTF-8?q?=C3=84=20B?= <m>"),
        ] {
            assert_eq!(author(&format!("{name} <m> 0 +0000")).address(), address);
        }
    }

    #[test]
    fn identities_have_name_and_mail() {
        assert_eq!(identity("A B <a@b>"), Some(("A B", "a@b")));
        for wrong in ["A B", "<a@b>", "A <>", "A <a> <b>", "A <a@b> x"] {
            assert_eq!(identity(wrong), None, "{wrong}");
        }
    }
}
