use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

use crate::LockrefType;

/// The 8 bytes of the lockref, which C code accesses.
#[derive(Debug)]
#[repr(C, align(8))]
struct Word(UnsafeCell<[u8; LockrefType::SIZE]>);

/// A lock and a reference count in one word of 8 bytes, as `struct lockref` of Linux.
///
/// While the lock is free, one compare-and-swap changes the count without the lock. While a thread
/// holds the lock, only that thread changes the count.
///
/// An example is an object in a cache, which stays there without references until it is removed:
///
/// ```
/// use lockworks::{Lockref, find_lockref};
///
/// let object = Lockref::new(find_lockref("lockref-cna").expect("it has one"), 1);
/// assert!(object.get_not_dead());
/// assert!(object.put_or_lock().is_none()); // one reference is left
/// let mut last = object.put_or_lock().expect("the last reference locks");
/// assert_eq!(last.count(), 1);
/// last.mark_dead();
/// drop(last); // unlocks
/// assert!(!object.get_not_dead()); // so the object may go
/// ```
///
/// A get has acquire order and a put has release order. All accesses through a reference happen before
/// what a thread does that later holds the lock or has put the last reference.
#[derive(Debug)]
pub struct Lockref {
    lockref_type: &'static LockrefType,
    word: Word,
}

// SAFETY: C code accesses the word by atomic operations only.
unsafe impl Send for Lockref {}
// SAFETY: as above.
unsafe impl Sync for Lockref {}

impl Lockref {
    /// Makes an unlocked lockref with `count` references. It is dead if `count` is negative.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 1);
    /// assert_eq!(object.count(), 1);
    /// ```
    pub fn new(lockref_type: &'static LockrefType, count: i32) -> Self {
        let lockref = Self {
            lockref_type,
            word: Word(UnsafeCell::new([0; LockrefType::SIZE])),
        };
        // SAFETY: nothing else refers to it yet.
        unsafe { (lockref_type.init)(lockref.address(), count) };
        lockref
    }

