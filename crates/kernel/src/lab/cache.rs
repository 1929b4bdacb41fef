//! Where sources, builds and consoles are kept, and who works on them.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::error::{Attempt, Error, Result};

/// Told of each step as it begins.
pub type Progress<'a> = &'a dyn Fn(&str);

/// A directory for what can be made again.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// How many runs' consoles are kept: more than a comparison has guests.
const RUNS: usize = 100;

impl Cache {
    /// `$LOCKWORKS_CACHE`, else `lockworks` in the user's cache directory.
    pub fn open() -> Result<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        let base = set("LOCKWORKS_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|base| PathBuf::from(base).join("lockworks")))
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache/lockworks")))
            .ok_or_else(|| {
                Error::Refused("no place for caches; set LOCKWORKS_CACHE to a directory".to_owned())
            })?;
        let base = std::path::absolute(&base).attempt_on("use", &base)?;
        Self::at(base.join("kernel"))
    }

    /// A cache in this directory, which is made if it is not there.
    pub fn at(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory).attempt_on("make the directory", &directory)?;
        Ok(Self { directory })
    }

    /// The path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A new directory for a run of a guest. The oldest are removed, unless their runs go on: the
    /// directory is in use until the file is dropped.
    pub fn new_run(&self) -> Result<(PathBuf, File)> {
        let runs = self.path("runs");
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let run = runs.join(format!("{}-{}", since.as_nanos(), std::process::id()));
        fs::create_dir_all(&run).attempt_on("make the directory", &run)?;
        let used = File::open(&run).attempt_on("read", &run)?;
        used.lock().attempt_on("lock", &run)?;
        let mut all: Vec<PathBuf> = fs::read_dir(&runs)
            .attempt_on("read", &runs)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        all.sort();
        for old in &all[..all.len().saturating_sub(RUNS)] {
            // Someone else may be removing it.
            if File::open(old).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_dir_all(old);
            }
        }
        Ok((run, used))
    }

    /// Keeps other commands from `name` until what is returned is dropped.
    pub fn lock(&self, name: &str, progress: Progress) -> Result<File> {
        let path = self.path(&format!("{name}.lock"));
        let file = File::create(&path).attempt_on("make", &path)?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => progress("waiting for another lockworks command"),
            Err(TryLockError::Error(source)) => Err(source).attempt_on("lock", &path)?,
        }
        file.lock().attempt_on("lock", &path)?;
        Ok(file)
    }
}

/// A directory that becomes `target` once it is complete.
pub(crate) fn staging(target: &Path) -> Result<PathBuf> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let staging = target.with_file_name(name);
    remove(&staging)?;
    fs::create_dir_all(&staging).attempt_on("make the directory", &staging)?;
    Ok(staging)
}

/// Removes a directory that may not be there.
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
        let going_on = File::open(cache.path("runs/001")).unwrap();
        going_on.lock().unwrap();
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
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_owned()).unwrap();
        let held = cache.lock("x", &|_| panic!("nobody has it")).unwrap();
        let other = File::create(cache.path("x.lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        other.lock().unwrap();
    }
}
