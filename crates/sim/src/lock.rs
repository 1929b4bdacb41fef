//! Locks under test, and what the simulator records of them without taking virtual time.

use std::cell::Cell;

use lockworks::LockType;
use lockworks_measurements::Activity;

use crate::hooks::{change_lockref, with};
use crate::thread::{load, write};

/// The number of hand-offs of a lock, by the place of the next holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handoffs {
    /// Hand-offs to another thread on the same NUMA node.
    pub local: u64,
    /// Hand-offs to a thread on another NUMA node.
    pub remote: u64,
    /// Acquisitions by the thread that had released the lock last.
    pub reacquisitions: u64,
}

/// A lock under test. It records hand-offs and violations of mutual exclusion. Recording takes no
/// virtual time.
pub(crate) struct SimLock {
    kind: &'static LockType,
    address: usize,
    nodes: usize,
    stride: usize,
    holders: Cell<u32>,
    readers: Cell<u32>,
    last: Cell<Option<(usize, u16)>>,
    handoffs: Cell<Handoffs>,
    acquisitions: Cell<u64>,
    contended: Cell<u64>,
    /// When it was released last.
    released: Cell<u64>,
    violations: Cell<u64>,
}

impl SimLock {
    /// Makes a lock at `address`. Each thread lends it a queue node; the nodes begin at `nodes` and
    /// are `stride` bytes apart.
    pub(crate) fn new(
        kind: &'static LockType,
        address: usize,
        nodes: usize,
        stride: usize,
    ) -> Self {
        Self {
            kind,
            address,
            nodes,
            stride,
            holders: Cell::new(0),
            readers: Cell::new(0),
            last: Cell::new(None),
            handoffs: Cell::default(),
            acquisitions: Cell::new(0),
            contended: Cell::new(0),
            released: Cell::new(0),
            violations: Cell::new(0),
        }
    }

    fn node(&self, thread: usize) -> *mut u8 {
        (self.nodes + thread * self.stride) as *mut u8
    }

    /// Returns the address of the data behind the lock: `bytes` after the beginning of the lock, or
    /// after its end if the lock is larger than that.
    pub(crate) fn behind(&self, bytes: usize) -> usize {
        self.address + self.kind.size().max(bytes)
    }

    /// Runs `critical` with the lock held.
    pub(crate) fn with(&self, thread: usize, critical: impl FnOnce()) {
        self.acquire(thread);
        critical();
        self.release(thread);
    }

    /// Runs `critical` with the lock held together with other readers; alone, if the lock has none.
    pub(crate) fn read_with(&self, thread: usize, critical: impl FnOnce()) {
        self.acquire_read(thread);
        critical();
        self.release_read(thread);
    }

    pub(crate) fn acquire(&self, thread: usize) {
        let since = self.asks();
        // SAFETY: lock and node are zeroed simulated memory of the lock's type; the node is lent
        // until the lock is released.
        unsafe { self.kind.lock(self.address as *mut u8, self.node(thread)) };
        self.has(thread, since);
        self.entered(thread);
    }

    /// Acquires the lock if no thread has it. Returns whether it did.
    pub(crate) fn try_acquire(&self, thread: usize) -> bool {
        let since = self.asks();
        // SAFETY: as in `acquire`.
        let acquired = unsafe {
            self.kind
                .try_lock(self.address as *mut u8, self.node(thread))
        };
        if acquired {
            self.has(thread, since);
            self.entered(thread);
        }
        acquired
    }

    /// Releases the lock, which the thread has acquired.
    pub(crate) fn release(&self, thread: usize) {
        self.holders.set(self.holders.get() - 1);
        with(|c| {
            c.engine.note_lock(false);
            c.engine.note(Activity::Releases(self.address));
            self.released.set(c.engine.time());
        });
        // SAFETY: as in `acquire`, and this thread has acquired the lock.
        unsafe { self.kind.unlock(self.address as *mut u8, self.node(thread)) };
    }