    /// The description of the lockref.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-hq").unwrap(), 1);
    /// assert_eq!(object.lockref_type().name(), "lockref-hq");
    /// ```
    pub fn lockref_type(&self) -> &'static LockrefType {
        self.lockref_type
    }

    /// Adds a reference. The caller has a reference already, or knows that the lockref is not dead.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 1);
    /// object.get();
    /// assert_eq!(object.count(), 2);
    /// ```
    pub fn get(&self) {
        // SAFETY: the address of a lockref of this type.
        unsafe { (self.lockref_type.get)(self.address()) }
    }

    /// Adds a reference if there is one already, and returns whether it did.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 0);
    /// assert!(!object.get_not_zero());
    /// ```
    #[must_use = "without a reference nothing may be done"]
    pub fn get_not_zero(&self) -> bool {
        // SAFETY: as in `get`.
        unsafe { (self.lockref_type.get_not_zero)(self.address()) }
    }

    /// Adds a reference unless the lockref is dead, and returns whether it did.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 0);
    /// assert!(object.get_not_dead());
    /// object.lock().mark_dead();
    /// assert!(!object.get_not_dead());
    /// ```
    #[must_use = "without a reference nothing may be done"]
    pub fn get_not_dead(&self) -> bool {
        // SAFETY: as in `get`.
        unsafe { (self.lockref_type.get_not_dead)(self.address()) }
    }

    /// Removes a reference, and returns `None`. If it is the last reference, or if there is none, it
    /// acquires the lock instead and does not change the count.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 2);
    /// assert!(object.put_or_lock().is_none());
    /// assert!(object.put_or_lock().is_some_and(|last| last.count() == 1));
    /// ```
    #[must_use = "the last reference is still there"]
    pub fn put_or_lock(&self) -> Option<LockrefGuard<'_>> {
        // SAFETY: as in `get`.
        let put = unsafe { (self.lockref_type.put_or_lock)(self.address()) };
        (!put).then(|| LockrefGuard::new(self))
    }

    /// Removes a reference unless it is the last one, and returns whether it did.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 2);
    /// assert!(object.put_not_zero());
    /// assert!(!object.put_not_zero());
    /// ```
    #[must_use = "the last reference is still there"]
    pub fn put_not_zero(&self) -> bool {
        // SAFETY: as in `get`.
        unsafe { (self.lockref_type.put_not_zero)(self.address()) }
    }

    /// Removes a reference, even the last one, and returns how many are left.
    ///
    /// It returns `None` and changes nothing if the lock is held or there is no reference. It never
    /// waits.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 2);
    /// assert_eq!(object.put_return(), Some(1));
    /// assert_eq!(object.put_return(), Some(0));
    /// assert_eq!(object.put_return(), None);
    /// ```
    #[must_use = "the reference may still be there"]
    pub fn put_return(&self) -> Option<i32> {
        // SAFETY: as in `get`.
        let left = unsafe { (self.lockref_type.put_return)(self.address()) };
        (left >= 0).then_some(left)
    }

    /// The number of references; another thread may change it at any time. It is negative if the
    /// lockref is dead.
    pub fn count(&self) -> i32 {
        // SAFETY: as in `get`.
        unsafe { (self.lockref_type.count)(self.address()) }
    }

    /// Acquires the lock, and waits as long as that takes. It waits forever if this thread holds the
    /// lock already.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 1);
    /// let held = object.lock();
    /// assert!(object.try_lock().is_none());
    /// drop(held);
    /// assert!(object.try_lock().is_some());
    /// ```
    pub fn lock(&self) -> LockrefGuard<'_> {
        // SAFETY: the lockref's lock has the lockref's address, and takes no queue node.
        unsafe {
            self.lockref_type
                .lock()
                .lock(self.address().cast(), ptr::null_mut())
        };
        LockrefGuard::new(self)
    }

    /// Acquires the lock if that needs no waiting.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 1);
    /// assert!(object.try_lock().is_some_and(|held| held.count() == 1));
    /// ```
    pub fn try_lock(&self) -> Option<LockrefGuard<'_>> {
        // SAFETY: as in `lock`.
        let locked = unsafe {
            self.lockref_type
                .lock()
                .try_lock(self.address().cast(), ptr::null_mut())
        };
        locked.then(|| LockrefGuard::new(self))
    }

    fn address(&self) -> *mut c_void {
        self.word.0.get().cast()
    }
}

/// The held lock of a [`Lockref`]. Dropping it releases the lock. Until then the count changes only
/// through it.
///
/// ```
/// use lockworks::{Lockref, find_lockref};
///
/// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 1);
/// let mut held = object.lock();
/// held.set_count(3);
/// assert_eq!(held.count(), 3);
/// held.mark_dead();
/// assert!(held.count() < 0);
/// ```
#[derive(Debug)]
pub struct LockrefGuard<'a> {
    lockref: &'a Lockref,
    /// The thread that has acquired the lock releases it, so a guard stays on its thread.
    _thread: PhantomData<*const ()>,
}

impl<'a> LockrefGuard<'a> {
    fn new(lockref: &'a Lockref) -> Self {
        Self {
            lockref,
            _thread: PhantomData,
        }
    }

    /// The number of references. It is negative if the lockref is dead.
    pub fn count(&self) -> i32 {
        self.lockref.count()
    }

    /// Sets the number of references.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 0);
    /// object.lock().set_count(2);
    /// assert_eq!(object.count(), 2);
    /// ```
    pub fn set_count(&mut self, count: i32) {
        // SAFETY: the address of a lockref of this type, whose lock this thread holds.
        unsafe { (self.lockref.lockref_type.set_count)(self.lockref.address(), count) }
    }

    /// Marks the lockref as dead. From then on only [`Lockref::get`] adds a reference.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 0);
    /// object.lock().mark_dead();
    /// assert!(object.count() < 0);
    /// ```
    pub fn mark_dead(&mut self) {
        // SAFETY: as in `set_count`.
        unsafe { (self.lockref.lockref_type.mark_dead)(self.lockref.address()) }
    }
}

impl Drop for LockrefGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock, since a guard cannot go to another thread.
        unsafe {
            self.lockref
                .lockref_type
                .lock()
                .unlock(self.lockref.address().cast(), ptr::null_mut());
        }
    }
}
