//! The threads of a recording as threads of the simulator.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use lockworks_machine::Machine;
use lockworks_profile::recording::{Kind, Recording, Step};
use lockworks_sim::sequences::{Act, Class, Entry, Lane, Lock, Sequences};

/// The most steps that are simulated, and the most time; of a longer recording, that from its middle. All of it is
/// simulated once, as what a program does can change within it.
const MOST_STEPS: usize = 800_000;
const MOST_NS: u64 = 2_000_000_000;

/// The pieces of a recording in which the threads that use locks are counted.
const PIECES: usize = 200;

/// A thread that uses no lock for more pieces does something else meanwhile.
const PAUSE: usize = PIECES / 10;

/// Threads with a smaller share of the acquisitions are as many as they were, whatever the number of threads.
const FEW: f64 = 0.01;

/// The holds after another CPU, and after the same one, that tell which lines move.
const ENOUGH_HOLDS: usize = 300;

/// A recording as threads of the simulator, and what was measured of it.
pub struct Threads {
    /// The threads.
    pub sequences: Sequences,
    /// What was measured in it.
    pub measured: Measured,
    /// What each lock of the threads did.
    pub locks: Vec<OfRecorded>,
    /// The number of hand-offs to another CPU.
    pub moves: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Measured {
    /// Operations a second.
    pub operations_per_second: f64,
    /// The share of acquisitions for which a thread had to wait.
    pub contended: f64,
    /// The wait that one acquisition in a hundred exceeds, in nanoseconds.
    pub wait_p99_ns: u64,
    /// The share of acquisitions that are not simulated, as their thread never was without a lock then.
    pub left_out: f64,
    /// The threads' time that was spent computing, waiting for locks and conditions, asleep for other reasons,
    /// and without a CPU, as shares.
    pub computing: f64,
    pub waiting: f64,
    pub asleep: f64,
    pub preempted: f64,
}

/// A lock of a recording, and what it did.
#[derive(Clone, Debug, serde::Serialize)]
pub struct OfRecorded {
    /// Its number among the recording's objects.
    #[serde(skip)]
    pub object: u32,
    /// Its name, or its address.
    pub lock: String,
    /// The place that acquired it first.
    pub place: String,
    /// Its acquisitions.
    pub acquisitions: u64,
    /// The part of them for which a thread had to wait.
    pub contended: f64,
    /// The time that threads waited for it, in seconds.
    pub waited_s: f64,
    /// Lines that move with it from holder to holder.
    pub lines: usize,
}

/// The piece of a recording in which the most threads used locks, as long as possible.
fn window(recording: &Recording) -> Range<u64> {
    let end = recording.steps.iter().map(|step| step.ns).max();
    let end = end.map_or(1, |last| last + 1);
    let piece = end.div_ceil(PIECES as u64).max(1);
    let mut active = vec![0u32; PIECES];
    for (_, steps) in recording.by_thread() {
        let acquires = steps.iter().filter(|step| step.kind == Kind::Acquires);
        let mut next = 0;
        for at in acquires.map(|step| (step.ns / piece) as usize) {
            let from = if at < next + PAUSE { next } else { at };
            let from = if next == 0 { at } else { from };
            (from..=at).for_each(|at| active[at] += 1);
            next = next.max(at + 1);
        }
    }
    let mut sorted = active.clone();
    sorted.sort_unstable();
    let many = f64::from(sorted[PIECES * 9 / 10].max(1)) * 0.75;
    let runs = active.chunk_by(|a, b| (f64::from(*a) >= many) == (f64::from(*b) >= many));
    let (mut at, mut best) = (0, 0..0);
    for run in runs {
        if f64::from(run[0]) >= many && run.len() > best.len() {
            best = at..at + run.len();
        }
        at += run.len();
    }
    // The pieces at the ends have threads that begin or end.
    if best.len() > 4 {
        best = best.start + 1..best.end - 1;
    }
    let window = best.start as u64 * piece..best.end as u64 * piece;
    cut(recording, window)
}

/// The middle of a window, no more than is simulated.
fn cut(recording: &Recording, window: Range<u64>) -> Range<u64> {
    let times = recording.steps.iter().map(|step| step.ns);
    let mut within: Vec<u64> = times.filter(|ns| window.contains(ns)).collect();
    within.sort_unstable();
    let left_out = within.len().saturating_sub(MOST_STEPS) / 2;
    let (Some(first), Some(last)) = (
        within.get(left_out),
        within.len().checked_sub(left_out + 1).map(|at| within[at]),
    ) else {
        return window;
    };
    let of_steps = match left_out {
        0 => window,
        _ => *first..last,
    };
    let too_long = (of_steps.end - of_steps.start).saturating_sub(MOST_NS) / 2;
    of_steps.start + too_long..of_steps.end - too_long
}

/// A step of a thread of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Taken {
    thread: usize,
    /// The index among the steps of the thread.
    at: usize,
}

