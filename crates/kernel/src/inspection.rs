//! How much of the series is in a kernel's source tree.
//!
//! The state is derived from the tree alone, so a series that came by `git am` is recognised too.

use std::fmt;
use std::fs;

use serde::Serialize;

use crate::edit::{self, Found};
use crate::error::Error;
use crate::files;
use crate::fit;
use crate::series::{Contents, Series};
use crate::tree::Tree;

/// How much of the series a tree or file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The tree or file holds all of the series.
    Applied,
    /// The tree or file holds nothing of the series.
    NotApplied,
    /// The tree or file holds part of the series, or changed contents.
    Changed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied",
            Self::NotApplied => "not applied",
            Self::Changed => "changed",
        })
    }
}

/// The origin of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// The kernel's file, with inserted texts.
    Edited,
    /// A file of Lockworks.
    Added,
}

/// A file that the series touches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileStatus {
    /// Its path in the tree.
    pub path: String,
    /// Its origin.
    pub kind: FileKind,
    /// How much of the series it holds.
    pub state: State,
}

/// How much of the series is in a tree.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The kernel's version.
    pub version: String,
    /// The state of the whole tree.
    pub state: State,
    /// Why the series can neither be applied nor reverted, or the next step would fail.
    pub obstacle: Option<String>,
    /// The state of each file that the series touches.
    pub files: Vec<FileStatus>,
}

/// Determines how much of the series is in a tree.
pub fn status(series: &Series, tree: &Tree) -> Result<Status, Error> {
    let series = &series.fitting(tree)?;
    let seen = Inspection::new(series, tree)?;
    let obstacle = match seen.state {
        State::Applied => seen.no_foreign(),
        State::NotApplied => seen
            .is_free(series, tree)
            .and_then(|()| fit::check(series, tree, &seen.pristine)),
        State::Changed => Err(seen.changed()),
    };
    Ok(Status {
        version: tree.version().to_string(),
        state: seen.state,
        obstacle: obstacle.err().map(|error| error.to_string()),
        files: seen.files,
    })
}

/// The contents of a tree, as far as the series is concerned.
pub(crate) struct Inspection {
    pub state: State,
    pub files: Vec<FileStatus>,
    /// The edited files without the inserts, except those that are changed or missing.
    pub pristine: Contents,
    /// Products of compilers in our directory.
    pub products: Vec<String>,
    /// Other files in our directory.
    pub foreign: Vec<String>,
}

impl Inspection {
    pub fn new(series: &Series, tree: &Tree) -> Result<Self, Error> {
        let mut files = Vec::new();
        let mut pristine = Contents::new();
        for file in series.edited() {
            let text = tree.read(file)?;
            let found = text
                .as_ref()
                .map(|text| edit::remove_all(&series.inserts(file), text));
            let (state, without) = match found {
                Some(Found::All(without)) => (State::Applied, Some(without)),
                Some(Found::None) | None => (State::NotApplied, text),
                Some(Found::Some) => (State::Changed, None),
            };
            pristine.extend(without.map(|text| (file.to_owned(), text)));
            files.push(FileStatus {
                path: file.to_owned(),
                kind: FileKind::Edited,
                state,
            });
        }
        for (file, text) in series.files() {
            files.push(FileStatus {
                path: file.to_owned(),
                kind: FileKind::Added,
                state: added(tree, file, text)?,
            });
        }
        let (products, foreign) = others(series, tree)?
            .into_iter()
            .partition(|p| is_product(p));
        let all = |state| files.iter().all(|file| file.state == state);
        Ok(Self {
            state: match (all(State::Applied), all(State::NotApplied)) {
                (true, _) => State::Applied,
                (_, true) => State::NotApplied,
                _ => State::Changed,
            },
            files,
            pristine,
            products,
            foreign,
        })
    }

    /// Refuses a tree with files of others in our directory.
    pub fn no_foreign(&self) -> Result<(), Error> {
        match self.foreign.first() {
            None => Ok(()),
            Some(file) => Err(Error::Foreign { file: file.clone() }),
        }
    }

    /// Refuses a tree in which the place of the series is taken: by files of others in our directory,
    /// or by another series.
    pub fn is_free(&self, series: &Series, tree: &Tree) -> Result<(), Error> {
        self.no_foreign()?;
        match series.rivals.found(tree)?.join(", ") {
            found if found.is_empty() => Ok(()),
            found => Err(Error::Rival { found }),
        }
    }

    /// The error for a changed tree.
    pub fn changed(&self) -> Error {
        let first = |state| self.files.iter().find(|file| file.state == state);
        let file = first(State::Changed).or_else(|| first(State::NotApplied));
        let how = file.map_or("", |file| match (file.kind, file.state) {
            (FileKind::Edited, State::Changed) => {
                "lacks part of what Lockworks inserts, or holds it altered"
            }
            (FileKind::Edited, _) => "lacks what Lockworks inserts",
            (FileKind::Added, State::Changed) => "differs from Lockworks' file",
            (FileKind::Added, _) => "is missing",
        });
        Error::Changed {
            file: file.map(|file| file.path.clone()).unwrap_or_default(),
            how,
        }
    }
}

/// How much a tree holds of a file of ours.
fn added(tree: &Tree, file: &str, text: &str) -> Result<State, Error> {
    match tree.read(file) {
        Ok(Some(found)) if found == text => Ok(State::Applied),
        Ok(Some(_)) | Err(Error::NotText { .. }) => Ok(State::Changed),
        Ok(None) => Ok(State::NotApplied),
        Err(error) => Err(error),
    }
}

/// Lists the files in our directory that are not ours.
fn others(series: &Series, tree: &Tree) -> Result<Vec<String>, Error> {
    let own = tree.root().join(&series.directory);
    if fs::symlink_metadata(own).is_ok_and(|found| !found.is_dir()) {
        return Ok(vec![series.directory.clone()]);
    }
    let found = files::below(&tree.root().join(&series.directory))?;
    let names = found
        .iter()
        .map(|file| format!("{}/{}", series.directory, file.display()));
    let own = |name: &String| series.files().any(|(file, _)| file == name);
    Ok(names.filter(|name| !own(name)).collect())
}

/// Whether `make clean` would remove a file.
fn is_product(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let hidden = [".cmd", ".d", ".tmp"];
    let plain = [
        ".a",
        ".dwo",
        ".gcno",
        ".i",
        ".ko",
        ".ll",
        ".lst",
        ".mod",
        ".mod.c",
        ".o",
        ".o.d",
        ".s",
        ".su",
        ".symtypes",
    ];
    match name.strip_prefix('.') {
        Some(rest) => rest.starts_with("tmp_") || hidden.iter().any(|end| rest.ends_with(end)),
        None => name == "modules.order" || plain.iter().any(|end| name.ends_with(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_products_from_sources() {
        for name in [
            "d/cna.o",
            "d/.cna.o.cmd",
            "d/built-in.a",
            "d/modules.order",
            "d/.tmp_cna.o",
        ] {
            assert!(is_product(name), "{name}");
        }
        for name in [
            "d/cna.c",
            "d/notes.txt",
            "d/.cna.c.swp",
            "d/mine.patch",
            "d/cna.c.orig",
        ] {
            assert!(!is_product(name), "{name}");
        }
    }
}
