//! What can be set, for the whole process and also while locks are in use.
//!
//! The environment sets the same when the program starts:
//!
//! | variable                            | values         | default |
//! |-------------------------------------|----------------|---------|
//! | `LOCKWORKS_NUMA_SPINLOCK`           | auto, on, off  | auto    |
//! | `LOCKWORKS_NUMA_SPINLOCK_THRESHOLD` | 1 to 100 (ms)  | 10      |
//! | `LOCKWORKS_SHUFFLE_REDUCTION`       | on, off        | on      |
//! | `LOCKWORKS_PRIORITY_WAITERS`        | on, off        | on      |
//!
//! and `LOCKWORKS_NAME`, with its name in capitals, each [`Tunable`](crate::Tunable) of a single
//! lock: `LOCKWORKS_HQLOCK_FAIRNESS_THRESHOLD`, for one.
//!
//! Other values are refused with a line on standard error.

use core::error::Error;
use core::ffi::{c_int, c_uint};
use core::fmt;

unsafe extern "C" {
    safe fn lw_set_numa_spinlock(mode: c_int) -> c_int;
    safe fn lw_numa_spinlock() -> c_int;
    safe fn lw_numa_spinlock_active() -> bool;
    safe fn lw_set_numa_spinlock_threshold(ms: c_uint) -> c_int;
    safe fn lw_numa_spinlock_threshold() -> c_uint;
    safe fn lw_set_shuffle_reduction(on: bool);
    safe fn lw_shuffle_reduction() -> bool;
    safe fn lw_set_priority_waiters(on: bool);
    safe fn lw_priority_waiters() -> bool;
}

/// The value is not one that the tunable may have; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of range")
    }
}

impl Error for OutOfRange {}

/// Do the CNA lock and the HQ-spinlock keep waiters of one node together?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumaMode {
    /// If there are two nodes or more.
    #[default]
    Auto = 0,
    /// Yes.
    On = 1,
    /// No: they serve them as the queued spinlock does.
    Off = 2,
}

/// Sets the mode of the CNA lock and the HQ-spinlock.
pub fn set_numa_spinlock(mode: NumaMode) {
    let refused = lw_set_numa_spinlock(mode as c_int);
    debug_assert_eq!(refused, 0);
}

/// The mode of the CNA lock and the HQ-spinlock.
pub fn numa_spinlock() -> NumaMode {
    match lw_numa_spinlock() {
        1 => NumaMode::On,
        2 => NumaMode::Off,
        _ => NumaMode::Auto,
    }
}

/// What the mode comes to on this machine.
pub fn numa_spinlock_active() -> bool {
    lw_numa_spinlock_active()
}

/// Sets for how many milliseconds the CNA lock may pass over waiters of other nodes: 1 to 100.
pub fn set_numa_spinlock_threshold(ms: u32) -> Result<(), OutOfRange> {
    match lw_set_numa_spinlock_threshold(ms) {
        0 => Ok(()),
        _ => Err(OutOfRange),
    }
}

/// For how many milliseconds the CNA lock may pass over waiters of other nodes.
pub fn numa_spinlock_threshold() -> u32 {
    lw_numa_spinlock_threshold()
}

/// Lets the CNA lock look for waiters to pass over at one hand-off in 128 only, while there are none.
pub fn set_shuffle_reduction(on: bool) {
    lw_set_shuffle_reduction(on);
}

/// Is shuffle reduction on?
pub fn shuffle_reduction() -> bool {
    lw_shuffle_reduction()
}

/// Keeps the CNA lock from passing over priority threads.
pub fn set_priority_waiters(on: bool) {
    lw_set_priority_waiters(on);
}

/// Are priority threads never passed over?
pub fn priority_waiters() -> bool {
    lw_priority_waiters()
}
