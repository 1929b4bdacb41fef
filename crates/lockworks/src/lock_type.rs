use core::ffi::{CStr, c_char, c_uint, c_void};
use core::slice;

use crate::constants::{
    LW_BROKEN, LW_FIFO, LW_HISTORIC, LW_MUTEX_WORD, LW_NUMA_AWARE, LW_RESILIENT, LW_SPINS,
    LW_TAIL_WORD,
};
#[cfg(feature = "std")]
use std::time::Instant;

#[cfg(feature = "std")]
use crate::{Cancel, WaitError, wait_limit::wait_until};

/// Acquires the lock at `lock`, and waits as long as that takes.
///
/// The caller lends `node`, a queue node, until the matching [`UnlockFn`] has returned. The
/// acquisition has acquire order: all that earlier holders did happened before.
///
/// ```
/// use lockworks::{LockDescription, LockFn};
///
/// fn lock(description: &LockDescription) -> LockFn {
///     description.lock
/// }
/// ```
pub type LockFn = unsafe extern "C" fn(lock: *mut c_void, node: *mut c_void);
/// Acquires the lock if that needs no waiting, and returns whether it did.
///
/// After `false`, the caller may use `node` again. Success has acquire order; failure orders nothing.
///
/// ```
/// use lockworks::{LockDescription, TryLockFn};
///
/// fn try_lock(description: &LockDescription) -> TryLockFn {
///     description.try_lock
/// }
/// ```
pub type TryLockFn = unsafe extern "C" fn(lock: *mut c_void, node: *mut c_void) -> bool;
/// Releases the lock, with release order.
///
/// `node` is the queue node that the lock was acquired with.
///
/// ```
/// use lockworks::{LockDescription, UnlockFn};
///
/// fn unlock(description: &LockDescription) -> UnlockFn {
///     description.unlock
/// }
/// ```
pub type UnlockFn = unsafe extern "C" fn(lock: *mut c_void, node: *mut c_void);

/// Acquires the lock and returns `true`, or returns `false` if the wait reaches `limit` first.
///
/// `limit` points to a `struct lw_wait_limit`. Each world defines that structure for itself; in user
/// space it holds a deadline and a cancellation.
///
/// ```
/// use lockworks::{LockDescription, LockLimitedFn};
///
/// fn lock_limited(description: &LockDescription) -> Option<LockLimitedFn> {
///     description.lock_limited
/// }
/// ```
pub type LockLimitedFn = unsafe extern "C" fn(lock: *mut c_void, limit: *const c_void) -> bool;

/// Acquires a lock as a reader, or releases it: see [`LockFn`] and [`UnlockFn`]. Readers hold the lock
/// together, and lend no queue node.
///
/// ```
/// use lockworks::{LockDescription, ReadLockFn};
///
/// fn read_lock(description: &LockDescription) -> Option<ReadLockFn> {
///     description.read_lock
/// }
/// ```
pub type ReadLockFn = unsafe extern "C" fn(lock: *mut c_void);

/// Acquires a lock as a reader if that needs no waiting, and returns whether it did: see [`TryLockFn`].
///
/// ```
/// use lockworks::{LockDescription, ReadTryLockFn};
///
/// fn read_try_lock(description: &LockDescription) -> Option<ReadTryLockFn> {
///     description.read_try_lock
/// }
/// ```
pub type ReadTryLockFn = unsafe extern "C" fn(lock: *mut c_void) -> bool;

