//! The condition variable of the mutex for programs.

use core::ffi::c_uint;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::MutexGuard;

/// `struct lw_cond` of the C library. A thread waits if `first` is not NULL.
#[repr(C)]
struct Words {
    lock: AtomicU32,
    users: AtomicU32,
    first: AtomicPtr<Waiter>,
    last: AtomicPtr<Waiter>,
}

include!(concat!(env!("OUT_DIR"), "/layout_Words.rs"));

/// `struct lw_cond_waiter`, which only C code accesses.
enum Waiter {}

unsafe extern "C" {
    fn lw_cond_wait(cond: *mut Words, mutex: *mut u8);
    fn lw_cond_signal_slow(cond: *mut Words) -> c_uint;
    fn lw_cond_broadcast_slow(cond: *mut Words) -> c_uint;
    fn lw_cond_destroy(cond: *mut Words);
}

/// A condition variable, by which threads that hold a [`Mutex`](crate::Mutex) wait for a change of its
/// value. It works with the lock [`mutex`](crate::mutex) only.
///
/// ```
/// use lockworks::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     let consumer = scope.spawn(|| {
///         let mut queue = QUEUE.lock();
///         FILLED.wait_while(&mut queue, |queue| queue.is_empty());
///         queue.pop()
///     });
///     QUEUE.lock().push(7);
///     FILLED.notify_one();
///     assert_eq!(consumer.join().unwrap(), Some(7));
/// });
/// ```
///
/// Threads that wait for it may use different mutexes. A notification is sure to reach a waiter only if
/// the notifier has held the mutex of that waiter.
///
/// No wake-up is spurious, and a thread that begins to wait after a notification never receives it. But
/// another thread may acquire the mutex before the notified one, so test the condition again.
pub struct Condvar(Words);

