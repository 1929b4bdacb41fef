//! The locks, lockrefs and litmus tests that are compiled for the checker, and the threads that use them.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use lockworks::{LockType, LockrefType, table};

use crate::headers::{Client, Functions, LitmusTest};
use crate::source::Kind;

unsafe extern "C" {
    static lw_check_lock_types: [*const LockType; 1];
    static lw_check_lockref_types: [*const LockrefType; 1];
    static lw_lockref_mutant_types: [*const LockrefType; 1];
    static lw_resilient_mutant_types: [*const LockType; 1];
    static lw_litmus_groups: [*const LitmusTest; 1];
    static lw_check_event_names: [*const c_char; 1];
    safe fn lw_check_take_events() -> u64;
    static lw_check_cond_lock: *const LockType;
    safe static lw_check_first_queue_tail: u32;
    /// Runs a thread of a check; `client` lives as long as the check.
    pub(crate) fn lw_check_thread(client: *const Client, thread: u32);
    /// Runs a thread of a check of a lockref.
    pub(crate) fn lw_check_lockref_thread(client: *const Client, thread: u32);
    /// Runs a thread of a check of the condition variable.
    pub(crate) fn lw_check_cond_thread(client: *const Client, thread: u32);
    /// Runs a thread of a check of a seqlock of a source.
    pub(crate) fn lw_check_seqlock_thread(client: *const Client, thread: u32);
    /// Runs a thread of a check of the reader-writer lock.
    pub(crate) fn lw_check_rwlock_thread(client: *const Client, thread: u32);
    /// Runs a thread of a check of a resilient lock.
    pub(crate) fn lw_check_resilient_thread(client: *const Client, thread: u32);
    /// Runs an interruption within a thread of a check.
    pub(crate) fn lw_check_interruption(client: *const Client, level: u32);
    /// Runs the child of a fork, whose thread has this slot, up to where its other threads begin.
    pub(crate) fn lw_check_forked_child(slot: u32);
    /// Runs a thread of the client's litmus test.
    pub(crate) fn lw_litmus_thread(client: *const Client, thread: u32);
}

/// The locks, compiled for the model checker, and after them the resilient locks with a deliberate
/// mistake, which are marked as broken, and that of a source that was loaded. It takes the place of the
/// lock that has its name.
pub fn lock_types() -> impl Iterator<Item = &'static LockType> {
    let tables: [*const *const LockType; 2] = [
        (&raw const lw_check_lock_types).cast(),
        (&raw const lw_resilient_mutant_types).cast(),
    ];
    // SAFETY: NULL-terminated tables of pointers to constants.
    let types = |first| unsafe { table(first).map(|entry| &*entry) };
    let loaded = LOADED.get().map(|own| own.lock);
    let compiled = tables.into_iter().flat_map(types);
    compiled
        .filter(move |lock| loaded.is_none_or(|loaded| loaded.name() != lock.name()))
        .chain(loaded)
}

/// The lock of a source that was loaded.
static LOADED: OnceLock<Own> = OnceLock::new();

/// An object of a source that was loaded.
#[derive(Debug)]
pub(crate) struct Own {
    /// How it is acquired and released, and its name. Of a condition variable: its mutex.
    pub(crate) lock: &'static LockType,
    pub(crate) kind: Kind,
    /// The functions of an object that is no lock.
    pub(crate) functions: Option<&'static Functions>,
}

/// Adds the lock of a source to [`lock_types`].
///
/// # Panics
/// If one has been added before.
pub(crate) fn add(own: Own) {
    assert!(LOADED.set(own).is_ok(), "one source is loaded");
}

/// Whether a lock is that of a source that was loaded.
pub(crate) fn is_loaded(lock: &LockType) -> bool {
    own(lock).is_some()
}

/// The object of a source that a lock is, or is a part of.
pub(crate) fn own(lock: &LockType) -> Option<&'static Own> {
    LOADED.get().filter(|own| std::ptr::eq(own.lock, lock))
}

/// What such an object is: a lock, if it is none of a source.
pub(crate) fn kind(lock: &LockType) -> Kind {
    own(lock).map_or(Kind::Lock, |own| own.kind)
}

/// Whether a lock is the built-in reader-writer lock, which has more operations than its type. A lock with
/// readers from a source is used through its type.
pub(crate) fn is_rwlock(lock: &LockType) -> bool {
    lock.has_readers() && !is_loaded(lock)
}

/// The lockrefs, compiled for the model checker, and after them the lockrefs with a deliberate
/// mistake, whose lock is marked as broken.
pub fn lockref_types() -> impl Iterator<Item = &'static LockrefType> {
    let tables: [*const *const LockrefType; 2] = [
        (&raw const lw_check_lockref_types).cast(),
        (&raw const lw_lockref_mutant_types).cast(),
    ];
    // SAFETY: NULL-terminated tables of pointers to constants.
    let types = |first| unsafe { table(first).map(|entry| &*entry) };
    tables.into_iter().flat_map(types)
}

/// The names of the events that locks count.
pub(crate) fn event_names() -> impl Iterator<Item = &'static str> {
    // SAFETY: a NULL-terminated table of string literals.
    let names =
        unsafe { table((&raw const lw_check_event_names).cast()).map(|name| CStr::from_ptr(name)) };
    names.map(|name| name.to_str().expect("source text is ASCII"))
}

/// The events that locks have counted on this OS thread since the last call, one bit each.
pub(crate) fn take_events() -> u64 {
    lw_check_take_events()
}

/// The litmus tests.
pub(crate) fn litmus_tests() -> impl Iterator<Item = &'static LitmusTest> {
    // SAFETY: a NULL-terminated table of pointers to constants.
    let groups = unsafe { table((&raw const lw_litmus_groups).cast()) };
    groups.flat_map(|first: *const LitmusTest| {
        // SAFETY: each pointer is to the first test of a table, which ends with a test without a name.
        (0..).map_while(move |i| unsafe { first.add(i).as_ref().filter(|t| !t.name.is_null()) })
    })
}

/// The tail that stands for the queue of the first NUMA node; those of the others follow.
pub(crate) fn first_queue_tail() -> u32 {
    lw_check_first_queue_tail
}

/// The type of the lock in a condition variable.
pub fn lock_in_cond() -> &'static LockType {
    // SAFETY: a pointer to a constant.
    unsafe { &*lw_check_cond_lock }
}
