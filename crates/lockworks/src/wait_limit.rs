use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// `struct lw_cancel` of the C library.
#[derive(Debug, Default)]
#[repr(C)]
struct CancelWords {
    cancelled: AtomicBool,
    slot: AtomicU32,
}

include!(concat!(env!("OUT_DIR"), "/layout_CancelWords.rs"));

/// A cancellation, by which another thread ends a wait in
/// [`RawLock::lock_until`](crate::RawLock::lock_until). It stays cancelled, so later waits with it end at once.
///
/// One thread at a time may wait with it.
///
/// ```
/// use lockworks::{Cancel, Node, RawLock, WaitError, find};
///
/// let mutex = find("mutex").unwrap();
/// let (lock, cancel) = (RawLock::new(mutex), Cancel::new());
/// let mut node = Node::new(mutex);
/// lock.lock(&mut node);
/// let waited = std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| lock.lock_until(&mut Node::new(mutex), None, Some(&cancel)));
///     cancel.cancel();
///     waiter.join().unwrap()
/// });
/// assert_eq!(waited, Err(WaitError::Cancelled));
/// ```
#[derive(Debug, Default)]
pub struct Cancel {
    words: UnsafeCell<CancelWords>,
    in_use: AtomicBool,
}

// SAFETY: C and Rust code access the words by atomic operations only.
unsafe impl Sync for Cancel {}

unsafe extern "C" {
    fn lw_cancel(cancel: *mut c_void);
}

impl Cancel {
    /// Makes a `Cancel` that is not cancelled.
    ///
    /// ```
    /// assert!(!lockworks::Cancel::new().is_cancelled());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the current wait with this `Cancel`, and every later one.
    ///
    /// The call has release order. A thread that gets [`WaitError::Cancelled`] acquires: it sees all
    /// that this thread did before the call.
    ///
    /// ```
    /// let cancel = lockworks::Cancel::new();
    /// cancel.cancel();
    /// assert!(cancel.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        // SAFETY: the words are borrowed, so they outlive the call.
        unsafe { lw_cancel(self.words.get().cast()) }
    }

    /// Whether [`cancel`](Self::cancel) has been called. `true` has acquire order.
    pub fn is_cancelled(&self) -> bool {
        // SAFETY: no mutable reference to the words exists.
        unsafe { &*self.words.get() }
            .cancelled
            .load(Ordering::Acquire)
    }
}

/// Why a wait ended before the thread had the lock.
///
/// ```
/// use std::time::Instant;
///
/// use lockworks::{Node, RawLock, WaitError, find};
///
/// let lock = RawLock::new(find("mutex").unwrap());
/// lock.lock(&mut Node::new(lock.lock_type()));
/// let waited = lock.lock_until(&mut Node::new(lock.lock_type()), Some(Instant::now()), None);
/// assert_eq!(waited, Err(WaitError::TimedOut));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The wait reached its deadline.
    TimedOut,
    /// [`Cancel::cancel`] was called. It is the reason even if the deadline has passed, too.
    Cancelled,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline came before the lock was free",
            Self::Cancelled => "waiting for the lock was cancelled",
        })
    }
}

impl std::error::Error for WaitError {}

/// `struct lw_wait_limit` of the C library.
#[repr(C)]
struct WaitLimit {
    deadline: *const TimeSpec,
    cancel: *mut CancelWords,
    clock: c_int,
}

include!(concat!(env!("OUT_DIR"), "/layout_WaitLimit.rs"));

/// A time longer than any program runs, but short enough that no sum in nanoseconds overflows.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// The time of `CLOCK_MONOTONIC` that is `deadline`.
pub(crate) fn monotonic(deadline: Instant) -> TimeSpec {
    // The clocks are read in this order, so that the deadline may be late but never early.
    let left = deadline.saturating_duration_since(Instant::now());
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock that every system has");
    now + TimeSpec::from(left.min(NEVER))
}

/// Calls `wait` with the address of a wait limit. `wait` returns whether it has acquired the lock.
///
/// # Panics
///
/// If another thread waits with `cancel`.
pub(crate) fn wait_until(
    deadline: Option<Instant>,
    cancel: Option<&Cancel>,
    wait: impl FnOnce(*const c_void) -> bool,
) -> Result<(), WaitError> {
    let deadline = deadline.map(monotonic);
    if let Some(cancel) = cancel {
        let in_use = cancel.in_use.swap(true, Ordering::Acquire);
        assert!(!in_use, "another thread waits with this Cancel");
    }
    let limit = WaitLimit {
        deadline: deadline.as_ref().map_or(std::ptr::null(), |time| time),
        cancel: cancel.map_or(std::ptr::null_mut(), |cancel| cancel.words.get()),
        clock: ClockId::CLOCK_MONOTONIC.as_raw(),
    };
    let acquired = wait((&raw const limit).cast());
    if let Some(cancel) = cancel {
        cancel.in_use.store(false, Ordering::Release);
    }
    match acquired {
        true => Ok(()),
        false if cancel.is_some_and(Cancel::is_cancelled) => Err(WaitError::Cancelled),
        false => Err(WaitError::TimedOut),
    }
}
