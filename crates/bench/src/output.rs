//! The destination of the report: standard output or a file. A file gets the whole report or stays
//! as it was.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

/// A place to which the report can be written. Opening it before the long run finds errors early.
pub enum Destination {
    /// Standard output.
    Standard,
    /// A temporary file, and the path of the file that it replaces when it is complete.
    Replace(NamedTempFile, PathBuf),
    /// A device or pipe, which is written to and not replaced.
    Open(std::fs::File, PathBuf),
}

impl Destination {
    /// Opens the file at `path`, or standard output for `None`.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Standard);
        };
        try_open(path).with_context(|| {
            format!(
                "cannot write {}; choose a file in a directory that you may write to",
                path.display()
            )
        })
    }

    /// Writes the report.
    pub fn write(self, text: &str) -> Result<()> {
        match self {
            Self::Standard => match std::io::stdout().lock().write_all(text.as_bytes()) {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    Err(error).context("cannot write to standard output")
                }
                _ => Ok(()),
            },
            Self::Replace(mut file, path) => file
                .write_all(text.as_bytes())
                .and_then(|()| Ok(file.persist(&path)?))
                .map(drop)
                .with_context(|| format!("cannot write {}", path.display())),
            Self::Open(mut file, path) => file
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

fn try_open(path: &Path) -> io::Result<Destination> {
    // If `path` is a symbolic link, its target is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.metadata().is_ok_and(|found| !found.is_file()) {
        let file = OpenOptions::new().write(true).open(&target)?;
        return Ok(Destination::Open(file, target));
    }
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o666))
        .tempfile_in(directory)?;
    Ok(Destination::Replace(file, target))
}
