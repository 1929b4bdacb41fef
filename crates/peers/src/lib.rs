//! The locks of others that Lockworks is measured beside: of the C library, of C and C++ libraries
//! where they were there when this was built, and of Rust crates.
//!
//! Each is described as `struct peer` of `c/peer.h` has it: by the loops of `c/bench.h`, into which
//! it is inlined as far as its header lets its users do that, and by its two operations.

mod memory;
mod rust_locks;

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub use memory::Pieces;

/// In which order a lock serves its waiters: `enum bench_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// Whoever comes at the right moment has it.
    Unfair,
    /// In the order in which the waiters queued.
    Fifo,
    /// Some waiters first, the others not much later.
    Bounded,
}

impl Order {
    /// As tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unfair => "unfair",
            Self::Fifo => "FIFO",
            Self::Bounded => "bounded",
        }
    }
}

/// What the locks protect: `struct bench_counters`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Incremented with the lock held.
    pub first: u64,
    unused: u64,
    /// Incremented right after the first.
    pub second: u64,
}

/// One lock and the loops around it: `struct bench_lock`.
#[derive(Debug)]
#[repr(C)]
pub struct Bench {
    /// Unique.
    pub name: *const c_char,
    /// Whose it is.
    pub origin: *const c_char,
    /// In which order it serves its waiters.
    pub order: Order,
    /// Bytes of the lock.
    pub state_size: u32,
    /// Bytes that each thread lends, such as a queue node; at least 1.
    pub thread_size: u32,
    /// Makes zeroed memory a lock.
    pub init: unsafe extern "C" fn(state: *mut c_void),
    /// Locks and unlocks, `n` times.
    pub pure: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void, n: u64),
    /// The same around two increments.
    pub counted: unsafe extern "C" fn(
        state: *mut c_void,
        thread: *mut c_void,
        counters: *mut Counters,
        n: u64,
    ),
    /// The same until `*stop` is not 0; gives how often.
    pub contended: unsafe extern "C" fn(
        state: *mut c_void,
        thread: *mut c_void,
        counters: *mut Counters,
        stop: *const u32,
    ) -> u64,
}

// SAFETY: constants, whose strings are constants too.
unsafe impl Sync for Bench {}
// SAFETY: as above.
unsafe impl Send for Bench {}

impl Bench {
    /// Name, unique.
    pub fn name(&self) -> &'static str {
        // SAFETY: a constant string, as all descriptions hold.
        unsafe { text(self.name) }
    }

    /// Whose it is.
    pub fn origin(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.origin) }
    }
}

/// # Safety
/// `text` is a string that lives as long as the program.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .expect("names are ASCII")
}

/// A lock of others: `struct peer`.
#[derive(Debug)]
#[repr(C)]
pub struct Peer {
    /// Its loops, and what it is called.
    pub bench: &'static Bench,
    lock: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void),
    unlock: unsafe extern "C" fn(state: *mut c_void, thread: *mut c_void),
}

/// A C table of constants, which ends with NULL.
pub type Table<T> = [Option<&'static T>; 1];

/// # Safety
/// `table` is an array that ends with NULL, of pointers to constants.
pub unsafe fn entries<T>(table: *const Table<T>) -> impl Iterator<Item = &'static T> {
    let mut entry: *const Option<&'static T> = table.cast();
    std::iter::from_fn(move || {
        // SAFETY: the caller's promise; it stays at NULL.
        unsafe {
            let found = (*entry)?;
            entry = entry.add(1);
            Some(found)
        }
    })
}

/// A library that need not be there.
#[derive(Debug)]
pub struct Library {
    /// What it calls itself.
    pub name: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// The names of its locks.
    pub locks: &'static [&'static str],
    /// Was it there when this was built?
    pub built: bool,
}

/// Those libraries.
pub static LIBRARIES: [Library; 3] = [
    Library {
        name: "Concurrency Kit",
        package: "libck-dev",
        locks: &["ck_mcs", "ck_ticket", "ck_clh", "ck_fas"],
        built: cfg!(ck),
    },
    Library {
        name: "nsync",
        package: "libnsync-dev",
        locks: &["nsync"],
        built: cfg!(nsync),
    },
    Library {
        name: "Abseil",
        package: "libabsl-dev",
        locks: &["abseil"],
        built: cfg!(abseil),
    },
];

