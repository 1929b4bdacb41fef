use core::ffi::{c_int, c_uint};

unsafe extern "C" {
    safe fn lw_thread_attach() -> c_uint;
    safe fn lw_thread_set_priority(priority: c_int) -> c_int;
}

/// Takes this thread's slot, its queue nodes, now rather than at its first
/// contended acquisition. Gives its number; `None` when all are taken or the
/// thread is exiting. It is returned when the thread exits.
///
/// ```
/// let slot = lockworks::thread_attach().expect("a free slot");
/// assert_eq!(lockworks::thread_attach(), Some(slot));
/// ```
pub fn thread_attach() -> Option<u32> {
    match lw_thread_attach() {
        0 => None,
        slot => Some(slot),
    }
}

/// Is a thread one whose waiting must not be prolonged for others' locality?
///
/// ```
/// assert_eq!(lockworks::ThreadPriority::default(), lockworks::ThreadPriority::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPriority {
    /// If its scheduling class is a real-time one.
    #[default]
    Auto = 0,
    /// Yes.
    On = 1,
    /// No.
    Off = 2,
}

/// Declares what this thread is. `Auto` looks its scheduling class up now.
///
/// ```
/// use lockworks::{ThreadPriority, thread_set_priority};
///
/// thread_set_priority(ThreadPriority::On); // say, while it serves somebody who waits
/// ```
pub fn thread_set_priority(priority: ThreadPriority) {
    let refused = lw_thread_set_priority(priority as c_int);
    debug_assert_eq!(refused, 0);
}
