use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

use crate::LockrefType;

/// The 8 bytes that C code shares.
#[derive(Debug)]
#[repr(C, align(8))]
struct Word(UnsafeCell<[u8; LockrefType::SIZE]>);

/// A lock and a count of references in one word. While the lock is free, references are got and
/// put without it, by one compare-and-swap; whoever holds it has the count to itself.
///
/// An object in a cache, which lives on without references until somebody removes it:
///
/// ```
/// use lockworks::{Lockref, find_lockref};
///
/// let object = Lockref::new(find_lockref("lockref-cna").expect("it has one"), 1);
/// assert!(object.get_not_dead());
/// assert!(object.put_or_lock().is_none()); // one is left
/// let mut last = object.put_or_lock().expect("the last one locks");
/// assert_eq!(last.count(), 1);
/// last.mark_dead();
/// drop(last); // unlocks
/// assert!(!object.get_not_dead()); // so the object may go
/// ```
///
/// A get acquires and a put releases: what is done with a reference comes before what the holder
/// of the lock, or who has put the last reference, does later.
#[derive(Debug)]
pub struct Lockref {
    lockref_type: &'static LockrefType,
    word: Word,
}

// SAFETY: to be used by many threads is what it is for.
unsafe impl Send for Lockref {}
// SAFETY: as above.
unsafe impl Sync for Lockref {}

impl Lockref {
    /// One with `count` references, unlocked. Dead, if that is negative.
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
        // SAFETY: nobody else has it yet.
        unsafe { (lockref_type.init)(lockref.address(), count) };
        lockref
    }

    /// Its type.
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

    /// Gets a reference. Who calls this has one already, or else knows that it is not dead.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 1);
    /// object.get();
    /// assert_eq!(object.count(), 2);
    /// ```
    pub fn get(&self) {
        // SAFETY: the address of a lockref of that type, as everywhere below.
        unsafe { (self.lockref_type.get)(self.address()) }
    }

    /// Gets a reference if there is one; gives whether it did.
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

    /// Gets a reference unless it is dead; gives whether it did.
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

    /// Puts a reference unless it is the last. Then, and if there is none, the count is as it was
    /// and the lock is held.
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

    /// Puts a reference unless it is the last; gives whether it did.
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

    /// Puts a reference, also the last, and gives how many are left. None if the lock is held or
    /// there is no reference; it never waits.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 2);
    /// assert_eq!(object.put_return(), Some(1));
    /// assert_eq!(object.put_return(), Some(0));
    /// assert_eq!(object.put_return(), None);
    /// ```
    #[must_use = "it may not have been done"]
    pub fn put_return(&self) -> Option<i32> {
        // SAFETY: as in `get`.
        let left = unsafe { (self.lockref_type.put_return)(self.address()) };
        (left >= 0).then_some(left)
    }

    /// How many references there are, or were a moment ago. Negative: it is dead.
    pub fn count(&self) -> i32 {
        // SAFETY: as in `get`.
        unsafe { (self.lockref_type.count)(self.address()) }
    }

    /// Acquires the lock, waiting as long as it takes; forever if this thread holds it already.
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
        // SAFETY: the lock in it is at its address, unlocked at first, and takes no node.
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

/// The lock of a [`Lockref`], held until this is dropped. Meanwhile the count does not change but
/// by this.
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
    /// Who has locked unlocks.
    _thread: PhantomData<*const ()>,
}

impl<'a> LockrefGuard<'a> {
    fn new(lockref: &'a Lockref) -> Self {
        Self {
            lockref,
            _thread: PhantomData,
        }
    }

    /// How many references there are. Negative: it is dead.
    pub fn count(&self) -> i32 {
        self.lockref.count()
    }

    /// From now on there are so many references.
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 0);
    /// object.lock().set_count(2);
    /// assert_eq!(object.count(), 2);
    /// ```
    pub fn set_count(&mut self, count: i32) {
        // SAFETY: its address, and the lock is held.
        unsafe { (self.lockref.lockref_type.set_count)(self.lockref.address(), count) }
    }

    /// From now on nobody gets a reference, but by [`Lockref::get`].
    ///
    /// ```
    /// use lockworks::{Lockref, find_lockref};
    ///
    /// let object = Lockref::new(find_lockref("lockref-cna").unwrap(), 0);
    /// object.lock().mark_dead();
    /// assert!(object.count() < 0);
    /// ```
    pub fn mark_dead(&mut self) {
        // SAFETY: as above.
        unsafe { (self.lockref.lockref_type.mark_dead)(self.lockref.address()) }
    }
}

impl Drop for LockrefGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds it, for the guard cannot go to another one.
        unsafe {
            self.lockref
                .lockref_type
                .lock()
                .unlock(self.lockref.address().cast(), ptr::null_mut());
        }
    }
}
