//! One measured run: threads that take one lock over and over for a given time.

use std::io;
use std::ops::AddAssign;
use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lockworks::{RawLock, Statistics, restart_maxima, statistics, thread_attach, topology};
use lockworks_machine::{affinity, ticks};
use lockworks_measurements::{
    Activity, Histogram, Timeline, TimelineEvent, TimelineThread, latencies,
};

use crate::contender::{Contender, Exclusion};
use crate::host::{Withheld, allowed_cpus, idle_time};
use crate::peers::PeerLock;
use crate::workload::{Handoff, Part, Protected, Workload};

/// One acquisition in this many is timed in the warm-up.
const TIMED_WARM: u64 = 16;
/// Later, at least one acquisition in this many is timed.
const TIMED_MOST: u64 = 256;
/// The approximate time that timing an acquisition takes: reading the clock twice.
const TIMING: Duration = Duration::from_nanos(50);
/// The approximate share of the time that timing may take.
const TIMING_SHARE: f64 = 0.01;

/// The number of acquisitions of which one is timed, a power of two. It is 1 for a slow lock.
fn timed_every(acquisitions_per_second: f64) -> u64 {
    let busy = acquisitions_per_second * TIMING.as_secs_f64();
    let every = (busy / TIMING_SHARE).clamp(1.0, TIMED_MOST as f64);
    (every as u64).next_power_of_two()
}

/// The conditions of a run.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The number of threads.
    pub threads: usize,
    /// The length of the measured part of the run.
    pub duration: Duration,
    /// The work of the threads.
    pub workload: Workload,
    /// The seed of the workload's random delays.
    pub seed: u64,
    /// The CPUs for the threads in turn. Empty: any CPU.
    pub cpus: &'a [usize],
    /// The number of events to record of the measured part.
    pub recorded: usize,
}

/// Acquisitions by where the lock was before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handoffs {
    /// Another thread on the same node held it.
    pub local: u64,
    /// A thread on another node held it.
    pub remote: u64,
    /// The same thread held it.
    pub reacquisitions: u64,
}

impl Handoffs {
    fn add(&mut self, handoff: Handoff) {
        match handoff {
            Handoff::First => {}
            Handoff::Reacquired => self.reacquisitions += 1,
            Handoff::Local => self.local += 1,
            Handoff::Remote => self.remote += 1,
        }
    }
}

impl AddAssign for Handoffs {
    fn add_assign(&mut self, other: Self) {
        self.local += other.local;
        self.remote += other.remote;
        self.reacquisitions += other.reacquisitions;
    }
}

/// The outcome of a run.
pub struct RunOutcome {
    /// The measured time, by the clock.
    pub elapsed: Duration,
    /// The operations that each thread completed in that time.
    pub operations: Vec<u64>,
    /// The waits of the timed acquisitions, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Where the lock was before each acquisition.
    pub handoffs: Handoffs,
    /// How often two threads held the lock at once, and how many acquisitions were lost.
    pub violations: u64,
    /// The share of the time in which the lock was free although a thread waited for it, for at least 1 us
    /// at a time. None: there were readers, who acquire the lock unnoticed.
    pub free_share: Option<f64>,
    /// The share of the time of CPUs in which these were idle, of as many CPUs as there were threads at
    /// most. None: the system does not report it.
    pub idle_share: Option<f64>,
    /// The CPU time that the scheduler withheld from all threads together.
    pub withheld: Withheld,
    /// Clock ticks that the hypervisor withheld from the machine. None: the system does not report
    /// it.
    pub steal_ticks: Option<u64>,
    /// The events that the lock counted.
    pub events: Statistics,
    /// The events of threads at the beginning of the measured part.
    pub timeline: Timeline,
}

