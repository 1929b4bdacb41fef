//! What the threads do with the lock held, and without it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::Rng;
use rand_pcg::Pcg32;
use serde::Serialize;

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Two shared counters, and --critical and --think
    Plain,
    /// The writers of Linux's locktorture, kernels from 6.5
    Locktorture,
    /// The writers of Linux's locktorture, kernels up to 6.4
    LocktortureOld,
}

/// A preset with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Which.
    pub preset: Preset,
    /// Nanoseconds of work with the lock held (plain).
    pub critical_ns: u64,
    /// Nanoseconds of work without the lock (plain).
    pub think_ns: u64,
}

const SHORT_DELAY: Duration = Duration::from_micros(2);
const LONG_DELAY: Duration = Duration::from_millis(100);

/// What a lock protects, on lines of its own.
///
/// All of it is plain data in spirit: read and written, never updated atomically, so that a lock
/// that does not exclude is found out. They are relaxed atomics only because a race on plain data
/// would be undefined, and the harness must survive the broken lock. They compile to the same plain
/// loads and stores.
#[repr(align(128))]
pub struct Protected {
    /// Thread that holds the lock, from 1; locktorture's `lock_is_write_held`.
    owner: AtomicU64,
    /// Acquisitions by all threads; the second of the two shared counters is `twin`.
    acquisitions: AtomicU64,
    twin: AtomicU64,
    /// Thread and node of the last acquisition, packed; locktorture's `last_lock_release`.
    last: AtomicU64,
    /// locktorture's writer statistics.
    writers: Box<[RecordLine]>,
}

/// Four writers' statistics share a line.
#[derive(Default)]
#[repr(align(64))]
struct RecordLine([Record; 4]);

/// A writer's acquisitions.
#[derive(Default)]
#[repr(align(16))]
struct Record(AtomicU64);

/// Where the lock came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handoff {
    /// Nobody has held it before.
    First,
    /// The same thread.
    Reacquired,
    /// Another thread, on this node.
    Local,
    /// Another thread, on another node.
    Remote,
}

fn increment(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl Protected {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            owner: AtomicU64::new(0),
            acquisitions: AtomicU64::new(0),
            twin: AtomicU64::new(0),
            last: AtomicU64::new(0),
            writers: (0..threads.div_ceil(4))
                .map(|_| RecordLine::default())
                .collect(),
        }
    }

    /// The lock has just been acquired by a thread that runs on `node`. Gives where it came from,
    /// and whether nobody else had it.
    pub fn enter(&self, thread: usize, node: u32) -> (Handoff, bool) {
        let alone = self.owner.load(Relaxed) == 0;
        self.owner.store(thread as u64 + 1, Relaxed);
        increment(&self.acquisitions);
        let me = (thread as u64 + 1) << 32 | u64::from(node);
        let last = self.last.load(Relaxed);
        let handoff = match last {
            0 => Handoff::First,
            _ if last >> 32 == me >> 32 => Handoff::Reacquired,
            _ if last as u32 == node => Handoff::Local,
            _ => Handoff::Remote,
        };
        self.last.store(me, Relaxed);
        (handoff, alone)
    }

    /// The lock is about to be released. Gives whether nobody else has acquired it meanwhile.
    pub fn leave(&self, thread: usize) -> bool {
        let alone = self.owner.load(Relaxed) == thread as u64 + 1;
        self.owner.store(0, Relaxed);
        alone
    }

    /// How many acquisitions have been counted. A lock that does not exclude loses some.
    pub fn acquisitions(&self) -> u64 {
        self.acquisitions.load(Relaxed)
    }
}

/// One thread's part in a workload.
pub struct Part {
    workload: Workload,
    critical: Busy,
    think: Busy,
    long_delay_odds: u64,
    short_delay_odds: u64,
    long_delay: Busy,
    short_delay: Busy,
    random: Pcg32,
    thread: usize,
}

impl Part {
    /// The part of one of `threads`; its delays are at random, by `seed`.
    pub fn new(workload: Workload, thread: usize, threads: usize, seed: u64) -> Self {
        let n = threads as u64;
        Self {
            workload,
            critical: Busy::nanoseconds(workload.critical_ns),
            think: Busy::nanoseconds(workload.think_ns),
            long_delay_odds: 200_000 * n,
            short_delay_odds: n * match workload.preset {
                Preset::LocktortureOld => 4,
                _ => 400,
            },
            long_delay: Busy::nanoseconds(LONG_DELAY.as_nanos() as u64),
            short_delay: Busy::nanoseconds(SHORT_DELAY.as_nanos() as u64),
            random: Pcg32::new(seed, thread as u64),
            thread,
        }
    }

    /// What is done without the lock.
    pub fn think(&self) {
        self.think.work();
    }

    /// What is done with the lock held.
    pub fn critical(&mut self, protected: &Protected) {
        match self.workload.preset {
            Preset::Plain => {
                increment(&protected.twin);
                self.critical.work();
            }
            Preset::Locktorture | Preset::LocktortureOld => {
                let line = &protected.writers[self.thread / 4];
                increment(&line.0[self.thread % 4].0);
                if self.one_in(self.long_delay_odds) {
                    self.long_delay.work();
                }
                if self.one_in(self.short_delay_odds) {
                    self.short_delay.work();
                }
            }
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        (u64::from(self.random.next_u32()) * n) >> 32 == 0
    }
}

/// Work that keeps a CPU busy for a known time, without touching memory that others use.
#[derive(Clone, Copy, Debug)]
struct Busy {
    rounds: u64,
}

impl Busy {
    fn nanoseconds(ns: u64) -> Self {
        Self {
            rounds: (ns as f64 * *ROUNDS_PER_NS) as u64,
        }
    }

    fn work(self) {
        for round in 0..self.rounds {
            std::hint::black_box(round);
        }
    }
}

/// The best of several timings, since any of them may be interrupted.
static ROUNDS_PER_NS: LazyLock<f64> = LazyLock::new(|| {
    const ROUNDS: u64 = 200_000;
    let time = || {
        let start = Instant::now();
        Busy { rounds: ROUNDS }.work();
        start.elapsed()
    };
    let best = (0..20).map(|_| time()).min().expect("20 timings");
    ROUNDS as f64 / best.as_nanos().max(1) as f64
});
