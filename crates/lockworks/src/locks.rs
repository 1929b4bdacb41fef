//! Each lock as a module with a mutex type for `lock_api`. The types call the C code through the lock's
//! [`LockType`](crate::LockType).

/// Defines the modules of locks, and lists their names.
///
/// A lock `lw_<id>` of C needs: its `LockType`, an integer type of its size with the value of an
/// unlocked lock, `timed` if a wait for it can have a limit, and a description.
macro_rules! locks {
    ($($id:ident: $lock_type:ident, $bytes:ty = $unlocked:expr $(, $timed:ident)?; $about:literal)*) => {
        $(lock!($id, $lock_type, $bytes = $unlocked, $about $(, $timed)?);)*

        /// The names of the locks that have a module.
        #[doc(hidden)]
        pub const MODULES: &[&str] = &[$(stringify!($id),)* "rwlock"];

        #[cfg(all(test, feature = "std"))]
        fn each_is_laid_out_as_its_lock() {
            $(tests::is_laid_out_as_its_lock::<$id::RawMutex>($id::RawMutex::lock_type());)*
        }
    };
}

/// Defines one module; see `locks`.
macro_rules! lock {
    ($id:ident, $lock_type:ident, $bytes:ty = $unlocked:expr, $about:literal $(, $timed:ident)?) => {
        #[doc = $about]
        ///
        /// ```
        #[doc = concat!("use lockworks::", stringify!($id), "::Mutex;")]
        ///
        /// static TOTAL: Mutex<u64> = Mutex::new(0);
        ///
        /// std::thread::scope(|scope| {
        ///     for _ in 0..2 {
        ///         scope.spawn(|| *TOTAL.lock() += 1);
        ///     }
        /// });
        /// assert_eq!(*TOTAL.lock(), 2);
        /// ```
        pub mod $id {
            use core::cell::UnsafeCell;
            use core::ptr;

            use lock_api::GuardNoSend;

            use crate::LockType;

            unsafe extern "C" {
                safe static $lock_type: LockType;
            }

            /// The lock alone, which protects no value. It must not move while it is in use.
            ///
            /// ```
            /// use lockworks::lock_api::RawMutex as _;
            #[doc = concat!("use lockworks::", stringify!($id), "::RawMutex;")]
            ///
            /// let lock = RawMutex::INIT;
            /// lock.lock();
            /// assert!(!lock.try_lock());
            /// // SAFETY: locked above, by this thread.
            /// unsafe { lock.unlock() };
            /// ```
            #[derive(Debug)]
            #[repr(transparent)]
            pub struct RawMutex(UnsafeCell<$bytes>);

            /// A mutex: a value, and the lock that protects it.
            ///
            /// ```
            #[doc = concat!("let names = lockworks::", stringify!($id), "::Mutex::new(vec![\"a\"]);")]
            /// names.lock().push("b");
            /// assert_eq!(names.into_inner(), ["a", "b"]);
            /// ```
            pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

            /// Access to the value of a [`Mutex`] while the lock is held. Dropping it releases the lock.
            ///
            /// ```
            #[doc = concat!("use lockworks::", stringify!($id), "::{Mutex, MutexGuard};")]
            ///
            /// fn raise(mut count: MutexGuard<'_, u32>) {
            ///     *count += 1;
            /// }
            ///
            /// let count = Mutex::new(0);
            /// raise(count.lock());
            /// assert_eq!(*count.lock(), 1);
            /// ```
            pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

            /// Access to a part of the value of a [`Mutex`] while the lock is held. Dropping it releases
            /// the lock.
            ///
            /// ```
            #[doc = concat!("use lockworks::", stringify!($id), "::{MappedMutexGuard, Mutex, MutexGuard};")]
            ///
            /// let pair = Mutex::new((1, "one"));
            /// let number: MappedMutexGuard<'_, i32> = MutexGuard::map(pair.lock(), |pair| &mut pair.0);
            /// assert_eq!(*number, 1);
            /// ```
            pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

            /// Access to the value of a [`Mutex`] in an `Arc`, which is kept as long as the guard.
            ///
            /// ```
            /// use std::sync::Arc;
            ///
            #[doc = concat!("use lockworks::", stringify!($id), "::{ArcMutexGuard, Mutex};")]
            ///
            /// let guard: ArcMutexGuard<u32> = Arc::new(Mutex::new(1)).lock_arc();
            /// assert_eq!(*guard, 1);
            /// ```
            #[cfg(feature = "arc_lock")]
            pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawMutex, T>;

            impl RawMutex {
                /// The description of the lock.
                ///
                /// ```
                #[doc = concat!("use lockworks::", stringify!($id), "::RawMutex;")]
                ///
                #[doc = concat!("assert_eq!(RawMutex::lock_type().name(), \"", stringify!($id), "\");")]
                /// ```
                pub fn lock_type() -> &'static LockType {
                    &$lock_type
                }

                #[inline]
                pub(crate) fn address(&self) -> *mut u8 {
                    self.0.get().cast()
                }
            }

            // SAFETY: C code accesses the lock by atomic operations only.
            unsafe impl Sync for RawMutex {}

            // SAFETY: the C lock excludes; a test checks that INIT is an unlocked lock for it.
            unsafe impl lock_api::RawMutex for RawMutex {
                const INIT: Self = Self(UnsafeCell::new($unlocked));
                /// Only the thread that has acquired the lock may release it.
                type GuardMarker = GuardNoSend;

                #[inline]
                fn lock(&self) {
                    // SAFETY: the address of a lock of this type, which takes no queue node.
                    unsafe { $lock_type.lock(self.address(), ptr::null_mut()) }
                }

                #[inline]
                fn try_lock(&self) -> bool {
                    // SAFETY: as in `lock`.
                    unsafe { $lock_type.try_lock(self.address(), ptr::null_mut()) }
                }

                #[inline]
                unsafe fn unlock(&self) {
                    // SAFETY: as in `lock`; the caller promises that this thread holds the lock.
                    unsafe { $lock_type.unlock(self.address(), ptr::null_mut()) }
                }
            }

            $(lock!($timed, $lock_type);)?
        }
    };
    (timed, $lock_type:ident) => {
        #[cfg(feature = "std")]
        use std::time::{Duration, Instant};

        /// A free lock is acquired even if the deadline has passed.
        #[cfg(feature = "std")]
        // SAFETY: the functions return true only after the lock was acquired.
        unsafe impl lock_api::RawMutexTimed for RawMutex {
            type Duration = Duration;
            type Instant = Instant;

            fn try_lock_for(&self, timeout: Duration) -> bool {
                // A deadline that no Instant can express is never reached.
                self.lock_before(Instant::now().checked_add(timeout))
            }

            fn try_lock_until(&self, deadline: Instant) -> bool {
                self.lock_before(Some(deadline))
            }
        }

        #[cfg(feature = "std")]
        impl RawMutex {
            fn lock_before(&self, deadline: Option<Instant>) -> bool {
                // SAFETY: as in `lock`.
                unsafe {
                    $lock_type
                        .lock_until(self.address(), ptr::null_mut(), deadline, None)
                        .is_ok()
                }
            }
        }
    };
}