impl RunOutcome {
    /// The operations a second of all threads together.
    pub fn operations_per_second(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Measures one run.
pub fn run(contender: Contender, conditions: &Conditions) -> Result<RunOutcome> {
    match contender {
        Contender::Lock(lock) => torture(&RawLock::new(lock), conditions),
        Contender::Peer(peer) => torture(&PeerLock::new(peer, conditions.threads), conditions),
    }
}

/// The data that all threads of a run share.
struct Shared<'a, E> {
    lock: &'a E,
    protected: Protected,
    /// Held for writing until all threads may start.
    gate: RwLock<()>,
    phase: AtomicU8,
    /// One acquisition in this many is timed in this phase.
    timed_every: AtomicU64,
    /// The number of acquisitions that each thread records.
    recorded: usize,
}

/// When a thread asked for the lock, had it, and was about to release it.
struct Recorded([Instant; 3]);

/// The first phase. Without it, the acquisitions before the first contention would outnumber all later
/// ones of a lock that collapses.
const WARM_UP: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// The counts of one thread in one phase.
#[derive(Default)]
struct Turns {
    acquisitions: u64,
    /// Those of them as a reader.
    reads: u64,
    handoffs: Handoffs,
    violations: u64,
    /// Nanoseconds for which the lock was free although a thread waited, until this one acquired it.
    free_ns: u64,
}

/// The counts of one thread in all phases.
struct Tally {
    warm_up: Turns,
    measured: Turns,
    /// The timed waits that ended after the warm-up.
    latency: Histogram<u64>,
    withheld: Withheld,
    /// The NUMA node on which the thread began.
    node: u32,
    recorded: Vec<Recorded>,
}

fn torture<E: Exclusion>(lock: &E, conditions: &Conditions) -> Result<RunOutcome> {
    let threads = conditions.threads;
    let shared = Shared {
        lock,
        protected: Protected::new(threads),
        gate: RwLock::new(()),
        phase: AtomicU8::new(WARM_UP),
        timed_every: AtomicU64::new(TIMED_WARM),
        recorded: conditions.recorded / threads / EVENTS_OF_ACQUISITION,
    };
    let (ready, all_ready) = mpsc::channel();
    restart_maxima();
    let events = statistics();
    let cpus = allowed_cpus()?;
    let before = ticks::of_all();

    let (start, elapsed, idle, tallies) = thread::scope(|scope| {
        let closed = shared.gate.write().expect("no thread has panicked");
        let spawn = |thread| {
            let part = Part::new(conditions.workload, thread, threads, conditions.seed);
            let cpu = conditions.cpus.iter().cycle().nth(thread).copied();
            let (shared, ready) = (&shared, ready.clone());
            thread::Builder::new().spawn_scoped(scope, move || {
                // The thread has the same slot in the whole run, whether or not it ever queues.
                thread_attach();
                // The receiver is gone if another thread could not start.
                let _ = ready.send(cpu.map_or(Ok(()), affinity::bind));
                shared.work(thread, part)
            })
        };
        let handles: io::Result<Vec<_>> = (0..threads).map(spawn).collect();
        if handles.is_err() {
            // The threads that did start have nothing to do.
            shared.phase.store(OVER, Relaxed);
        }
        let handles = handles
            .with_context(|| format!("cannot start {threads} threads; give fewer to --threads"))?;
        for _ in &handles {
            let bound: io::Result<()> = all_ready.recv().expect("no thread has panicked");
            bound.inspect_err(|_| shared.phase.store(OVER, Relaxed))?;
        }

        let opened = Instant::now();
        drop(closed);
        thread::sleep(conditions.duration / 10);
        let start = Instant::now();
        let writes = shared.protected.acquisitions() as f64;
        let writers = 1.0 - conditions.workload.readers / 100.0;
        // Without writers the rate is unknown, so few acquisitions are timed.
        let rate = writes / writers / (start - opened).as_secs_f64();
        let rate = if rate.is_finite() { rate } else { f64::MAX };
        shared.timed_every.store(timed_every(rate), Relaxed);
        let then = idle_time(&cpus);
        shared.phase.store(MEASURED, Release);
        thread::sleep(conditions.duration);
        shared.phase.store(OVER, Relaxed);
        let elapsed = start.elapsed();
        let idle = (|| Some(idle_time(&cpus)?.saturating_sub(then?)))();
        let tallies: Vec<Tally> = handles
            .into_iter()
            .map(|handle| handle.join().expect("no thread has panicked"))
            .collect();
        anyhow::Ok((start, elapsed, idle, tallies))
    })?;

    let steal_ticks = (|| Some(ticks::of_all()?.steal - before?.steal))();
    let events = statistics().since(&events);
    let counted = shared.protected.acquisitions();
    let free = tallies.iter().map(|tally| tally.measured.free_ns).sum();
    let free = Duration::from_nanos(free);
    let idle_share = idle.map(|idle| {
        let spare = elapsed * cpus.len().saturating_sub(threads) as u32;
        let usable = elapsed * threads.min(cpus.len()) as u32;
        idle.saturating_sub(spare).div_duration_f64(usable)
    });
    Ok(RunOutcome {
        timeline: timeline(start, &tallies),
        idle_share,
        // Few long times may have been sampled, which then stand for more than there was.
        free_share: (conditions.workload.readers == 0.0)
            .then(|| free.div_duration_f64(elapsed).min(1.0)),
        ..sum_up(elapsed, &tallies, counted, steal_ticks, events)
    })
}

impl<E: Exclusion> Shared<'_, E> {
    fn work(&self, thread: usize, mut part: Part) -> Tally {
        let mut node = self.lock.node();
        let mut latency = latencies();
        drop(self.gate.read());

        let numa_node = topology::current_node();
        let mut recorded = Vec::with_capacity(self.recorded);
        let mut turns = |phase| {
            let recorded = &mut recorded;
            self.turns(phase, thread, &mut node, &mut part, &mut latency, recorded)
        };
        let ((warm_up, measured), withheld) =
            Withheld::during(|| (turns(WARM_UP), turns(MEASURED)));
        Tally {
            warm_up,
            measured,
            latency,
            withheld,
            node: numa_node,
            recorded,
        }
    }

