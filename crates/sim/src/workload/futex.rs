//! A mutex of user space that blocks in the kernel, as pthread_mutex does. Threads that wait, and
//! threads that wake them, acquire the spinlock of a futex bucket. That is the lock under test.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::lock::SimLock;
use crate::program::Setup;
use crate::thread::{atomic_add, compare_exchange, exchange, load, park, unpark, work, write};

/// A value of the mutex's word: the mutex is free.
const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_WITH_WAITERS: u32 = 2;

/// The bytes that the kernel keeps for a waiter: list links on its stack, and then its task.
const WAITER: usize = 128;
const TASK: usize = 64;

pub(super) struct Mutex {
    word: usize,
    bucket: SimLock,
    /// The address of the number of waiters. It is on the lock's line, like the head of the list.
    waiters_count: usize,
    chain: usize,
    waiters: usize,
    /// The threads in the list, in order.
    queue: RefCell<VecDeque<usize>>,
    syscall_ns: f64,
    bucket_critical_ns: f64,
}

impl Mutex {
    /// Makes a mutex that has its futex bucket to itself. A system call takes `syscall_ns`. It
    /// holds the bucket's lock for `bucket_critical_ns`, besides its accesses to shared memory.
    pub(super) fn new(syscall_ns: f64, bucket_critical_ns: f64, setup: &mut Setup) -> Self {
        let line = setup.allocate("futex bucket", 64);
        let bucket = setup.lock_at(line + 8);
        Self {
            chain: bucket.behind(16),
            bucket,
            waiters_count: line,
            word: setup.allocate("mutex", 64),
            waiters: setup.allocate("waiters", WAITER * setup.threads),
            queue: RefCell::default(),
            syscall_ns,
            bucket_critical_ns,
        }
    }

    /// Runs `critical` with the mutex held.
    pub(super) fn with(&self, thread: usize, critical: impl FnOnce()) {
        self.lock(thread);
        critical();
        self.unlock(thread);
    }

    /// Returns the lock under test: that of the futex bucket.
    pub(super) fn bucket(&self) -> &SimLock {
        &self.bucket
    }

    fn waiter(&self, thread: usize) -> usize {
        self.waiters + WAITER * thread
    }

    fn lock(&self, thread: usize) {
        if compare_exchange(self.word, FREE, HELD) == FREE {
            return;
        }
        while exchange(self.word, HELD_WITH_WAITERS) != FREE {
            self.wait(thread);
        }
    }

    fn unlock(&self, thread: usize) {
        if exchange(self.word, FREE) == HELD_WITH_WAITERS {
            self.wake(thread);
        }
    }

    /// Does what futex(FUTEX_WAIT) does: sleeps if the mutex is still held and marked as having
    /// waiters.
    fn wait(&self, thread: usize) {
        work(self.syscall_ns);
        write(self.waiter(thread), 4, 0);
        atomic_add(self.waiters_count, 1);
        let mut queued = false;
        self.bucket.with(thread, || {
            if load(self.word, 4) != u64::from(HELD_WITH_WAITERS) {
                return;
            }
            load(self.chain, 8);
            let ends = {
                let queue = self.queue.borrow();
                queue.front().copied().zip(queue.back().copied())
            };
            if let Some((first, last)) = ends {
                load(self.waiter(first), 8);
                load(self.waiter(last), 8);
                write(self.waiter(last) + 8, 8, 1);
            }
            write(self.chain, 8, 1);
            work(self.bucket_critical_ns);
            self.queue.borrow_mut().push_back(thread);
            queued = true;
        });
        if queued {
            park(self.waiter(thread), 0);
        } else {
            atomic_add(self.waiters_count, -1);
        }
    }

    /// Does what futex(FUTEX_WAKE, 1) does: wakes the first waiter, if there is one.
    fn wake(&self, thread: usize) {
        work(self.syscall_ns);
        if load(self.waiters_count, 4) == 0 {
            return;
        }
        let mut woken = None;
        self.bucket.with(thread, || {
            load(self.chain, 8);
            work(self.bucket_critical_ns);
            let first = self.queue.borrow_mut().pop_front();
            if let Some(first) = first {
                load(self.waiter(first), 8);
                atomic_add(self.waiter(first) + TASK, 1);
                let next = self.queue.borrow().front().copied();
                if let Some(next) = next {
                    load(self.waiter(next), 8);
                    write(self.waiter(next) + 16, 8, 1);
                }
                write(self.chain, 8, 1);
                write(self.waiter(first), 4, 1);
            }
            woken = first;
        });
        if let Some(sleeper) = woken {
            atomic_add(self.waiters_count, -1);
            unpark(self.waiter(sleeper));
        }
    }
}