locks! {
    mutex: lw_mutex_type, u32 = 0, timed;
        "The mutex for programs: waiters spin for a while, then sleep. A wait can have a deadline."
    tas: lw_tas_type, u8 = 0;
        "Test-and-set: one byte. Waiters spin, and acquire the lock in no order."
    ticket: lw_ticket_type, u32 = 0;
        "The ticket lock: FIFO. Waiters spin."
    qspinlock: lw_qspinlock_type, u32 = 0;
        "The queued spinlock of Linux: FIFO among queued waiters, which spin."
    cna: lw_cna_type, u32 = 0;
        "CNA: a queued spinlock that prefers waiters on the holder's NUMA node, within a bound."
    hq: lw_hq_type, u32 = crate::constants::LW_HQ as u32;
        "The HQ-spinlock: under contention, each NUMA node has a queue of its own. Waiters spin."
    pv: lw_pv_type, u32 = 0, timed;
        "The paravirt queued spinlock: waiters park. A wait can have a deadline."
    unfair: lw_unfair_type, u32 = 0, timed;
        "The queued unfair lock: running threads steal it; waiters park. A wait can have a deadline."
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::mem::{align_of, size_of};

    use lock_api::RawMutex;

    use crate::LockType;

    pub fn is_laid_out_as_its_lock<R: RawMutex>(lock_type: &LockType) {
        let word = R::INIT;
        let mut bytes = [0; 4];
        // SAFETY: a mutex is that many bytes, all of them initialised.
        let ours = unsafe { std::slice::from_raw_parts((&raw const word).cast(), size_of::<R>()) };
        bytes[..ours.len()].copy_from_slice(ours);
        assert_eq!(size_of::<R>(), lock_type.size(), "{}", lock_type.name());
        assert_eq!(align_of::<R>(), lock_type.size(), "{}", lock_type.name());
        assert_eq!(u32::from_ne_bytes(bytes), lock_type.unlocked());
        assert_eq!(lock_type.node_size(), 0, "{}", lock_type.name());
    }

    #[test]
    fn modules_are_laid_out_as_their_locks() {
        assert!(super::MODULES.contains(&"mutex"));
        super::each_is_laid_out_as_its_lock();
    }
}