    /// Acquires the lock together with other readers; alone, if the lock has none.
    pub(crate) fn acquire_read(&self, thread: usize) {
        if !self.kind.has_readers() {
            return self.acquire(thread);
        }
        let since = self.asks();
        // SAFETY: as in `acquire`.
        unsafe {
            self.kind
                .read_lock(self.address as *mut u8, self.node(thread))
        };
        self.has(thread, since);
        if self.holders.get() > 0 {
            self.violations.set(self.violations.get() + 1);
        }
        self.readers.set(self.readers.get() + 1);
        self.acquisitions.set(self.acquisitions.get() + 1);
    }

    /// Releases the lock, which the thread has acquired as a reader.
    pub(crate) fn release_read(&self, thread: usize) {
        if !self.kind.has_readers() {
            return self.release(thread);
        }
        self.readers.set(self.readers.get() - 1);
        with(|c| {
            c.engine.note(Activity::Releases(self.address));
            self.released.set(c.engine.time());
        });
        // SAFETY: as in `acquire`, and this thread reads the lock.
        unsafe {
            self.kind
                .read_unlock(self.address as *mut u8, self.node(thread))
        };
    }

    /// Notes that a thread asks for the lock. Returns the time.
    fn asks(&self) -> u64 {
        with(|c| {
            c.engine.note(Activity::Waits(self.address));
            c.engine.time()
        })
    }

    /// Notes that a thread that has asked for the lock since then has it.
    fn has(&self, thread: usize, since: u64) {
        with(|c| {
            c.engine.note(Activity::Holds(self.address));
            let now = c.engine.time();
            c.waited[thread] += now - since;
            let was_held = self.released.get() > since;
            self.contended
                .set(self.contended.get() + u64::from(was_held));
            if now >= c.warm_up {
                c.waits.saturating_record((now - since) / 1000);
            }
        });
    }

    fn entered(&self, thread: usize) {
        let holders = self.holders.get() + 1;
        self.holders.set(holders);
        if holders > 1 || self.readers.get() > 0 {
            self.violations.set(self.violations.get() + 1);
        }
        let (node, measuring) = with(|c| {
            c.engine.note_lock(true);
            let measuring = c.engine.time() >= c.warm_up;
            (c.engine.model().node(thread), measuring)
        });
        self.acquisitions.set(self.acquisitions.get() + 1);
        let last = self.last.replace(Some((thread, node)));
        if !measuring {
            return;
        }
        let mut handoffs = self.handoffs.get();
        match last {
            Some((last, _)) if last == thread => handoffs.reacquisitions += 1,
            Some((_, from)) if from == node => handoffs.local += 1,
            Some(_) => handoffs.remote += 1,
            None => {}
        }
        self.handoffs.set(handoffs);
    }

    #[cfg(test)]
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    pub(crate) fn handoffs(&self) -> Handoffs {
        self.handoffs.get()
    }

    pub(crate) fn violations(&self) -> u64 {
        self.violations.get()
    }

    pub(crate) fn contended(&self) -> u64 {
        self.contended.get()
    }

    pub(crate) fn acquisitions(&self) -> u64 {
        self.acquisitions.get()
    }
}

/// A lockref with a lock under test. Changes of the count without the lock run the code of
/// `locks/lockref.h`. Changes with the lock are here, so that the lock's hand-offs are recorded.
pub(crate) struct SimLockref {
    lock: SimLock,
    count: usize,
}

impl SimLockref {
    /// Makes a lockref from a lock and the address of its count.
    pub(crate) fn new(lock: SimLock, count: usize) -> Self {
        Self { lock, count }
    }

    /// Gets a reference.
    pub(crate) fn get(&self, thread: usize) {
        self.change(thread, true);
    }

    /// Puts a reference back.
    pub(crate) fn put(&self, thread: usize) {
        self.change(thread, false);
    }

    fn change(&self, thread: usize, up: bool) {
        if change_lockref(self.lock.address, self.lock.kind, up) {
            return;
        }
        self.lock.with(thread, || {
            let count = load(self.count, 4) as u32;
            let change = if up { 1 } else { u32::MAX };
            write(self.count, 4, count.wrapping_add(change).into());
        });
    }

    pub(crate) fn lock(&self) -> &SimLock {
        &self.lock
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        load(self.count, 4)
    }
}
