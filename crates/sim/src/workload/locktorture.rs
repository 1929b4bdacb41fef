//! locktorture's writers on a spinlock: one lock, little data, rare long delays.

use super::{
    Noise, Program, Setup, SimLock, increment, one_in, operation_done, random, read, work, write,
};

/// Which kernel's writer loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Up to Linux 6.4: a delay of 2 us with probability 1/(4 n).
    Old,
    /// From Linux 6.5: 1/(400 n).
    New,
}

/// Constants of the writer loop.
#[derive(Clone, Debug)]
pub struct Locktorture {
    /// Which loop.
    pub form: Form,
    /// Computing with the lock held: three draws, each a 64-bit division, and an indirect call.
    pub critical_ns: f64,
    /// Computing without the lock.
    pub think_ns: f64,
}

const SHORT_DELAY_NS: f64 = 2000.0;
const LONG_DELAY_NS: f64 = 100e6;
/// Threads start so far apart on average that the order in which they first queue is random.
const START_SPREAD_NS: u32 = 2000;
/// Bytes of a writer's counters; four writers share a line.
const RECORD: usize = 16;

impl Locktorture {
    pub(super) fn program(&self, setup: &mut Setup) -> Torture {
        let n = setup.threads as u32;
        Torture {
            lock: setup.lock("torture_spinlock"),
            statics: setup.allocate("lock_is_write_held", 64),
            records: setup.allocate("writer statistics", RECORD * setup.threads),
            critical_ns: self.critical_ns,
            think_ns: self.think_ns,
            threads: n,
            short_delay_odds: n * match self.form {
                Form::Old => 4,
                Form::New => 400,
            },
        }
    }

    /// The long delay: 100 ms with probability 1/(200000 n).
    pub(super) fn rare_delay_ns(&self, threads: usize) -> f64 {
        LONG_DELAY_NS / (200_000.0 * threads as f64)
    }
}

pub(super) struct Torture {
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
        let held = self.statics;
        work(f64::from(random(thread, self.threads * START_SPREAD_NS)));
        let mut noise = Noise::new(thread);
        loop {
            self.lock.with(thread, || {
                read(held, 1);
                write(held, 1, 1);
                increment(self.records + thread * RECORD, 8);
                work(self.critical_ns);
                if one_in(thread, self.short_delay_odds) {
                    work(SHORT_DELAY_NS);
                }
                write(held, 1, 0);
            });
            operation_done(thread);
            work(self.think_ns);
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![&self.lock]
    }
}
