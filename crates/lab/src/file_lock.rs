//! Locks on files, which coordinate commands that use the same cache.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// A lock on a file or directory, held until it is dropped or released.
///
/// The system binds the lock to the open file. A program that another thread starts inherits the open
/// file until its `exec`, so closing the file here would leave it locked for that time. This type
/// unlocks the file explicitly, which ends the lock for all processes that inherited the open file.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks an open file unless it is locked.
    pub(crate) fn try_new(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks the file at a path, which is made if it is missing. Calls `waiting` before it waits for
    /// another command to release the lock.
    pub(crate) fn wait(path: &Path, waiting: impl FnOnce()) -> io::Result<Self> {
        if let Some(lock) = Self::try_new(File::create(path)?)? {
            return Ok(lock);
        }
        waiting();
        let file = File::create(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Makes the lock a shared lock, which excludes only exclusive locks.
    pub(crate) fn share(&self) -> io::Result<()> {
        self.0.lock_shared()
    }

    /// Releases the lock before it is dropped.
    pub(crate) fn release(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If this fails, the system releases the lock when the last process closes the file.
        let _ = self.release();
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn try_lock(path: &Path) -> Option<FileLock> {
        FileLock::try_new(File::create(path).unwrap()).unwrap()
    }

    #[test]
    fn locks_exclude_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = FileLock::wait(&path, || panic!("nobody has locked it")).unwrap();
        assert!(try_lock(&path).is_none());
        held.share().unwrap();
        assert!(try_lock(&path).is_none());
        let other = File::create(&path).unwrap();
        other.try_lock_shared().unwrap();
        // Closing the file would leave it locked for as long as a child of another test has it.
        other.unlock().unwrap();
        held.release().unwrap();
        assert!(try_lock(&path).is_some());
    }

    #[test]
    fn a_waiting_program_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = try_lock(&path).unwrap();
        let waits = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| FileLock::wait(&path, || waits.store(true, Ordering::Relaxed)).unwrap());
            while !waits.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            drop(held);
        });
    }

    #[test]
    fn a_program_with_the_open_file_does_not_keep_it_locked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = try_lock(&path).unwrap();
        // The child has the open file, like every child between its `fork` and its `exec`.
        let mut heir = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(held.0.try_clone().unwrap())
            .spawn()
            .unwrap();
        assert!(try_lock(&path).is_none());
        drop(held);
        let again = try_lock(&path);
        drop(heir.stdin.take());
        heir.wait().unwrap();
        assert!(again.is_some());
    }

    #[test]
    fn many_forks_beside_it_do_not_keep_it_locked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let fork = || {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            };
            let forks = [scope.spawn(fork), scope.spawn(fork)];
            let mut locked = 0;
            for _ in 0..20_000 {
                locked += u32::from(try_lock(&path).is_some());
            }
            done.store(true, Ordering::Relaxed);
            for fork in forks {
                fork.join().unwrap();
            }
            assert_eq!(locked, 20_000);
        });
    }
}
