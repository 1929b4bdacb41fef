//! Locks under test, and what is seen of them from outside of the simulation.

use std::cell::Cell;

use lockworks::LockType;

use crate::hooks::{change_lockref, with};
use crate::thread::{load, write};

/// How often a lock was handed over, by where its next holder was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handoffs {
    /// To another thread on the same node.
    pub local: u64,
    /// To a thread on another node.
    pub remote: u64,
    /// To the same thread again.
    pub reacquisitions: u64,
}

/// A lock under test, with its mutual exclusion and hand-offs watched from outside of the
/// simulation.
pub(crate) struct SimLock {
    kind: &'static LockType,
    address: usize,
    nodes: usize,
    stride: usize,
    holders: Cell<u32>,
    last: Cell<Option<(usize, u16)>>,
    handoffs: Cell<Handoffs>,
    acquisitions: Cell<u64>,
    violations: Cell<u64>,
}

impl SimLock {
    /// A lock at `address`, each of whose threads lends it a queue node of `stride` bytes at `nodes`.
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
            last: Cell::new(None),
            handoffs: Cell::default(),
            acquisitions: Cell::new(0),
            violations: Cell::new(0),
        }
    }

    fn node(&self, thread: usize) -> *mut u8 {
        (self.nodes + thread * self.stride) as *mut u8
    }

    /// The address of data behind the lock: `bytes` from the beginning of the lock, or behind all of
    /// it where the lock is larger.
    pub(crate) fn behind(&self, bytes: usize) -> usize {
        self.address + self.kind.size().max(bytes)
    }

    /// Runs `critical` with the lock held.
    pub(crate) fn with(&self, thread: usize, critical: impl FnOnce()) {
        let since = with(|c| c.engine.time());
        // SAFETY: lock and node are zeroed simulated memory of the lock's type; the node is lent
        // until the lock is released.
        unsafe { self.kind.lock(self.address as *mut u8, self.node(thread)) };
        with(|c| c.waited[thread] += c.engine.time() - since);
        self.entered(thread);
        critical();
        self.holders.set(self.holders.get() - 1);
        with(|c| c.engine.note_lock(false));
        // SAFETY: as above, and this thread has acquired the lock.
        unsafe { self.kind.unlock(self.address as *mut u8, self.node(thread)) };
    }

    fn entered(&self, thread: usize) {
        let holders = self.holders.get() + 1;
        self.holders.set(holders);
        if holders > 1 {
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

    pub(crate) fn acquisitions(&self) -> u64 {
        self.acquisitions.get()
    }
}

/// A lockref with a lock under test. The code that does without the lock is that of
/// `locks/lockref.h`. The code that takes the lock is here, so that the lock can be watched.
pub(crate) struct SimLockref {
    lock: SimLock,
    count: usize,
}

impl SimLockref {
    /// A lockref with that lock and the address of its count.
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
