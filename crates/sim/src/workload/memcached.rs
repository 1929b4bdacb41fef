//! memcached under memtier, as many sets as gets, all items of one size. A set allocates an item,
//! links it in place of the old one, and frees that; the mutexes that all sets share are these.

use super::futex::Mutex;
use super::{
    Noise, Program, Setup, SimLock, Workload, increment, one_in, operation_done, random, work,
};

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let critical_ns = workload.constant("mutex_critical_ns");
    let mut shared = |name, critical_ns| Shared {
        mutex: Mutex::new(workload, setup),
        data: setup.allocate(name, 64),
        critical_ns,
    };
    Box::new(Serve {
        statistics: shared("statistics", 0.0),
        versions: shared("versions", 0.0),
        free: shared("free items", critical_ns),
        recent: shared("recently used items", critical_ns),
        request_ns: workload.constant("request_ns"),
    })
}

/// A line of data with its mutex.
struct Shared {
    mutex: Mutex,
    data: usize,
    /// What is done besides changing that line.
    critical_ns: f64,
}

impl Shared {
    fn change(&self, thread: usize) {
        self.mutex.with(thread, || {
            increment(self.data, 8);
            work(self.critical_ns);
        });
    }
}

struct Serve {
    statistics: Shared,
    versions: Shared,
    free: Shared,
    recent: Shared,
    request_ns: f64,
}

impl Serve {
    fn set(&self, thread: usize) {
        self.free.change(thread);
        // Unlink the old item.
        self.statistics.change(thread);
        self.recent.change(thread);
        // Link the new one.
        self.statistics.change(thread);
        self.versions.change(thread);
        self.recent.change(thread);
        self.free.change(thread);
    }
}

impl Program for Serve {
    fn thread(&self, thread: usize) {
        work(f64::from(random(thread, self.request_ns as u32)));
        let mut noise = Noise::new(thread);
        loop {
            // Receive, look up, answer; items have locks of their own.
            work(self.request_ns / 2.0 + f64::from(random(thread, self.request_ns as u32)));
            if one_in(thread, 2) {
                self.set(thread);
            }
            operation_done(thread);
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        [&self.statistics, &self.versions, &self.free, &self.recent]
            .map(|shared| shared.mutex.bucket())
            .to_vec()
    }
}
