use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// `struct lw_cancel` of the C side.
#[derive(Debug, Default)]
#[repr(C)]
struct Word {
    cancelled: AtomicBool,
    slot: AtomicU32,
}

/// Ends the waiting of one who is in [`RawLock::lock_until`](crate::RawLock::lock_until) with it,
/// and of whoever comes with it later.
///
/// ```
/// use lockworks::{Cancel, GivenUp, Node, RawLock, find};
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
/// assert_eq!(waited, Err(GivenUp::Cancelled));
/// ```
#[derive(Debug, Default)]
pub struct Cancel {
    word: UnsafeCell<Word>,
    in_use: AtomicBool,
}

// SAFETY: the word is of atomics, here and on the C side.
unsafe impl Sync for Cancel {}

unsafe extern "C" {
    fn lw_cancel(cancel: *mut c_void);
}

impl Cancel {
    /// Not cancelled yet.
    ///
    /// ```
    /// assert!(!lockworks::Cancel::new().is_cancelled());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Whoever waits with it, now or later, gives up. What was done before the call is known to
    /// whom [`GivenUp::Cancelled`] is returned (release and acquire).
    ///
    /// ```
    /// let cancel = lockworks::Cancel::new();
    /// cancel.cancel();
    /// assert!(cancel.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        // SAFETY: it outlives the call, as it is borrowed.
        unsafe { lw_cancel(self.word.get().cast()) }
    }

    /// Has [`cancel`](Self::cancel) been called?
    pub fn is_cancelled(&self) -> bool {
        // SAFETY: nobody has a mutable reference to it.
        unsafe { &*self.word.get() }
            .cancelled
            .load(Ordering::Acquire)
    }
}

/// Why waiting ended without the lock.
///
/// ```
/// use std::time::Instant;
///
/// use lockworks::{GivenUp, Node, RawLock, find};
///
/// let lock = RawLock::new(find("mutex").unwrap());
/// lock.lock(&mut Node::new(lock.lock_type()));
/// let waited = lock.lock_until(&mut Node::new(lock.lock_type()), Some(Instant::now()), None);
/// assert_eq!(waited, Err(GivenUp::TimedOut));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The deadline has come.
    TimedOut,
    /// [`Cancel::cancel`] was called, whether the deadline has come or not.
    Cancelled,
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline came before the lock was free",
            Self::Cancelled => "waiting for the lock was cancelled",
        })
    }
}

impl std::error::Error for GivenUp {}

/// `struct lw_wait_limit` of the C side.
#[repr(C)]
struct Words {
    deadline: *const TimeSpec,
    cancel: *mut Word,
    clock: c_int,
}

/// Longer than a program lives, and no overflow in nanoseconds.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// Waits by `wait`, which takes the address of a `struct lw_wait_limit` and gives whether it has the
/// lock.
///
/// # Panics
///
/// If somebody else waits with `cancel`.
pub(crate) fn wait_until(
    deadline: Option<Instant>,
    cancel: Option<&Cancel>,
    wait: impl FnOnce(*const c_void) -> bool,
) -> Result<(), GivenUp> {
    let deadline = deadline.map(|deadline| {
        // In this order it may come late, not early.
        let left = deadline.saturating_duration_since(Instant::now());
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock that every system has");
        now + TimeSpec::from(left.min(NEVER))
    });
    if let Some(cancel) = cancel {
        let in_use = cancel.in_use.swap(true, Ordering::Acquire);
        assert!(!in_use, "a Cancel that another waits with");
    }
    let words = Words {
        deadline: deadline.as_ref().map_or(std::ptr::null(), |time| time),
        cancel: cancel.map_or(std::ptr::null_mut(), |cancel| cancel.word.get()),
        clock: ClockId::CLOCK_MONOTONIC.as_raw(),
    };
    let acquired = wait((&raw const words).cast());
    if let Some(cancel) = cancel {
        cancel.in_use.store(false, Ordering::Release);
    }
    match acquired {
        true => Ok(()),
        false if cancel.is_some_and(Cancel::is_cancelled) => Err(GivenUp::Cancelled),
        false => Err(GivenUp::TimedOut),
    }
}
