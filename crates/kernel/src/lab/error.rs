//! What can go wrong between a source package and a verdict.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("cannot {what}: {error}")]
    System {
        /// What was to be done.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// Asked for what cannot be; says what can.
    #[error("{0}")]
    Refused(String),
    /// Lockworks cannot be put into a tree.
    #[error(transparent)]
    Apply(#[from] crate::Error),
    /// What Lockworks brings is wrong.
    #[error(transparent)]
    Series(#[from] crate::SeriesError),
    /// A program that was started failed.
    #[error("{what} failed; all it said is in {}\n{}", log.display(), lines.join("\n"))]
    Failed {
        /// What it was to do.
        what: String,
        /// The lines that matter.
        lines: Vec<String>,
        /// Where all lines are.
        log: PathBuf,
    },
}

/// A result of this crate's work on sources, kernels and guests.
pub type Result<T> = std::result::Result<T, Error>;

/// Names what was attempted when the system refuses.
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
