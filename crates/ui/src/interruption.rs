//! Interruptions of the process, such as ^C. Before one ends the process, the work that was set is
//! done, files that are being written are completed, and temporary ones are removed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while files are written that an interruption must not cut short.
static WRITING: Mutex<()> = Mutex::new(());

/// The work to do before an interruption ends the process.
static LAST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Files and directories that are removed before an interruption ends the process.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Has a file or directory removed before an interruption ends the process. Its owner removes it otherwise.
pub fn removes(path: &Path) {
    let mut temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    temporary.push(path.to_owned());
}

/// Delays interruptions until the guard is dropped. A thread must not hold two guards.
pub fn put_off() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets what to do before an interruption ends the process. It replaces what was set before.
pub fn before_exit(last: impl FnOnce() + Send + 'static) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(last));
}

/// Does the work that [`before_exit`] set, then ends the process once no files are being written. A
/// panic does not keep it from ending: `eprintln!` panics where nobody reads standard error any more.
pub fn exit_between_files(code: i32) -> ! {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(last) = last {
        let _ = catch_unwind(AssertUnwindSafe(last));
    }
    let _whole = put_off();
    let temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    for path in &*temporary {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    }
    std::process::exit(code)
}
