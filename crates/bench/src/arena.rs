//! The memory of one measurement: a lock, what it protects, what its threads lend.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

use lockworks_peers::{Counters, Pieces};

use crate::lock::Lock;

/// Everything on lines of its own.
pub struct Arena {
    lock: &'static Lock,
    /// The flag, the counters, the lock, and what each thread lends.
    memory: Pieces,
}

impl Arena {
    /// An unlocked lock and two counters at 0.
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
        // SAFETY: zeroed memory, large enough and aligned for any lock.
        unsafe { (lock.init)(arena.state()) };
        arena
    }

    /// The flag that ends [`Self::contended`], once it is not 0.
    pub fn stop(&self) -> &AtomicU32 {
        // SAFETY: aligned, and used in no other way than atomically.
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

    /// What the two counters have come to. The lock is in no use any more.
    pub fn counters(&mut self) -> [u64; 2] {
        // SAFETY: nobody else has the arena.
        let counters = unsafe { *self.counters_place() };
        [counters.first, counters.second]
    }

    /// Locks and unlocks `n` times.
    pub fn pure(&mut self, n: u64) {
        // SAFETY: nobody else has the arena.
        unsafe { (self.lock.pure)(self.state(), self.thread(0), n) }
    }

    /// Locks, increments both counters and unlocks `n` times.
    pub fn counted(&mut self, n: u64) {
        // SAFETY: nobody else has the arena.
        unsafe { (self.lock.counted)(self.state(), self.thread(0), self.counters_place(), n) }
    }

    /// The same, with others, until it is stopped; gives how often.
    ///
    /// # Safety
    /// At most one call for each `thread` in an arena's life.
    pub unsafe fn contended(&self, thread: usize) -> u64 {
        // SAFETY: what the thread lends is its own; the lock protects the counters.
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