/// The part of a thread's steps within the window at whose ends it holds no lock.
fn part(steps: &[Step], window: &Range<u64>) -> Range<usize> {
    let mut held = Held::default();
    let (mut first, mut last) = (None, 0);
    for (at, step) in steps.iter().enumerate() {
        if step.ns >= window.end {
            break;
        }
        if step.ns >= window.start && held.is_empty() {
            if !ends_another(step) {
                first.get_or_insert(at);
                last = at;
            } else if step.kind == Kind::Ends {
                last = at;
            }
        }
        held.step(step);
    }
    first.map_or(0..0, |first| first..last.max(first))
}

/// Whether a step is the end of something that another step began.
fn ends_another(step: &Step) -> bool {
    matches!(
        step.kind,
        Kind::Releases | Kind::Woken | Kind::Expired | Kind::Returns | Kind::Ends
    )
}

/// The locks that a thread holds, and whether it waits for a condition.
#[derive(Default)]
struct Held {
    /// The locks, and the mode of each.
    locks: Vec<(u32, u8)>,
    waits: bool,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.locks.is_empty() && !self.waits
    }

    fn has(&self, object: u32) -> bool {
        self.locks.iter().any(|(lock, _)| *lock == object)
    }

    /// Takes a step into account. Returns the acquisition or release. None: the thread holds the lock as a reader
    /// already, or still, or the step is a release of a lock that it does not hold.
    fn step(&mut self, step: &Step) -> Option<Act> {
        let object = step.object.unwrap_or(u32::MAX);
        match step.kind {
            Kind::Acquires => {
                let is_held = self.has(object);
                let reads = step.mode == 1;
                // Of a mutex that it holds, the release was another thread's.
                if !is_held || reads {
                    self.locks.push((object, step.mode));
                }
                self.waits = false;
                (!is_held).then_some(match reads {
                    true => Act::Read(object),
                    false => Act::Acquire(object),
                })
            }
            Kind::Releases => {
                let at = self.locks.iter().rposition(|(lock, _)| *lock == object)?;
                let (_, mode) = self.locks.remove(at);
                (!self.has(object)).then_some(match mode {
                    1 => Act::ReleaseRead(object),
                    _ => Act::Release(object),
                })
            }
            // Until it has the mutex again.
            Kind::Awaits => {
                self.waits = true;
                None
            }
            _ => None,
        }
    }
}

/// A signal of a condition.
struct Signal {
    ns: u64,
    step: Taken,
    /// The number of signals of its thread up to it.
    number: u32,
    /// Whether it is a broadcast.
    is_for_all: bool,
}

/// The signals of conditions.
struct Signals {
    /// The signal that ended each wait, and the number of signals of its thread up to it.
    ended_by: HashMap<Taken, (Taken, u32)>,
}

impl Signals {
    fn of(threads: &[&[Step]]) -> Self {
        // By condition: the signals, and the waits that ended, both by time.
        let mut signals: BTreeMap<u32, Vec<Signal>> = BTreeMap::new();
        let mut woken: Vec<(u64, u64, u32, Taken)> = Vec::new();
        for (thread, steps) in threads.iter().enumerate() {
            let (mut since, mut number) = (0, 0);
            for (at, step) in steps.iter().enumerate() {
                let taken = Taken { thread, at };
                match (step.kind, step.object) {
                    (Kind::Signals | Kind::Broadcasts, Some(condition)) => {
                        number += 1;
                        signals.entry(condition).or_default().push(Signal {
                            ns: step.ns,
                            step: taken,
                            number,
                            is_for_all: step.kind == Kind::Broadcasts,
                        });
                    }
                    (Kind::Awaits, _) => since = step.ns,
                    (Kind::Woken, Some(condition)) => {
                        woken.push((step.ns, since, condition, taken));
                    }
                    _ => {}
                }
            }
        }
        for of in signals.values_mut() {
            of.sort_by_key(|signal| signal.ns);
        }
        woken.sort_by_key(|(ns, ..)| *ns);
        let mut used: HashSet<Taken> = HashSet::new();
        let mut ended_by = HashMap::new();
        for (ns, since, condition, taken) in woken {
            let of = signals.get(&condition).map_or(&[][..], Vec::as_slice);
            let first = of.partition_point(|signal| signal.ns < since);
            let between = of[first..].iter().take_while(|signal| signal.ns <= ns);
            let mut fits = between.filter(|signal| {
                let is_free = signal.is_for_all || !used.contains(&signal.step);
                signal.step.thread != taken.thread && is_free
            });
            if let Some(signal) = fits.next() {
                used.insert(signal.step);
                ended_by.insert(taken, (signal.step, signal.number));
            }
        }
        Self { ended_by }
    }
}

