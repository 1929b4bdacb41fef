use core::ffi::{c_int, c_uint};

use crate::constants::{LW_PRIORITY_AUTO, LW_PRIORITY_OFF, LW_PRIORITY_ON};

unsafe extern "C" {
    safe fn lw_thread_attach() -> c_uint;
    safe fn lw_thread_set_priority(priority: c_int) -> c_int;
}

/// Takes a slot with queue nodes for this thread, which otherwise happens at its first contended
/// acquisition. Returns the slot's number.
///
/// Returns `None` when no slot is left or the thread is exiting. The slot is returned when the thread
/// exits.
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

/// Whether a thread is a priority thread, which NUMA-aware locks do not pass over.
///
/// ```
/// assert_eq!(lockworks::ThreadPriority::default(), lockworks::ThreadPriority::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPriority {
    /// The thread is a priority thread if it has a real-time scheduling class.
    #[default]
    Auto = LW_PRIORITY_AUTO as isize,
    /// The thread is a priority thread.
    On = LW_PRIORITY_ON as isize,
    /// The thread is not a priority thread.
    Off = LW_PRIORITY_OFF as isize,
}

/// Declares whether this thread is a priority thread.
///
/// `Auto` reads the thread's scheduling class now, so call it again after a later change of class.
///
/// ```
/// use lockworks::{ThreadPriority, thread_set_priority};
///
/// thread_set_priority(ThreadPriority::On); // for example while a user waits for this thread
/// ```
pub fn thread_set_priority(priority: ThreadPriority) {
    let refused = lw_thread_set_priority(priority as c_int);
    debug_assert_eq!(refused, 0);
}
