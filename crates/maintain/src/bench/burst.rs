//! Threads that contend for one lock for a fixed time.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::arena::Arena;
use super::lock::Lock;
use lockworks_machine::affinity;
use lockworks_torture::involuntary_switches;

/// The result of a burst: a time during which threads contended for a lock.
pub struct Burst {
    /// Acquisitions in millions a second.
    pub million_per_second: f64,
    /// The fairness factor: the busier half's share of all acquisitions. 0.5 is fair, 1 is unfair.
    pub fairness: f64,
    /// The number of times that a thread was preempted.
    pub preemptions: u64,
}

/// Lets `threads` threads contend for the lock. Thread i runs on `cpus[i]`, if `cpus` is that long.
///
/// # Errors
/// If the lock does not exclude.
pub fn run(lock: &'static Lock, threads: usize, cpus: &[usize], time: Duration) -> Result<Burst> {
    let allowed = affinity::allowed()?.len();
    let mut arena = Arena::new(lock, threads);
    let ready = AtomicUsize::new(0);
    let start = OnceLock::new();
    let work = |thread: usize| {
        let bound = cpus.get(thread).map_or(Ok(()), |&cpu| affinity::bind(cpu));
        if ready.fetch_add(1, Relaxed) + 1 == threads {
            start.get_or_init(Instant::now);
        }
        while start.get().is_none() {
            if threads > cpus.len() {
                std::thread::yield_now();
            }
        }
        let before = involuntary_switches().unwrap_or(0);
        // SAFETY: each thread makes this call once.
        let operations = unsafe { arena.contended(thread) };
        let switches = involuntary_switches().unwrap_or(0).saturating_sub(before);
        bound.map(|()| (operations, switches))
    };
    let (results, seconds) = std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        while start.get().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        std::thread::sleep(time);
        let end = Instant::now();
        let begin = *start.get().expect("all threads have begun");
        arena.stop().store(1, Relaxed);
        let results: io::Result<Vec<(u64, u64)>> = handles
            .into_iter()
            .map(|handle| handle.join().expect("a worker does not panic"))
            .collect();
        (results, end.duration_since(begin).as_secs_f64())
    });
    let results = results?;
    affinity::check(allowed)?;
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
    use lockworks_torture::peers::{Counters, Order};

    unsafe extern "C" fn init(_state: *mut c_void) {}
    unsafe extern "C" fn pure(_state: *mut c_void, _thread: *mut c_void, _n: u64) {}
    unsafe extern "C" fn counted(
        _state: *mut c_void,
        _thread: *mut c_void,
        _counters: *mut Counters,
        _n: u64,
    ) {
    }
    /// Claims one acquisition and leaves the counters alone, as if the increments had been lost.
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
