//! What is tortured: the locks of the library and their peers, behind one interface.

use std::cell::UnsafeCell;

use anyhow::Result;
use lockworks::{LockType, Node, RawLock};

use crate::names;

/// A lock to torture.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// One of the library.
    Lock(&'static LockType),
    /// `pthread_mutex_t` of the C library, of the default type.
    PthreadMutex,
    /// `pthread_spinlock_t` of the C library.
    PthreadSpin,
}

impl Subject {
    /// All of the library, then the peers.
    pub fn all() -> impl Iterator<Item = Self> {
        let locks = lockworks::lock_types().iter().copied().map(Self::Lock);
        locks.chain([Self::PthreadMutex, Self::PthreadSpin])
    }

    /// The one of that name.
    pub fn find(name: &str) -> Result<Self> {
        Self::all()
            .find(|subject| subject.name() == name)
            .ok_or_else(|| names::unknown("lock", name, Self::all().map(|s| s.name())))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lock(lock) => lock.name(),
            Self::PthreadMutex => "pthread_mutex",
            Self::PthreadSpin => "pthread_spin",
        }
    }

    /// Is it meant to fail?
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Lock(lock) if lock.is_broken())
    }

    /// Does throughput collapse with more threads than CPUs, for want of the next in line?
    pub fn collapses(&self) -> bool {
        matches!(self, Self::Lock(lock) if lock.spins() && (lock.is_fifo() || lock.is_numa_aware()))
    }
}

/// Mutual exclusion between threads, as the library's [`RawLock`] has it.
pub trait Exclusion: Sync {
    /// What a thread lends from locking to unlocking.
    type Node;

    /// A node for this lock.
    fn node(&self) -> Self::Node;

    /// Acquires the lock.
    fn lock(&self, node: &mut Self::Node);

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// This thread holds it, and acquired it with this `node`.
    unsafe fn unlock(&self, node: &mut Self::Node);
}

impl Exclusion for RawLock {
    type Node = Node;

    fn node(&self) -> Node {
        Node::new(self.lock_type())
    }

    fn lock(&self, node: &mut Node) {
        self.lock(node);
    }

    unsafe fn unlock(&self, node: &mut Node) {
        // SAFETY: as the caller promises.
        unsafe { self.unlock(node) }
    }
}

/// The C library's mutex, on lines of its own.
#[repr(align(128))]
pub struct PthreadMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library allows any thread to use it, by its address.
unsafe impl Sync for PthreadMutex {}

impl PthreadMutex {
    /// An unlocked mutex.
    pub fn new() -> Box<Self> {
        Box::new(Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }
}

impl Exclusion for PthreadMutex {
    type Node = ();

    fn node(&self) {}

    fn lock(&self, (): &mut ()) {
        // SAFETY: initialised, and boxed so that it stays where it is.
        let error = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(error, 0);
    }

    unsafe fn unlock(&self, (): &mut ()) {
        // SAFETY: as in `lock`; held by this thread, as the caller promises.
        let error = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        debug_assert_eq!(error, 0);
    }
}

/// The C library's spinlock, on lines of its own.
#[repr(align(128))]
pub struct PthreadSpin(UnsafeCell<libc::pthread_spinlock_t>);

// SAFETY: the C library allows any thread to use it, by its address.
unsafe impl Sync for PthreadSpin {}

impl PthreadSpin {
    /// An unlocked spinlock.
    pub fn new() -> Box<Self> {
        let lock = Box::new(Self(UnsafeCell::new(0)));
        // SAFETY: where it will stay.
        unsafe { libc::pthread_spin_init(lock.0.get(), libc::PTHREAD_PROCESS_PRIVATE) };
        lock
    }
}

impl Exclusion for PthreadSpin {
    type Node = ();

    fn node(&self) {}

    fn lock(&self, (): &mut ()) {
        // SAFETY: initialised, and boxed so that it stays where it is.
        unsafe { libc::pthread_spin_lock(self.0.get()) };
    }

    unsafe fn unlock(&self, (): &mut ()) {
        // SAFETY: as in `lock`; held by this thread, as the caller promises.
        unsafe { libc::pthread_spin_unlock(self.0.get()) };
    }
}
