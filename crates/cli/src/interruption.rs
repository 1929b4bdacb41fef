//! Interruptions of the process, such as ^C: the work before they end it, and the files they wait for.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while files are written that must not be cut short.
static WRITING: Mutex<()> = Mutex::new(());

/// The work to do before an interruption ends the process.
static LAST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Puts interruptions off until the guard is dropped. A thread must not hold two guards.
pub fn put_off() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets what to do before an interruption ends the process. It replaces what was set before.
pub fn before_exit(last: impl FnOnce() + Send + 'static) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(last));
}

/// Ends the process, but not between files that belong together, nor within one.
pub fn exit_between_files(code: i32) -> ! {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(last) = last {
        last();
    }
    let _whole = put_off();
    std::process::exit(code)
}
