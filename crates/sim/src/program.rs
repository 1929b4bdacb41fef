//! The program of a run: its memory and locks, and the code of its threads.

use lockworks::LockType;
use lockworks_machine::Machine;

use crate::engine::Engine;
use crate::lock::{SimLock, SimLockref};

/// A program set up in simulated memory.
pub(crate) trait Program {
    /// Runs the code of a thread. Threads of workloads never end.
    fn thread(&self, thread: usize);
    /// The locks under test.
    fn locks(&self) -> Vec<&SimLock>;
    /// The times of the system calls that put a waiter of a lock to sleep, and that wake it, in
    /// nanoseconds. 0 if no system call is needed.
    fn sleep_calls_ns(&self) -> [f64; 2] {
        [0.0; 2]
    }
    /// The mean delay of an operation by events that are too rare to sample, in nanoseconds.
    fn rare_delay_ns(&self) -> f64 {
        0.0
    }
}

/// Gives a program its memory and locks.
pub(crate) struct Setup<'a> {
    engine: &'a mut Engine,
    lock: &'static LockType,
    pub(crate) machine: &'a Machine,
    pub(crate) threads: usize,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(
        engine: &'a mut Engine,
        lock: &'static LockType,
        machine: &'a Machine,
        threads: usize,
    ) -> Self {
        Self {
            engine,
            lock,
            machine,
            threads,
        }
    }

    /// The CPU of the machine on which each thread starts.
    pub(crate) fn machine_cpus(&self) -> Vec<usize> {
        let model = self.engine.model();
        (0..self.threads).map(|t| model.machine_cpu(t)).collect()
    }

    /// The size of a lock under test in bytes.
    pub(crate) fn lock_size(&self) -> usize {
        self.lock.size()
    }

    /// Allocates zeroed lines on the model's home node.
    pub(crate) fn allocate(&mut self, name: &str, bytes: usize) -> usize {
        let home = self.engine.model().home_node;
        self.engine.allocate(name, bytes, home)
    }

    /// Makes a lock under test, on lines of its own.
    pub(crate) fn lock(&mut self, name: &str) -> SimLock {
        self.lock_of(self.lock, name)
    }

    /// The type of the locks under test.
    pub(crate) fn lock_type(&self) -> &'static LockType {
        self.lock
    }

    /// Makes a lockref with a lock under test, on lines of its own.
    pub(crate) fn lockref(&mut self, name: &str, count: u64) -> SimLockref {
        // The count follows the lock. It is in the same word if the lock has 4 bytes at most.
        let offset = self.lock.size().max(4);
        let address = self.allocate(name, offset + 4);
        self.engine.set(address + offset, 4, count);
        SimLockref::new(self.lock_at(address), address + offset)
    }

    /// Makes a lock of this type, on lines of its own.
    pub(crate) fn lock_of(&mut self, lock: &'static LockType, name: &str) -> SimLock {
        let address = self.allocate(name, lock.size());
        self.make_lock(lock, address)
    }

    /// Makes a lock under test at an address inside other data.
    pub(crate) fn lock_at(&mut self, address: usize) -> SimLock {
        self.make_lock(self.lock, address)
    }

    fn make_lock(&mut self, lock: &'static LockType, address: usize) -> SimLock {
        let stride = lock.node_size().next_multiple_of(64);
        let nodes = if stride == 0 {
            0
        } else {
            self.allocate("lent queue nodes", stride * self.threads)
        };
        if lock.unlocked() != 0 {
            self.engine.set(address, 4, lock.unlocked().into());
        }
        SimLock::new(lock, address, nodes, stride)
    }
}
