//! The peers: locks of others, which those of Lockworks are compared with. Here are those that are
//! on every machine: of the C library, and of Rust crates.
//!
//! Each peer is a `struct peer` of `c/peer.h`. It has the loops of `c/bench.h`, into which its
//! operations are inlined if its header defines them inline, and the two operations by themselves.

mod memory;
mod rust_locks;

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub use memory::Pieces;

/// The order in which a lock serves its waiters: `enum bench_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// Waiters acquire the lock in no order.
    Unfair,
    /// Waiters acquire the lock in the order in which they queued.
    Fifo,
    /// The lock prefers some waiters, within a bound.
    Bounded,
}

include!(concat!(env!("OUT_DIR"), "/layout_Order.rs"));

impl Order {
    /// The name of the order in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unfair => "unfair",
            Self::Fifo => "FIFO",
            Self::Bounded => "bounded",
        }
    }
}

/// The counters that a lock protects: `struct bench_counters`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// A thread that holds the lock increments this counter first.
    pub first: u64,
    unused: u64,
    /// The same thread increments this counter right after the first.
    pub second: u64,
}

include!(concat!(env!("OUT_DIR"), "/layout_Counters.rs"));

/// One lock and the loops around it: `struct bench_lock`.
#[derive(Debug)]
#[repr(C)]
pub struct Bench {
    /// The lock's name, which no other lock here has.
    pub name: *const c_char,
    /// The library that the lock comes from.
    pub origin: *const c_char,
    /// The order in which the lock serves its waiters.
    pub order: Order,
    /// The size of the lock in bytes.
    pub state_size: u32,
    /// The size in bytes of what each thread lends, such as a queue node; at least 1.
    pub thread_size: u32,
    /// Initialises a lock in zeroed memory.
    pub init: unsafe extern "C" fn(state: *mut c_void),
    /// Locks and unlocks `n` times.
    pub pure: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void, n: u64),
    /// Locks, increments both counters and unlocks, `n` times.
    pub counted: unsafe extern "C" fn(
        state: *mut c_void,
        thread: *mut c_void,
        counters: *mut Counters,
        n: u64,
    ),
    /// Does as `counted` until `*stop` is not 0, and returns the number of acquisitions.
    pub contended: unsafe extern "C" fn(
        state: *mut c_void,
        thread: *mut c_void,
        counters: *mut Counters,
        stop: *const u32,
    ) -> u64,
}

include!(concat!(env!("OUT_DIR"), "/layout_Bench.rs"));

// SAFETY: every value is a constant, and its strings are constants too.
unsafe impl Sync for Bench {}
// SAFETY: as above.
unsafe impl Send for Bench {}

impl Bench {
    /// The lock's name, which no other lock here has.
    pub fn name(&self) -> &'static str {
        // SAFETY: every description holds constant strings.
        unsafe { text(self.name) }
    }

    /// The library that the lock comes from.
    pub fn origin(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.origin) }
    }
}

/// The text of a C string constant.
///
/// # Safety
/// `text` is an ASCII string that lives as long as the program.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .expect("names are ASCII")
}

/// A lock of another library: `struct peer`.
#[derive(Debug)]
#[repr(C)]
pub struct Peer {
    /// The description of the lock: its name, its origin and its loops.
    pub bench: &'static Bench,
    lock: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void),
    unlock: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void),
    read_lock: Option<unsafe extern "C" fn(state: *mut c_void)>,
    read_unlock: Option<unsafe extern "C" fn(state: *mut c_void)>,
}

include!(concat!(env!("OUT_DIR"), "/layout_Peer.rs"));

impl Peer {
    /// Whether readers can hold the lock together.
    pub fn has_readers(&self) -> bool {
        self.read_lock.is_some()
    }
}

