//! locktorture's writers on a spinlock: one lock, little data, rare long delays.

use super::{
    Noise, Program, Setup, SimLock, Workload, increment, load, one_in, operation_done, random,
    read, work, write,
};

/// With the lock held: a draw for each kind of delay and for preemption.
const DRAWS: f64 = 3.0;
/// With the lock held: the delay and the unlock.
const INDIRECT_CALLS: f64 = 2.0;
/// With the lock held: from the slow path, the lock, its wrapper, three draws and the delay.
const RETURNS: f64 = 7.0;
const SHORT_DELAY_NS: f64 = 2000.0;
const LONG_DELAY_NS: f64 = 100e6;
/// A long delay comes once in so many times the number of writers.
const LONG_DELAY_ODDS: f64 = 200_000.0;
/// Threads start so far apart on average that the order in which they first queue is random.
const START_SPREAD_NS: u32 = 2000;
/// The flag of the statics, behind the context that holds the operations' pointer.
const HELD: usize = 48;
/// Bytes of a writer's counters; four writers share a line.
const RECORD: usize = 16;

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let threads = setup.threads as u32;
    Box::new(Torture {
        lock: setup.lock("torture_spinlock"),
        statics: setup.allocate("statics", 64),
        records: setup.allocate("writer statistics", RECORD * setup.threads),
        critical_ns: setup.cycles_ns(
            DRAWS * (workload.constant("draw_cycles") + workload.constant("division_cycles"))
                + INDIRECT_CALLS * workload.constant("indirect_call_cycles")
                + workload.constant("call_cycles"),
        ) + RETURNS * setup.machine.return_ns(),
        think_ns: setup.cycles_ns(workload.constant("think_cycles")),
        short_delay_odds: threads * (workload.constant("short_delay_odds") as u32).max(1),
        threads,
    })
}

struct Torture {
    lock: SimLock,
    statics: usize,
    records: usize,
    critical_ns: f64,
    think_ns: f64,
    short_delay_odds: u32,
    threads: u32,
}

impl Program for Torture {
    fn thread(&self, thread: usize) {
        work(f64::from(random(thread, self.threads * START_SPREAD_NS)));
        let mut noise = Noise::new(thread);
        loop {
            // The writers reach lock, delay and unlock through a pointer that lies on the line of
            // the statics, so each call waits for that line.
            load(self.statics, 8);
            self.lock.with(thread, || {
                read(self.statics + HELD, 1);
                write(self.statics + HELD, 1, 1);
                increment(self.records + thread * RECORD, 8);
                load(self.statics, 8);
                work(self.critical_ns);
                if one_in(thread, self.short_delay_odds) {
                    work(SHORT_DELAY_NS);
                }
                write(self.statics + HELD, 1, 0);
            });
            operation_done(thread);
            work(self.think_ns);
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![&self.lock]
    }

    fn rare_delay_ns(&self) -> f64 {
        LONG_DELAY_NS / (LONG_DELAY_ODDS * f64::from(self.threads))
    }
}
