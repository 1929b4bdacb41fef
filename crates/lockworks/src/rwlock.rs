//! The reader-writer lock as a [`lock_api`] lock.

use core::cell::UnsafeCell;

use lock_api::GuardNoSend;

use crate::LockType;

unsafe extern "C" {
    safe static lw_rwlock_type: LockType;
    fn lw_rwlock_lock(lock: *mut u64);
    fn lw_rwlock_trylock(lock: *mut u64) -> bool;
    fn lw_rwlock_unlock(lock: *mut u64);
    fn lw_rwlock_read_lock(lock: *mut u64);
    fn lw_rwlock_read_trylock(lock: *mut u64) -> bool;
    fn lw_rwlock_read_unlock(lock: *mut u64);
    fn lw_rwlock_upgradable_lock(lock: *mut u64);
    fn lw_rwlock_upgradable_trylock(lock: *mut u64) -> bool;
    fn lw_rwlock_upgradable_unlock(lock: *mut u64);
    fn lw_rwlock_upgrade(lock: *mut u64);
    fn lw_rwlock_try_upgrade(lock: *mut u64) -> bool;
    fn lw_rwlock_downgrade(lock: *mut u64);
    fn lw_rwlock_downgrade_to_upgradable(lock: *mut u64);
    fn lw_rwlock_upgradable_downgrade(lock: *mut u64);
}

/// The lock alone, which protects no value. It must not move while it is in use.
///
/// ```
/// use lockworks::lock_api::RawRwLock as _;
/// use lockworks::rwlock::RawRwLock;
///
/// let lock = RawRwLock::INIT;
/// lock.lock_shared();
/// assert!(lock.try_lock_shared() && !lock.try_lock_exclusive());
/// // SAFETY: acquired twice above, by this thread.
/// unsafe {
///     lock.unlock_shared();
///     lock.unlock_shared();
/// }
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct RawRwLock(UnsafeCell<u64>);

/// A value, and the lock that protects it: many readers or one writer.
///
/// ```
/// use lockworks::rwlock::RwLock;
///
/// static NAMES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
///
/// NAMES.write().push("Ada");
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| assert_eq!(NAMES.read().len(), 1));
///     }
/// });
/// let names = NAMES.upgradable_read();
/// if names.len() == 1 {
///     lockworks::rwlock::RwLockUpgradableReadGuard::upgrade(names).push("Grace");
/// }
/// assert_eq!(*NAMES.read(), ["Ada", "Grace"]);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Access to the value of a [`RwLock`] for reading. Dropping it releases the lock.
///
/// ```
/// use lockworks::rwlock::{RwLock, RwLockReadGuard};
///
/// fn longest(names: RwLockReadGuard<'_, Vec<&str>>) -> usize {
///     names.iter().map(|name| name.len()).max().unwrap_or(0)
/// }
///
/// assert_eq!(longest(RwLock::new(vec!["Ada", "Grace"]).read()), 5);
/// ```
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Access to the value of a [`RwLock`] for reading and writing. Dropping it releases the lock.
///
/// ```
/// use lockworks::rwlock::{RwLock, RwLockWriteGuard};
///
/// let count = RwLock::new(1);
/// let mut write = count.write();
/// *write += 1;
/// let read = RwLockWriteGuard::downgrade(write);
/// assert_eq!(*read, 2);
/// ```
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Access to the value of a [`RwLock`] for reading, which can be upgraded. There is one at a time, beside
/// readers.
///
/// ```
/// use lockworks::rwlock::{RwLock, RwLockUpgradableReadGuard};
///
/// let count = RwLock::new(1);
/// let read = count.upgradable_read();
/// assert!(count.try_read().is_some() && count.try_upgradable_read().is_none());
/// *RwLockUpgradableReadGuard::upgrade(read) += 1;
/// assert_eq!(count.into_inner(), 2);
/// ```
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// Access to a part of the value of a [`RwLock`] for reading. Dropping it releases the lock.
///
/// ```
/// use lockworks::rwlock::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
///
/// let pair = RwLock::new((1, "one"));
/// let number: MappedRwLockReadGuard<'_, i32> = RwLockReadGuard::map(pair.read(), |pair| &pair.0);
/// assert_eq!(*number, 1);
/// ```
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// Access to a part of the value of a [`RwLock`] for reading and writing. Dropping it releases the lock.
///
/// ```
/// use lockworks::rwlock::{MappedRwLockWriteGuard, RwLock, RwLockWriteGuard};
///
/// let pair = RwLock::new((1, "one"));
/// let mut number: MappedRwLockWriteGuard<'_, i32> =
///     RwLockWriteGuard::map(pair.write(), |pair| &mut pair.0);
/// *number += 1;
/// ```
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
/// Access to the value of a [`RwLock`] in an `Arc` for reading. The `Arc` is kept as long as the guard.
///
/// ```
/// use std::sync::Arc;
///
/// use lockworks::rwlock::{ArcRwLockReadGuard, RwLock};
///
/// let guard: ArcRwLockReadGuard<u32> = Arc::new(RwLock::new(1)).read_arc();
/// assert_eq!(*guard, 1);
/// ```
#[cfg(feature = "arc_lock")]
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
/// Access to the value of a [`RwLock`] in an `Arc` for reading and writing.
///
/// ```
/// use std::sync::Arc;
///
/// use lockworks::rwlock::{ArcRwLockWriteGuard, RwLock};
///
/// let mut guard: ArcRwLockWriteGuard<u32> = Arc::new(RwLock::new(1)).write_arc();
/// *guard += 1;
/// ```
#[cfg(feature = "arc_lock")]
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
/// Access to the value of a [`RwLock`] in an `Arc` for reading, which can be upgraded.
///
/// ```
/// use std::sync::Arc;
///
/// use lockworks::rwlock::{ArcRwLockUpgradableReadGuard, RwLock};
///
/// let count = Arc::new(RwLock::new(1));
/// let read: ArcRwLockUpgradableReadGuard<u32> = count.upgradable_read_arc();
/// *ArcRwLockUpgradableReadGuard::upgrade(read) += 1;
/// assert_eq!(*count.read(), 2);
/// ```
#[cfg(feature = "arc_lock")]
pub type ArcRwLockUpgradableReadGuard<T> = lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;

