//! Reads and writes files of a tree.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::series::Contents;

/// Replaces the contents of a file in one step, so that nobody ever reads half of them. Its mode stays.
/// A new script can be executed. The file's directory is made if it is missing.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.lockworks-new"));
    let write = || -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(&new, text)?;
        if let Ok(old) = fs::metadata(path) {
            fs::set_permissions(&new, old.permissions())?;
        } else if text.starts_with("#!") {
            fs::set_permissions(&new, Permissions::from_mode(0o755))?;
        }
        fs::rename(&new, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&new);
        Error::write(path)(error)
    })
}

/// Writes files below a directory.
pub(crate) fn write_below(top: &Path, contents: &Contents) -> Result<(), Error> {
    let mut files = contents.iter();
    files.try_for_each(|(file, text)| write(&top.join(file), text))
}

/// Removes a file, and the directories below `top` that are empty then.
pub(crate) fn remove(top: &Path, file: &str) -> Result<(), Error> {
    let path = top.join(file);
    fs::remove_file(&path).map_err(Error::write(&path))?;
    let above = path.ancestors().skip(1).take_while(|above| *above != top);
    // The first that is not empty ends it.
    for directory in above {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// The paths of all files below a directory, which may be missing.
pub(crate) fn below(top: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let path = top.join(&directory);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(Error::read(&path))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::read(&path))?;
            let name = directory.join(entry.file_name());
            match entry.file_type().map_err(Error::read(&path))?.is_dir() {
                true => directories.push(name),
                false => found.push(name),
            }
        }
    }
    found.sort();
    Ok(found)
}
