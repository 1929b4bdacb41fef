//! A parallel kernel build: one task on each virtual CPU, all alike. They compute, take kernel locks
//! that they seldom meet on and one that all of them take, and sleep now and then.

use super::{
    Noise, Program, Setup, SimLock, Workload, increment, load, one_in, operation_done, random,
    sleep, work,
};

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let constant = |key| workload.constant(key);
    let acquisitions = constant("cold_acquisitions") as u32;
    let stretches = f64::from(acquisitions + 1);
    let period_ns = 1e3 * constant("hot_period_us");
    let critical_ns = constant("hot_critical_ns");
    let cold_critical_ns = constant("cold_critical_ns");
    let in_locks_ns = critical_ns + f64::from(acquisitions) * cold_critical_ns;
    let mut shared = |name| {
        let line = setup.allocate(name, 128);
        let lock = setup.lock_at(line);
        Shared {
            data: lock.behind(16),
            lock,
        }
    };
    Box::new(KernelBuild {
        hot: shared("hot lock"),
        cold: (0..constant("cold_locks").max(1.0) as usize)
            .map(|_| shared("cold lock"))
            .collect(),
        acquisitions,
        think_ns: (period_ns - in_locks_ns).max(0.0) / stretches,
        critical_ns,
        cold_critical_ns,
        stretches_to_sleep: (1e3 * constant("sleep_period_us") / period_ns).max(1.0) as u32,
        sleep_ns: 1e3 * constant("sleep_us"),
    })
}

/// A lock, and what it protects: on its own line, as in most structures of the kernel, and on the
/// next.
struct Shared {
    lock: SimLock,
    data: usize,
}

impl Shared {
    fn change(&self, thread: usize, nanoseconds: f64) {
        self.lock.with(thread, || {
            load(self.data, 8);
            work(nanoseconds / 2.0);
            load(self.data, 8);
            increment(self.data + 64, 8);
            work(nanoseconds / 2.0);
            increment(self.data, 8);
        });
    }
}

struct KernelBuild {
    hot: Shared,
    cold: Vec<Shared>,
    /// Of cold locks, for one of the hot lock.
    acquisitions: u32,
    /// Work before each acquisition.
    think_ns: f64,
    critical_ns: f64,
    cold_critical_ns: f64,
    stretches_to_sleep: u32,
    sleep_ns: f64,
}

impl KernelBuild {
    /// Up to twice the mean.
    fn think(&self, thread: usize) {
        work(2.0 * self.think_ns * f64::from(random(thread, 1024)) / 1023.0);
    }
}

impl Program for KernelBuild {
    fn thread(&self, thread: usize) {
        let mut noise = Noise::new(thread);
        loop {
            for _ in 0..self.acquisitions {
                self.think(thread);
                let cold = random(thread, self.cold.len() as u32) as usize;
                self.cold[cold].change(thread, self.cold_critical_ns);
            }
            self.think(thread);
            self.hot.change(thread, self.critical_ns);
            operation_done(thread);
            if self.sleep_ns > 0.0 && one_in(thread, self.stretches_to_sleep) {
                sleep(self.sleep_ns);
            }
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        let all = [&self.hot].into_iter().chain(&self.cold);
        all.map(|shared| &shared.lock).collect()
    }
}