impl RawRwLock {
    /// The description of the lock.
    ///
    /// ```
    /// assert_eq!(lockworks::rwlock::RawRwLock::lock_type().name(), "rwlock");
    /// ```
    pub fn lock_type() -> &'static LockType {
        &lw_rwlock_type
    }
}

// SAFETY: C code accesses the lock by atomic operations only.
unsafe impl Sync for RawRwLock {}

// SAFETY: here and below, the C lock keeps writers from all others. Zero bytes are an unlocked lock. The
// address is that of such a lock, and callers promise that this thread holds what it releases.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self(UnsafeCell::new(0));
    /// Only the thread that has acquired the lock may release it.
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        // SAFETY: see above.
        unsafe { lw_rwlock_read_lock(self.0.get()) }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        // SAFETY: see above.
        unsafe { lw_rwlock_read_trylock(self.0.get()) }
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: see above.
        unsafe { lw_rwlock_read_unlock(self.0.get()) }
    }

    #[inline]
    fn lock_exclusive(&self) {
        // SAFETY: see above.
        unsafe { lw_rwlock_lock(self.0.get()) }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        // SAFETY: see above.
        unsafe { lw_rwlock_trylock(self.0.get()) }
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: see above.
        unsafe { lw_rwlock_unlock(self.0.get()) }
    }
}

// SAFETY: a thread that reads the lock may read it again, whoever waits.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        lock_api::RawRwLock::lock_shared(self);
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        lock_api::RawRwLock::try_lock_shared(self)
    }
}

// SAFETY: after the call this thread is one of the readers.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    #[inline]
    unsafe fn downgrade(&self) {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_downgrade(self.0.get()) }
    }
}

// SAFETY: an upgradable holder keeps writers and other upgradable holders out.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    #[inline]
    fn lock_upgradable(&self) {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_upgradable_lock(self.0.get()) }
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_upgradable_trylock(self.0.get()) }
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_upgradable_unlock(self.0.get()) }
    }

    #[inline]
    unsafe fn upgrade(&self) {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_upgrade(self.0.get()) }
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_try_upgrade(self.0.get()) }
    }
}

// SAFETY: as for the two traits.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_upgradable_downgrade(self.0.get()) }
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: see `RawRwLock`.
        unsafe { lw_rwlock_downgrade_to_upgradable(self.0.get()) }
    }
}

#[cfg(feature = "std")]
mod timed {
    use std::ffi::c_void;
    use std::time::{Duration, Instant};

    use super::{RawRwLock, lw_rwlock_type};
    use crate::wait_limit::wait_until;

    /// A lock that needs no wait is acquired even if the deadline has passed.
    // SAFETY: the functions return true only after the lock was acquired.
    unsafe impl lock_api::RawRwLockTimed for RawRwLock {
        type Duration = Duration;
        type Instant = Instant;

        fn try_lock_shared_for(&self, timeout: Duration) -> bool {
            self.read_before(Instant::now().checked_add(timeout))
        }

        fn try_lock_shared_until(&self, deadline: Instant) -> bool {
            self.read_before(Some(deadline))
        }

        fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
            self.write_before(Instant::now().checked_add(timeout))
        }

        fn try_lock_exclusive_until(&self, deadline: Instant) -> bool {
            self.write_before(Some(deadline))
        }
    }

    impl RawRwLock {
        /// Waits until `deadline`; a deadline that no `Instant` can express is never reached.
        fn write_before(&self, deadline: Option<Instant>) -> bool {
            let lock: *mut u8 = self.0.get().cast();
            // SAFETY: the address of a lock of this type, which takes no queue node.
            unsafe { lw_rwlock_type.lock_until(lock, std::ptr::null_mut(), deadline, None) }.is_ok()
        }

        /// The same for a reader.
        fn read_before(&self, deadline: Option<Instant>) -> bool {
            let limited = lw_rwlock_type
                .0
                .read_lock_limited
                .expect("its readers have limits");
            let lock: *mut c_void = self.0.get().cast();
            wait_until(deadline, None, |limit| {
                // SAFETY: as in `write_before`.
                unsafe { limited(lock, limit) }
            })
            .is_ok()
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::time::Duration;

    use super::{RawRwLock, RwLock};

    #[test]
    fn it_is_laid_out_as_its_lock() {
        assert_eq!(size_of::<RawRwLock>(), RawRwLock::lock_type().size());
        assert_eq!(RawRwLock::lock_type().unlocked(), 0);
    }

    #[test]
    fn waits_end_at_their_deadline() {
        let lock = RwLock::new(());
        let brief = Duration::from_millis(2);
        let write = lock.write();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(lock.try_read_for(brief).is_none());
                assert!(lock.try_write_for(brief).is_none());
            });
        });
        drop(write);
        assert!(lock.try_read_for(brief).is_some() && lock.try_write_for(brief).is_some());
    }
}