/// A lock: its name, its properties and its operations.
///
/// This is `struct lw_lock_type` of `locks/registry/lock_type.h`. The simulator and the model checker
/// describe their builds of the locks by the same structure.
///
/// ```
/// let pv = lockworks::find("pv").unwrap();
/// assert_eq!((pv.size(), pv.node_size()), (4, 0));
/// assert!(!pv.spins() && pv.can_time_out() && !pv.is_broken());
/// println!("{}: {}, from {}", pv.name(), pv.summary(), pv.origin());
/// ```
///
/// Safe code calls the functions and reads the strings of the description, so only unsafe code makes a
/// `LockType` from one, and nothing changes it afterwards.
///
/// ```compile_fail,E0133
/// fn describe(description: lockworks::LockDescription) -> lockworks::LockType {
///     lockworks::LockType::new(description)
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn change(lock_type: &mut lockworks::LockType) {
///     lock_type.0.size = 0;
/// }
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct LockType(pub(crate) LockDescription);

/// What a lock consists of, as C describes it. [`LockType::new`] makes a lock of it, and has an example.
#[repr(C)]
#[derive(Debug)]
pub struct LockDescription {
    /// The lock's name, a C string that lives as long as the program.
    pub name: *const c_char,
    /// A few words that say what the lock is; a C string that lives as long as the program.
    pub summary: *const c_char,
    /// The origin of the algorithm; a C string that lives as long as the program.
    pub origin: *const c_char,
    /// How the names of the lock's tunables begin, a C string that lives as long as the program, with
    /// spaces between them; null if the lock has none.
    pub tunables: *const c_char,
    /// The size of the lock in bytes.
    pub size: usize,
    /// The size of the queue node in bytes; 0 if callers lend none.
    pub node_size: usize,
    /// The lock's properties, as bits of `enum lw_lock_trait`.
    pub traits: c_uint,
    /// The first four bytes of an unlocked lock. All other bytes of an unlocked lock are 0.
    pub unlocked: u32,
    /// Acquires the lock: see [`LockFn`].
    pub lock: LockFn,
    /// Tries to acquire the lock: see [`TryLockFn`].
    pub try_lock: TryLockFn,
    /// Releases the lock: see [`UnlockFn`].
    pub unlock: UnlockFn,
    /// Acquires the lock unless the wait reaches a limit: see [`LockLimitedFn`]. `None` if a wait for
    /// this lock cannot have a limit.
    pub lock_limited: Option<LockLimitedFn>,
    /// Acquires the lock together with other readers. `None` if the lock has no readers.
    pub read_lock: Option<ReadLockFn>,
    /// Tries that. `None` if the lock has no readers.
    pub read_try_lock: Option<ReadTryLockFn>,
    /// Releases a reader's acquisition. `None` if the lock has no readers.
    pub read_unlock: Option<ReadLockFn>,
    /// Acquires the lock as a reader unless the wait reaches a limit. `None` if the lock has no readers,
    /// or their waits cannot have a limit.
    pub read_lock_limited: Option<LockLimitedFn>,
}

include!(concat!(env!("OUT_DIR"), "/layout_LockDescription.rs"));

// SAFETY: every value is constant, and so are its strings, as `LockType::new` demands.
unsafe impl Sync for LockType {}
// SAFETY: as above.
unsafe impl Send for LockType {}

impl LockType {
    /// Makes a lock of its description.
    ///
    /// # Safety
    ///
    /// The strings of the description live as long as the program. Each function may be called as the
    /// documentation of its type says, by several threads at once, with memory of `size` bytes that begins
    /// as the description says, and with a node of `node_size` bytes. It accesses nothing else that is not
    /// its own. `size` is at least 4 if `unlocked` is not 0. Either all functions of readers are there, or
    /// none; the one with a limit may be missing. That the lock excludes is not promised: see
    /// [`is_broken`](Self::is_broken).
    ///
    /// ```
    /// use std::ffi::c_void;
    /// use std::ptr;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use lockworks::{LockDescription, LockType};
    ///
    /// unsafe extern "C" fn lock(lock: *mut c_void, node: *mut c_void) {
    ///     // SAFETY: as the caller promises.
    ///     while !unsafe { try_lock(lock, node) } {
    ///         std::hint::spin_loop();
    ///     }
    /// }
    ///
    /// unsafe extern "C" fn try_lock(lock: *mut c_void, _: *mut c_void) -> bool {
    ///     // SAFETY: a lock is a byte, which only these functions access.
    ///     !unsafe { AtomicBool::from_ptr(lock.cast()) }.swap(true, Ordering::Acquire)
    /// }
    ///
    /// unsafe extern "C" fn unlock(lock: *mut c_void, _: *mut c_void) {
    ///     // SAFETY: as above.
    ///     unsafe { AtomicBool::from_ptr(lock.cast()) }.store(false, Ordering::Release);
    /// }
    ///
    /// const DESCRIPTION: LockDescription = LockDescription {
    ///     name: c"spin".as_ptr(),
    ///     summary: c"a byte for which threads spin".as_ptr(),
    ///     origin: c"an example".as_ptr(),
    ///     tunables: ptr::null(),
    ///     size: 1,
    ///     node_size: 0,
    ///     traits: 2, // LW_SPINS
    ///     unlocked: 0,
    ///     lock,
    ///     try_lock,
    ///     unlock,
    ///     lock_limited: None,
    ///     read_lock: None,
    ///     read_try_lock: None,
    ///     read_unlock: None,
    ///     read_lock_limited: None,
    /// };
    ///
    /// // SAFETY: the strings are constants, and the functions access the byte only.
    /// static SPIN: LockType = unsafe { LockType::new(DESCRIPTION) };
    ///
    /// let mut byte = 0u8;
    /// // SAFETY: `byte` is an unlocked lock, which takes no node.
    /// assert!(unsafe { SPIN.try_lock(&raw mut byte, ptr::null_mut()) });
    /// assert!(byte == 1 && SPIN.spins());
    /// ```
    #[must_use]
    pub const unsafe fn new(description: LockDescription) -> Self {
        Self(description)
    }

    /// The lock's name, by which [`find`] finds it.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().name(), "cna");
    /// ```
    pub fn name(&self) -> &'static str {
        // SAFETY: it is a constant string, as `new` demands.
        unsafe { text(self.0.name) }
    }

    /// A few words that say what the lock is.
    ///
    /// ```
    /// println!("{}", lockworks::find("cna").unwrap().summary());
    /// ```
    pub fn summary(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.0.summary) }
    }

    /// The origin of the algorithm.
    ///
    /// ```
    /// println!("{}", lockworks::find("cna").unwrap().origin());
    /// ```
    pub fn origin(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.0.origin) }
    }

    /// Whether the lock reads the tunable with this name.
    ///
    /// ```
    /// let rwlock = lockworks::find("rwlock").unwrap();
    /// assert!(rwlock.reads("rwlock_gather") && rwlock.reads("mutex_spin"));
    /// assert!(!rwlock.reads("mutex_slice"));
    /// ```
    pub fn reads(&self, tunable: &str) -> bool {
        // SAFETY: as for `name`.
        let read = |beginnings| unsafe { text(beginnings) }.split(' ');
        !self.0.tunables.is_null() && read(self.0.tunables).any(|begin| tunable.starts_with(begin))
    }

    /// The size of the lock in bytes.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().size(), 4);
    /// ```
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// The size in bytes of the queue node that callers lend while they wait for or hold the lock.
    /// It is 0 for most locks, which keep their queue nodes themselves.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().node_size(), 0);
    /// assert_eq!(lockworks::find("mcs").unwrap().node_size(), 16);
    /// ```
    pub fn node_size(&self) -> usize {
        self.0.node_size
    }

    /// The first four bytes of an unlocked lock. All other bytes of an unlocked lock are 0.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().unlocked(), 0);
    /// ```
    pub fn unlocked(&self) -> u32 {
        self.0.unlocked
    }

    /// Whether readers can hold the lock together.
    ///
    /// ```
    /// assert!(lockworks::find("rwlock").unwrap().has_readers());
    /// assert!(!lockworks::find("mutex").unwrap().has_readers());
    /// ```
    pub fn has_readers(&self) -> bool {
        self.0.read_lock.is_some()
    }

    /// Whether the lock serves its waiters in the order in which they arrived.
    ///
    /// ```
    /// assert!(lockworks::find("ticket").unwrap().is_fifo());
    /// ```
    pub fn is_fifo(&self) -> bool {
        self.has(LW_FIFO)
    }

    /// Whether waiters never sleep. Throughput of such a lock collapses when more threads want to run
    /// than there are CPUs.
    ///
    /// ```
    /// assert!(lockworks::find("ticket").unwrap().spins());
    /// assert!(!lockworks::find("mutex").unwrap().spins());
    /// ```
    pub fn spins(&self) -> bool {
        self.has(LW_SPINS)
    }

    /// Whether the lock prefers waiters on the holder's NUMA node. How long it may do so is bounded.
    ///
    /// ```
    /// assert!(lockworks::find("cna").unwrap().is_numa_aware());
    /// ```
    pub fn is_numa_aware(&self) -> bool {
        self.has(LW_NUMA_AWARE)
    }

    /// Whether the lock does not exclude. Such a lock exists to prove that a test notices.
    ///
    /// ```
    /// assert!(lockworks::find("busted").unwrap().is_broken());
    /// ```
    pub fn is_broken(&self) -> bool {
        self.has(LW_BROKEN)
    }

    /// Whether the lock exists only for comparison with published figures. Only a checkout of the
    /// repository has such locks, for its tools; the published crate has none.
    #[doc(hidden)]
    pub fn is_historic(&self) -> bool {
        self.has(LW_HISTORIC)
    }

    /// Whether the lock has an acquisition that can fail because of a deadlock or a timeout.
    #[must_use]
    pub fn is_resilient(&self) -> bool {
        self.has(LW_RESILIENT)
    }

    /// Whether a wait may have a limit: a deadline or a cancellation. See
    /// [`RawLock::lock_until`](crate::RawLock::lock_until).
    ///
    /// ```
    /// assert!(lockworks::find("mutex").unwrap().can_time_out());
    /// ```
    pub fn can_time_out(&self) -> bool {
        self.0.lock_limited.is_some()
    }

    /// Whether the first four bytes of the lock are a `union lw_word`: tail, pending, locked.
    ///
    /// ```
    /// assert!(lockworks::find("qspinlock").unwrap().has_tail_word());
    /// ```
    pub fn has_tail_word(&self) -> bool {
        self.has(LW_TAIL_WORD)
    }

    /// Returns whether that word has the flags of a mutex.
    #[must_use]
    pub fn has_mutex_word(&self) -> bool {
        self.has(LW_MUTEX_WORD)
    }

    fn has(&self, property: usize) -> bool {
        self.0.traits & property as c_uint != 0
    }

    /// Turns zeroed memory into an unlocked lock.
    ///
    /// # Safety
    ///
    /// `lock` points to [`size`](Self::size) zeroed bytes, aligned to 8, to which nothing else refers.
    ///
    /// ```
    /// let hq = lockworks::find("hq").unwrap();
    /// let mut word = 0u32;
    /// // SAFETY: the lock has 4 bytes, which are zero.
    /// unsafe { hq.initialise((&raw mut word).cast()) };
    /// assert_eq!(word, hq.unlocked());
    /// ```
    pub unsafe fn initialise(&self, lock: *mut u8) {
        if self.0.unlocked != 0 {
            // SAFETY: a lock whose unlocked word is not 0 has one.
            unsafe { lock.cast::<u32>().write(self.0.unlocked) };
        }
    }

    /// Acquires the lock at `lock`, and waits as long as that takes. The acquisition has acquire order.
    ///
    /// # Safety
    ///
    /// `lock` points to [`size`](Self::size) bytes, aligned to their size, which
    /// [`initialise`](Self::initialise) has made an unlocked lock and which are used through this type
    /// only. `node` points to [`node_size`](Self::node_size) bytes, aligned to 64, which nothing else
    /// uses until [`unlock`](Self::unlock) has returned. This thread does not hold the lock.
    ///
    /// ```
    /// let ticket = lockworks::find("ticket").unwrap();
    /// let mut word = 0u32;
    /// let lock = (&raw mut word).cast();
    /// // SAFETY: `lock` is an unlocked lock of 4 zero bytes, which takes no node.
    /// unsafe {
    ///     ticket.lock(lock, std::ptr::null_mut());
    ///     ticket.unlock(lock, std::ptr::null_mut());
    /// }
    /// ```
    pub unsafe fn lock(&self, lock: *mut u8, node: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { (self.0.lock)(lock.cast(), node.cast()) }
    }

    /// Acquires the lock at `lock` together with other readers, and waits as long as that takes; alone,
    /// if the lock [has no readers](Self::has_readers).
    ///
    /// # Safety
    ///
    /// As for [`lock`](Self::lock). Only a lock without readers needs `node`.
    ///
    /// ```
    /// let rwlock = lockworks::find("rwlock").unwrap();
    /// let mut memory = 0u64;
    /// let lock: *mut u8 = (&raw mut memory).cast();
    /// // SAFETY: `memory` has the size of the lock and is zeroed; this thread releases what it has.
    /// unsafe {
    ///     rwlock.read_lock(lock, std::ptr::null_mut());
    ///     assert!(!rwlock.try_lock(lock, std::ptr::null_mut()));
    ///     rwlock.read_unlock(lock, std::ptr::null_mut());
    ///     assert!(rwlock.try_lock(lock, std::ptr::null_mut()));
    /// }
    /// ```
    pub unsafe fn read_lock(&self, lock: *mut u8, node: *mut u8) {
        match self.0.read_lock {
            // SAFETY: as the caller promises.
            Some(read_lock) => unsafe { read_lock(lock.cast()) },
            // SAFETY: as the caller promises.
            None => unsafe { self.lock(lock, node) },
        }
    }

    /// Releases the lock at `lock`, which this thread has acquired by [`read_lock`](Self::read_lock).
    ///
    /// # Safety
    ///
    /// As for [`unlock`](Self::unlock).
    pub unsafe fn read_unlock(&self, lock: *mut u8, node: *mut u8) {
        match self.0.read_unlock {
            // SAFETY: as the caller promises.
            Some(read_unlock) => unsafe { read_unlock(lock.cast()) },
            // SAFETY: as the caller promises.
            None => unsafe { self.unlock(lock, node) },
        }
    }

    /// Acquires the lock at `lock` if that needs no waiting, and returns whether it did.
    ///
    /// # Safety
    ///
    /// As for [`lock`](Self::lock). After `false`, the caller may use `node` again.
    ///
    /// ```
    /// let ticket = lockworks::find("ticket").unwrap();
    /// let mut word = 0u32;
    /// let lock = (&raw mut word).cast();
    /// // SAFETY: `lock` is an unlocked lock of 4 zero bytes, which takes no node.
    /// assert!(unsafe { ticket.try_lock(lock, std::ptr::null_mut()) });
    /// // SAFETY: the same.
    /// assert!(!unsafe { ticket.try_lock(lock, std::ptr::null_mut()) });
    /// ```
    pub unsafe fn try_lock(&self, lock: *mut u8, node: *mut u8) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (self.0.try_lock)(lock.cast(), node.cast()) }
    }

    /// Acquires the lock at `lock`, unless `deadline` or `cancel` ends the wait first.
    ///
    /// # Panics
    ///
    /// As [`RawLock::lock_until`](crate::RawLock::lock_until) does.
    ///
    /// # Safety
    ///
    /// As for [`lock`](Self::lock). After an error, the caller may use `node` again.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn lock_until(
        &self,
        lock: *mut u8,
        node: *mut u8,
        deadline: Option<Instant>,
        cancel: Option<&Cancel>,
    ) -> Result<(), WaitError> {
        let lock_limited = self
            .0
            .lock_limited
            .unwrap_or_else(|| panic!("a wait for {} cannot have a limit", self.name()));
        // SAFETY: as the caller promises.
        if unsafe { self.try_lock(lock, node) } {
            return Ok(());
        }
        // SAFETY: as the caller promises; `limit` points to a `struct lw_wait_limit`.
        wait_until(deadline, cancel, |limit| unsafe {
            lock_limited(lock.cast(), limit)
        })
    }

    /// Releases the lock at `lock`, with release order.
    ///
    /// # Safety
    ///
    /// This thread holds the lock, and acquired it with this `node`.
    ///
    /// ```
    /// let ticket = lockworks::find("ticket").unwrap();
    /// let mut word = 0u32;
    /// let lock = (&raw mut word).cast();
    /// // SAFETY: `lock` is an unlocked lock of 4 zero bytes, which takes no node.
    /// unsafe {
    ///     assert!(ticket.try_lock(lock, std::ptr::null_mut()));
    ///     ticket.unlock(lock, std::ptr::null_mut());
    ///     assert!(ticket.try_lock(lock, std::ptr::null_mut()));
    /// }
    /// ```
    pub unsafe fn unlock(&self, lock: *mut u8, node: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { (self.0.unlock)(lock.cast(), node.cast()) }
    }
}

