//! Where the report goes: standard output, or a file that is there in full or not at all.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

/// A place that the report can be written to, tried before the long run.
pub enum Destination {
    /// Standard output.
    Standard,
    /// A file to be.
    File(NamedTempFile, PathBuf),
}

impl Destination {
    /// The file at `path`, or standard output.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Standard);
        };
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .permissions(PermissionsExt::from_mode(0o666))
            .tempfile_in(directory)
            .with_context(|| {
                format!(
                    "cannot write {}; choose a file in a directory that you may write to",
                    path.display()
                )
            })?;
        Ok(Self::File(file, path.to_owned()))
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
            Self::File(mut file, path) => {
                file.write_all(text.as_bytes())
                    .and_then(|()| Ok(file.persist(&path)?))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(())
            }
        }
    }
}