/// An acquisition of a lock.
struct Acquisition {
    ns: u64,
    cpu: u16,
    step: Taken,
}

/// Conditions that behave as counters: each signal adds one, and each pass of certain places takes one, after a
/// wait if there is none. So do the items of a queue, and the room in it.
#[derive(Default)]
struct Counters {
    /// The acquisition that begins each pass, and the number of the counter.
    passes: HashMap<Taken, u32>,
    /// Steps of waits, which the passes stand for.
    steps_of_waits: HashSet<Taken>,
    /// The number of each condition's counter.
    numbers: BTreeMap<u32, u32>,
    /// Each counter at the beginning of the window.
    at_begin: Vec<u64>,
}

/// A pass of a place at which threads wait for a condition.
struct Pass {
    step: Taken,
    /// When it took one from the counter.
    took: u64,
    /// When it began to wait. None: it did not.
    waited: Option<u64>,
    /// The steps of its waits.
    waits: Range<usize>,
}

/// The share of waits that must be at the same count.
const AGREE: f64 = 0.9;

impl Counters {
    fn of(threads: &[&[Step]], window: &Range<u64>) -> Self {
        // By condition: the places of acquisitions after which threads waited.
        let mut places: BTreeMap<u32, HashSet<Option<u32>>> = BTreeMap::new();
        for steps in threads {
            let mut place = None;
            for (at, step) in steps.iter().enumerate() {
                match (step.kind, step.object) {
                    (Kind::Acquires, _) if !is_after_condition(steps, at) => place = step.place,
                    (Kind::Awaits, Some(condition)) => {
                        places.entry(condition).or_default().insert(place);
                    }
                    _ => {}
                }
            }
        }
        let mut counters = Self::default();
        for (condition, places) in places {
            let others = places.iter().any(Option::is_none);
            let passes = passes(threads, condition, &places);
            let mut signals = Vec::new();
            for step in threads.iter().flat_map(|steps| steps.iter()) {
                if step.object == Some(condition) {
                    match step.kind {
                        Kind::Signals => signals.push(step.ns),
                        // More than one may go on, or none.
                        Kind::Broadcasts | Kind::Expired if window.contains(&step.ns) => {
                            signals.clear();
                            break;
                        }
                        _ => {}
                    }
                }
            }
            if others || signals.is_empty() {
                continue;
            }
            signals.sort_unstable();
            if let Some(at_begin) = counter(&passes, &signals, window) {
                let number = counters.at_begin.len() as u32;
                counters.numbers.insert(condition, number);
                counters.at_begin.push(at_begin);
                for pass in passes {
                    counters.passes.insert(pass.step, number);
                    let waits = pass.waits.map(|at| Taken { at, ..pass.step });
                    counters.steps_of_waits.extend(waits);
                }
            }
        }
        counters
    }
}

/// The kind of the step before. None: there is none.
fn kind_before(steps: &[Step], at: usize) -> Option<Kind> {
    at.checked_sub(1).map(|at| steps[at].kind)
}

/// Whether a step acquires the mutex at the end of a wait for a condition.
fn is_after_condition(steps: &[Step], at: usize) -> bool {
    matches!(kind_before(steps, at), Some(Kind::Woken | Kind::Expired))
}

/// The passes of the places of a condition.
fn passes(threads: &[&[Step]], condition: u32, places: &HashSet<Option<u32>>) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    for (thread, steps) in threads.iter().enumerate() {
        let mut is_open = false;
        for (at, step) in steps.iter().enumerate() {
            match step.kind {
                Kind::Acquires if is_after_condition(steps, at) => {
                    let of = steps[at - 1].object;
                    if let Some(pass) = passes
                        .last_mut()
                        .filter(|_| is_open && of == Some(condition))
                    {
                        pass.took = step.ns;
                        pass.waits.end = at + 1;
                    }
                }
                Kind::Acquires => {
                    // Threads wait with a mutex, never as readers.
                    is_open = step.mode == 0 && places.contains(&step.place);
                    if is_open {
                        passes.push(Pass {
                            step: Taken { thread, at },
                            took: step.ns,
                            waited: None,
                            waits: at + 1..at + 1,
                        });
                    }
                }
                Kind::Awaits if step.object == Some(condition) && is_open => {
                    let pass = passes.last_mut().expect("one is open");
                    if pass.waited.is_none() {
                        pass.waited = Some(step.ns);
                        pass.waits.start = at;
                    }
                }
                _ => {}
            }
        }
    }
    passes
}

