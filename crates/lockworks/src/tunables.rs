//! Settings for all locks of a process, which it can change while the locks are in use.
//!
//! Environment variables make the same settings when the program starts:
//!
//! | variable                            | values         | default |
//! |-------------------------------------|----------------|---------|
//! | `LOCKWORKS_NUMA_SPINLOCK`           | auto, on, off  | auto    |
//! | `LOCKWORKS_NUMA_SPINLOCK_THRESHOLD` | 1 to 100 (ms)  | 10      |
//! | `LOCKWORKS_SHUFFLE_REDUCTION`       | on, off        | on      |
//! | `LOCKWORKS_PRIORITY_WAITERS`        | on, off        | on      |
//!
//! Each [`Tunable`](crate::Tunable) of a single lock has a variable too: `LOCKWORKS_` and its name in
//! capitals, such as `LOCKWORKS_MUTEX_SPIN`.
//!
//! The library ignores any other value and says so on standard error.

use core::error::Error;
use core::ffi::{c_int, c_uint};
use core::fmt;

use crate::constants::{LW_NUMA_AUTO, LW_NUMA_OFF, LW_NUMA_ON};

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

/// The tunable may not have this value. Nothing was changed.
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

/// Whether the CNA lock and the HQ-spinlock prefer waiters on the holder's NUMA node.
///
/// ```
/// use lockworks::tunables::{NumaMode, numa_spinlock};
///
/// assert_eq!(numa_spinlock(), NumaMode::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumaMode {
    /// They prefer such waiters if there are two nodes or more.
    #[default]
    Auto = LW_NUMA_AUTO as isize,
    /// They always prefer such waiters.
    On = LW_NUMA_ON as isize,
    /// They never do: they serve waiters as the queued spinlock does.
    Off = LW_NUMA_OFF as isize,
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
    match lw_numa_spinlock() as usize {
        LW_NUMA_ON => NumaMode::On,
        LW_NUMA_OFF => NumaMode::Off,
        _ => NumaMode::Auto,
    }
}

/// Whether the mode makes the two locks prefer near waiters on this machine.
///
/// ```
/// use lockworks::{topology, tunables};
///
/// assert_eq!(tunables::numa_spinlock_active(), topology::nodes() >= 2);
/// ```
pub fn numa_spinlock_active() -> bool {
    lw_numa_spinlock_active()
}

/// Sets how many milliseconds the CNA lock may pass over waiters on other nodes: 1 to 100.
///
/// # Errors
///
/// [`OutOfRange`] for any other number.
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

/// How many milliseconds the CNA lock may pass over waiters on other nodes.
///
/// ```
/// assert_eq!(lockworks::tunables::numa_spinlock_threshold(), 10);
/// ```
pub fn numa_spinlock_threshold() -> u32 {
    lw_numa_spinlock_threshold()
}

/// Sets shuffle reduction: while no waiter is passed over, the CNA lock searches its queue for waiters
/// to pass over at only one hand-off in 128.
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

/// Whether shuffle reduction is on.
///
/// ```
/// assert!(lockworks::tunables::shuffle_reduction());
/// ```
pub fn shuffle_reduction() -> bool {
    lw_shuffle_reduction()
}

/// Sets whether the CNA lock never passes over priority threads.
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

/// Whether the CNA lock never passes over priority threads.
///
/// ```
/// assert!(lockworks::tunables::priority_waiters());
/// ```
pub fn priority_waiters() -> bool {
    lw_priority_waiters()
}
