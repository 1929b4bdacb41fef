//! The timed loops. Each runs on new threads, which are pinned to the measured CPUs.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;
use rand::SeedableRng;
use rand::seq::SliceRandom;

use crate::{Error, affinity};

const PAGE: usize = 4096;
const LINE: usize = 64;
/// The most rounds of a measurement. Their median counts.
const ROUNDS: usize = 15;
const ROUND_TRIPS: usize = 1000;
/// The time after which a measurement makes no further rounds.
const ENOUGH_TIME: Duration = Duration::from_millis(300);
const LOADS: usize = 100_000;
const ATOMICS: usize = 100_000;
const PAUSES: usize = 10_000;
const CALLS: usize = 1000;
const WAKE_UPS: usize = 300;
/// A thread that sleeps for so long has left its CPU, but the CPU is not in a deep sleep state. Waiters of
/// locks sleep for such times.
const UNTIL_ASLEEP: Duration = Duration::from_micros(10);

/// Zeroed memory that no thread has touched. The system takes it from the NUMA node of the thread
/// that first touches it.
struct Memory {
    start: NonNull<c_void>,
    bytes: NonZeroUsize,
}

impl Memory {
    fn new(bytes: usize) -> Result<Memory, Error> {
        let bytes = NonZeroUsize::new(bytes.next_multiple_of(PAGE)).unwrap_or(NonZeroUsize::MIN);
        let (protection, flags) = (
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_PRIVATE,
        );
        // SAFETY: the kernel chooses the place of an anonymous mapping, so nothing is mapped over.
        let start = unsafe { mmap_anonymous(None, bytes, protection, flags) }
            .map_err(|e| Error::Measure(format!("cannot map {bytes} bytes: {e}")))?;
        // Huge pages cause fewer TLB misses in the loops. Without them the misses add to the latency.
        // SAFETY: the range was mapped just now; the advice does not change what it holds.
        let _ = unsafe { madvise(start, bytes.get(), MmapAdvise::MADV_HUGEPAGE) };
        Ok(Memory { start, bytes })
    }

    fn words(&self) -> &[AtomicUsize] {
        let words = self.bytes.get() / size_of::<AtomicUsize>();
        // SAFETY: the mapping is aligned to a page, zeroed and as long as `self`, which is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; every borrow of it has ended.
        let _ = unsafe { munmap(self.start, self.bytes.get()) };
    }
}

fn pin(cpu: usize) -> Result<(), Error> {
    affinity::bind(cpu).map_err(|e| Error::Measure(e.to_string()))
}

fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        scope
            .spawn(move || pin(cpu).and_then(|()| work()))
            .join()
            .expect("the loops do not panic")
    })
}

/// Calls `round` up to [`ROUNDS`] times and returns the median of nanoseconds per operation.
fn median_round(operations: usize, mut round: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut times = Vec::with_capacity(ROUNDS);
    while times.is_empty() || (times.len() < ROUNDS && begin.elapsed() < ENOUGH_TIME) {
        let start = Instant::now();
        round();
        times.push(start.elapsed().as_nanos() as f64 / operations as f64);
    }
    super::median(&mut times)
}

/// The thread whose turn it is in a ping-pong measurement.
const NOBODY: usize = 0;
const LEADER: usize = 1;
const FOLLOWER: usize = 2;
const OVER: usize = 3;

