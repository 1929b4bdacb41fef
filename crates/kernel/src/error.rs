//! What can go wrong with a tree, and what to do then.

use std::io;
use std::path::{Path, PathBuf};

use crate::edit::Misfit;
use crate::series::SeriesError;
use crate::tree::Version;

/// Why a tree was left as it is.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{path} is not a Linux source tree: {lacks}; give the top directory of one", path = .path.display())]
    NotATree { path: PathBuf, lacks: String },
    #[error("unsupported version {version}: supported are {supported}; give a tree of one of them")]
    Version { version: Version, supported: String },
    #[error(
        "{file} should hold once, but holds {found} times: '{anchor}'; restore the file, as with 'git checkout', \
         or take the tree as it was released"
    )]
    Anchor {
        file: String,
        anchor: String,
        found: usize,
    },
    #[error(
        "{file} {how}: the tree was changed under an applied series, or another version of Lockworks applied it; \
         restore it, as with 'git checkout', or revert with the version that applied"
    )]
    Changed { file: String, how: &'static str },
    #[error("{file} is not Lockworks', and would be in its directory; move it away")]
    Foreign { file: String },
    #[error("{file} is not a plain file of text; restore it, as with 'git checkout'")]
    NotText { file: String },
    #[error("{file} is missing; restore it, as with 'git checkout'")]
    Missing { file: String },
    #[error("{path} is there and no patch of an earlier run; choose another directory, or move it away", path = .path.display())]
    InTheWay { path: PathBuf },
    #[error("no author: {0}; give --from 'Name <mail>', or set user.name and user.email in git")]
    Author(String),
    #[error("cannot read {path}: {error}", path = .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {path}: {error}; nothing was changed", path = .path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error(
        "cannot write {path}: {error}; what was there could not all be put back: it is kept in {kept}",
        path = .path.display(), kept = .kept.display()
    )]
    Torn {
        path: PathBuf,
        error: io::Error,
        kept: PathBuf,
    },
    #[error("the patch series itself is wrong: {0}; report it")]
    Series(#[from] SeriesError),
}

impl Error {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Read {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn anchor(file: &str, misfit: Misfit) -> Self {
        let line = misfit.anchor.lines().find(|line| !line.trim().is_empty());
        Self::Anchor {
            file: file.to_owned(),
            anchor: line.unwrap_or_default().trim().to_owned(),
            found: misfit.found,
        }
    }
}
