//! leveldb readrandom: a Get takes the database's mutex twice, and searches without it. The mutex
//! blocks in the kernel, where all its waiters and wakers meet on the spinlock of one futex bucket.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::{
    Noise, Program, Setup, SimLock, Workload, add, compare_exchange, exchange, increment, load,
    operation_done, park, random, unpark, work, write,
};

/// Values of the mutex's word.
const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_WITH_WAITERS: u32 = 2;

/// What the kernel keeps of a waiter: list links on its stack, and its task.
const WAITER: usize = 128;
const TASK: usize = 64;

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let line = setup.allocate("futex bucket", 64);
    let mutex_critical_ns = workload.constant("mutex_critical_ns");
    Box::new(ReadRandom {
        bucket: setup.lock_at(line + 8),
        waiters_count: line,
        chain: line + 24,
        mutex: setup.allocate("mutex", 64),
        references: setup.allocate("references", 64),
        waiters: setup.allocate("waiters", WAITER * setup.threads),
        queue: RefCell::default(),
        mutex_critical_ns,
        syscall_ns: workload.constant("syscall_ns"),
        bucket_critical_ns: workload.constant("bucket_critical_ns"),
        think_ns: workload.constant("alone_ns") - 2.0 * mutex_critical_ns,
    })
}

struct ReadRandom {
    bucket: SimLock,
    /// Beside the lock, on its line: how many wait, and the list's head.
    waiters_count: usize,
    chain: usize,
    mutex: usize,
    references: usize,
    waiters: usize,
    /// Who is in the list, in order.
    queue: RefCell<VecDeque<usize>>,
    mutex_critical_ns: f64,
    syscall_ns: f64,
    bucket_critical_ns: f64,
    think_ns: f64,
}

impl ReadRandom {
    fn waiter(&self, thread: usize) -> usize {
        self.waiters + WAITER * thread
    }

    fn lock(&self, thread: usize) {
        if compare_exchange(self.mutex, FREE, HELD) == FREE {
            return;
        }
        while exchange(self.mutex, HELD_WITH_WAITERS) != FREE {
            self.wait(thread);
        }
    }

    fn unlock(&self, thread: usize) {
        if exchange(self.mutex, FREE) == HELD_WITH_WAITERS {
            self.wake(thread);
        }
    }

    /// futex(FUTEX_WAIT) if the mutex is still held with waiters.
    fn wait(&self, thread: usize) {
        work(self.syscall_ns);
        write(self.waiter(thread), 4, 0);
        add(self.waiters_count, 1);
        let mut queued = false;
        self.bucket.with(thread, || {
            if load(self.mutex, 4) != u64::from(HELD_WITH_WAITERS) {
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
            add(self.waiters_count, -1);
        }
    }

    /// futex(FUTEX_WAKE, 1).
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
                add(self.waiter(first) + TASK, 1);
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
            add(self.waiters_count, -1);
            unpark(self.waiter(sleeper));
        }
    }

    fn critical(&self, thread: usize) {
        self.lock(thread);
        increment(self.references, 8);
        work(self.mutex_critical_ns);
        self.unlock(thread);
    }
}

impl Program for ReadRandom {
    fn thread(&self, thread: usize) {
        work(f64::from(random(thread, 2 * self.think_ns as u32)));
        let mut noise = Noise::new(thread);
        loop {
            // Take references to the current tables, search them, drop the references.
            self.critical(thread);
            work(self.think_ns / 2.0 + f64::from(random(thread, self.think_ns as u32)));
            self.critical(thread);
            operation_done(thread);
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![&self.bucket]
    }
}