/// Half the time of a round trip between two CPUs that move a line with compare-and-swap. The line's
/// memory is on the node of `a`.
pub(super) fn ping_pong(a: usize, b: usize) -> Result<f64, Error> {
    on_cpu(a, || {
        let memory = Memory::new(PAGE)?;
        let turn = &memory.words()[0];
        turn.store(NOBODY, Relaxed);
        thread::scope(|scope| {
            let follower = scope.spawn(|| {
                pin(b)?;
                turn.store(LEADER, Release);
                while turn.compare_exchange(FOLLOWER, LEADER, AcqRel, Acquire) != Err(OVER) {}
                Ok(())
            });
            while turn.load(Acquire) == NOBODY && !follower.is_finished() {
                thread::yield_now();
            }
            if turn.load(Acquire) == NOBODY {
                return follower
                    .join()
                    .expect("the loops do not panic")
                    .map(|()| 0.0);
            }
            let pass_to = |next| {
                while turn
                    .compare_exchange(LEADER, next, AcqRel, Acquire)
                    .is_err()
                {}
            };
            let ns = median_round(2 * ROUND_TRIPS, || {
                for _ in 0..ROUND_TRIPS {
                    pass_to(FOLLOWER);
                }
            });
            pass_to(OVER);
            Ok(ns)
        })
    })
}

/// The time of an atomic read-modify-write on a line in the CPU's own L1.
pub(super) fn atomic(cpu: usize) -> Result<f64, Error> {
    on_cpu(cpu, || {
        let counter = AtomicUsize::new(0);
        let counter = std::hint::black_box(&counter);
        Ok(median_round(ATOMICS, || {
            for _ in 0..ATOMICS {
                counter.fetch_add(1, AcqRel);
            }
        }))
    })
}

/// The time of a pause instruction.
pub(super) fn pause(cpu: usize) -> Result<f64, Error> {
    on_cpu(cpu, || {
        Ok(median_round(PAUSES, || {
            for _ in 0..PAUSES {
                std::hint::spin_loop();
            }
        }))
    })
}

/// The times of a futex call to wait that returns at once, since the value is another, and of one to
/// wake while nobody sleeps.
pub(super) fn futex(cpu: usize) -> Result<[f64; 2], Error> {
    on_cpu(cpu, || {
        let word = AtomicUsize::new(0);
        let time = |operation: i32| {
            median_round(CALLS, || {
                for _ in 0..CALLS {
                    let no_timeout = std::ptr::null::<libc::timespec>();
                    // SAFETY: the word lives. The call to wait expects 1 but finds 0, so it returns.
                    unsafe {
                        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1, no_timeout)
                    };
                }
            })
        };
        Ok([libc::FUTEX_WAIT, libc::FUTEX_WAKE]
            .map(|call| call | libc::FUTEX_PRIVATE_FLAG)
            .map(time))
    })
}

/// The time of a call by which `a` wakes a thread that sleeps on `b`, and the time from the call
/// until that thread runs. The medians of many wake-ups; before each, `b` has been idle for a while.
pub(super) fn wake_up(a: usize, b: usize) -> Result<[f64; 2], Error> {
    let begin = Instant::now();
    let since = |time: Instant| time.duration_since(begin).as_nanos() as usize;
    // When the sleeper began to run; 0 while it sleeps.
    let ran_at = AtomicUsize::new(0);
    let (mut costs, mut latencies) = (Vec::new(), Vec::new());
    on_cpu(a, || {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                pin(b)?;
                for _ in 0..WAKE_UPS {
                    thread::park();
                    ran_at.store(since(Instant::now()), Release);
                }
                Ok(())
            });
            while !sleeper.is_finished() {
                let asleep = Instant::now() + UNTIL_ASLEEP;
                while Instant::now() < asleep {
                    std::hint::spin_loop();
                }
                let called = Instant::now();
                sleeper.thread().unpark();
                costs.push(called.elapsed().as_nanos() as f64);
                let mut ran = 0;
                while ran == 0 && !sleeper.is_finished() {
                    std::hint::spin_loop();
                    ran = ran_at.swap(0, Acquire);
                }
                if ran > 0 {
                    latencies.push(ran.saturating_sub(since(called)) as f64);
                }
            }
            sleeper.join().expect("the loops do not panic")
        })
    })?;
    Ok([&mut costs, &mut latencies].map(|times| super::median(times)))
}

