//! nginx serving one small file: every request opens and closes it, so all workers meet on the
//! lockref of its directory entry.

use super::{
    Noise, Program, Setup, SimLock, SimLockref, Workload, add, operation_done, random, work,
};

/// Besides the references of open files: the directory cache's own.
const CACHED: u64 = 1;

pub(super) fn build(workload: &Workload, setup: &mut Setup) -> Box<dyn Program> {
    Box::new(Serve {
        entry: setup.lockref("dentry", CACHED),
        page: setup.allocate("page", 64),
        request_ns: workload.constant("request_ns"),
        open_ns: workload.constant("open_ns"),
    })
}

struct Serve {
    entry: SimLockref,
    /// Count of references of the file's page in the page cache.
    page: usize,
    request_ns: f64,
    open_ns: f64,
}

impl Serve {
    /// Half of a request's own work, give or take half.
    fn half(&self, thread: usize) {
        let half = self.request_ns / 2.0;
        work(half / 2.0 + f64::from(random(thread, half as u32)));
    }
}

impl Program for Serve {
    fn thread(&self, thread: usize) {
        work(f64::from(random(thread, self.request_ns as u32)));
        let mut noise = Noise::new(thread);
        loop {
            // Receive and parse.
            self.half(thread);
            // open: the path walk takes a reference, the file another, the walk's goes.
            self.entry.get(thread);
            work(self.open_ns);
            self.entry.get(thread);
            self.entry.put(thread);
            // Send: the socket has a reference to the page meanwhile.
            add(self.page, 1);
            self.half(thread);
            add(self.page, -1);
            // close
            self.entry.put(thread);
            operation_done(thread);
            noise.pass();
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![self.entry.lock()]
    }
}
