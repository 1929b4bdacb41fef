//! Errors of building, booting and judging kernels.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused an operation.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A request that cannot be fulfilled, with the possible ones.
    #[error("{0}")]
    Refused(String),
    /// The series cannot be applied to a tree.
    #[error(transparent)]
    Apply(#[from] crate::Error),
    /// The series itself is wrong.
    #[error(transparent)]
    Series(#[from] crate::SeriesError),
    /// A child process failed.
    #[error("{what} failed; its output is in {}\n{}", log.display(), lines.join("\n"))]
    Failed {
        /// Its purpose.
        what: String,
        /// The relevant lines of its output.
        lines: Vec<String>,
        /// The file with all of its output.
        log: PathBuf,
    },
}

/// A result of this crate's work on sources, kernels and guests.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds the name of the operation to an error of the system.
pub(crate) trait Attempt<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;

    fn attempt_on(self, verb: &str, path: &Path) -> Result<T>
    where
        Self: Sized,
    {
        self.attempt(|| format!("{verb} {}", path.display()))
    }
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::System {
            what: what(),
            error,
        })
    }
}