/// The time of a call that wakes a thread of the same CPU, which runs only later. So no CPU is
/// interrupted. The median of many wake-ups.
pub(super) fn wake_up_without_interrupt(cpu: usize) -> Result<f64, Error> {
    let wakes = AtomicUsize::new(0);
    let mut costs = Vec::new();
    on_cpu(cpu, || {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                pin(cpu)?;
                never_preempt()?;
                for _ in 0..WAKE_UPS {
                    thread::park();
                    wakes.fetch_add(1, Release);
                }
                Ok(())
            });
            // Until it sleeps.
            thread::sleep(Duration::from_millis(1));
            while !sleeper.is_finished() {
                let before = wakes.load(Acquire);
                let called = Instant::now();
                sleeper.thread().unpark();
                costs.push(called.elapsed().as_nanos() as f64);
                while wakes.load(Acquire) == before && !sleeper.is_finished() {
                    thread::yield_now();
                }
                thread::yield_now();
            }
            sleeper.join().expect("the loops do not panic")
        })
    })?;
    Ok(super::median(&mut costs))
}

/// Makes this thread one that does not preempt others when it wakes.
fn never_preempt() -> Result<(), Error> {
    // SAFETY: a struct of integers; all zero is the only priority of this policy.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is this thread, and the parameters live.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(Error::Measure(format!(
            "cannot choose a scheduling policy: {}",
            std::io::Error::last_os_error()
        ))),
    }
}

/// The time of a switch from one thread to another on the same CPU, without that of the call.
pub(super) fn switch(cpu: usize) -> Result<f64, Error> {
    let alone = on_cpu(cpu, || {
        Ok(median_round(CALLS, || {
            (0..CALLS).for_each(|_| thread::yield_now())
        }))
    })?;
    let (last, over) = (AtomicUsize::new(NOBODY), AtomicUsize::new(0));
    let switches = |me: usize, until: &dyn Fn() -> bool| {
        let mut switches = 0;
        while !until() {
            if last.swap(me, Relaxed) != me {
                switches += 1;
            }
            thread::yield_now();
        }
        switches
    };
    on_cpu(cpu, || {
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                pin(cpu)?;
                Ok(switches(FOLLOWER, &|| over.load(Relaxed) > 0))
            });
            let begin = Instant::now();
            let own = switches(LEADER, &|| begin.elapsed() >= ENOUGH_TIME);
            over.store(1, Relaxed);
            let time = begin.elapsed().as_nanos() as f64;
            let all = own + other.join().expect("the loops do not panic")?;
            Ok((time / f64::from(all.max(1)) - alone).max(1.0))
        })
    })
}

/// The time between two timer interrupts, in microseconds.
pub(super) fn tick_us() -> Result<f64, Error> {
    let resolution = ClockId::CLOCK_MONOTONIC_COARSE
        .res()
        .map_err(|e| Error::Measure(format!("cannot read the resolution of a clock: {e}")))?;
    Ok(resolution.num_nanoseconds() as f64 / 1000.0)
}

/// The time of a dependent load by `cpu` from `bytes` of memory on the node of `home`.
pub(super) fn load(cpu: usize, home: usize, bytes: usize) -> Result<f64, Error> {
    let memory = Memory::new(bytes)?;
    let words = memory.words();
    const STEP: usize = LINE / size_of::<AtomicUsize>();
    on_cpu(home, || {
        // One cycle through all lines, in an order that no prefetcher guesses.
        let mut lines: Vec<usize> = (0..words.len()).step_by(STEP).collect();
        lines.shuffle(&mut rand_pcg::Pcg64::seed_from_u64(1));
        let next = lines.iter().cycle().skip(1);
        for (from, to) in lines.iter().zip(next) {
            words[*from].store(*to, Relaxed);
        }
        Ok(())
    })?;
    on_cpu(cpu, || {
        let mut at = 0;
        let mut run = |loads| {
            for _ in 0..loads {
                at = words[at].load(Relaxed);
            }
            std::hint::black_box(at);
        };
        // Small sets have to be in the cache before the first round.
        run((words.len() / STEP).min(LOADS));
        Ok(median_round(LOADS, || run(LOADS)))
    })
}
