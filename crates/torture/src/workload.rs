//! The work of the threads with the lock held and without it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::Rng;
use rand_pcg::Pcg32;
use serde::Serialize;

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Increment two shared counters; --critical and --think add work
    Plain,
    /// The writers of Linux's locktorture, kernels from 6.5
    LocktortureNew,
    /// The writers of Linux's locktorture, kernels up to 6.4
    LocktortureOld,
}

/// A preset with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The preset.
    pub preset: Preset,
    /// Nanoseconds of work with the lock held (plain).
    pub critical_ns: u64,
    /// Nanoseconds of work without the lock (plain).
    pub think_ns: u64,
    /// The share of acquisitions by readers, in percent (plain).
    pub readers: f64,
}

const SHORT_DELAY: Duration = Duration::from_micros(2);
/// The least time in nanoseconds for which a lock is said to be free: longer than a hand-over between
/// threads that run, shorter than a wake-up.
const LONG_FREE_NS: u64 = 1000;
const LONG_DELAY: Duration = Duration::from_millis(100);

/// The data that a lock protects, on cache lines of its own.
///
/// It is used like plain data: read and written, never updated atomically, so that a lock that does not
/// exclude is caught. It has relaxed atomics because a race on plain data is undefined behaviour, and
/// the harness must survive a broken lock. They compile to the same plain loads and stores.
#[repr(align(128))]
pub struct Protected {
    /// The thread that holds the lock, counted from 1; locktorture's `lock_is_write_held`.
    owner: AtomicU64,
    /// The acquisitions by all threads. `twin` is the second of the two shared counters.
    acquisitions: AtomicU64,
    twin: AtomicU64,
    /// The thread and the node of the last acquisition, packed; locktorture's `last_lock_release`.
    last: AtomicU64,
    /// locktorture's writer statistics.
    writers: Box<[RecordLine]>,
    /// Nanoseconds from `epoch` to a release that another thread waited for. 0: it is not known.
    free_since: AtomicU64,
    epoch: Instant,
    /// For each thread, whether it asks for the lock.
    asking: Box<[Asking]>,
}

/// Whether a thread asks for the lock, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Asking(AtomicBool);

/// The statistics of four writers, which share a cache line.
#[derive(Default)]
#[repr(align(64))]
struct RecordLine([Record; 4]);

/// The acquisitions of a writer.
#[derive(Default)]
#[repr(align(16))]
struct Record(AtomicU64);

/// Where the lock was before an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handoff {
    /// No thread has held it before.
    First,
    /// The same thread held it.
    Reacquired,
    /// Another thread on this node held it.
    Local,
    /// A thread on another node held it.
    Remote,
}

fn increment(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl Protected {
    /// Data for this number of threads.
    pub fn new(threads: usize) -> Self {
        Self {
            owner: AtomicU64::new(0),
            acquisitions: AtomicU64::new(0),
            twin: AtomicU64::new(0),
            last: AtomicU64::new(0),
            writers: (0..threads.div_ceil(4))
                .map(|_| RecordLine::default())
                .collect(),
            free_since: AtomicU64::new(0),
            epoch: Instant::now(),
            asking: (0..threads).map(|_| Asking::default()).collect(),
        }
    }

    /// Notes that the thread asks for the lock.
    pub fn ask(&self, thread: usize) {
        self.asking[thread].0.store(true, Relaxed);
    }

    /// The time in nanoseconds for which the lock was free although a thread waited for it, up to the
    /// acquisition that has just been made. 0: it was not noted, or so short that it is mostly the clock's.
    pub fn was_free_ns(&self, thread: usize) -> u64 {
        self.asking[thread].0.store(false, Relaxed);
        let since = self.free_since.load(Relaxed);
        if since == 0 {
            return 0;
        }
        self.free_since.store(0, Relaxed);
        let free_ns = self.now().saturating_sub(since);
        if free_ns < LONG_FREE_NS { 0 } else { free_ns }
    }

    /// Notes the time of a release that is about to be made, if a thread waits for it.
    pub fn note_release(&self) {
        if self.asking.iter().any(|thread| thread.0.load(Relaxed)) {
            self.free_since.store(self.now(), Relaxed);
        }
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Notes that a thread on `node` has acquired the lock. Returns where the lock was before, and
    /// whether no other thread holds it.
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

    /// Notes that the thread is about to release the lock. Returns whether no other thread has acquired
    /// it meanwhile.
    pub fn leave(&self, thread: usize) -> bool {
        let alone = self.owner.load(Relaxed) == thread as u64 + 1;
        self.owner.store(0, Relaxed);
        alone
    }

    /// The acquisitions counted so far. A lock that does not exclude loses some.
    pub fn acquisitions(&self) -> u64 {
        self.acquisitions.load(Relaxed)
    }
}

/// The part of one thread in a workload.
pub struct Part {
    workload: Workload,
    critical: Busy,
    think: Busy,
    long_delay_odds: u64,
    short_delay_odds: u64,
    long_delay: Busy,
    short_delay: Busy,
    /// Of 2^32 acquisitions, those as a reader.
    reads: u64,
    random: Pcg32,
    thread: usize,
}

impl Part {
    /// The part of one of `threads`. Its delays are random, from `seed`.
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
            reads: (workload.readers / 100.0 * 2f64.powi(32)) as u64,
            random: Pcg32::new(seed, thread as u64),
            thread,
        }
    }

    /// Does the work without the lock.
    pub fn think(&self) {
        self.think.work();
    }

    /// Whether the thread acquires the lock as a reader next.
    pub fn reads(&mut self) -> bool {
        self.reads > 0 && u64::from(self.random.next_u32()) < self.reads
    }

    /// Does the work of a reader. Returns whether no writer held the lock meanwhile.
    pub fn read(&self, protected: &Protected) -> bool {
        let acquisitions = protected.acquisitions();
        let alone = protected.owner.load(Relaxed) == 0;
        self.critical.work();
        alone
            && protected.twin.load(Relaxed) == acquisitions
            && protected.acquisitions() == acquisitions
    }

    /// Does the work with the lock held.
    pub fn critical(&mut self, protected: &Protected) {
        match self.workload.preset {
            Preset::Plain => {
                increment(&protected.twin);
                self.critical.work();
            }
            Preset::LocktortureNew | Preset::LocktortureOld => {
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

/// Work that keeps a CPU busy for a known time and touches no shared memory.
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

    /// Not inlined: copies of the loop would differ in speed from the one that was timed, by two on some
    /// processors, depending on where they lie.
    #[inline(never)]
    fn work(self) {
        for round in 0..self.rounds {
            std::hint::black_box(round);
        }
    }
}

/// Rounds of busy work in a nanosecond: the fastest of several timings, since the thread may be
/// preempted during any of them.
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
