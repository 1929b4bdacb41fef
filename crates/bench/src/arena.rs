//! The memory of one measurement: a lock, what it protects, what its threads lend.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

use crate::lock::{Counters, Lock};

/// Two cache lines, as processors fetch pairs.
const LINE: usize = 128;

#[repr(C, align(128))]
struct Line(UnsafeCell<[u8; LINE]>);

// SAFETY: only the locks and those who hold them use the contents, through pointers.
unsafe impl Sync for Line {}

/// Everything on lines of its own.
pub struct Arena {
    lock: &'static Lock,
    lines: Box<[Line]>,
    state_lines: usize,
    thread_lines: usize,
}

impl Arena {
    /// An unlocked lock and two counters at 0.
    pub fn new(lock: &'static Lock, threads: usize) -> Self {
        let state_lines = (lock.state_size as usize).div_ceil(LINE);
        let thread_lines = (lock.thread_size as usize).div_ceil(LINE);
        let lines = (0..2 + state_lines + threads * thread_lines)
            .map(|_| Line(UnsafeCell::new([0; LINE])))
            .collect();
        let arena = Self {
            lock,
            lines,
            state_lines,
            thread_lines,
        };
        // SAFETY: zeroed memory, large enough and aligned for any lock.
        unsafe { (lock.init)(arena.state()) };
        arena
    }

    fn line(&self, index: usize) -> *mut c_void {
        self.lines[index].0.get().cast()
    }

    /// The flag that ends [`Self::contended`], once it is not 0.
    pub fn stop(&self) -> &AtomicU32 {
        // SAFETY: aligned, and used in no other way than atomically.
        unsafe { AtomicU32::from_ptr(self.line(0).cast()) }
    }

    fn counters_line(&self) -> *mut Counters {
        self.line(1).cast()
    }

    fn state(&self) -> *mut c_void {
        self.line(2)
    }

    fn thread(&self, thread: usize) -> *mut c_void {
        self.line(2 + self.state_lines + thread * self.thread_lines)
    }

    /// What the two counters have come to. The lock is in no use any more.
    pub fn counters(&mut self) -> [u64; 2] {
        // SAFETY: nobody else has the arena.
        let counters = unsafe { *self.counters_line() };
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
        unsafe { (self.lock.counted)(self.state(), self.thread(0), self.counters_line(), n) }
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
                self.counters_line(),
                self.stop().as_ptr(),
            )
        }
    }
}
