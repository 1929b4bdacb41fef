use core::ffi::{CStr, c_char, c_uint, c_void};
use core::slice;
#[cfg(feature = "std")]
use std::time::Instant;

#[cfg(feature = "std")]
use crate::{Cancel, GivenUp, waiting::wait_until};

/// Acquires the lock at the first address, waiting as long as it takes. The
/// second is a queue node, lent until the matching [`UnlockFn`] returns.
///
/// ```
/// use lockworks::{LockFn, find};
///
/// let lock: LockFn = find("tas").unwrap().lock;
/// ```
pub type LockFn = unsafe extern "C" fn(lock: *mut c_void, node: *mut c_void);
/// Acquires the lock if that needs no waiting; gives whether it did.
///
/// ```
/// use lockworks::{TryLockFn, find};
///
/// let try_lock: TryLockFn = find("tas").unwrap().try_lock;
/// ```
pub type TryLockFn = unsafe extern "C" fn(lock: *mut c_void, node: *mut c_void) -> bool;
/// Releases the lock.
///
/// ```
/// use lockworks::{UnlockFn, find};
///
/// let unlock: UnlockFn = find("tas").unwrap().unlock;
/// ```
pub type UnlockFn = unsafe extern "C" fn(lock: *mut c_void, node: *mut c_void);

/// Acquires the lock, or gives false if the end of `patience` has come before; what that is, each
/// world has its own words for.
///
/// ```
/// use lockworks::{LockPatientFn, find};
///
/// let lock_limited: Option<LockPatientFn> = find("tas").unwrap().lock_limited;
/// assert!(lock_limited.is_none());
/// ```
pub type LockPatientFn = unsafe extern "C" fn(lock: *mut c_void, patience: *const c_void) -> bool;

/// How a lock tells a harness about itself: `struct lw_lock_type` of
/// `locks/registry/lock_type.h`, in any world that the locks are compiled for.
///
/// ```
/// let pv = lockworks::find("pv").unwrap();
/// assert_eq!((pv.size(), pv.node_size()), (4, 0));
/// assert!(!pv.spins() && pv.may_give_up() && !pv.is_broken());
/// println!("{}: {}, from {}", pv.name(), pv.summary(), pv.origin());
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct LockType {
    /// Name, a C string that lives as long as the program.
    pub name: *const c_char,
    /// What it is, in a few words; a C string like `name`.
    pub summary: *const c_char,
    /// Where the algorithm comes from; a C string like `name`.
    pub origin: *const c_char,
    /// Bytes of the lock.
    pub size: usize,
    /// Bytes of the queue node.
    pub node_size: usize,
    /// Bits of `enum lw_lock_trait`.
    pub traits: c_uint,
    /// The first four bytes of an unlocked lock, if not 0; the others are 0.
    pub unlocked: u32,
    /// See [`LockFn`].
    pub lock: LockFn,
    /// See [`TryLockFn`].
    pub try_lock: TryLockFn,
    /// See [`UnlockFn`].
    pub unlock: UnlockFn,
    /// See [`LockPatientFn`]; None where waiters do not give up.
    pub lock_limited: Option<LockPatientFn>,
}

// SAFETY: C constants, whose strings are constants too.
unsafe impl Sync for LockType {}
// SAFETY: as above.
unsafe impl Send for LockType {}

const FIFO: c_uint = 1;
const SPINS: c_uint = 2;
const NUMA_AWARE: c_uint = 4;
const BROKEN: c_uint = 8;
const TAIL_WORD: c_uint = 16;