/// The text of a C string constant.
///
/// # Safety
///
/// `string` is an ASCII string that lives as long as the program.
pub(crate) unsafe fn text(string: *const c_char) -> &'static str {
    // SAFETY: as the caller promises.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_str().expect("an ASCII constant")
}

/// The entries of a NULL-terminated table of pointers. Every world lists its locks in such a table.
///
/// # Safety
///
/// `first` points to such a table, which lives as long as the program.
pub unsafe fn table<T>(first: *const *const T) -> impl Iterator<Item = *const T> {
    // SAFETY: the iteration ends at the terminating NULL.
    (0..).map_while(move |i| unsafe { Some(*first.add(i)).filter(|entry| !entry.is_null()) })
}

unsafe extern "C" {
    /// A table that ends with NULL. Its length is not known here.
    static lw_lock_types: [*const LockType; 0];
}

/// Every lock of the library, in the order in which tables show them. One of them
/// [`is_broken`](LockType::is_broken).
///
/// ```
/// for lock_type in lockworks::lock_types() {
///     println!("{}: {}", lock_type.name(), lock_type.summary());
/// }
/// ```
pub fn lock_types() -> &'static [&'static LockType] {
    let first = (&raw const lw_lock_types).cast::<*const LockType>();
    // SAFETY: `first` begins a constant table of constants, which ends with NULL.
    let count = unsafe { table(first) }.count();
    // SAFETY: the table has `count` pointers that are not NULL, so they are references.
    unsafe { slice::from_raw_parts(first.cast(), count) }
}

/// Finds a lock by its name.
///
/// ```
/// assert_eq!(lockworks::find("cna").unwrap().name(), "cna");
/// assert!(lockworks::find("no such lock").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static LockType> {
    lock_types()
        .iter()
        .copied()
        .find(|lock_type| lock_type.name() == name)
}
