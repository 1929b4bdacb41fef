//! Locks of Rust crates, in the loops of `c/bench.h`.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use parking_lot::lock_api::{GuardNoSend, RawMutex, RawRwLock};

use super::{Bench, Counters, Order, Peer};

/// The locks of Rust crates, described as those of C libraries are.
pub static ALL: [Peer; 5] = [
    peer::<Std>(&STD_MUTEX),
    peer::<parking_lot::RawMutex>(&PARKING_LOT),
    Peer {
        read_lock: Some(read_lock),
        read_unlock: Some(read_unlock),
        ..peer::<Writer>(&PARKING_LOT_RWLOCK)
    },
    peer::<spin::mutex::SpinMutex<()>>(&SPIN),
    peer::<spin::mutex::TicketMutex<()>>(&SPIN_TICKET),
];

static STD_MUTEX: Bench = bench::<Std>(c"std_mutex", c"Rust's standard library", Order::Unfair);
static PARKING_LOT: Bench =
    bench::<parking_lot::RawMutex>(c"parking_lot", c"Rust crate parking_lot", Order::Unfair);
static PARKING_LOT_RWLOCK: Bench = bench::<Writer>(
    c"parking_lot_rwlock",
    c"Rust crate parking_lot",
    Order::Unfair,
);
static SPIN: Bench =
    bench::<spin::mutex::SpinMutex<()>>(c"spin", c"Rust crate spin", Order::Unfair);
static SPIN_TICKET: Bench =
    bench::<spin::mutex::TicketMutex<()>>(c"spin_ticket", c"Rust crate spin", Order::Fifo);

const fn peer<R: RawMutex>(bench: &'static Bench) -> Peer {
    Peer {
        bench,
        lock: lock::<R>,
        unlock: unlock::<R>,
        read_lock: None,
        read_unlock: None,
    }
}

/// `std::sync::Mutex`, with the guard of the thread that holds it, which alone unlocks it.
struct Std {
    mutex: Mutex<()>,
    guard: UnsafeCell<Option<MutexGuard<'static, ()>>>,
}

// SAFETY: as for the mutex in it.
unsafe impl RawMutex for Std {
    const INIT: Self = Self {
        mutex: Mutex::new(()),
        guard: UnsafeCell::new(None),
    };
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        let mutex = &raw const self.mutex;
        // SAFETY: the guard is dropped before the mutex, by `unlock`.
        let mutex: &'static Mutex<()> = unsafe { &*mutex };
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this thread holds the mutex, which protects the guard.
        unsafe { *self.guard.get() = Some(guard) };
    }

    #[inline]
    fn try_lock(&self) -> bool {
        unreachable!("no loop tries to lock")
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: this thread holds the mutex, which protects the guard.
        let guard = unsafe { &mut *self.guard.get() }.take();
        drop(guard);
    }
}

/// A writer of parking_lot's reader-writer lock, as a mutex.
#[repr(transparent)]
struct Writer(parking_lot::RawRwLock);

// SAFETY: writers exclude each other.
unsafe impl RawMutex for Writer {
    const INIT: Self = Self(parking_lot::RawRwLock::INIT);
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        self.0.lock_exclusive();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.0.unlock_exclusive() }
    }
}

/// # Safety
/// `state` is a `Writer`.
unsafe extern "C" fn read_lock(state: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { &*state.cast::<Writer>() }.0.lock_shared();
}

/// # Safety
/// `state` is a `Writer` that the caller holds as a reader.
unsafe extern "C" fn read_unlock(state: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { (*state.cast::<Writer>()).0.unlock_shared() };
}

const fn bench<R: RawMutex>(name: &'static CStr, origin: &'static CStr, order: Order) -> Bench {
    Bench {
        name: name.as_ptr(),
        origin: origin.as_ptr(),
        order,
        state_size: size_of::<R>() as u32,
        thread_size: 1,
        init: init::<R>,
        pure: pure::<R>,
        counted: counted::<R>,
        contended: contended::<R>,
    }
}

/// # Safety
/// `state` is an `R`.
unsafe extern "C" fn lock<R: RawMutex>(state: *mut c_void, _thread: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { &*state.cast::<R>() }.lock();
}

/// # Safety
/// `state` is an `R` that the caller holds.
unsafe extern "C" fn unlock<R: RawMutex>(state: *mut c_void, _thread: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { (*state.cast::<R>()).unlock() };
}

/// # Safety
/// `state` is memory for an `R`.
unsafe extern "C" fn init<R: RawMutex>(state: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { state.cast::<R>().write(R::INIT) };
}

/// # Safety
/// `state` is an `R`.
unsafe extern "C" fn pure<R: RawMutex>(state: *mut c_void, _thread: *mut c_void, n: u64) {
    // SAFETY: as the caller promises.
    let lock = unsafe { &*state.cast::<R>() };
    for _ in 0..n {
        lock.lock();
        // SAFETY: this thread has just locked it.
        unsafe { lock.unlock() };
    }
}

/// Increments both counters.
///
/// # Safety
/// No other thread uses the counters meanwhile.
unsafe fn increment(counters: *mut Counters) {
    // SAFETY: as the caller promises.
    unsafe {
        (*counters).first += 1;
        (*counters).second += 1;
    }
}

/// # Safety
/// `state` is an `R`, which protects the counters.
unsafe extern "C" fn counted<R: RawMutex>(
    state: *mut c_void,
    _thread: *mut c_void,
    counters: *mut Counters,
    n: u64,
) {
    // SAFETY: as the caller promises.
    let lock = unsafe { &*state.cast::<R>() };
    for _ in 0..n {
        lock.lock();
        // SAFETY: this thread holds the lock, which protects the counters.
        unsafe {
            increment(counters);
            lock.unlock();
        }
    }
}

/// # Safety
/// As for `counted`. All accesses to `stop` are atomic.
unsafe extern "C" fn contended<R: RawMutex>(
    state: *mut c_void,
    _thread: *mut c_void,
    counters: *mut Counters,
    stop: *const u32,
) -> u64 {
    // SAFETY: as the caller promises.
    let (lock, stop) = unsafe { (&*state.cast::<R>(), AtomicU32::from_ptr(stop.cast_mut())) };
    let mut operations = 0;
    while stop.load(Relaxed) == 0 {
        lock.lock();
        // SAFETY: this thread holds the lock, which protects the counters.
        unsafe {
            increment(counters);
            lock.unlock();
        }
        operations += 1;
    }
    operations
}