impl LockType {
    /// Name, as [`find`] takes it.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().name(), "cna");
    /// ```
    pub fn name(&self) -> &'static str {
        // SAFETY: set by the C side to a constant string.
        unsafe { text(self.name) }
    }

    /// What it is, in a few words.
    ///
    /// ```
    /// println!("{}", lockworks::find("cna").unwrap().summary());
    /// ```
    pub fn summary(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.summary) }
    }

    /// Where the algorithm comes from.
    ///
    /// ```
    /// println!("{}", lockworks::find("cna").unwrap().origin());
    /// ```
    pub fn origin(&self) -> &'static str {
        // SAFETY: as for `name`.
        unsafe { text(self.origin) }
    }

    /// Bytes of the lock.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().size(), 4);
    /// ```
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that the caller lends to the lock from locking to unlocking; may be 0.
    ///
    /// ```
    /// assert_eq!(lockworks::find("cna").unwrap().node_size(), 0);
    /// assert_eq!(lockworks::find("mcs").unwrap().node_size(), 16);
    /// ```
    pub fn node_size(&self) -> usize {
        self.node_size
    }

    /// Waiters are served in the order in which they came.
    ///
    /// ```
    /// assert!(lockworks::find("ticket").unwrap().is_fifo());
    /// ```
    pub fn is_fifo(&self) -> bool {
        self.traits & FIFO != 0
    }

    /// Waiters never sleep, so that throughput collapses when threads outnumber CPUs.
    ///
    /// ```
    /// assert!(lockworks::find("ticket").unwrap().spins());
    /// assert!(!lockworks::find("mutex").unwrap().spins());
    /// ```
    pub fn spins(&self) -> bool {
        self.traits & SPINS != 0
    }

    /// Waiters of the holder's node are preferred, within a bound.
    ///
    /// ```
    /// assert!(lockworks::find("cna").unwrap().is_numa_aware());
    /// ```
    pub fn is_numa_aware(&self) -> bool {
        self.traits & NUMA_AWARE != 0
    }

    /// It does not exclude: there to see that a test or a harness bites.
    ///
    /// ```
    /// assert!(lockworks::find("busted").unwrap().is_broken());
    /// ```
    pub fn is_broken(&self) -> bool {
        self.traits & BROKEN != 0
    }

    /// Waiters may give up: see [`RawLock::lock_until`](crate::RawLock::lock_until).
    ///
    /// ```
    /// assert!(lockworks::find("mutex").unwrap().may_give_up());
    /// ```
    pub fn may_give_up(&self) -> bool {
        self.lock_limited.is_some()
    }

    /// Its first four bytes are an `lw_word`: tail, pending, locked.
    ///
    /// ```
    /// assert!(lockworks::find("qspinlock").unwrap().has_tail_word());
    /// ```
    pub fn has_tail_word(&self) -> bool {
        self.traits & TAIL_WORD != 0
    }

    /// Makes zeroed memory an unlocked lock.
    ///
    /// # Safety
    ///
    /// `lock` has [`size`](Self::size) zeroed bytes, aligned to 8, which nobody else uses.
    ///
    /// ```
    /// let hq = lockworks::find("hq").unwrap();
    /// let mut word = 0u32;
    /// // SAFETY: the lock has 4 bytes, which are zero.
    /// unsafe { hq.initialise((&raw mut word).cast()) };
    /// assert_eq!(word, hq.unlocked);
    /// ```
    pub unsafe fn initialise(&self, lock: *mut u8) {
        if self.unlocked != 0 {
            // SAFETY: a lock whose unlocked word is not 0 has one.
            unsafe { lock.cast::<u32>().write(self.unlocked) };
        }
    }

    /// Acquires the lock at `lock`, waiting as long as it takes.
    ///
    /// # Safety
    ///
    /// `lock` has [`size`](Self::size) bytes, aligned to that, made an unlocked lock by
    /// [`initialise`](Self::initialise) and used through this type only. `node` has
    /// [`node_size`](Self::node_size) bytes, aligned to 64, which nobody else
    /// uses until [`unlock`](Self::unlock) has returned. This thread does not hold the lock.
    ///
    /// ```
    /// let ticket = lockworks::find("ticket").unwrap();
    /// let mut word = 0u32;
    /// let lock = (&raw mut word).cast();
    /// // SAFETY: an unlocked lock, in 4 zero bytes; it wants no node.
    /// unsafe {
    ///     ticket.lock(lock, std::ptr::null_mut());
    ///     ticket.unlock(lock, std::ptr::null_mut());
    /// }
    /// ```
    pub unsafe fn lock(&self, lock: *mut u8, node: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { (self.lock)(lock.cast(), node.cast()) }
    }

    /// Acquires the lock at `lock` if that needs no waiting; gives whether it did.
    ///
    /// # Safety
    ///
    /// As for [`lock`](Self::lock). On `false`, `node` is free again.
    ///
    /// ```
    /// let ticket = lockworks::find("ticket").unwrap();
    /// let mut word = 0u32;
    /// let lock = (&raw mut word).cast();
    /// // SAFETY: an unlocked lock, in 4 zero bytes; it wants no node.
    /// assert!(unsafe { ticket.try_lock(lock, std::ptr::null_mut()) });
    /// // SAFETY: the same.
    /// assert!(!unsafe { ticket.try_lock(lock, std::ptr::null_mut()) });
    /// ```
    pub unsafe fn try_lock(&self, lock: *mut u8, node: *mut u8) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (self.try_lock)(lock.cast(), node.cast()) }
    }

    /// Acquires the lock at `lock`, but waits no longer than until `deadline`, or `cancel`.
    ///
    /// # Panics
    ///
    /// As [`RawLock::lock_until`](crate::RawLock::lock_until) does.
    ///
    /// # Safety
    ///
    /// As for [`lock`](Self::lock). On an error, `node` is free again.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn lock_until(
        &self,
        lock: *mut u8,
        node: *mut u8,
        deadline: Option<Instant>,
        cancel: Option<&Cancel>,
    ) -> Result<(), GivenUp> {
        let lock_limited = self.lock_limited.expect("a lock whose waiters may give up");
        // SAFETY: as the caller promises.
        if unsafe { self.try_lock(lock, node) } {
            return Ok(());
        }
        // SAFETY: the same; `patience` is what the C side takes it for.
        wait_until(deadline, cancel, |patience| unsafe {
            lock_limited(lock.cast(), patience)
        })
    }

    /// Releases the lock at `lock`.
    ///
    /// # Safety
    ///
    /// This thread acquired it, with that `node`.
    ///
    /// ```
    /// let ticket = lockworks::find("ticket").unwrap();
    /// let mut word = 0u32;
    /// let lock = (&raw mut word).cast();
    /// // SAFETY: an unlocked lock, in 4 zero bytes; it wants no node.
    /// unsafe {
    ///     assert!(ticket.try_lock(lock, std::ptr::null_mut()));
    ///     ticket.unlock(lock, std::ptr::null_mut());
    ///     assert!(ticket.try_lock(lock, std::ptr::null_mut()));
    /// }
    /// ```
    pub unsafe fn unlock(&self, lock: *mut u8, node: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { (self.unlock)(lock.cast(), node.cast()) }
    }
}