/// What to do to have those that are missing, in one line; none if all are there.
pub fn missing() -> Option<String> {
    let of = |what: fn(&Library) -> &'static str| -> Vec<&str> {
        LIBRARIES
            .iter()
            .filter(|library| !library.built)
            .map(what)
            .collect()
    };
    let names = of(|library| library.name);
    (!names.is_empty()).then(|| {
        format!(
            "built without {}: to compare with them, install {} and build again",
            names.join(", "),
            of(|library| library.package).join(" ")
        )
    })
}

unsafe extern "C" {
    static peer_posix: Table<Peer>;
    #[cfg(ck)]
    static peer_ck: Table<Peer>;
    #[cfg(nsync)]
    static peer_nsync: Table<Peer>;
    #[cfg(abseil)]
    static peer_abseil: Table<Peer>;
}

/// All that this was built with, in the order in which tables show them.
pub fn all() -> impl Iterator<Item = &'static Peer> {
    let tables = [
        &raw const peer_posix,
        #[cfg(ck)]
        &raw const peer_ck,
        #[cfg(nsync)]
        &raw const peer_nsync,
        #[cfg(abseil)]
        &raw const peer_abseil,
    ];
    tables
        .into_iter()
        // SAFETY: each is a table of constants that ends with NULL.
        .flat_map(|table| unsafe { entries(table) })
        .chain(&rust_locks::ALL)
}

/// A peer's lock, and what its threads lend to it.
pub struct PeerLock {
    peer: &'static Peer,
    /// The lock, then one for each thread. They live as long as the lock, which may pass them on.
    memory: Pieces,
    /// The next that no thread has been given.
    free: AtomicUsize,
}

/// What one thread lends, from locking to unlocking.
pub struct Loan(*mut c_void);

impl PeerLock {
    /// An unlocked lock for so many threads.
    pub fn new(peer: &'static Peer, threads: usize) -> Self {
        let loan = peer.bench.thread_size as usize;
        let state = peer.bench.state_size as usize;
        let memory = Pieces::new([state].into_iter().chain((0..threads).map(|_| loan)));
        // SAFETY: zeroed memory, large enough and aligned for any lock.
        unsafe { (peer.bench.init)(memory.at(0)) };
        Self {
            peer,
            memory,
            free: AtomicUsize::new(1),
        }
    }

    /// For one more thread.
    pub fn loan(&self) -> Loan {
        Loan(self.memory.at(self.free.fetch_add(1, Relaxed)))
    }

    /// Acquires the lock.
    ///
    /// # Safety
    /// The loan is of this lock.
    pub unsafe fn lock(&self, loan: &mut Loan) {
        // SAFETY: initialised, and its thread's own loan.
        unsafe { (self.peer.lock)(self.memory.at(0), loan.0) }
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// This thread holds it, and acquired it with this loan.
    pub unsafe fn unlock(&self, loan: &mut Loan) {
        // SAFETY: the caller's promise.
        unsafe { (self.peer.unlock)(self.memory.at(0), loan.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_complete() {
        let mut names: Vec<_> = all().map(|peer| peer.bench.name()).collect();
        for library in &LIBRARIES {
            for lock in library.locks {
                assert_eq!(names.contains(lock), library.built, "{lock}");
            }
            let said = missing().is_some_and(|line| line.contains(library.package));
            assert_eq!(said, !library.built);
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// Threads that come and go lend what outlives them.
    #[test]
    fn peers_exclude() {
        const THREADS: usize = 3;
        for peer in all() {
            // Where each hand-off may take a time slice, few.
            let turns = match peer.bench.order {
                Order::Unfair => 10_000,
                Order::Fifo | Order::Bounded => 30,
            };
            let lock = PeerLock::new(peer, THREADS);
            let counter = AtomicUsize::new(0);
            let work = || {
                let mut loan = lock.loan();
                for _ in 0..turns {
                    // SAFETY: a loan of this lock; unlocked by the thread that has locked.
                    unsafe { lock.lock(&mut loan) };
                    counter.store(counter.load(Relaxed) + 1, Relaxed);
                    // SAFETY: as above.
                    unsafe { lock.unlock(&mut loan) };
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(work);
                }
            });
            assert_eq!(
                counter.into_inner(),
                THREADS * turns,
                "{}",
                peer.bench.name()
            );
        }
    }
}
