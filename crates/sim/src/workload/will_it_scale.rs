//! will-it-scale's open1_threads and lock2_threads: the threads of one process meet on the spinlock
//! of their table of open files.

use super::{
    Noise, Program, Setup, SimLock, Workload, increment, load, operation_done, random, work, write,
};

/// `files_struct` from its lock on, and the bitmaps and array of its table.
struct Files {
    lock: SimLock,
    /// On the line of the lock.
    next_fd: usize,
    open_fds: usize,
    close_on_exec: usize,
    full_fds: usize,
    /// Eight bytes for each descriptor; each thread has one.
    array: usize,
}

impl Files {
    fn new(setup: &mut Setup) -> Self {
        let line = setup.allocate("files_struct lock", 64);
        let lock = setup.lock_at(line);
        Self {
            next_fd: lock.behind(8),
            lock,
            open_fds: setup.allocate("open_fds", 64),
            close_on_exec: setup.allocate("close_on_exec", 64),
            full_fds: setup.allocate("full_fds", 64),
            array: setup.allocate("file descriptors", 8 * setup.threads),
        }
    }

    /// Where the word with this thread's bit of a bitmap is.
    fn word(bitmap: usize, thread: usize) -> usize {
        bitmap + thread / 64 * 8
    }
}

pub(super) fn build_open1(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let critical_ns = workload.constant("critical_ns");
    Box::new(Open1 {
        files: Files::new(setup),
        critical_ns,
        think_ns: (workload.constant("alone_ns") / 2.0 - critical_ns).max(0.0),
    })
}

struct Open1 {
    files: Files,
    critical_ns: f64,
    /// Half of an iteration's work outside of the lock.
    think_ns: f64,
}

impl Program for Open1 {
    fn thread(&self, thread: usize) {
        let files = &self.files;
        work(f64::from(random(thread, 2 * self.think_ns as u32)));
        let mut noise = Noise::new(thread);
        loop {
            // open: find a free descriptor, from next_fd on.
            files.lock.with(thread, || {
                load(files.next_fd, 4);
                load(files.full_fds, 8);
                load(Files::word(files.open_fds, thread), 8);
                work(self.critical_ns);
                write(files.next_fd, 4, 0);
                increment(Files::word(files.open_fds, thread), 8);
                increment(Files::word(files.close_on_exec, thread), 8);
            });
            work(self.think_ns);
            // close: clear the entry, then its bits.
            files.lock.with(thread, || {
                load(files.array + 8 * thread, 8);
                write(files.array + 8 * thread, 8, 0);
                increment(Files::word(files.open_fds, thread), 8);
                increment(files.full_fds, 8);
                load(files.next_fd, 4);
                work(self.critical_ns);
                write(files.next_fd, 4, 0);
            });
            work(self.think_ns);
            noise.pass();
            operation_done(thread);
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![&self.files.lock]
    }
}

pub(super) fn build_lock2(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let critical_ns = workload.constant("critical_ns");
    Box::new(Lock2 {
        files: Files::new(setup),
        critical_ns,
        think_ns: (workload.constant("alone_ns") - critical_ns) / 2.0,
    })
}

struct Lock2 {
    files: Files,
    critical_ns: f64,
    think_ns: f64,
}

impl Program for Lock2 {
    fn thread(&self, thread: usize) {
        let files = &self.files;
        work(f64::from(random(thread, 2 * self.think_ns as u32)));
        let mut noise = Noise::new(thread);
        loop {
            // lock: has the descriptor been closed meanwhile?
            files.lock.with(thread, || {
                load(files.array + 8 * thread, 8);
                work(self.critical_ns);
            });
            operation_done(thread);
            work(self.think_ns);
            // unlock: nothing shared
            operation_done(thread);
            work(self.think_ns);
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![&self.files.lock]
    }
}
