//! The actions of a simulated thread.

use lockworks_measurements::Activity;
use rand::Rng;

use crate::engine::{Kind, Op};
use crate::hooks::{Context, operate, with};

/// Computes for a time.
pub(crate) fn work(nanoseconds: f64) {
    with(|c| c.engine.work((nanoseconds * 1000.0) as u64));
}

/// Computes for a time. The time is `slowdown` times as long if the core's other hardware thread
/// works at its beginning.
pub(crate) fn work_on_shared_core(nanoseconds: f64, slowdown: f64) {
    let shares = with(|c| c.engine.shares_core());
    work(nanoseconds * if shares { slowdown } else { 1.0 });
}

/// Loads data that decides what the thread does next, so the thread waits for the data.
pub(crate) fn load(address: usize, size: u32) -> u64 {
    operate(Op::new(Kind::Load, address, size))
}

/// Loads plain data, without waiting for it.
pub(crate) fn read(address: usize, size: u32) -> u64 {
    operate(Op::new(Kind::Touch, address, size))
}

/// Stores plain data.
pub(crate) fn write(address: usize, size: u32, value: u64) {
    operate(Op {
        a: value,
        ..Op::new(Kind::Store, address, size)
    });
}

/// Parks the thread unless the word differs from `value`.
pub(crate) fn park(address: usize, value: u32) {
    with(|c| c.engine.note(Activity::Sleeps));
    operate(Op {
        a: value.into(),
        ..Op::new(Kind::Park, address, 4)
    });
    with(|c| c.engine.note(Activity::Wakes));
}

/// Runs `call` in the kernel, where a thread that shares its CPU keeps it unless the thread sleeps.
/// If another thread is due to run, it gets the CPU when the call ends.
pub(crate) fn system_call(call: impl FnOnce()) {
    // Computed time passes with the next operation: that before the call outside of the kernel, and that
    // of the call in it.
    let pass = || operate(Op::new(Kind::Fence, 0, 0));
    pass();
    with(|c| c.engine.enter_kernel());
    call();
    pass();
    if with(|c| c.engine.leave_kernel()) {
        sleep(0.0);
    }
}

/// Returns from a system call that is not simulated as one. A thread that is marked by lazy preemption
/// gives way there.
pub(crate) fn return_from_call() {
    if with(|c| c.engine.gives_way_after_call()) {
        sleep(0.0);
    }
}

/// Sleeps for a time.
pub(crate) fn sleep(nanoseconds: f64) {
    operate(Op {
        a: (nanoseconds * 1000.0) as u64,
        ..Op::new(Kind::Sleep, 0, 0)
    });
}

/// Wakes the thread that is parked at `address`. That thread then sees all that this thread has
/// written.
pub(crate) fn unpark(address: usize) {
    operate(Op::new(Kind::Fence, 0, 0));
    operate(Op {
        a: 1,
        ..Op::new(Kind::Unpark, address, 4)
    });
    return_from_call();
}

/// Exchanges the value atomically. Returns the old value.
pub(crate) fn exchange(address: usize, value: u32) -> u32 {
    operate(Op {
        a: value.into(),
        ..Op::new(Kind::Exchange, address, 4)
    }) as u32
}

/// Writes `value` atomically if the old value is `expected`. Returns the old value.
pub(crate) fn compare_exchange(address: usize, expected: u32, value: u32) -> u32 {
    operate(Op {
        a: expected.into(),
        b: value.into(),
        ..Op::new(Kind::CompareExchange, address, 4)
    }) as u32
}

/// Adds atomically.
pub(crate) fn atomic_add(address: usize, value: i32) {
    operate(Op {
        a: u64::from(value as u32),
        ..Op::new(Kind::Add, address, 4)
    });
}

/// Adds one to plain data.
pub(crate) fn increment(address: usize, size: u32) {
    let value = read(address, size);
    write(address, size, value + 1);
}

/// Returns true once in `n` calls on average, at random.
pub(crate) fn one_in(thread: usize, n: u32) -> bool {
    random(thread, n) == 0
}

/// Returns a random number from 0 to `n` - 1.
pub(crate) fn random(thread: usize, n: u32) -> u32 {
    with(|c| ((u64::from(c.generators[thread].next_u32()) * u64::from(n)) >> 32) as u32)
}

/// The timer ticks of a thread. A tick delays the thread, and so changes the order in which threads
/// queue for a lock, as on any real machine. Without ticks, a FIFO lock would serve its threads in
/// one fixed order for ever. A tick during a wait for a lock does not delay the thread.
pub(crate) struct TimerTicks {
    thread: usize,
    /// The time of the next tick. This clock stands still while the thread waits for a lock.
    next: u64,
}

impl TimerTicks {
    pub(crate) fn new(thread: usize) -> Self {
        let period = with(|c| c.engine.model().tick_period);
        let next = period / 1024 * u64::from(random(thread, 1024));
        Self { thread, next }
    }

    /// Takes a tick if one is due. The thread calls this once in each pass of its loop.
    pub(crate) fn pass(&mut self) {
        let now = with(|c| c.engine.time() - c.waited[self.thread]);
        if now >= self.next {
            let model = |c: &mut Context| (c.engine.model().tick_period, c.engine.model().tick_ns);
            let (period, tick) = with(model);
            work(f64::from(tick / 2 + random(self.thread, tick.max(1))));
            self.next = now + period.max(1);
        }
    }
}

/// Counts a completed operation of the workload, unless the run is still warming up.
pub(crate) fn operation_done(thread: usize) {
    with(|c| {
        if c.engine.time() >= c.warm_up {
            c.operations[thread] += 1;
        }
    });
}

/// Returns the number of operations that all threads have issued to the engine so far.
pub(crate) fn operations_so_far() -> u64 {
    with(|c| c.engine.counts().operations)
}

/// Lets other CPUs run up to this thread's time, for a thread that does not access shared memory.
pub(crate) fn let_others_run() {
    operate(Op::new(Kind::Fence, 0, 0));
}
