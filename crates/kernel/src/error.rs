//! Errors of the series and of trees, each with what the user can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::version::KernelVersion;

/// A mistake in the data of the series.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SeriesError {
    #[error("{0}")]
    Format(#[from] toml::de::Error),
    #[error("patch '{0}' changes nothing")]
    Empty(String),
    #[error("subject '{0}' is not one line of ASCII")]
    Subject(String),
    #[error("the cover letter is not ASCII")]
    Cover,
    #[error("'{0}' is not a path inside a tree")]
    Path(String),
    #[error("there is no file {0} to embed")]
    NoFile(String),
    #[error("{file} includes {header}, which is in none of the directories of `include`")]
    NoHeader { file: String, header: String },
    #[error("two patches add {0}, or one adds it and one edits it")]
    Twice(String),
    #[error("patch '{patch}': an insert in {file} needs text, and one of `after` and `before`")]
    Insert { patch: String, file: String },
    #[error(
        "patch '{patch}': a need in {files} must have files, texts, and releases such as 6.12 in `since` and `before`"
    )]
    Need { patch: String, files: String },
}

/// Why an operation left a tree as it is.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{path} is not a Linux source tree: {lacks}; give the top directory of one", path = .path.display())]
    NotATree { path: PathBuf, lacks: String },
    #[error("Linux {version} is not supported; give a tree of Linux 6 or 7 (tested: {tested})")]
    Version {
        version: KernelVersion,
        tested: String,
    },
    #[error(
        "the series does not fit this tree: {0}; restore the files, for example with 'git checkout', or use the tree \
         as it was released"
    )]
    Unfit(String),
    #[error(
        "{file} {how}: the tree was changed after the series was applied, or another version of Lockworks applied it; \
         restore the file, for example with 'git checkout', or revert with the version that applied the series"
    )]
    Changed { file: String, how: &'static str },
    #[error("{file} does not belong to Lockworks, but is in its directory; move it away")]
    Foreign { file: String },
    #[error(
        "the tree has another NUMA-aware slow path of spinlocks already: {found}; a kernel can have one only: revert \
         its patches, for example with 'git revert', or use a tree without them"
    )]
    Rival { found: String },
    #[error("{file} is not a plain text file; restore it, for example with 'git checkout'")]
    NotText { file: String },
    #[error("{file} is missing; restore it, for example with 'git checkout'")]
    Missing { file: String },
    #[error("{path} exists and is not a patch of an earlier run; move it away, or choose another directory", path = .path.display())]
    InTheWay { path: PathBuf },
    #[error("no author: {0}; give --from 'Name <mail>', or set user.name and user.email in git")]
    Author(String),
    #[error("git is not installed, but writes the patches; install the package git")]
    NoGit,
    #[error("git {command} failed: {said}")]
    Git { command: String, said: String },
    #[error("cannot read {path}: {error}", path = .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {path}: {error}", path = .path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("{0}; nothing was changed")]
    Unchanged(Box<Error>),
    #[error("the patch series itself is wrong: {0}; please report this")]
    Series(#[from] SeriesError),
}

impl Error {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Read {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Write {
            path: path.to_owned(),
            error,
        }
    }

    /// The error for a tree that lacks these things, each in words.
    pub(crate) fn unfit(wrong: &[String]) -> Self {
        Self::Unfit(wrong.join("; "))
    }
}
