//! A kernel's source tree.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::series::Series;
use crate::version::KernelVersion;

/// The source tree of a kernel that the series is for.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    version: KernelVersion,
    is_tested: bool,
}

impl Tree {
    /// Opens a tree. Refuses a directory that is not a tree of Linux 6 or 7.
    pub fn open(root: &Path, series: &Series) -> Result<Self, Error> {
        let not_a_tree = |lacks: String| Error::NotATree {
            path: root.to_owned(),
            lacks,
        };
        for file in ["Makefile", "Kbuild", "Kconfig"] {
            if !root.join(file).is_file() {
                return Err(not_a_tree(format!("it has no {file}")));
            }
        }
        let makefile = root.join("Makefile");
        let text = fs::read(&makefile).map_err(Error::read(&makefile))?;
        let version = KernelVersion::read(&String::from_utf8_lossy(&text))
            .ok_or_else(|| not_a_tree("its Makefile names no version".to_owned()))?;
        if !["6", "7"].contains(&version.major()) {
            let tested = series.versions.join(", ");
            return Err(Error::Version { version, tested });
        }
        Ok(Self {
            root: root.to_owned(),
            is_tested: series
                .versions
                .iter()
                .any(|known| known == version.release()),
            version,
        })
    }

    /// The top directory of the tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel's version.
    pub fn version(&self) -> &KernelVersion {
        &self.version
    }

    /// Whether the series is tested with kernels of this version. Others are tried.
    pub fn is_tested(&self) -> bool {
        self.is_tested
    }

    /// Reads a file that may be missing.
    pub(crate) fn read(&self, file: &str) -> Result<Option<String>, Error> {
        let path = self.root.join(file);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {
                let bytes = fs::read(&path).map_err(Error::read(&path))?;
                String::from_utf8(bytes).ok()
            }
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::read(&path)(error)),
        }
        .map(Some)
        .ok_or_else(|| Error::NotText {
            file: file.to_owned(),
        })
    }

    /// Reads a file that the series edits.
    pub(crate) fn read_edited(&self, file: &str) -> Result<String, Error> {
        self.read(file)?.ok_or_else(|| Error::Missing {
            file: file.to_owned(),
        })
    }
}