impl Condvar {
    /// Makes a condition variable for which no thread waits.
    ///
    /// ```
    /// static FILLED: lockworks::Condvar = lockworks::Condvar::new();
    /// ```
    pub const fn new() -> Self {
        Self(Words {
            lock: AtomicU32::new(0),
            users: AtomicU32::new(0),
            first: AtomicPtr::new(ptr::null_mut()),
            last: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Releases the mutex, waits until it is notified, and acquires the mutex again.
    ///
    /// ```
    /// use lockworks::{Condvar, Mutex};
    ///
    /// let (ready, changed) = (Mutex::new(false), Condvar::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         *ready.lock() = true;
    ///         changed.notify_all();
    ///     });
    ///     let mut ready = ready.lock();
    ///     while !*ready {
    ///         changed.wait(&mut ready);
    ///     }
    /// });
    /// ```
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        // SAFETY: both are valid while they are borrowed. This thread holds the mutex, and holds it
        // again afterwards; meanwhile the guard is borrowed, so nothing accesses the value by it.
        unsafe { lw_cond_wait(self.address(), address_of_mutex(guard)) }
    }

    /// Waits as [`wait`](Self::wait) does, again and again while `condition` returns `true`.
    ///
    /// It does not wait if `condition` returns `false` at once. The mutex is held while it runs.
    ///
    /// ```
    /// use lockworks::{Condvar, Mutex};
    ///
    /// let (ready, changed) = (Mutex::new(false), Condvar::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         *ready.lock() = true;
    ///         changed.notify_all();
    ///     });
    ///     changed.wait_while(&mut ready.lock(), |ready| !*ready);
    /// });
    /// ```
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Notifies the thread that has waited longest, and returns whether any waited. It costs one load if
    /// none does.
    ///
    /// Change the value while you hold the mutex. You may release the mutex before you notify: the mutex
    /// orders memory, a notification does not.
    ///
    /// ```
    /// assert!(!lockworks::Condvar::new().notify_one());
    /// ```
    pub fn notify_one(&self) -> bool {
        if self.0.first.load(Ordering::Relaxed).is_null() {
            return false;
        }
        // SAFETY: it is valid while it is borrowed.
        unsafe { lw_cond_signal_slow(self.address()) != 0 }
    }

    /// Notifies all threads that wait, and returns their number: see [`notify_one`](Self::notify_one).
    ///
    /// ```
    /// assert_eq!(lockworks::Condvar::new().notify_all(), 0);
    /// ```
    pub fn notify_all(&self) -> usize {
        if self.0.first.load(Ordering::Relaxed).is_null() {
            return 0;
        }
        // SAFETY: it is valid while it is borrowed.
        unsafe { lw_cond_broadcast_slow(self.address()) as usize }
    }

    /// All words are atomic, so C code may write to them through a shared reference.
    fn address(&self) -> *mut Words {
        ptr::from_ref(&self.0).cast_mut()
    }
}

fn address_of_mutex<T: ?Sized>(guard: &MutexGuard<'_, T>) -> *mut u8 {
    // SAFETY: the lock is released only by `wait`, which acquires it again.
    unsafe { MutexGuard::mutex(guard).raw() }.address()
}

impl Drop for Condvar {
    fn drop(&mut self) {
        // SAFETY: no thread waits, because waiters borrow it.
        unsafe { lw_cond_destroy(self.address()) }
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

#[cfg(feature = "std")]
pub use timed::WaitTimeoutResult;

#[cfg(feature = "std")]
mod timed {
    use std::ffi::c_int;
    use std::ptr;
    use std::time::{Duration, Instant};

    use nix::sys::time::TimeSpec;
    use nix::time::ClockId;

    use super::{Condvar, Words, address_of_mutex};
    use crate::MutexGuard;
    use crate::wait_limit::monotonic;

    unsafe extern "C" {
        fn lw_cond_wait_until(
            cond: *mut Words,
            mutex: *mut u8,
            clock: c_int,
            deadline: *const TimeSpec,
        ) -> c_int;
    }

    /// Whether a wait for a [`Condvar`] ended because its time was over.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lockworks::{Condvar, Mutex};
    ///
    /// let mutex = Mutex::new(());
    /// let waited = Condvar::new().wait_for(&mut mutex.lock(), Duration::from_millis(1));
    /// assert!(waited.timed_out());
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct WaitTimeoutResult(bool);

    impl WaitTimeoutResult {
        /// Whether the time was over. The condition may be true all the same.
        pub fn timed_out(self) -> bool {
            self.0
        }
    }

    impl Condvar {
        /// Waits as [`wait`](Self::wait) does, until `deadline` at the latest. Then it acquires the mutex
        /// again, however long that takes.
        ///
        /// ```
        /// use std::time::Instant;
        ///
        /// use lockworks::{Condvar, Mutex};
        ///
        /// let mutex = Mutex::new(());
        /// assert!(Condvar::new().wait_until(&mut mutex.lock(), Instant::now()).timed_out());
        /// ```
        pub fn wait_until<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            deadline: Instant,
        ) -> WaitTimeoutResult {
            self.wait_before(guard, Some(deadline))
        }

        /// Waits as [`wait_until`](Self::wait_until) does, for `timeout` at most.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use lockworks::{Condvar, Mutex};
        ///
        /// let mutex = Mutex::new(());
        /// let brief = Duration::from_millis(1);
        /// assert!(Condvar::new().wait_for(&mut mutex.lock(), brief).timed_out());
        /// ```
        pub fn wait_for<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            timeout: Duration,
        ) -> WaitTimeoutResult {
            self.wait_before(guard, Instant::now().checked_add(timeout))
        }

        /// Waits as [`wait_while`](Self::wait_while) does, until `deadline` at the latest. The result says
        /// whether `condition` was still true then.
        ///
        /// ```
        /// use std::time::Instant;
        ///
        /// use lockworks::{Condvar, Mutex};
        ///
        /// let (queue, filled) = (Mutex::new(vec![7]), Condvar::new());
        /// let (mut queue, now) = (queue.lock(), Instant::now());
        /// assert!(!filled.wait_while_until(&mut queue, |queue| queue.is_empty(), now).timed_out());
        /// queue.clear();
        /// assert!(filled.wait_while_until(&mut queue, |queue| queue.is_empty(), now).timed_out());
        /// ```
        pub fn wait_while_until<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: impl FnMut(&mut T) -> bool,
            deadline: Instant,
        ) -> WaitTimeoutResult {
            self.wait_while_before(guard, condition, Some(deadline))
        }

        /// Waits as [`wait_while_until`](Self::wait_while_until) does, for `timeout` at most in all.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use lockworks::{Condvar, Mutex};
        ///
        /// let (queue, filled) = (Mutex::new(Vec::<u32>::new()), Condvar::new());
        /// let mut queue = queue.lock();
        /// let brief = Duration::from_millis(1);
        /// assert!(filled.wait_while_for(&mut queue, |queue| queue.is_empty(), brief).timed_out());
        /// ```
        pub fn wait_while_for<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: impl FnMut(&mut T) -> bool,
            timeout: Duration,
        ) -> WaitTimeoutResult {
            self.wait_while_before(guard, condition, Instant::now().checked_add(timeout))
        }

        /// Waits until `deadline`; a deadline that no `Instant` can express is `None`, and never reached.
        fn wait_before<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            deadline: Option<Instant>,
        ) -> WaitTimeoutResult {
            let deadline = deadline.map(monotonic);
            // SAFETY: as in `wait`; the deadline is a valid time, or NULL if there is none.
            let result = unsafe {
                lw_cond_wait_until(
                    self.address(),
                    address_of_mutex(guard),
                    ClockId::CLOCK_MONOTONIC.as_raw(),
                    deadline.as_ref().map_or(ptr::null(), ptr::from_ref),
                )
            };
            WaitTimeoutResult(result != 0)
        }

        /// The same while `condition` returns `true`.
        fn wait_while_before<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            mut condition: impl FnMut(&mut T) -> bool,
            deadline: Option<Instant>,
        ) -> WaitTimeoutResult {
            let mut is_over = false;
            while condition(guard) {
                if is_over {
                    return WaitTimeoutResult(true);
                }
                is_over = self.wait_before(guard, deadline).timed_out();
            }
            WaitTimeoutResult(false)
        }
    }
}
