//! The locks that are compared, each described by `struct bench_lock` of `c/bench.h`.

use std::ffi::{CStr, c_char, c_void};

use crate::rust_locks;

/// In which order a lock serves its waiters: `enum bench_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// Whoever comes at the right moment has it.
    Unfair,
    /// In the order in which the waiters queued.
    Fifo,
    /// Some waiters first, the others not much later.
    #[expect(dead_code, reason = "made by C")]
    Bounded,
}

impl Order {
    /// As tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unfair => "unfair",
            Self::Fifo => "FIFO",
            Self::Bounded => "bounded",
        }
    }
}

/// What the locks protect: `struct bench_counters`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Incremented with the lock held.
    pub first: u64,
    unused: u64,
    /// Incremented right after the first.
    pub second: u64,
}

/// One lock and the loops around it: `struct bench_lock`.
#[repr(C)]
pub struct Lock {
    pub(crate) name: *const c_char,
    pub(crate) origin: *const c_char,
    pub(crate) order: Order,
    pub(crate) state_size: u32,
    pub(crate) thread_size: u32,
    pub(crate) init: unsafe extern "C" fn(state: *mut c_void),
    pub(crate) pure: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void, n: u64),
    pub(crate) counted: unsafe extern "C" fn(
        state: *mut c_void,
        thread: *mut c_void,
        counters: *mut Counters,
        n: u64,
    ),
    pub(crate) contended: unsafe extern "C" fn(
        state: *mut c_void,
        thread: *mut c_void,
        counters: *mut Counters,
        stop: *const u32,
    ) -> u64,
}

// SAFETY: constants, whose strings are constants too.
unsafe impl Sync for Lock {}
// SAFETY: as above.
unsafe impl Send for Lock {}

unsafe extern "C" {
    static bench_bare_locks: [*const Lock; 1];
    static bench_our_locks: [*const Lock; 1];
    static bench_posix_locks: [*const Lock; 1];
    static bench_ck_locks: [*const Lock; 1];
    static bench_references: [*const Lock; 1];
}

/// The lock that all others are measured against.
pub const BARE: &str = "bare";
/// The locks that have to be ahead.
pub const OURS: [&str; 3] = ["lw_qspinlock", "lw_cna", "lw_hq"];

impl Lock {
    /// Name, unique.
    pub fn name(&self) -> &'static str {
        // SAFETY: a constant string, as all tables hold.
        unsafe { text(self.name) }
    }

    /// Whose it is.
    pub fn origin(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.origin) }
    }

    /// In which order it serves its waiters.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Is it one of Lockworks?
    pub fn is_ours(&self) -> bool {
        self.origin() == "Lockworks"
    }
}

/// # Safety
/// `text` is a string that lives as long as the program.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .expect("names are ASCII")
}

/// All locks, in the order in which tables show them.
pub fn all() -> Vec<&'static Lock> {
    let mut locks = Vec::new();
    // SAFETY: each is a table of constants that ends with NULL.
    unsafe {
        append(&mut locks, &raw const bench_bare_locks);
        append(&mut locks, &raw const bench_our_locks);
        append(&mut locks, &raw const bench_posix_locks);
        append(&mut locks, &raw const bench_ck_locks);
    }
    locks.extend(rust_locks::ALL);
    locks
}

/// What gets and puts references rather than to lock and unlock.
pub fn references() -> Vec<&'static Lock> {
    let mut references = Vec::new();
    // SAFETY: a table of constants that ends with NULL.
    unsafe { append(&mut references, &raw const bench_references) };
    references
}

/// Was Concurrency Kit there when this was built?
pub fn has_ck() -> bool {
    // SAFETY: a table that ends with NULL has a first entry.
    unsafe { !bench_ck_locks[0].is_null() }
}

/// # Safety
/// `table` is an array that ends with NULL, of pointers to constants.
unsafe fn append(locks: &mut Vec<&'static Lock>, table: *const [*const Lock; 1]) {
    let mut entry: *const *const Lock = table.cast();
    // SAFETY: the caller's promise.
    unsafe {
        while let Some(lock) = (*entry).as_ref() {
            locks.push(lock);
            entry = entry.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_complete() {
        let mut names: Vec<_> = all().iter().map(|lock| lock.name()).collect();
        assert_eq!(names[0], BARE);
        for ours in OURS {
            assert!(names.contains(&ours));
        }
        assert_eq!(has_ck(), names.contains(&"ck_mcs"));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