    /// Takes the lock over and over in one phase. An acquisition counts for the phase in which it was
    /// begun: the one under way at the end counts, the one under way at the beginning does not.
    fn turns(
        &self,
        phase: u8,
        thread: usize,
        node: &mut E::Node,
        part: &mut Part,
        latency: &mut Histogram<u64>,
        recorded: &mut Vec<Recorded>,
    ) -> Turns {
        let mut turns = Turns::default();
        // The number is a power of two, so this is a mask.
        let every = self.timed_every.load(Relaxed) - 1;
        while self.phase.load(Acquire) == phase {
            part.think();
            let records = phase == MEASURED && recorded.len() < self.recorded;
            let timed = turns.acquisitions & every == thread as u64 & every;
            let asked = (timed || records).then(Instant::now);
            if part.reads() {
                self.lock.read_lock(node);
                let acquired = asked.map(|_| Instant::now());
                let undisturbed = part.read(&self.protected);
                let held = acquired.map(|acquired| (acquired, Instant::now()));
                // SAFETY: acquired above, by this thread and with this node.
                unsafe { self.lock.read_unlock(node) };
                turns.acquisitions += 1;
                turns.reads += 1;
                turns.violations += u64::from(!undisturbed);
                if let (Some(asked), Some((acquired, released))) = (asked, held) {
                    if records {
                        recorded.push(Recorded([asked, acquired, released]));
                    }
                    if timed && self.phase.load(Relaxed) != WARM_UP {
                        latency.saturating_record((acquired - asked).as_nanos() as u64);
                    }
                }
                continue;
            }
            self.protected.ask(thread);
            self.lock.lock(node);
            turns.free_ns += self.protected.was_free_ns(thread) * (every + 1);
            let times = asked.map(|asked| (asked, Instant::now()));

            let (handoff, alone) = self.protected.enter(thread, topology::current_node());
            part.critical(&self.protected);
            if let Some((asked, acquired)) = times
                && records
            {
                recorded.push(Recorded([asked, acquired, Instant::now()]));
            }
            if self.protected.acquisitions() & every == 0 {
                self.protected.note_release();
            }
            let still_alone = self.protected.leave(thread);
            // SAFETY: locked above, by this thread and with this node.
            unsafe { self.lock.unlock(node) };

            turns.acquisitions += 1;
            turns.handoffs.add(handoff);
            turns.violations += u64::from(!alone) + u64::from(!still_alone);
            if let Some((asked, acquired)) = times
                && timed
                && self.phase.load(Relaxed) != WARM_UP
            {
                latency.saturating_record((acquired - asked).as_nanos() as u64);
            }
        }
        turns
    }
}