/// The counter at the beginning of the window, if there is one that is the same, 0, at nearly all waits.
fn counter(passes: &[Pass], signals: &[u64], window: &Range<u64>) -> Option<u64> {
    let mut took: Vec<u64> = passes.iter().map(|pass| pass.took).collect();
    took.sort_unstable();
    let balance = |ns: u64| {
        let given = signals.partition_point(|at| *at < ns) as i64;
        given - took.partition_point(|at| *at < ns) as i64
    };
    let waits = passes.iter().filter_map(|pass| pass.waited);
    let mut at_waits: Vec<i64> = waits.map(balance).collect();
    at_waits.sort_unstable();
    let none = *at_waits.get(at_waits.len() / 2)?;
    let agree = at_waits.iter().filter(|at| (*at - none).abs() <= 1).count();
    let is_one = agree as f64 >= AGREE * at_waits.len() as f64;
    is_one.then(|| (balance(window.start) - none).max(0) as u64)
}

/// The lines behind a lock that move, and the CPU of the holder before each acquisition.
struct Lines {
    /// Of each lock.
    lines: HashMap<u32, usize>,
    /// The acquisitions whose last holder was on another CPU.
    moved: HashSet<Taken>,
}

impl Lines {
    /// Takes holds after another CPU to be longer by the transfer of the lines.
    fn of(threads: &[&[Step]], transfer_ns: Option<f64>) -> Self {
        let mut acquisitions: HashMap<u32, Vec<Acquisition>> = HashMap::new();
        for (thread, steps) in threads.iter().enumerate() {
            for (at, step) in steps.iter().enumerate() {
                let (Kind::Acquires, Some(lock), Some(cpu)) = (step.kind, step.object, step.cpu)
                else {
                    continue;
                };
                acquisitions.entry(lock).or_default().push(Acquisition {
                    ns: step.ns,
                    cpu,
                    step: Taken { thread, at },
                });
            }
        }
        let mut moved = HashSet::new();
        let mut lines = HashMap::new();
        for (lock, mut of) in acquisitions {
            of.sort_by_key(|acquisition| acquisition.ns);
            // By the place: the hold times after another CPU, and after the same.
            let mut holds: BTreeMap<Option<u32>, [Vec<u64>; 2]> = BTreeMap::new();
            for pair in of.windows(2) {
                let [before, Acquisition { cpu, step, .. }] = pair else {
                    continue;
                };
                let same = before.cpu == *cpu;
                if !same {
                    moved.insert(*step);
                }
                // Only a section without other steps has a time of its own.
                let begin = &threads[step.thread][step.at];
                let end = threads[step.thread].get(step.at + 1).filter(|end| {
                    end.kind == Kind::Releases && end.object == begin.object && end.away_ns == 0
                });
                if let Some(end) = end {
                    holds.entry(begin.place).or_default()[usize::from(same)]
                        .push(end.ns - begin.ns);
                }
            }
            let most = holds
                .into_values()
                .filter(|[other, same]| other.len().min(same.len()) >= ENOUGH_HOLDS)
                .max_by_key(|[other, same]| other.len() + same.len());
            if let (Some([other, same]), Some(transfer)) = (most, transfer_ns) {
                let longer = median(other) as f64 - median(same) as f64;
                lines.insert(lock, (longer / transfer).round().clamp(0.0, 16.0) as usize);
            }
        }
        Self { lines, moved }
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The time of a transfer between caches of the machine, in nanoseconds, between neighbours.
fn transfer_ns(machine: &Machine) -> Option<f64> {
    let times = machine.relations().iter();
    times
        .map(|relation| relation.cache_to_cache.value)
        .min_by(f64::total_cmp)
}

/// Threads of a recording that are one thread of the simulator, as they do the same one after the other.
struct Chain {
    /// Their number among the threads of the recording, and their steps within the window.
    threads: Vec<(usize, Range<usize>)>,
    class: String,
    acquisitions: usize,
}

/// The chains of threads with acquisitions in the window.
fn chains(recording: &Recording, threads: &[&[Step]], window: &Range<u64>) -> Vec<Chain> {
    let mut parts: Vec<(usize, Range<usize>)> = threads
        .iter()
        .map(|steps| part(steps, window))
        .enumerate()
        .collect();
    let acquisitions = |(thread, part): &(usize, Range<usize>)| {
        let steps = threads[*thread][part.clone()].iter();
        steps.filter(|step| step.kind == Kind::Acquires).count()
    };
    parts.retain(|part| acquisitions(part) > 0);
    parts.sort_by_key(|(thread, part)| threads[*thread][part.start].ns);
    let mut chains: Vec<Chain> = Vec::new();
    for part in parts {
        let (thread, range) = &part;
        let class = match (&recording.threads[*thread].function, thread) {
            (Some(name), _) => function(name).to_owned(),
            (None, 0) => "main".to_owned(),
            (None, _) => "unknown".to_owned(),
        };
        let begins = threads[*thread][range.start].ns;
        let is_over =
            |(thread, range): &(usize, Range<usize>)| threads[*thread][range.end].ns < begins;
        let number = acquisitions(&part);
        let before = chains
            .iter_mut()
            .find(|chain| chain.class == class && chain.threads.last().is_some_and(is_over));
        match before {
            Some(chain) => {
                chain.threads.push(part);
                chain.acquisitions += number;
            }
            None => chains.push(Chain {
                threads: vec![part],
                class,
                acquisitions: number,
            }),
        }
    }
    chains
}

impl Threads {
    /// The threads without the time that the steps of the recording took.
    pub fn without_steps(&self, recording: &Recording) -> Sequences {
        let mut sequences = self.sequences.clone();
        for lane in &mut sequences.lanes {
            let mut held = 0;
            for act in &mut lane.acts {
                match act {
                    Act::Acquire(_) | Act::Read(_) | Act::Try { .. } => held += 1,
                    Act::Release(_) | Act::ReleaseRead(_) => held -= 1,
                    Act::Compute(ns) => {
                        *ns = (*ns - recording.step_ns[usize::from(held == 0)] as f32).max(0.0);
                    }
                    _ => {}
                }
            }
        }
        sequences
    }

    /// Makes the threads of a recording, which was made on this machine. The operations are the acquisitions of a
    /// place. None: all are.
    pub fn of(recording: &Recording, machine: Option<&Machine>, operation: Option<&str>) -> Self {
        let window = window(recording);
        let threads: Vec<&[Step]> = recording.by_thread().map(|(_, steps)| steps).collect();
        let signals = Signals::of(&threads);
        let counters = Counters::of(&threads, &window);
        let lines = Lines::of(&threads, machine.and_then(transfer_ns));
        let chains = chains(recording, &threads, &window);
        let mut lane_of = HashMap::new();
        for (lane, chain) in chains.iter().enumerate() {
            let mut before = 0;
            for (thread, part) in &chain.threads {
                let earlier = signals_in(&threads[*thread][..part.start]);
                let of = OfThread {
                    lane: lane as u32,
                    part: part.clone(),
                    more: i64::from(before) - i64::from(earlier),
                };
                lane_of.insert(*thread, of);
                before += signals_in(&threads[*thread][part.clone()]);
            }
        }
        let mut maker = Maker {
            recording,
            threads: &threads,
            window: &window,
            signals: &signals,
            counters: &counters,
            lines: &lines,
            transfer_ns: machine.and_then(transfer_ns).unwrap_or(0.0),
            lane_of: &lane_of,
            operation,
            locks: BTreeMap::new(),
            waits: Vec::new(),
            times: Times::default(),
            operations: 0,
        };
        let lanes: Vec<Lane> = chains
            .iter()
            .enumerate()
            .map(|(number, chain)| maker.lane(number as u32, chain))
            .collect();
        let Maker {
            locks,
            mut waits,
            times,
            operations,
            ..
        } = maker;
        waits.sort_unstable();
        let all = locks.values().map(|of| of.acquisitions).sum::<u64>();
        let ns = (window.end - window.start) as f64;
        let name = |object: u32| recording.objects[object as usize].clone();
        let mut sequences = Sequences {
            ns,
            ghz: machine.map_or(1.0, |machine| machine.clock_ghz(0)),
            lanes,
            locks: Vec::new(),
            counters: counters.at_begin.clone(),
            classes: classes(&chains, all),
            busy: recording.other_cpus,
        };
        let classes = sequences.classes.iter();
        let alone: HashSet<u32> = classes
            .filter(|class| class.lanes.len() == 1)
            .flat_map(|class| class.lanes.iter().copied())
            .collect();
        let mut numbers = HashMap::new();
        let mut of_locks = Vec::new();
        for (object, of) in &locks {
            numbers.insert(*object, sequences.locks.len() as u32);
            let moving = lines.lines.get(object).copied().unwrap_or(0);
            sequences.locks.push(Lock {
                name: name(*object),
                has_readers: of.has_readers,
                owner: match of.lanes.as_slice() {
                    // Of a class of one thread, others may use the same lock.
                    [one] if !alone.contains(one) => Some(*one),
                    _ => None,
                },
                lines: moving,
                kind: None,
            });
            of_locks.push(OfRecorded {
                object: *object,
                lock: name(*object),
                place: of.place.map_or_else(String::new, |place| {
                    recording.places[place as usize].clone()
                }),
                acquisitions: of.acquisitions,
                contended: of.contended as f64 / of.acquisitions.max(1) as f64,
                waited_s: of.waited_ns as f64 / 1e9,
                lines: moving,
            });
        }
        let all_acts = sequences.lanes.iter().flat_map(|lane| &lane.acts);
        let given: HashSet<u32> = all_acts
            .filter_map(|act| match act {
                Act::Give(condition) => Some(*condition),
                _ => None,
            })
            .collect();
        for act in sequences.lanes.iter_mut().flat_map(|lane| &mut lane.acts) {
            // The thread that signals is not simulated: nobody would end the wait.
            if let Act::Take { condition, .. } = act
                && !given.contains(condition)
            {
                *act = Act::Compute(0.0);
            }
            if let Act::Acquire(lock)
            | Act::Read(lock)
            | Act::Release(lock)
            | Act::ReleaseRead(lock)
            | Act::Try { lock, .. }
            | Act::Take { lock, .. } = act
            {
                *lock = numbers[lock];
            }
        }
        let steps = threads.iter().flat_map(|steps| steps.iter());
        let within = steps
            .filter(|step| step.kind == Kind::Acquires && window.contains(&step.ns))
            .count() as f64;
        let simulated = chains.iter().map(|chain| chain.acquisitions).sum::<usize>() as f64;
        let time = (times.computing + times.waiting + times.asleep + times.preempted).max(1) as f64;
        Self {
            measured: Measured {
                operations_per_second: operations as f64 / (ns / 1e9),
                contended: locks.values().map(|of| of.contended).sum::<u64>() as f64
                    / all.max(1) as f64,
                wait_p99_ns: waits.get(waits.len() * 99 / 100).copied().unwrap_or(0),
                left_out: (1.0 - simulated / within.max(1.0)).max(0.0),
                computing: times.computing as f64 / time,
                waiting: times.waiting as f64 / time,
                asleep: times.asleep as f64 / time,
                preempted: times.preempted as f64 / time,
            },
            sequences,
            locks: of_locks,
            moves: lines.moved.len() as u64,
        }
    }
}

/// Makes a trylock of the first act, an acquisition, which the last one releases: if another thread has the lock,
/// the thread goes on behind them. Not if others depend on acts in between.
fn try_only(acts: &mut [Act]) {
    let mut within = Vec::new();
    for act in &*acts {
        match act {
            Act::Acquire(lock) | Act::Read(lock) | Act::Try { lock, .. } => within.push(*lock),
            Act::Release(lock) | Act::ReleaseRead(lock) => {
                // A lock that the thread had before is released here: the section is not left out.
                let Some(at) = within.iter().rposition(|of| of == lock) else {
                    return;
                };
                within.remove(at);
            }
            Act::Compute(_) | Act::Sleep(_) | Act::Yield | Act::Operation => {}
            Act::Signal | Act::Give(_) | Act::Take { .. } | Act::Await { .. } => return,
        }
    }
    let without = acts.len() as u32 - 1;
    if let (true, Some(&Act::Acquire(lock))) = (within.is_empty(), acts.first()) {
        acts[0] = Act::Try { lock, without };
    }
}

fn signals_in(steps: &[Step]) -> u32 {
    let signals = |step: &&Step| matches!(step.kind, Kind::Signals | Kind::Broadcasts);
    steps.iter().filter(signals).count() as u32
}

/// Whether a step ends a wait.
fn is_after_wait(steps: &[Step], at: usize) -> bool {
    is_after_condition(steps, at)
        || matches!(kind_before(steps, at), Some(Kind::Waits | Kind::Fails))
}

/// Whether a place is what a user calls so: the function, or all of the place's name.
pub fn is_place(place: &str, wanted: &str) -> bool {
    place == wanted || function(place) == wanted
}

/// The function of a place, whose name goes on with `(module+0x10)` or `file:10`.
fn function(place: &str) -> &str {
    let name = place.split(" (").next().unwrap_or(place);
    match name.rsplit_once(' ') {
        Some((function, at))
            if at
                .rsplit_once(':')
                .is_some_and(|(_, line)| line.parse::<u32>().is_ok()) =>
        {
            function
        }
        _ => name,
    }
}

/// The classes of chains: by the function that they run.
fn classes(chains: &[Chain], acquisitions: u64) -> Vec<Class> {
    let mut classes: Vec<(Class, usize)> = Vec::new();
    for (lane, chain) in chains.iter().enumerate() {
        match classes
            .iter_mut()
            .find(|(class, _)| class.name == chain.class)
        {
            Some((class, of)) => {
                class.lanes.push(lane as u32);
                *of += chain.acquisitions;
            }
            None => classes.push((
                Class {
                    name: chain.class.clone(),
                    lanes: vec![lane as u32],
                    count: None,
                },
                chain.acquisitions,
            )),
        }
    }
    let is_few = |of: usize| (of as f64) < FEW * acquisitions as f64;
    let several = classes
        .iter()
        .any(|(class, of)| !is_few(*of) && class.name != "main");
    let settled = classes.into_iter().map(|(class, of)| Class {
        count: (is_few(of) || several && class.name == "main").then_some(class.lanes.len()),
        ..class
    });
    settled.collect()
}

/// What the steps of a lock say.
#[derive(Default)]
struct OfLock {
    acquisitions: u64,
    contended: u64,
    waited_ns: u64,
    place: Option<u32>,
    has_readers: bool,
    lanes: Vec<u32>,
}

/// The time of all threads, in nanoseconds.
#[derive(Default)]
struct Times {
    computing: u64,
    waiting: u64,
    asleep: u64,
    preempted: u64,
}

/// Where a thread of the recording is.
struct OfThread {
    lane: u32,
    part: Range<usize>,
    /// The signals of its lane at a step, less those of the thread at that step.
    more: i64,
}

/// Makes lanes of chains.
struct Maker<'a> {
    recording: &'a Recording,
    threads: &'a [&'a [Step]],
    window: &'a Range<u64>,
    signals: &'a Signals,
    counters: &'a Counters,
    lines: &'a Lines,
    transfer_ns: f64,
    lane_of: &'a HashMap<usize, OfThread>,
    operation: Option<&'a str>,
    locks: BTreeMap<u32, OfLock>,
    waits: Vec<u64>,
    times: Times,
    operations: u64,
}