/// The text of a C constant, which is ASCII.
///
/// # Safety
///
/// `string` is a C string that lives as long as the program.
pub(crate) unsafe fn text(string: *const c_char) -> &'static str {
    // SAFETY: as the caller promises.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_str().expect("an ASCII constant")
}

/// The entries of a NULL-terminated table of pointers, as every world has of its locks.
///
/// # Safety
///
/// `first` points to such a table, which lives as long as the program.
pub unsafe fn table<T>(first: *const *const T) -> impl Iterator<Item = *const T> {
    // SAFETY: goes up to the terminating NULL.
    (0..).map_while(move |i| unsafe { Some(*first.add(i)).filter(|entry| !entry.is_null()) })
}

unsafe extern "C" {
    /// NULL-terminated, hence of unknown length.
    static lw_lock_types: [*const LockType; 0];
}

/// Every lock of the library, in the order in which tables show them. The last
/// one [`is_broken`](LockType::is_broken).
///
/// ```
/// for lock_type in lockworks::lock_types() {
///     println!("{}: {}", lock_type.name(), lock_type.summary());
/// }
/// ```
pub fn lock_types() -> &'static [&'static LockType] {
    let first = (&raw const lw_lock_types).cast::<*const LockType>();
    // SAFETY: a constant table of constants, which ends with NULL.
    let count = unsafe { table(first) }.count();
    // SAFETY: the same; so many pointers, none of them NULL, are as many references.
    unsafe { slice::from_raw_parts(first.cast(), count) }
}

/// The lock of that name.
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
