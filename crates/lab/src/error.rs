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
    /// A device is full.
    #[error(
        "cannot {what}: no space left in {}, which has {} MB free; the source and the builds of a kernel need \
         {NEEDED_MB} MB: free some, or set LOCKWORKS_CACHE to a directory with more",
        directory.display(), free / 1_000_000
    )]
    NoSpace {
        /// The operation.
        what: String,
        /// The directory that is on the device.
        directory: PathBuf,
        /// Bytes that are left.
        free: u64,
    },
    /// A request that cannot be fulfilled, with the possible ones.
    #[error("{0}")]
    Refused(String),
    /// The series cannot be applied to a tree.
    #[error(transparent)]
    Apply(lockworks_kernel::Error),
    /// The series itself is wrong.
    #[error(transparent)]
    Series(#[from] lockworks_kernel::SeriesError),
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

/// Megabytes that a kernel takes in the cache: source, one native, one paravirt and one debug build.
pub(crate) const NEEDED_MB: u64 = 2900;

/// Messages of the system and of programs about a full device, or a user who may not use more of it.
const FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// Whether a program complains that a device is full.
pub(crate) fn is_about_space(said: &str) -> bool {
    FULL.iter().any(|words| said.contains(words))
}

/// Whether the device of a file is full. A program cannot say so in a file on the same device.
pub(crate) fn is_full(file: &Path) -> bool {
    const SOME: u64 = 1_000_000;
    free_beside(file).1.is_some_and(|free| free < SOME)
}

/// The directory of a file, or the nearest above it that exists, and the bytes that are free there.
fn free_beside(file: &Path) -> (&Path, Option<u64>) {
    let mut above = file.ancestors().skip(1);
    let directory = above.find(|above| above.is_dir()).unwrap_or(file);
    let free = nix::sys::statvfs::statvfs(directory);
    let free = free.map(|free| free.blocks_available() * free.fragment_size());
    (directory, free.ok())
}

impl Error {
    /// An operation that failed because the device of a file is full.
    pub(crate) fn no_space(what: String, file: &Path) -> Self {
        let (directory, free) = free_beside(file);
        Self::NoSpace {
            what,
            directory: directory.to_owned(),
            free: free.unwrap_or(0),
        }
    }
}

impl From<lockworks_kernel::Error> for Error {
    fn from(error: lockworks_kernel::Error) -> Self {
        match error {
            lockworks_kernel::Error::Write { path, error }
                if is_about_space(&error.to_string()) =>
            {
                Self::no_space(format!("write {}", path.display()), &path)
            }
            other => Self::Apply(other),
        }
    }
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
            .map_err(|error| match error {
                Error::System { what, error } if is_about_space(&error.to_string()) => {
                    Error::no_space(what, path)
                }
                other => other,
            })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_is_named() {
        let full = Path::new("/dev/full");
        let said = std::fs::write(full, "x").attempt_on("write", full);
        let said = said.unwrap_err().to_string();
        assert!(
            said.starts_with("cannot write /dev/full: no space left in /dev, which has "),
            "{said}"
        );
        for part in [" MB free; ", "need 2900 MB", "LOCKWORKS_CACHE"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(said.lines().count(), 1);
    }
}
