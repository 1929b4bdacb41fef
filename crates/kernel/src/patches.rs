//! The series as patches, for review and `git am`.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use sha1::{Digest, Sha1};
use similar::{ChangeTag, TextDiff};

use crate::changes::Changes;
use crate::error::Error;
use crate::mail::{Author, FIRST_LINE, Mail, TRAILER};
use crate::series::Series;
use crate::tree::{Inspection, State, Tree};

/// A patch and its file's name.
#[derive(Clone, Debug)]
pub struct PatchFile {
    /// Number and subject, as git makes names of them.
    pub name: String,
    /// A mail.
    pub text: String,
}

/// The series as patches to a tree, whether or not it is applied there.
pub fn patches(
    series: &Series,
    tree: &Tree,
    author: &Author,
    signoff: bool,
) -> Result<Vec<PatchFile>, Error> {
    let seen = Inspection::new(series, tree)?;
    if seen.state == State::Changed {
        return Err(seen.changed());
    }
    let count = series.patches.len();
    let mut before = series.after(0, &seen.pristine)?;
    let mut files = Vec::new();
    for (number, patch) in (1..).zip(&series.patches) {
        let after = series.after(number, &seen.pristine)?;
        let diffs: Vec<FileDiff> = after
            .iter()
            .map(|(path, new)| FileDiff::new(path, before.get(path).map(String::as_str), new))
            .filter(|diff| diff.added + diff.removed > 0)
            .collect();
        let mail = Mail {
            author,
            signoff,
            place: (number, count),
            subject: &patch.subject,
            body: &patch.body,
            patch: &render(&diffs),
        };
        files.push(PatchFile {
            name: file_name(number, &patch.subject),
            text: mail.text(),
        });
        before = after;
    }
    Ok(files)
}

/// Puts patches into a directory in place of those of an earlier run, all or none. The directory is
/// made where it is missing.
pub fn write_patches(files: &[PatchFile], directory: &Path) -> Result<(), Error> {
    let mut changes = Changes::default();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        entries => Some(entries.map_err(Error::read(directory))?),
    };
    for entry in entries.into_iter().flatten() {
        let path = entry.map_err(Error::read(directory))?.path();
        let new = files.iter().any(|file| directory.join(&file.name) == path);
        match is_ours(&path) {
            true if !new => changes.remove(path),
            false if new => return Err(Error::InTheWay { path }),
            _ => {}
        }
    }
    for file in files {
        changes.write(directory.join(&file.name), file.text.as_str());
    }
    let top = directory.ancestors().find(|path| path.is_dir());
    changes.make(top.unwrap_or(Path::new(".")))
}

/// Is it a patch of an earlier run?
fn is_ours(path: &Path) -> bool {
    let plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let text = match path.extension() {
        Some(end) if plain && end == "patch" => fs::read_to_string(path).unwrap_or_default(),
        _ => return false,
    };
    text.starts_with(FIRST_LINE) && text.contains(TRAILER)
}

/// As `git format-patch` names it.
fn file_name(number: usize, subject: &str) -> String {
    const LONGEST: usize = 64 - ".patch".len();
    let words = subject.split(|c: char| !c.is_ascii_alphanumeric() && !"._".contains(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut name = format!("{number:04}-{}", words.join("-"));
    name.truncate(LONGEST);
    format!("{}.patch", name.trim_end_matches(['-', '.']))
}

/// What a patch does to a file.
struct FileDiff<'a> {
    path: &'a str,
    is_new: bool,
    added: usize,
    removed: usize,
    text: String,
}

impl<'a> FileDiff<'a> {
    fn new(path: &'a str, old: Option<&str>, new: &str) -> Self {
        let before = old.unwrap_or_default();
        let diff = TextDiff::from_lines(before, new);
        let count = |tag| diff.iter_all_changes().filter(|c| c.tag() == tag).count();
        let old_id = old.map_or("0".repeat(40), blob_id);
        let (mode, tail, from) = match old {
            None => ("new file mode 100644\n", "", "/dev/null".to_owned()),
            Some(_) => ("", " 100644", format!("a/{path}")),
        };
        let lines = diff
            .unified_diff()
            .context_radius(3)
            .header(&from, &format!("b/{path}"))
            .to_string();
        Self {
            path,
            is_new: old.is_none(),
            added: count(ChangeTag::Insert),
            removed: count(ChangeTag::Delete),
            text: format!(
                "diff --git a/{path} b/{path}\n{mode}index {old_id}..{}{tail}\n{lines}",
                blob_id(new)
            ),
        }
    }
}

/// What git calls contents; `git am -3` looks for them by it.
fn blob_id(text: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", text.len()));
    hash.update(text);
    let mut id = String::new();
    for byte in hash.finalize() {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// Diffstat and diffs.
fn render(diffs: &[FileDiff]) -> String {
    const WIDTH: usize = 72;
    let path = diffs.iter().map(|diff| diff.path.len()).max().unwrap_or(0);
    let most = diffs.iter().map(|diff| diff.added + diff.removed).max();
    let most = most.unwrap_or(0);
    let digits = most.to_string().len();
    let room = WIDTH.saturating_sub(path + digits + 6).max(6);
    let scale = |n: usize| match n {
        0 => 0,
        n if most <= room => n,
        n => 1 + n * (room - 2) / most,
    };
    let mut text = String::new();
    for diff in diffs {
        let (plus, minus) = (
            "+".repeat(scale(diff.added)),
            "-".repeat(scale(diff.removed)),
        );
        let changed = diff.added + diff.removed;
        let _ = writeln!(
            text,
            " {:path$} | {changed:digits$} {plus}{minus}",
            diff.path
        );
    }
    let added = diffs.iter().map(|diff| diff.added).sum();
    let removed = diffs.iter().map(|diff| diff.removed).sum();
    let counts = [
        (diffs.len(), "file", " changed"),
        (added, "insertion", "(+)"),
        (removed, "deletion", "(-)"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what, sign)| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {what}{plural}{sign}")
        })
        .collect();
    let _ = writeln!(text, " {}", counts.join(", "));
    for diff in diffs.iter().filter(|diff| diff.is_new) {
        let _ = writeln!(text, " create mode 100644 {}", diff.path);
    }
    text.push('\n');
    for diff in diffs {
        text += &diff.text;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        let name = |subject| file_name(1, subject);
        assert_eq!(name("a/b: Add the c."), "0001-a-b-Add-the-c.patch");
        let long = name(&"word ".repeat(20));
        assert_eq!(long.len(), 64);
    }

    #[test]
    fn blobs_are_called_as_git_calls_them() {
        assert_eq!(blob_id(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    }
}
