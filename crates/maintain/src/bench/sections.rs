//! Locks side by side: with one thread, with two on two CPUs, and with more threads than CPUs, where
//! the throughput of locks that spin collapses.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockworks_torture::peers::Order;

use super::arena::Arena;
use super::burst::{self, Burst};
use super::comparison::{Comparison, Figure, Requirement};
use super::lock::{self, BARE, Lock, OURS, is_ours};
use super::{Part, Scale, order};
use lockworks_machine::affinity;

/// The least ratio of the queued spinlocks to the bare compare-and-swap and store.
const OF_BARE: f64 = 0.95;
/// The least ratio of the HQ-spinlock to the plain queued spinlock.
const HQ_OF_PLAIN: f64 = 0.97;
/// The peers than which the queued spinlocks must be faster without contention.
const PEERS: [&str; 4] = ["pthread_spin", "pthread_mutex", "ck_mcs", "ck_ticket"];

/// Threads for each CPU, where there are more threads than CPUs.
const FACTORS: [usize; 2] = [2, 4];
/// The locks that are measured there: enough to show which ones collapse.
const OVERSUBSCRIBED: [&str; 17] = [
    "lw_qspinlock",
    "lw_cna",
    "lw_hq",
    "lw_mutex",
    "lw_pv",
    "lw_unfair",
    "lw_tas",
    "lw_mcs",
    "ck_mcs",
    "ck_ticket",
    "pthread_spin",
    "pthread_mutex",
    "pthread_adaptive",
    "nsync",
    "abseil",
    "std_mutex",
    "parking_lot",
];

/// The reference of lockrefs: an atomic count without a lock, which costs the least.
const ATOMIC: &str = "atomic";
/// Lockrefs, and the lock and count than which each must be faster.
const LOCKREFS: [(&str, &str); 3] = [
    ("lw_lockref_qspinlock", "lw_qspinlock + count"),
    ("lw_lockref_cna", "lw_cna + count"),
    ("lw_lockref_hq", "lw_hq + count"),
];
/// Another lock and count than which each lockref must be faster.
const MUTEX: &str = "pthread_mutex + count";

/// Preemptions in an undisturbed burst of two threads. The main thread preempts one of them when it
/// notices that both have begun, and again when it ends the burst.
const EXPECTED_PREEMPTIONS: u64 = 2;
/// The most bursts that are tried until one is not disturbed.
const ATTEMPTS: usize = 4;

/// Locks to measure side by side.
pub struct Section {
    name: String,
    title: String,
    locks: Vec<&'static Lock>,
    reference: &'static str,
    requirements: Vec<Requirement>,
    rounds: usize,
    threads: Threads,
}

/// The threads of a section.
enum Threads {
    /// One thread on a CPU. The holder increments two counters, or does nothing.
    One { cpu: usize, counts: bool },
    /// Two threads, each on one of these CPUs. The host of a virtual machine may move its CPUs, so
    /// the distance between the two may change in a run. The rounds are therefore many and short.
    Two([usize; 2]),
    /// This many threads on any CPUs.
    Many(usize),
}

/// The sections of the wanted parts on these CPUs.
pub fn sections(wanted: impl Fn(Part) -> bool, scale: &Scale, cpus: &[usize]) -> Vec<Section> {
    let cpu = cpus[0];
    let two = cpus.get(1).map(|&second| [cpu, second]);
    let locks = lock::all();
    let mut sections = Vec::new();
    if wanted(Part::Uncontended) {
        let mut required = Vec::new();
        for ours in OURS {
            required.push(Requirement::at_least(ours, BARE, OF_BARE));
            required.extend(PEERS.map(|peer| Requirement::ahead(ours, peer)));
        }
        required.push(Requirement::at_least("lw_hq", OURS[0], HQ_OF_PLAIN));
        required.push(Requirement::ahead("lw_mutex", "pthread_mutex"));
        for (name, work, counts) in [
            ("uncontended", "lock, two increments, unlock", true),
            ("uncontended-pure", "lock, unlock", false),
        ] {
            sections.push(Section {
                name: name.to_owned(),
                title: format!("Uncontended: {work}; one thread on CPU {cpu}"),
                locks: locks.clone(),
                reference: BARE,
                requirements: required.clone(),
                rounds: scale.rounds,
                threads: Threads::One { cpu, counts },
            });
        }
    }
    if let (true, Some([first, second])) = (wanted(Part::TwoThreads), two) {
        let peers = locks
            .iter()
            .filter(|peer| peer.order == Order::Fifo && !is_ours(peer));
        let ahead = |ours| {
            peers
                .clone()
                .map(move |peer| Requirement::ahead(ours, peer.name()))
        };
        sections.push(Section {
            name: "two-threads".to_owned(),
            title: format!(
                "Two threads, on CPUs {first} and {second}: lock, two shared counters, unlock"
            ),
            locks: locks.clone(),
            reference: OURS[0],
            requirements: OURS.into_iter().flat_map(ahead).collect(),
            rounds: scale.rounds_contended,
            threads: Threads::Two([first, second]),
        });
    }
    if wanted(Part::Oversubscribed) {
        let shown = locks
            .iter()
            .filter(|lock| OVERSUBSCRIBED.contains(&lock.name()));
        let shown: Vec<_> = shown.copied().collect();
        sections.extend(FACTORS.map(|factor| Section {
            name: format!("oversubscribed-{factor}x"),
            title: format!(
                "More threads than CPUs: {} on {} CPUs, where FIFO locks that spin collapse",
                factor * cpus.len(),
                cpus.len()
            ),
            locks: shown.clone(),
            reference: "pthread_mutex",
            requirements: Vec::new(),
            rounds: scale.rounds_oversubscribed,
            threads: Threads::Many(factor * cpus.len()),
        }));
    }
    if wanted(Part::References) {
        let required = LOCKREFS
            .map(|(ours, locked)| [locked, MUTEX].map(|other| Requirement::ahead(ours, other)));
        let one = (scale.rounds, Threads::One { cpu, counts: false });
        let two = two.map(|cpus| (scale.rounds_contended, Threads::Two(cpus)));
        let many = (
            scale.rounds_oversubscribed,
            Threads::Many(FACTORS[0] * cpus.len()),
        );
        for (rounds, threads) in [Some(one), two, Some(many)].into_iter().flatten() {
            let count = threads.count();
            let noun = if count == 1 { "thread" } else { "threads" };
            sections.push(Section {
                name: format!("references-{count}"),
                title: format!("References: get and put, never the last one; {count} {noun}"),
                locks: lock::references(),
                reference: ATOMIC,
                requirements: required.concat(),
                rounds,
                threads,
            });
        }
    }
    sections
}

