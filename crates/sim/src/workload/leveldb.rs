//! leveldb readrandom: a Get takes the database's mutex twice, and searches without it.

use super::futex::Mutex;
use super::{Noise, Program, Setup, SimLock, Workload, increment, operation_done, random, work};

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let mutex_critical_ns = workload.constant("mutex_critical_ns");
    Box::new(ReadRandom {
        mutex: Mutex::new(workload, setup),
        references: setup.allocate("references", 64),
        mutex_critical_ns,
        think_ns: workload.constant("alone_ns") - 2.0 * mutex_critical_ns,
    })
}

struct ReadRandom {
    mutex: Mutex,
    references: usize,
    mutex_critical_ns: f64,
    think_ns: f64,
}

impl ReadRandom {
    fn critical(&self, thread: usize) {
        self.mutex.with(thread, || {
            increment(self.references, 8);
            work(self.mutex_critical_ns);
        });
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
        vec![self.mutex.bucket()]
    }
}