impl Maker<'_> {
    fn lane(&mut self, number: u32, chain: &Chain) -> Lane {
        let mut lane = Lane::default();
        let mut over: Option<u64> = None;
        let mut begins = 0;
        for (thread, part) in &chain.threads {
            let steps = self.threads[*thread];
            let begin = steps[part.start].ns;
            match over {
                Some(over) => lane.acts.push(Act::Sleep((begin - over) as f32)),
                None => begins = begin,
            }
            self.steps(*thread, part, number, &mut lane);
            over = Some(steps[part.end].ns);
        }
        // A thread that does little has more time in the window than its steps take.
        let rest = self.window.end.saturating_sub(over.unwrap_or(0)) + begins - self.window.start;
        if rest * 50 > self.window.end - self.window.start {
            lane.acts.push(Act::Sleep(rest as f32));
        }
        lane
    }

    /// Adds the steps of a part of a thread.
    fn steps(&mut self, thread: usize, part: &Range<usize>, number: u32, lane: &mut Lane) {
        let steps = self.threads[thread];
        let mut held = Held::default();
        let mut to_spare = 0.0;
        let mut tried: HashMap<u32, usize> = HashMap::new();
        for at in part.clone() {
            let (step, next) = (&steps[at], &steps[at + 1]);
            let taken = Taken { thread, at };
            let begins = !ends_another(step) && !is_after_wait(steps, at);
            if at == part.start || held.locks.is_empty() && begins {
                lane.entries.push(Entry {
                    act: lane.acts.len(),
                    ns: step.ns.saturating_sub(self.window.start) as f64,
                    signals: lane.signals,
                });
            }
            let object = step.object.unwrap_or(u32::MAX);
            if self.counters.steps_of_waits.contains(&taken) {
                if step.kind == Kind::Acquires {
                    self.until(thread, at, next, true, &mut to_spare, lane);
                } else {
                    self.times.waiting += next.ns - step.ns;
                }
                continue;
            }
            match step.kind {
                Kind::Acquires => {
                    let act = held.step(step);
                    // After a trylock that failed, the thread polls until it has the lock.
                    let polls = steps[..at]
                        .iter()
                        .rev()
                        .find(|step| !matches!(step.kind, Kind::Yields | Kind::Returns))
                        .is_some_and(|before| {
                            before.kind == Kind::Fails && before.object == step.object
                        });
                    if let (Some(Act::Acquire(_)), true, false) = (act, step.tried, polls) {
                        tried.insert(object, lane.acts.len());
                    }
                    lane.acts.extend(act);
                    if let Some(&condition) = self.counters.passes.get(&taken) {
                        let lock = object;
                        lane.acts.push(Act::Take { condition, lock });
                    }
                    if self.counts(step) && !is_after_condition(steps, at) {
                        lane.acts.push(Act::Operation);
                        self.operations += 1;
                    }
                    let before = at.checked_sub(1).map(|at| &steps[at]);
                    let waited = before.filter(|before| before.kind == Kind::Waits);
                    let waited_ns = waited.map_or(0, |before| step.ns - before.ns);
                    self.waits.push(waited_ns);
                    let of = self.locks.entry(object).or_default();
                    of.acquisitions += 1;
                    of.contended += u64::from(waited.is_some());
                    of.waited_ns += waited_ns;
                    of.place = of.place.or(step.place);
                    of.has_readers |= step.mode != 0;
                    if !of.lanes.contains(&number) {
                        of.lanes.push(number);
                    }
                    if self.lines.moved.contains(&taken) {
                        let lines = self.lines.lines.get(&object).copied().unwrap_or(0);
                        to_spare = lines as f64 * self.transfer_ns;
                    }
                }
                Kind::Yields => lane.acts.push(Act::Yield),
                Kind::Releases => {
                    let act = held.step(step);
                    lane.acts.extend(act);
                    if let (Some(Act::Release(_)), Some(from)) = (act, tried.remove(&object)) {
                        try_only(&mut lane.acts[from..]);
                    }
                    to_spare = 0.0;
                }
                Kind::Signals | Kind::Broadcasts => {
                    lane.signals += 1;
                    lane.acts.push(match self.counters.numbers.get(&object) {
                        Some(&condition) => Act::Give(condition),
                        None => Act::Signal,
                    });
                }
                _ => {}
            }
            self.until(
                thread,
                at,
                next,
                !held.locks.is_empty(),
                &mut to_spare,
                lane,
            );
        }
    }

    /// Whether a step is an operation.
    fn counts(&self, step: &Step) -> bool {
        let Some(wanted) = self.operation else {
            return true;
        };
        let place = step.place.map(|at| &self.recording.places[at as usize]);
        place.is_some_and(|place| is_place(place, wanted))
    }

    /// Adds what the thread did from a step to the next.
    fn until(
        &mut self,
        thread: usize,
        at: usize,
        next: &Step,
        holds: bool,
        to_spare: &mut f64,
        lane: &mut Lane,
    ) {
        let step = &self.threads[thread][at];
        let passed = next.ns - step.ns;
        // These times are the simulator's to find.
        match (step.kind, next.kind) {
            (Kind::Waits, _) | (Kind::Woken | Kind::Expired, Kind::Acquires) => {
                self.times.waiting += passed;
                return;
            }
            (Kind::Yields, Kind::Returns) => {
                self.times.preempted += next.away_ns.min(passed);
                self.times.computing += passed - next.away_ns.min(passed);
                return;
            }
            (Kind::Fails, Kind::Fails | Kind::Acquires | Kind::Waits)
                if step.object == next.object =>
            {
                self.times.waiting += passed;
                return;
            }
            (_, Kind::Woken) => {
                self.times.waiting += passed;
                lane.acts.push(self.wait(thread, at + 1, passed));
                return;
            }
            (_, Kind::Expired) => {
                self.times.waiting += passed;
                lane.acts.push(Act::Sleep(passed as f32));
                return;
            }
            (_, Kind::Returns) => {
                self.times.computing += passed;
                return;
            }
            _ => {}
        }
        let away = next.away_ns.min(passed);
        if away > 0 && next.slept {
            lane.acts.push(Act::Sleep(away as f32));
            self.times.asleep += away;
        } else {
            self.times.preempted += away;
        }
        self.times.computing += passed - away;
        let mut computed = (passed - away) as f64;
        if holds {
            let spared = to_spare.min(computed);
            computed -= spared;
            *to_spare -= spared;
        }
        if computed > 0.0 {
            lane.acts.push(Act::Compute(computed as f32));
        }
    }

    /// The wait that ended with a step.
    fn wait(&self, thread: usize, at: usize, passed: u64) -> Act {
        let ns = passed as f32;
        let ended = self.signals.ended_by.get(&Taken { thread, at });
        let signal = ended.and_then(|(signal, number)| {
            let of = self.lane_of.get(&signal.thread)?;
            let is_own = self.lane_of.get(&thread)?.lane == of.lane;
            let within = of.part.contains(&signal.at) && !is_own;
            within.then_some(Act::Await {
                lane: of.lane,
                signals: u32::try_from(i64::from(*number) + of.more).ok()?,
                ns,
            })
        });
        signal.unwrap_or(Act::Sleep(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::is_place;

    #[test]
    fn a_place_is_called_by_its_function() {
        for place in ["Get", "Get (program+0x10)", "Get db.cc:10"] {
            assert!(is_place(place, "Get") && is_place(place, place), "{place}");
            assert!(!is_place(place, "Ge"), "{place}");
        }
        assert!(is_place("void f<int, long> db.cc:10", "void f<int, long>"));
        assert!(!is_place("void f<int, long>", "void f<int,"));
    }
}