/// The events of an acquisition: it is asked for, made and released.
const EVENTS_OF_ACQUISITION: usize = 3;

/// The number of the one lock in a timeline.
const THE_LOCK: usize = 0;

/// The records of the threads, from `start` on.
fn timeline(start: Instant, tallies: &[Tally]) -> Timeline {
    const ACTIVITIES: [Activity; EVENTS_OF_ACQUISITION] = [
        Activity::Waits(THE_LOCK),
        Activity::Holds(THE_LOCK),
        Activity::Releases(THE_LOCK),
    ];
    let mut events = Vec::new();
    let mut threads = Vec::new();
    for (thread, tally) in tallies.iter().enumerate() {
        threads.push(TimelineThread {
            name: format!("thread {thread}"),
            node: Some(tally.node),
        });
        for Recorded(times) in &tally.recorded {
            let event = |(at, what): (&Instant, Activity)| TimelineEvent {
                ns: at.saturating_duration_since(start).as_nanos() as u64,
                thread: thread as u32,
                what,
                place: None,
            };
            events.extend(times.iter().zip(ACTIVITIES).map(event));
        }
    }
    Timeline {
        threads,
        events,
        ..Timeline::default()
    }
}

fn sum_up(
    elapsed: Duration,
    tallies: &[Tally],
    counted: u64,
    steal_ticks: Option<u64>,
    events: Statistics,
) -> RunOutcome {
    let mut latency = latencies();
    let mut handoffs = Handoffs::default();
    let (mut acquisitions, mut violations) = (0, 0);
    for tally in tallies {
        latency.add(&tally.latency).expect("the same bounds");
        handoffs += tally.measured.handoffs;
        for turns in [&tally.warm_up, &tally.measured] {
            acquisitions += turns.acquisitions - turns.reads;
            violations += turns.violations;
        }
    }
    RunOutcome {
        elapsed,
        operations: tallies
            .iter()
            .map(|tally| tally.measured.acquisitions)
            .collect(),
        latency,
        handoffs,
        violations: violations + acquisitions.abs_diff(counted),
        free_share: None,
        idle_share: None,
        withheld: tallies.iter().map(|tally| tally.withheld).sum(),
        steal_ticks,
        events,
        timeline: Timeline::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Conditions, run, timed_every};
    use crate::contender::Contender;
    use crate::workload::{Preset, Workload};

    #[test]
    fn a_cpu_that_is_taken_away_ends_the_run() {
        let conditions = Conditions {
            threads: 3,
            duration: Duration::from_millis(1),
            workload: Workload {
                preset: Preset::Plain,
                critical_ns: 0,
                think_ns: 0,
                readers: 0.0,
            },
            seed: 0,
            cpus: &[100_000],
            recorded: 0,
        };
        let lock = Contender::find("mutex").expect("it exists");
        let error = run(lock, &conditions)
            .map(drop)
            .expect_err("no machine has so many CPUs");
        assert!(error.to_string().contains("CPU 100000"), "{error}");
    }

    #[test]
    fn timing_takes_little() {
        assert_eq!(timed_every(0.0), 1);
        assert_eq!(timed_every(100_000.0), 1);
        assert_eq!(timed_every(1.1e6), 8);
        assert_eq!(timed_every(40e6), 256);
        assert_eq!(timed_every(1e9), 256);
    }
}
