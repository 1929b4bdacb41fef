//! The series as patches, for review and `git am`. Git writes them, in a repository of our own.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::files;
use crate::fit;
use crate::git;
use crate::inspection::{Inspection, State};
use crate::series::{Contents, Cover, Series};
use crate::tree::Tree;

/// The author of patches, and the time at which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Author {
    name: String,
    mail: String,
    /// Seconds and offset, as git writes them.
    date: String,
}

impl Author {
    /// The author given as `Name <mail>`, or else the one that git knows in a directory.
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
        let output = git.output().map_err(git::not_started)?;
        if !output.status.success() {
            let said = last_line(&output.stderr);
            return Err(Error::Author(said.unwrap_or("git names none".to_owned())));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Self::parse(&said).ok_or_else(|| Error::Author(format!("git names '{}'", said.trim())))
    }

    /// Parses `Name <mail> seconds offset`.
    fn parse(text: &str) -> Option<Self> {
        let (who, date) = text.trim().rsplit_once("> ")?;
        let (name, mail) = who.split_once(" <")?;
        // Without an offset, git would read the date in the time zone of the machine.
        date.split_once(' ')?;
        Some(Self {
            name: name.to_owned(),
            mail: mail.to_owned(),
            date: date.to_owned(),
        })
    }
}

fn identity(text: &str) -> Option<(&str, &str)> {
    let (name, mail) = text.trim().strip_suffix('>')?.split_once('<')?;
    let (name, mail) = (name.trim(), mail.trim());
    (!name.is_empty() && !mail.is_empty() && !mail.contains(['<', '>'])).then_some((name, mail))
}

/// A patch and the name of its file.
#[derive(Clone, Debug)]
pub struct PatchFile {
    /// Number and subject, as git writes them in a file name.
    pub name: String,
    /// The patch as a mail.
    pub text: String,
}

/// The beginning of a patch of ours. By default, git would put the name of a commit there.
const FIRST_LINE: &str = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n";

/// The end of a patch of ours; the version follows.
const SIGNATURE: &str = "Lockworks ";

/// The series as patches to a tree, whether or not it is applied there. With `figures`, a text of ASCII,
/// a cover letter comes first and has them.
pub fn patches(
    series: &Series,
    tree: &Tree,
    author: &Author,
    signoff: bool,
    figures: Option<&str>,
) -> Result<Vec<PatchFile>, Error> {
    let series = &series.fitting(tree)?;
    let seen = Inspection::new(series, tree)?;
    match seen.state {
        State::Changed => return Err(seen.changed()),
        State::NotApplied => {
            seen.is_free(series, tree)?;
            fit::check(series, tree, &seen.pristine)?;
        }
        State::Applied => {}
    }
    let scratch = Scratch::new(author)?;
    scratch.commit(&series.after(0, &seen.pristine)?, "Linux")?;
    for (number, patch) in (1..).zip(&series.patches) {
        let message = format!("{}\n\n{}\n", patch.subject, patch.body);
        scratch.commit(&series.after(number, &seen.pristine)?, &message)?;
    }
    if let Some(figures) = figures {
        scratch.describe(&letter(&series.cover, figures))?;
    }
    scratch.patches(series.patches.len(), signoff, figures.is_some())
}

/// The subject and text of the cover letter. Git adds the list of patches and of changed files.
fn letter(cover: &Cover, figures: &str) -> String {
    let texts = [&cover.text, &cover.tested, figures, &cover.changes];
    let texts = texts.map(str::trim).join("\n\n");
    format!("{}\n\n{texts}\n", cover.title)
}

/// The branch of the series. Git keeps the text of a cover letter as the description of a branch.
const BRANCH: &str = "series";

/// A repository that holds each step of the series as a commit.
struct Scratch<'a> {
    author: &'a Author,
    directory: tempfile::TempDir,
}

impl<'a> Scratch<'a> {
    fn new(author: &'a Author) -> Result<Self, Error> {
        let directory = tempfile::tempdir().map_err(Error::write(&std::env::temp_dir()))?;
        let scratch = Self { author, directory };
        scratch.git(&["init", "-q"], "")?;
        scratch.git(
            &["symbolic-ref", "HEAD", &format!("refs/heads/{BRANCH}")],
            "",
        )?;
        Ok(scratch)
    }

