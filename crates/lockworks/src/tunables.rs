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
///
/// ```
/// use lockworks::tunables::{OutOfRange, set_numa_spinlock_threshold};
///
/// assert_eq!(set_numa_spinlock_threshold(0), Err(OutOfRange));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of range")
    }
}

impl Error for OutOfRange {}

/// Do the CNA lock and the HQ-spinlock keep waiters of one node together?
///
/// ```
/// use lockworks::tunables::{NumaMode, numa_spinlock};
///
/// assert_eq!(numa_spinlock(), NumaMode::Auto);
/// ```
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
///
/// ```
/// use lockworks::tunables::{NumaMode, numa_spinlock_active, set_numa_spinlock};
///
/// set_numa_spinlock(NumaMode::On);
/// assert!(numa_spinlock_active());
/// ```
pub fn set_numa_spinlock(mode: NumaMode) {
    let refused = lw_set_numa_spinlock(mode as c_int);
    debug_assert_eq!(refused, 0);
}

/// The mode of the CNA lock and the HQ-spinlock.
///
/// ```
/// use lockworks::tunables::{NumaMode, numa_spinlock, set_numa_spinlock};
///
/// set_numa_spinlock(NumaMode::Off);
/// assert_eq!(numa_spinlock(), NumaMode::Off);
/// ```
pub fn numa_spinlock() -> NumaMode {
    match lw_numa_spinlock() {
        1 => NumaMode::On,
        2 => NumaMode::Off,
        _ => NumaMode::Auto,
    }
}

/// What the mode comes to on this machine.
///
/// ```
/// use lockworks::{topology, tunables};
///
/// assert_eq!(tunables::numa_spinlock_active(), topology::nodes() >= 2);
/// ```
pub fn numa_spinlock_active() -> bool {
    lw_numa_spinlock_active()
}

/// Sets for how many milliseconds the CNA lock may pass over waiters of other nodes: 1 to 100.
///
/// ```
/// use lockworks::tunables::{numa_spinlock_threshold, set_numa_spinlock_threshold};
///
/// set_numa_spinlock_threshold(20)?;
/// assert_eq!(numa_spinlock_threshold(), 20);
/// # Ok::<(), lockworks::tunables::OutOfRange>(())
/// ```
pub fn set_numa_spinlock_threshold(ms: u32) -> Result<(), OutOfRange> {
    match lw_set_numa_spinlock_threshold(ms) {
        0 => Ok(()),
        _ => Err(OutOfRange),
    }
}

/// For how many milliseconds the CNA lock may pass over waiters of other nodes.
///
/// ```
/// assert_eq!(lockworks::tunables::numa_spinlock_threshold(), 10);
/// ```
pub fn numa_spinlock_threshold() -> u32 {
    lw_numa_spinlock_threshold()
}

/// Lets the CNA lock look for waiters to pass over at one hand-off in 128 only, while there are none.
///
/// ```
/// use lockworks::tunables::{set_shuffle_reduction, shuffle_reduction};
///
/// set_shuffle_reduction(false);
/// assert!(!shuffle_reduction());
/// ```
pub fn set_shuffle_reduction(on: bool) {
    lw_set_shuffle_reduction(on);
}

/// Is shuffle reduction on?
///
/// ```
/// assert!(lockworks::tunables::shuffle_reduction());
/// ```
pub fn shuffle_reduction() -> bool {
    lw_shuffle_reduction()
}

/// Keeps the CNA lock from passing over priority threads.
///
/// ```
/// use lockworks::tunables::{priority_waiters, set_priority_waiters};
///
/// set_priority_waiters(false);
/// assert!(!priority_waiters());
/// ```
pub fn set_priority_waiters(on: bool) {
    lw_set_priority_waiters(on);
}

/// Are priority threads never passed over?
///
/// ```
/// assert!(lockworks::tunables::priority_waiters());
/// ```
pub fn priority_waiters() -> bool {
    lw_priority_waiters()
}
