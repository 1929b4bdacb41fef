//! leveldb readrandom: a Get takes the database's mutex twice, and searches without it. The lock
//! under test is the spinlock of the mutex's futex bucket, or the mutex itself.

use super::futex::Mutex;
use super::{Noise, Program, Setup, SimLock, Workload, increment, operation_done, random, work};

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    ReadRandom::build(
        Database::Futex(Mutex::new(workload, setup)),
        workload,
        setup,
    )
}

pub(super) fn build_mutex(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    ReadRandom::build(Database::Lock(setup.lock("mutex")), workload, setup)
}

/// What protects it.
enum Database {
    Futex(Mutex),
    Lock(SimLock),
}

struct ReadRandom {
    mutex: Database,
    references: usize,
    mutex_critical_ns: f64,
    think_ns: f64,
    sleep_ns: f64,
}

impl ReadRandom {
    fn build(mutex: Database, workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
        let mutex_critical_ns = workload.constant("mutex_critical_ns");
        Box::new(Self {
            mutex,
            references: setup.allocate("references", 64),
            mutex_critical_ns,
            think_ns: workload.constant("alone_ns") - 2.0 * mutex_critical_ns,
            sleep_ns: workload.constant("syscall_ns") + workload.constant("bucket_critical_ns"),
        })
    }

    fn critical(&self, thread: usize) {
        let critical = || {
            increment(self.references, 8);
            work(self.mutex_critical_ns);
        };
        match &self.mutex {
            Database::Futex(mutex) => mutex.with(thread, critical),
            Database::Lock(mutex) => mutex.with(thread, critical),
        }
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
        match &self.mutex {
            Database::Futex(mutex) => vec![mutex.bucket()],
            Database::Lock(mutex) => vec![mutex],
        }
    }

    fn sleep_ns(&self) -> f64 {
        self.sleep_ns
    }
}