/// A C table of pointers to constants, which ends with NULL. Its length is not known here.
pub type Table<T> = [Option<&'static T>; 1];

/// The entries of a table, without the NULL at its end.
///
/// # Safety
/// `table` is an array of pointers to constants, which ends with NULL.
pub unsafe fn entries<T>(table: *const Table<T>) -> impl Iterator<Item = &'static T> {
    let mut entry: *const Option<&'static T> = table.cast();
    std::iter::from_fn(move || {
        // SAFETY: as the caller promises. `entry` never moves beyond the NULL.
        unsafe {
            let found = (*entry)?;
            entry = entry.add(1);
            Some(found)
        }
    })
}

unsafe extern "C" {
    static peer_posix: Table<Peer>;
}

/// The locks of the C library.
pub fn of_c_library() -> impl Iterator<Item = &'static Peer> {
    // SAFETY: the table has pointers to constants and ends with NULL.
    unsafe { entries(&raw const peer_posix) }
}

/// The locks of Rust crates.
pub fn of_crates() -> impl Iterator<Item = &'static Peer> {
    rust_locks::ALL.iter()
}

/// A lock of a peer, and the memory that its threads lend to it.
pub struct PeerLock {
    peer: &'static Peer,
    /// The lock, then one piece for each thread. A lock may move a thread's piece to another
    /// thread, so all pieces live as long as the lock.
    memory: Pieces,
    /// The index of the next piece that no thread has.
    free: AtomicUsize,
}

/// The memory that one thread lends to a lock, from locking to unlocking.
pub struct Loan(*mut c_void);

impl PeerLock {
    /// Makes an unlocked lock for at most `threads` threads.
    pub fn new(peer: &'static Peer, threads: usize) -> Self {
        let loan = peer.bench.thread_size as usize;
        let state = peer.bench.state_size as usize;
        let memory = Pieces::new([state].into_iter().chain((0..threads).map(|_| loan)));
        // SAFETY: the memory is zeroed, large enough for this lock and aligned for any lock.
        unsafe { (peer.bench.init)(memory.at(0)) };
        Self {
            peer,
            memory,
            free: AtomicUsize::new(1),
        }
    }

    /// Returns the memory that one more thread lends.
    ///
    /// # Panics
    /// If the lock was made for fewer threads.
    pub fn loan(&self) -> Loan {
        Loan(self.memory.at(self.free.fetch_add(1, Relaxed)))
    }

    /// Acquires the lock.
    ///
    /// # Safety
    /// `loan` comes from this lock's [`loan`](Self::loan), and this thread does not hold the lock.
    pub unsafe fn lock(&self, loan: &mut Loan) {
        // SAFETY: the lock is initialised, and the loan is this thread's own.
        unsafe { (self.peer.lock)(self.memory.at(0), loan.0) }
    }

    /// Acquires the lock together with other readers, or alone if it has none.
    ///
    /// # Safety
    /// As for [`lock`](Self::lock).
    pub unsafe fn read_lock(&self, loan: &mut Loan) {
        match self.peer.read_lock {
            // SAFETY: the lock is initialised.
            Some(read_lock) => unsafe { read_lock(self.memory.at(0)) },
            // SAFETY: as the caller promises.
            None => unsafe { self.lock(loan) },
        }
    }

    /// Releases the lock, which this thread has acquired by [`read_lock`](Self::read_lock).
    ///
    /// # Safety
    /// As for [`unlock`](Self::unlock).
    pub unsafe fn read_unlock(&self, loan: &mut Loan) {
        match self.peer.read_unlock {
            // SAFETY: this thread holds the lock as a reader.
            Some(read_unlock) => unsafe { read_unlock(self.memory.at(0)) },
            // SAFETY: as the caller promises.
            None => unsafe { self.unlock(loan) },
        }
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// This thread holds the lock, and acquired it with this `loan`.
    pub unsafe fn unlock(&self, loan: &mut Loan) {
        // SAFETY: as the caller promises.
        unsafe { (self.peer.unlock)(self.memory.at(0), loan.0) }
    }
}
