//! Changes to several files, made in full or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Changes to files below a directory.
#[derive(Default)]
pub(crate) struct Changes {
    writes: Vec<(PathBuf, Vec<u8>)>,
    removals: Vec<PathBuf>,
}

/// A step that takes back a change.
enum Undo {
    PutBack { kept: PathBuf, path: PathBuf },
    Remove(PathBuf),
    RemoveDirectory(PathBuf),
    MakeDirectory(PathBuf, Permissions),
}

impl Changes {
    /// Replaces the contents of a file. Its directory is made if it is missing.
    pub fn write(&mut self, path: PathBuf, contents: impl Into<Vec<u8>>) {
        self.writes.push((path, contents.into()));
    }

    /// Removes a file, and its directory when nothing else is left in it.
    pub fn remove(&mut self, path: PathBuf) {
        self.removals.push(path);
    }

    /// Makes all changes. `top` is an existing directory on the same file system, which stays.
    pub fn make(&self, top: &Path) -> Result<(), Error> {
        if self.writes.is_empty() && self.removals.is_empty() {
            return Ok(());
        }
        let fail = |path: &Path, error| Error::Write {
            path: path.to_owned(),
            error,
        };
        // New contents go there first. Old contents are kept there until all changes are made.
        let aside = tempfile::Builder::new()
            .prefix(".lockworks-")
            .tempdir_in(top)
            .map_err(|error| fail(top, error))?;
        let kept = |index: usize| aside.path().join(format!("old-{index}"));
        let mut staged = Vec::new();
        for (index, (path, contents)) in self.writes.iter().enumerate() {
            let new = aside.path().join(format!("new-{index}"));
            stage(&new, path, contents).map_err(|error| fail(path, error))?;
            staged.push((new, path, kept(index)));
        }

        let mut undo = Vec::new();
        let made = (|| {
            for (new, path, kept) in staged {
                replace(&new, path, kept, &mut undo).map_err(|error| (path, error))?;
            }
            for (index, path) in self.removals.iter().enumerate() {
                let kept = kept(self.writes.len() + index);
                remove(path, kept, top, &mut undo).map_err(|error| (path, error))?;
            }
            Ok(())
        })();
        made.map_err(|(path, error)| {
            // All steps are undone, even if one fails.
            let undone: Vec<_> = undo.into_iter().rev().map(Undo::run).collect();
            if undone.iter().all(Result::is_ok) {
                return fail(path, error);
            }
            Error::Torn {
                path: path.clone(),
                error,
                kept: aside.keep(),
            }
        })
    }
}

impl Undo {
    fn run(self) -> io::Result<()> {
        match self {
            Self::PutBack { kept, path } => fs::rename(kept, path),
            Self::Remove(path) => fs::remove_file(path),
            Self::RemoveDirectory(path) => fs::remove_dir(path),
            Self::MakeDirectory(path, permissions) => {
                fs::create_dir(&path)?;
                fs::set_permissions(path, permissions)
            }
        }
    }
}

/// Writes the new contents of `path` aside, with the mode and owner of the file at `path`.
fn stage(new: &Path, path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(new)?;
    file.write_all(contents)?;
    match fs::metadata(path) {
        Ok(old) => {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
                // Only root can change the owner. Other users keep the files that they write.
                let _ = chown(new, Some(old.uid()), Some(old.gid()));
            }
            file.set_permissions(old.permissions())?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // A full disk shows here, before anything has been replaced.
    file.sync_all()
}

fn replace(new: &Path, path: &Path, kept: PathBuf, undo: &mut Vec<Undo>) -> io::Result<()> {
    make_directories(path.parent().unwrap_or(path), undo)?;
    let path = path.to_owned();
    let back = match fs::hard_link(&path, &kept) {
        Ok(()) => Undo::PutBack {
            kept,
            path: path.clone(),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Undo::Remove(path.clone()),
        // Not every file system has hard links.
        Err(_) => {
            fs::copy(&path, &kept)?;
            Undo::PutBack {
                kept,
                path: path.clone(),
            }
        }
    };
    fs::rename(new, &path)?;
    undo.push(back);
    Ok(())
}

fn make_directories(path: &Path, undo: &mut Vec<Undo>) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_directories(parent, undo)?;
    }
    fs::create_dir(path)?;
    undo.push(Undo::RemoveDirectory(path.to_owned()));
    Ok(())
}

fn remove(path: &Path, kept: PathBuf, top: &Path, undo: &mut Vec<Undo>) -> io::Result<()> {
    fs::rename(path, &kept)?;
    undo.push(Undo::PutBack {
        kept,
        path: path.to_owned(),
    });
    for directory in path.ancestors().skip(1).take_while(|d| *d != top) {
        let permissions = fs::metadata(directory)?.permissions();
        match fs::remove_dir(directory) {
            Ok(()) => undo.push(Undo::MakeDirectory(directory.to_owned(), permissions)),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_taken_back_when_the_last_change_fails() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        fs::create_dir_all(top.join("own")).unwrap();
        fs::create_dir_all(top.join("wall/inside")).unwrap();
        for name in ["edited", "own/removed"] {
            fs::write(top.join(name), name).unwrap();
        }
        let before = snapshot(top);

        let mut changes = Changes::default();
        changes.write(top.join("edited"), "new");
        changes.write(top.join("deep/er/added"), "new");
        changes.remove(top.join("own/removed"));
        // The file does not exist, so its removal fails.
        changes.remove(top.join("wall/inside/missing"));
        let error = changes.make(top).unwrap_err();
        assert!(matches!(error, Error::Write { .. }), "{error}");
        assert_eq!(snapshot(top), before);

        let mut changes = Changes::default();
        changes.write(top.join("edited"), "new");
        changes.write(top.join("deep/er/added"), "new");
        changes.write(top.join("wall"), "new");
        let error = changes.make(top).unwrap_err();
        assert!(error.to_string().contains("wall"), "{error}");
        assert_eq!(snapshot(top), before);
    }

    /// Names, contents and inodes.
    fn snapshot(top: &Path) -> Vec<(PathBuf, u64, Vec<u8>)> {
        let mut found = Vec::new();
        let mut paths = vec![top.to_owned()];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                paths.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
                found.push((path, 0, Vec::new()));
            } else {
                let inode = fs::metadata(&path).unwrap().ino();
                found.push((path.clone(), inode, fs::read(path).unwrap()));
            }
        }
        found.sort();
        found
    }
}
