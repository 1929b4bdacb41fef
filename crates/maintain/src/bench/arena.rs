//! The memory of one measurement: a lock, the counters that it protects, and what its threads lend.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

use lockworks_torture::peers::{Counters, Pieces};

use super::lock::Lock;

/// The memory of one measurement. Each piece of it has its cache lines to itself.
pub struct Arena {
    lock: &'static Lock,
    /// The flag, the counters, the lock, and what each thread lends.
    memory: Pieces,
}

impl Arena {
    /// Makes an unlocked lock for at most `threads` threads, and two counters at 0.
    pub fn new(lock: &'static Lock, threads: usize) -> Self {
        let common = [
            size_of::<AtomicU32>(),
            size_of::<Counters>(),
            lock.state_size as usize,
        ];
        let lent = (0..threads).map(|_| lock.thread_size as usize);
        let arena = Self {
            lock,
            memory: Pieces::new(common.into_iter().chain(lent)),
        };
        // SAFETY: the memory is zeroed, large enough for this lock and aligned for any lock.
        unsafe { (lock.init)(arena.state()) };
        arena
    }

    /// The flag that ends [`Self::contended`] once it is not 0.
    pub fn stop(&self) -> &AtomicU32 {
        // SAFETY: the flag is aligned, and all accesses to it are atomic.
        unsafe { AtomicU32::from_ptr(self.memory.at(0).cast()) }
    }

    fn counters_place(&self) -> *mut Counters {
        self.memory.at(1).cast()
    }

    fn state(&self) -> *mut c_void {
        self.memory.at(2)
    }

    fn thread(&self, thread: usize) -> *mut c_void {
        self.memory.at(3 + thread)
    }

    /// The values of the two counters. No thread uses the lock any more.
    pub fn counters(&mut self) -> [u64; 2] {
        // SAFETY: the borrow is exclusive, so no other thread uses the arena.
        let counters = unsafe { *self.counters_place() };
        [counters.first, counters.second]
    }

    /// Locks and unlocks `n` times.
    pub fn pure(&mut self, n: u64) {
        // SAFETY: the borrow is exclusive, so no other thread uses the arena.
        unsafe { (self.lock.pure)(self.state(), self.thread(0), n) }
    }

    /// Locks, increments both counters and unlocks `n` times.
    pub fn counted(&mut self, n: u64) {
        // SAFETY: the borrow is exclusive, so no other thread uses the arena.
        unsafe { (self.lock.counted)(self.state(), self.thread(0), self.counters_place(), n) }
    }

    /// Does as [`Self::counted`], together with other threads, until [`Self::stop`] is not 0.
    /// Returns the number of acquisitions.
    ///
    /// # Safety
    /// At most one call for each `thread` in the life of an arena.
    pub unsafe fn contended(&self, thread: usize) -> u64 {
        // SAFETY: each thread lends a piece of its own, and the lock protects the counters.
        unsafe {
            (self.lock.contended)(
                self.state(),
                self.thread(thread),
                self.counters_place(),
                self.stop().as_ptr(),
            )
        }
    }
}