impl Threads {
    fn count(&self) -> usize {
        match self {
            Self::One { .. } => 1,
            Self::Two(_) => 2,
            Self::Many(count) => *count,
        }
    }
}

impl Section {
    /// How many measurements [`Section::measure`] makes.
    pub fn steps(&self) -> usize {
        match self.threads {
            Threads::One { .. } => self.rounds,
            _ => self.rounds * self.locks.len(),
        }
    }

    /// Measures the locks. Calls `step` before each measurement.
    pub fn measure(&self, scale: &Scale, step: &(dyn Fn(&str) + Sync)) -> Result<Comparison> {
        let mut title = self.title.clone();
        let rounds = match self.threads {
            // A second thread, since some locks omit atomic operations in a process with one thread.
            Threads::One { cpu, counts } => std::thread::scope(|scope| {
                let alone = scope.spawn(|| {
                    affinity::bind(cpu)?;
                    let round = |round| {
                        step(&self.name);
                        self.measure_alone(scale, counts, round)
                    };
                    (0..self.rounds).map(round).collect::<Result<Vec<_>>>()
                });
                alone.join().expect("the measuring thread does not panic")
            })?,
            Threads::Two(_) | Threads::Many(_) => {
                let mut disturbed = 0;
                let mut rounds = vec![vec![Figure::default(); self.locks.len()]; self.rounds];
                for (round, figures) in rounds.iter_mut().enumerate() {
                    for index in order(self.locks.len(), round) {
                        let lock = self.locks[index];
                        step(&format!("{}: {}", self.name, lock.name()));
                        let burst = self.burst(scale, lock)?;
                        disturbed += usize::from(self.is_disturbed(&burst));
                        figures[index] = Figure {
                            million_per_second: burst.million_per_second,
                            fairness: Some(burst.fairness),
                        };
                    }
                }
                if disturbed > 0 {
                    title += &format!(
                        "\n{disturbed} of {} bursts were disturbed by other processes: measure on \
                         an idle machine",
                        self.steps()
                    );
                }
                rounds
            }
        };
        let threads = self.threads.count();
        let requirements = self.requirements.clone();
        let (name, reference) = (self.name.clone(), self.reference);
        Ok(Comparison::new(
            name,
            title,
            threads,
            &self.locks,
            &rounds,
            reference,
            requirements,
        ))
    }

    /// Measures one round: for each lock its fastest burst, since interruptions and busy neighbours
    /// can only slow a burst down. The bursts of a lock are spread over the round, so that all locks
    /// may meet the same quiet moments.
    fn measure_alone(&self, scale: &Scale, counts: bool, round: usize) -> Result<Vec<Figure>> {
        let mut best = vec![Figure::default(); self.locks.len()];
        for burst in 0..scale.bursts {
            for index in order(self.locks.len(), round * scale.bursts + burst) {
                let million = alone(self.locks[index], counts, scale.burst_operations)?;
                let best = &mut best[index].million_per_second;
                *best = best.max(million);
            }
        }
        Ok(best)
    }

    /// Measures a burst, and repeats it while it is disturbed. Returns the least disturbed one.
    fn burst(&self, scale: &Scale, lock: &'static Lock) -> Result<Burst> {
        let (cpus, ms) = match &self.threads {
            Threads::Two(cpus) => (&cpus[..], scale.contended_ms),
            _ => (&[][..], scale.oversubscribed_ms),
        };
        let run = || burst::run(lock, self.threads.count(), cpus, Duration::from_millis(ms));
        let mut best = run()?;
        for _ in 1..ATTEMPTS {
            if !self.is_disturbed(&best) {
                break;
            }
            let other = run()?;
            if other.preemptions < best.preemptions {
                best = other;
            }
        }
        Ok(best)
    }

    fn is_disturbed(&self, burst: &Burst) -> bool {
        matches!(self.threads, Threads::Two(_)) && burst.preemptions > EXPECTED_PREEMPTIONS
    }
}

/// The speed of one thread, in millions of acquisitions a second.
fn alone(lock: &'static Lock, counts: bool, n: u64) -> Result<f64> {
    let mut arena = Arena::new(lock, 1);
    let start = Instant::now();
    match counts {
        true => arena.counted(n),
        false => arena.pure(n),
    }
    let seconds = start.elapsed().as_secs_f64();
    ensure!(
        !counts || arena.counters() == [n, n],
        "{} lost increments without contention",
        lock.name()
    );
    Ok(n as f64 / seconds / 1e6)
}
