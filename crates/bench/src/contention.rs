//! Threads that contend for one lock for a fixed time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::arena::Arena;
use crate::host;
use crate::lock::Lock;

/// What threads did with a lock for a while.
pub struct Burst {
    /// Acquisitions in millions a second.
    pub million_per_second: f64,
    /// Fairness factor: what the busier half of the threads did, of all. 0.5 is fair, 1 is not.
    pub fairness: f64,
    /// How often a thread had to give way to another process or thread.
    pub preemptions: i64,
}

/// Lets `threads` threads contend; thread i stays on `cpus[i]`, if there is such a one.
pub fn run(lock: &'static Lock, threads: usize, cpus: &[usize], time: Duration) -> Result<Burst> {
    let mut arena = Arena::new(lock, threads);
    let ready = AtomicUsize::new(0);
    let start = OnceLock::new();
    let work = |thread: usize| {
        if let Some(&cpu) = cpus.get(thread) {
            host::pin(cpu)?;
        }
        if ready.fetch_add(1, Relaxed) + 1 == threads {
            start.get_or_init(Instant::now);
        }
        while start.get().is_none() {
            if threads > cpus.len() {
                std::thread::yield_now();
            }
        }
        let before = host::preemptions();
        // SAFETY: each thread calls this once.
        let operations = unsafe { arena.contended(thread) };
        Ok((operations, host::preemptions() - before))
    };
    let (results, seconds) = std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        // A thread that could not be pinned never gets ready.
        while start.get().is_none() && !handles.iter().any(|handle| handle.is_finished()) {
            std::thread::sleep(Duration::from_micros(50));
        }
        std::thread::sleep(time);
        let end = Instant::now();
        let begin = *start.get_or_init(|| end);
        arena.stop().store(1, Relaxed);
        let results: Result<Vec<(u64, i64)>> = handles
            .into_iter()
            .map(|handle| handle.join().expect("a worker does not panic"))
            .collect();
        (results, end.duration_since(begin).as_secs_f64())
    });
    let results = results?;
    let operations: Vec<u64> = results.iter().map(|result| result.0).collect();
    let total: u64 = operations.iter().sum();
    let counters = arena.counters();
    ensure!(
        counters == [total, total],
        "{} does not exclude: {total} acquisitions by {threads} threads left the counters at {} and {}",
        lock.name(),
        counters[0],
        counters[1]
    );
    Ok(Burst {
        million_per_second: total as f64 / seconds / 1e6,
        fairness: lockworks::fairness(&operations).unwrap_or(0.5),
        preemptions: results.iter().map(|result| result.1).sum(),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;
    use lockworks_peers::{Counters, Order};

    unsafe extern "C" fn init(_state: *mut c_void) {}
    unsafe extern "C" fn pure(_state: *mut c_void, _thread: *mut c_void, _n: u64) {}
    unsafe extern "C" fn counted(
        _state: *mut c_void,
        _thread: *mut c_void,
        _counters: *mut Counters,
        _n: u64,
    ) {
    }
    /// As if its only increment had been overwritten by another thread.
    unsafe extern "C" fn contended(
        _state: *mut c_void,
        _thread: *mut c_void,
        _counters: *mut Counters,
        _stop: *const u32,
    ) -> u64 {
        1
    }

    static LOSING: Lock = Lock {
        name: c"losing".as_ptr(),
        origin: c"test".as_ptr(),
        order: Order::Unfair,
        state_size: 1,
        thread_size: 1,
        init,
        pure,
        counted,
        contended,
    };

    #[test]
    fn lost_increments_are_found() {
        let error = run(&LOSING, 2, &[], Duration::ZERO)
            .err()
            .expect("an error");
        let text = error.to_string();
        assert!(
            text.contains("losing does not exclude: 2 acquisitions"),
            "{text}"
        );
    }
}
