//! The directory that keeps sources, builds and consoles, and locks on what is in it.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Attempt, Error, Result};
use crate::file_lock::FileLock;

/// A function that is called with each step as it begins.
pub type Progress<'a> = &'a dyn Fn(&str);

/// A directory of files that can be made again.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// The number of runs whose consoles are kept; a comparison has fewer guests.
pub(crate) const RUNS: usize = 100;

impl Cache {
    /// Opens the cache: `$LOCKWORKS_CACHE`, or else `lockworks` in the user's cache directory.
    pub fn open() -> Result<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        let base = set("LOCKWORKS_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|base| PathBuf::from(base).join("lockworks")))
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache/lockworks")))
            .ok_or_else(|| {
                Error::Refused(
                    "there is no directory for caches; set LOCKWORKS_CACHE to one".to_owned(),
                )
            })?;
        let base = std::path::absolute(&base).attempt_on("use", &base)?;
        Self::at(base.join("kernel"))
    }

    /// Opens a cache in this directory, which is made if it is missing.
    pub fn at(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory).attempt_on("make the directory", &directory)?;
        Ok(Self { directory })
    }

    /// The path of a file or directory in the cache.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes a directory for a run of a guest. The run is going on until the lock is dropped. Removes
    /// the oldest directories, except those of runs that are going on.
    pub fn new_run(&self) -> Result<(PathBuf, FileLock)> {
        let runs = self.path("runs");
        fs::create_dir_all(&runs).attempt_on("make the directory", &runs)?;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let run = tempfile::Builder::new()
            .prefix(&format!("{}-{}-", since.as_nanos(), std::process::id()))
            .tempdir_in(&runs)
            .attempt_on("make a directory in", &runs)?
            .keep();
        let lock = lock_directory(&run)
            .attempt_on("lock", &run)?
            .ok_or_else(|| Error::Refused(format!("somebody else has locked {}", run.display())))?;
        let mut all: Vec<PathBuf> = fs::read_dir(&runs)
            .attempt_on("read", &runs)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        all.sort();
        for old in &all[..all.len().saturating_sub(RUNS)] {
            // Another command may be removing it, too.
            if let Ok(Some(_lock)) = lock_directory(old) {
                let _ = fs::remove_dir_all(old);
            }
        }
        Ok((run, lock))
    }

    /// Keeps other commands from `name` until the lock is dropped.
    pub fn lock(&self, name: &str, progress: Progress) -> Result<FileLock> {
        let path = self.path(&format!("{name}.lock"));
        let waiting = || progress("waiting for another lockworks command");
        FileLock::wait(&path, waiting).attempt_on("lock", &path)
    }
}

fn lock_directory(directory: &Path) -> io::Result<Option<FileLock>> {
    FileLock::try_new(File::open(directory)?)
}

/// Makes an empty directory that the caller renames to `target` once it is complete.
pub(crate) fn staging(target: &Path) -> Result<PathBuf> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let staging = target.with_file_name(name);
    remove(&staging)?;
    fs::create_dir_all(&staging).attempt_on("make the directory", &staging)?;
    Ok(staging)
}

/// Removes a directory unless it is missing.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).attempt_on("remove", directory)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_runs() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_owned()).unwrap();
        for old in 0..RUNS {
            fs::create_dir_all(cache.path(&format!("runs/{old:03}"))).unwrap();
        }
        let going_on = lock_directory(&cache.path("runs/001")).unwrap();
        let (run, _used) = cache.new_run().unwrap();
        assert!(run.is_dir());
        assert!(!cache.path("runs/000").exists());
        cache.new_run().unwrap();
        assert!(cache.path("runs/001").exists());
        assert!(cache.path("runs/002").exists());
        drop(going_on);
        cache.new_run().unwrap();
        assert!(!cache.path("runs/001").exists());
    }

    #[test]
    fn each_run_has_its_own_directory() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_owned()).unwrap();
        let runs: Vec<_> = (0..RUNS).map(|_| cache.new_run().unwrap()).collect();
        let paths: std::collections::HashSet<_> = runs.iter().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), RUNS);
        assert!(paths.iter().all(|path| path.is_dir()));
    }

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_owned()).unwrap();
        let held = cache.lock("x", &|_| panic!("nobody has it")).unwrap();
        let other = || FileLock::try_new(File::create(cache.path("x.lock")).unwrap()).unwrap();
        assert!(other().is_none());
        drop(held);
        assert!(other().is_some());
    }
}