    fn commit(&self, contents: &Contents, message: &str) -> Result<(), Error> {
        files::write_below(self.directory.path(), contents)?;
        self.git(&["add", "--all", "--force"], "")?;
        let commit = ["commit", "-q", "--cleanup=verbatim", "--file=-"];
        self.git(&commit, message).map(drop)
    }

    /// Keeps subject and text of the cover letter.
    fn describe(&self, letter: &str) -> Result<(), Error> {
        let key = format!("branch.{BRANCH}.description");
        self.git(&["config", &key, letter], "").map(drop)
    }

    /// The last `count` commits as patches, after the cover letter if there is one.
    fn patches(
        &self,
        count: usize,
        signoff: bool,
        has_letter: bool,
    ) -> Result<Vec<PatchFile>, Error> {
        let signature = format!("--signature={SIGNATURE}{}", env!("CARGO_PKG_VERSION"));
        let count = format!("-{count}");
        let mut arguments = vec!["format-patch", "--zero-commit", "--full-index"];
        arguments.extend(["--output-directory=.git/patches", &signature, &count]);
        if signoff {
            arguments.push("--signoff");
        }
        if has_letter {
            arguments.extend(["--cover-letter", "--cover-from-description=subject"]);
        }
        let names = self.git(&arguments, "")?;
        let read = |path: &str| {
            let path = self.directory.path().join(path);
            Ok(PatchFile {
                name: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                text: fs::read_to_string(&path).map_err(Error::read(&path))?,
            })
        };
        names.lines().map(read).collect()
    }

    /// Runs git as the author; returns what it prints.
    fn git(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        let Author { name, mail, date } = self.author;
        let mut git = git::command(self.directory.path());
        git.envs([("GIT_AUTHOR_NAME", name), ("GIT_COMMITTER_NAME", name)])
            .envs([("GIT_AUTHOR_EMAIL", mail), ("GIT_COMMITTER_EMAIL", mail)])
            .envs([("GIT_AUTHOR_DATE", date), ("GIT_COMMITTER_DATE", date)])
            .args(arguments);
        git::run(git, arguments[0], input, &[0])
    }
}

fn last_line(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().rfind(|line| !line.is_empty());
    last.map(str::to_owned)
}

/// Puts patches into a directory in place of those of an earlier run. The directory is made if it is
/// missing. Nothing is written if the file of another is in the way.
pub fn write_patches(patches: &[PatchFile], directory: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        entries => Some(entries.map_err(Error::read(directory))?),
    };
    let mut old = Vec::new();
    for entry in entries.into_iter().flatten() {
        let path: PathBuf = entry.map_err(Error::read(directory))?.path();
        let new = patches
            .iter()
            .any(|file| directory.join(&file.name) == path);
        match is_ours(&path) {
            true if !new => old.push(path),
            false if new => return Err(Error::InTheWay { path }),
            _ => {}
        }
    }
    for patch in patches {
        files::write(&directory.join(&patch.name), &patch.text)?;
    }
    let mut old = old.iter();
    old.try_for_each(|path| fs::remove_file(path).map_err(Error::write(path)))
}

/// Whether a file is a patch of an earlier run.
fn is_ours(path: &Path) -> bool {
    let plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let text = match path.extension() {
        Some(end) if plain && end == "patch" => fs::read_to_string(path).unwrap_or_default(),
        _ => return false,
    };
    text.starts_with(FIRST_LINE) && text.contains(&format!("\n-- \n{SIGNATURE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_have_name_mail_and_date() {
        let author = Author::parse("A. B <a@b.example> 1700000000 -0330\n").unwrap();
        assert_eq!((&*author.name, &*author.mail), ("A. B", "a@b.example"));
        assert_eq!(author.date, "1700000000 -0330");
        for wrong in ["A <a@b.example>", "A <a@b.example> 17"] {
            assert_eq!(Author::parse(wrong), None, "{wrong}");
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
