//! AIM7 high_systime: more tasks than CPUs, one for each user. Each does one job after the other,
//! which is processor time and system calls that take one mutex of the kernel.

use super::{
    Noise, Program, Setup, SimLock, Workload, increment, load, operation_done, random, system_call,
    work_on_shared_core,
};

const LINE: usize = 64;

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    let constant = |key| workload.constant(key);
    let critical_ns = constant("critical_ns");
    let stretch_ns = 1e3 * constant("job_work_us") / constant("job_acquisitions");
    let lines = constant("critical_lines").max(1.0) as usize;
    Box::new(Aim7 {
        mutex: setup.lock("mutex"),
        data: (0..lines)
            .map(|_| setup.allocate("what the mutex protects", LINE))
            .collect(),
        think_ns: (stretch_ns - critical_ns).max(0.0),
        critical_ns,
        shared_core_slowdown: constant("shared_core_slowdown"),
        idle_ns: 1e6 * constant("idle_ms") / setup.threads as f64 / constant("job_acquisitions"),
    })
}

struct Aim7 {
    mutex: SimLock,
    data: Vec<usize>,
    think_ns: f64,
    critical_ns: f64,
    shared_core_slowdown: f64,
    idle_ns: f64,
}

impl Aim7 {
    fn work(&self, nanoseconds: f64) {
        work_on_shared_core(nanoseconds, self.shared_core_slowdown);
    }

    fn change(&self, thread: usize) {
        self.mutex.with(thread, || {
            for &line in &self.data {
                load(line, 8);
                self.work(self.critical_ns / self.data.len() as f64);
                increment(line, 8);
            }
        });
    }
}

impl Program for Aim7 {
    fn thread(&self, thread: usize) {
        let mut noise = Noise::new(thread);
        loop {
            // Up to twice the mean.
            self.work(2.0 * self.think_ns * f64::from(random(thread, 1024)) / 1023.0);
            system_call(|| self.change(thread));
            operation_done(thread);
            noise.pass();
        }
    }

    fn rare_delay_ns(&self) -> f64 {
        self.idle_ns
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![&self.mutex]
    }
}
