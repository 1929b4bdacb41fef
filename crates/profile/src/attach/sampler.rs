//! Samples of the threads of a process: which wait for which lock, and what its holder does meanwhile.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use itertools::Itertools;
use nix::time::{ClockId, clock_gettime};
use syscalls::Sysno;

use crate::attach::process::{Process, State};
use crate::attach::wait::{For, Holder, Kind, Wait};
use crate::layout::What;
use crate::places::{Place, Places};
use crate::record::Acquisition;
use crate::slow::{Doing, SlowWaits};
use crate::stack::Unwinder;

/// The greatest share of this machine's CPUs that samples take.
const SHARE: f64 = 0.005;

/// How often code is read again at most.
const AGAIN: Duration = Duration::from_secs(1);

/// A process, and what was found in it so far.
pub struct Sampler {
    /// The process.
    pub process: Process,
    /// The sums of all samples since the last [`Sampler::take`].
    pub found: Found,
    threads: HashMap<u32, Thread>,
    unwinder: Unwinder,
    code_read: Instant,
    last: Option<Instant>,
    /// The places of calls, and the names of locks, that were looked up.
    places: HashMap<u64, Place>,
    names: HashMap<u64, String>,
    circle: Circle,
}

/// The threads of a circle of waits, each with how often it had had a CPU, and its lock.
type Circle = Vec<(u64, Option<u64>, u64)>;

/// A thread, as the last sample saw it.
struct Thread {
    name: String,
    /// The number in its own namespace.
    inner: u32,
    state: State,
    turns: Option<u64>,
    since: Instant,
    wait: Option<Wait>,
    /// The innermost call in the code of its program, if that was looked for.
    outside: Option<Option<Place>>,
}

/// The sums of samples.
#[derive(Default)]
pub struct Found {
    /// The time that was sampled.
    pub seconds: f64,
    /// The number of samples.
    pub samples: u64,
    /// The time that all threads together ran or could run.
    pub ran_ns: u64,
    /// The most threads at a time.
    pub threads: usize,
    /// The locks that threads waited for.
    pub locks: BTreeMap<u64, Lock>,
    /// The time of other waits, by the function and the place.
    pub others: BTreeMap<(String, Option<Place>), Other>,
    /// A circle of waits that was the same in two samples, by thread.
    pub deadlock: Vec<Acquisition>,
}

/// A lock that threads waited for.
pub struct Lock {
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// The places where threads waited, and how long.
    pub places: BTreeMap<Place, u64>,
    /// The threads that waited.
    pub threads: BTreeSet<u32>,
    /// The time that they waited, in nanoseconds.
    pub waited_ns: u64,
    /// The longest wait so far, in nanoseconds.
    pub longest_ns: u64,
    /// How many times a sample saw a thread wait for it.
    pub seen: u64,
    /// The occupation of holders meanwhile.
    pub meanwhile: SlowWaits,
}

impl Lock {
    fn new(kind: Kind, name: String) -> Self {
        Self {
            kind,
            name,
            places: BTreeMap::new(),
            threads: BTreeSet::new(),
            waited_ns: 0,
            longest_ns: 0,
            seen: 0,
            meanwhile: SlowWaits::default(),
        }
    }
}

/// Waits for something else.
#[derive(Default)]
pub struct Other {
    /// The time, in nanoseconds.
    pub waited_ns: u64,
    /// The threads that waited.
    pub threads: BTreeSet<u32>,
}

/// A wait that is in progress.
#[derive(serde::Serialize)]
pub struct Now {
    /// The thread.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Where it waits.
    pub place: Place,
    /// The lock that it waits for.
    pub lock: String,
    /// How long at least, in nanoseconds.
    pub waited_ns: u64,
    /// The thread that holds the lock. None: it is not known, or there are several.
    pub held_by: Option<u32>,
    /// The name of that thread.
    pub holder_name: Option<String>,
    /// Its occupation.
    pub holder: String,
    /// The calls on the stack of the thread, from inside to outside.
    pub stack: Vec<Place>,
    /// Those on the holder's stack, if it sleeps.
    pub holder_stack: Vec<Place>,
}

impl Sampler {
    /// A sampler of a process. It looks at the process once, which reads most of the symbols. That takes
    /// longer than many samples.
    pub fn new(process: Process, places: &mut Places) -> Self {
        let mut sampler = Self {
            process,
            found: Found::default(),
            threads: HashMap::new(),
            unwinder: Unwinder::default(),
            code_read: Instant::now(),
            last: None,
            places: HashMap::new(),
            names: HashMap::new(),
            circle: Circle::new(),
        };
        for tid in sampler.process.threads() {
            sampler.look_at(tid, places);
        }
        sampler.waits(places);
        sampler.threads.clear();
        sampler
    }

    /// What was found since the last call.
    pub fn take(&mut self) -> Found {
        std::mem::take(&mut self.found)
    }

    /// Looks at all threads once. False: the process has ended.
    pub fn sample(&mut self, places: &mut Places) -> bool {
        let tids = self.process.threads();
        let now = Instant::now();
        let elapsed = self
            .last
            .replace(now)
            .map_or(Duration::ZERO, |last| now - last);
        let ns = elapsed.as_nanos() as u64;
        self.threads
            .retain(|tid, _| tids.binary_search(tid).is_ok());
        for &tid in &tids {
            self.look_at(tid, places);
        }
        let Some(first) = tids.iter().find(|tid| self.threads.contains_key(tid)) else {
            return false;
        };
        self.process.read_by(*first);
        self.found.seconds += elapsed.as_secs_f64();
        self.found.samples += 1;
        self.found.threads = self.found.threads.max(tids.len());
        let mut acquisitions = Vec::new();
        let mut known: HashMap<u64, (Holder, Option<u32>, Doing)> = HashMap::new();
        for &tid in &tids {
            let Some(thread) = self.threads.get(&tid) else {
                continue;
            };
            if thread.state == State::Runs {
                self.found.ran_ns += ns;
            }
            let Some(wait) = thread.wait.clone() else {
                continue;
            };
            let (inner, since) = (thread.inner, thread.since);
            let place = self.place(wait.call, places);
            let (lock, kind) = match wait.what {
                For::Lock(lock, kind) => (lock, kind),
                For::Other(function) => {
                    let key = (function, wait.call.map(|_| place));
                    let other = self.found.others.entry(key).or_default();
                    other.waited_ns += ns;
                    other.threads.insert(tid);
                    continue;
                }
            };
            let waited_ns = since.elapsed().as_nanos() as u64;
            let (holder, _, doing) = match known.get(&lock) {
                Some(known) => known.clone(),
                None => self.holder(tid, &wait, places),
            };
            if let (Holder::Thread(number), false) = (holder, wait.is_timed) {
                acquisitions.extend(acquisitions_of(inner, number, lock, wait.call));
            }
            let name = self.lock_name(lock, places);
            let found = self
                .found
                .locks
                .entry(lock)
                .or_insert_with(|| Lock::new(kind, name));
            found.waited_ns += ns;
            found.seen += 1;
            found.longest_ns = found.longest_ns.max(waited_ns);
            found.threads.insert(tid);
            *found.places.entry(place).or_default() += ns;
            found.meanwhile.add(&doing, ns);
            if holder != Holder::Thread(inner) {
                known.insert(lock, (holder, None, doing));
            }
        }
        self.find_circle(acquisitions);
        true
    }

    /// The waits for locks in the last sample, the longest first.
    pub fn waits(&mut self, places: &mut Places) -> Vec<Now> {
        let waits = self.threads.iter().filter_map(|(tid, thread)| {
            let wait = thread.wait.clone()?;
            matches!(wait.what, For::Lock(..)).then_some((*tid, wait))
        });
        let waits: Vec<(u32, Wait)> = waits.sorted_by_key(|(tid, _)| *tid).collect();
        let mut now = Vec::new();
        for (tid, wait) in waits {
            // The thread may have ended while holders were looked at.
            let (For::Lock(lock, _), Some(thread)) = (&wait.what, self.threads.get(&tid)) else {
                continue;
            };
            let lock = *lock;
            let (name, since) = (thread.name.clone(), thread.since);
            let (_, held_by, doing) = self.holder(tid, &wait, places);
            now.push(Now {
                thread: tid,
                name,
                place: self.place(wait.call, places),
                lock: self.lock_name(lock, places),
                waited_ns: since.elapsed().as_nanos() as u64,
                held_by,
                holder_name: held_by.and_then(|tid| Some(self.threads.get(&tid)?.name.clone())),
                holder: meanwhile(&doing),
                stack: self.stack(tid, places),
                holder_stack: held_by.map_or(Vec::new(), |tid| self.stack(tid, places)),
            });
        }
        now.sort_by_key(|wait| Reverse(wait.waited_ns));
        now
    }

    /// The holder of the lock that a thread waits for, its thread, and its occupation.
    fn holder(
        &mut self,
        waiter: u32,
        wait: &Wait,
        places: &mut Places,
    ) -> (Holder, Option<u32>, Doing) {
        let holder = wait.holder(&self.process);
        let held_by = match holder {
            Holder::Thread(number) => self.by_number(number),
            _ => None,
        };
        if let Some(tid) = held_by {
            // It may have begun something else since the sample began.
            self.look_at(tid, places);
            let thread = self.threads.get(&tid);
            let waits_for_it = thread
                .and_then(|thread| thread.wait.as_ref())
                .is_some_and(|other| other.what == wait.what);
            // A thread that waited for the lock has just been given it. One that still waits for what it
            // holds has locked it twice.
            let is_given = waits_for_it != (tid == waiter);
            if is_given || wait.holder(&self.process) != holder {
                return (Holder::Free, None, self.doing(Holder::Free, None, places));
            }
        }
        (holder, held_by, self.doing(holder, held_by, places))
    }

    /// The thread that has this number in its own namespace.
    fn by_number(&self, number: u32) -> Option<u32> {
        let is_it = |tid: &u32| {
            self.threads
                .get(tid)
                .is_some_and(|thread| thread.inner == number)
        };
        // Nearly always the namespace is this one.
        Some(number)
            .filter(is_it)
            .or_else(|| self.threads.keys().copied().find(is_it))
    }

    /// Notes the state of a thread, and what it waits for.
    fn look_at(&mut self, tid: u32, places: &mut Places) {
        let Ok(state) = self.process.thread_state(tid) else {
            self.threads.remove(&tid);
            return;
        };
        let is_futex =
            matches!(state, State::Sleeps(number, ..) if number == Sysno::futex as usize);
        let now = Instant::now();
        let turns = is_futex.then(|| self.process.turns(tid)).flatten();
        if let Some(thread) = self.threads.get_mut(&tid) {
            if thread.state == state && thread.turns == turns {
                return;
            }
            (thread.state, thread.turns, thread.since) = (state, turns, now);
            (thread.wait, thread.outside) = (None, None);
        } else {
            let Some((name, inner)) = self.process.name_and_number(tid) else {
                return;
            };
            let thread = Thread {
                name,
                inner,
                state,
                turns,
                since: now,
                wait: None,
                outside: None,
            };
            self.threads.insert(tid, thread);
        }
        if !is_futex {
            return;
        }
        let State::Sleeps(_, _, frame) = state else {
            return;
        };
        let is_unknown = self.process.record.module(frame.code).is_none();
        if is_unknown && self.code_read.elapsed() > AGAIN {
            // If it fails, the process has ended, which the next sample notices.
            let _ = self.process.read_code();
            self.code_read = now;
            self.places.clear();
            self.names.clear();
        }
        let mut unwinder = std::mem::take(&mut self.unwinder);
        let mut known = std::mem::take(&mut self.places);
        let record = &self.process.record;
        let mut place_of = |call: u64| {
            known
                .entry(call)
                .or_insert_with(|| places.of(record, call))
                .clone()
        };
        let is_thread = |number: u32| self.by_number(number).is_some();
        let wait = Wait::of(
            &self.process,
            &state,
            is_thread,
            &mut unwinder,
            &mut place_of,
        );
        (self.unwinder, self.places) = (unwinder, known);
        // If it went on meanwhile, its stack was another one.
        let has_slept = self.process.turns(tid) == turns
            && self.process.thread_state(tid).is_ok_and(|now| now == state);
        if let Some(thread) = self.threads.get_mut(&tid) {
            match has_slept {
                true => thread.wait = wait,
                false => thread.state = State::Runs,
            }
        }
    }

    fn place(&mut self, call: Option<u64>, places: &mut Places) -> Place {
        let Some(call) = call else {
            return Place::default();
        };
        let record = &self.process.record;
        self.places
            .entry(call)
            .or_insert_with(|| places.of(record, call))
            .clone()
    }

    /// A lock as tables name it.
    fn lock_name(&mut self, lock: u64, places: &mut Places) -> String {
        let process = &self.process;
        let name = self.names.entry(lock).or_insert_with(|| {
            match places.variable(&process.record, lock) {
                Some(variable) => variable,
                None if process.is_on_heap(lock) => format!("heap object at {lock:#x}"),
                None => format!("object at {lock:#x}"),
            }
        });
        name.clone()
    }

    /// The occupation of the holder of a lock.
    fn doing(&mut self, holder: Holder, held_by: Option<u32>, places: &mut Places) -> Doing {
        let doing = |what| Doing {
            what,
            system_call: None,
            at: None,
            error: None,
            held_at: None,
        };
        let unseen = |why: &str| Doing {
            error: Some(why.to_owned()),
            ..doing(What::Unseen)
        };
        let thread = held_by.and_then(|tid| Some((tid, self.threads.get(&tid)?)));
        let Some((tid, thread)) = thread else {
            return match holder {
                Holder::Thread(_) => unseen("the thread that holds it has ended"),
                Holder::Readers => unseen("readers hold it"),
                Holder::Shared => unseen("another process may hold it"),
                Holder::Free => doing(What::InTurn),
                Holder::Unknown => unseen("the lock does not name its holder"),
            };
        };
        let (state, wait) = (thread.state, thread.wait.clone());
        match (state, wait) {
            (State::Runs, _) => doing(What::Ran),
            (State::Faults(_), _) if self.process.is_stopped(tid) => {
                unseen("the holder is stopped")
            }
            (State::Faults(frame), _) => Doing {
                at: Some(self.place(Some(frame.code), places)),
                ..doing(What::Faulted)
            },
            (State::Sleeps(number, ..), wait) => {
                let (what, call) = match &wait {
                    Some(Wait {
                        what: For::Lock(..),
                        ..
                    }) => (What::Nested, None),
                    Some(Wait {
                        what: For::Other(function),
                        ..
                    }) => (What::Slept, Some(function.clone())),
                    None => (
                        What::Slept,
                        Some(match Sysno::new(number) {
                            Some(call) => call.name().to_owned(),
                            None => format!("system call {number}"),
                        }),
                    ),
                };
                let at = match &wait {
                    Some(wait) => wait.call.map(|_| self.place(wait.call, places)),
                    None => self.outside_of_libc(tid, places),
                };
                Doing {
                    system_call: call,
                    at,
                    ..doing(what)
                }
            }
        }
    }

    /// The innermost call of a thread that sleeps in the code of its program.
    fn outside_of_libc(&mut self, tid: u32, places: &mut Places) -> Option<Place> {
        if let Some(known) = &self.threads.get(&tid)?.outside {
            return known.clone();
        }
        let stack = self.stack(tid, places);
        // If it went on meanwhile, its stack was another one.
        if self.process.thread_state(tid).ok()? != self.threads.get(&tid)?.state {
            return None;
        }
        let found = stack.into_iter().find(|place| !is_of_libc(place));
        self.threads.get_mut(&tid)?.outside = Some(found.clone());
        found
    }

    /// The calls on the stack of a thread that sleeps.
    fn stack(&mut self, tid: u32, places: &mut Places) -> Vec<Place> {
        let Some(State::Sleeps(_, _, frame) | State::Faults(frame)) =
            self.threads.get(&tid).map(|thread| thread.state)
        else {
            return Vec::new();
        };
        let memory = self.process.stack_memory(frame.stack);
        let record = &self.process.record;
        let stack = self
            .unwinder
            .stack(record, &memory, frame.code, frame.stack, None);
        let calls = stack.calls.into_iter();
        calls.map(|call| self.place(Some(call), places)).collect()
    }

    /// Notes a circle of waits. It is a deadlock if the same threads sleep the same sleeps in two samples.
    fn find_circle(&mut self, acquisitions: Vec<Acquisition>) {
        let circle = crate::deadlock::circle_of(&acquisitions);
        let circle: Circle = circle
            .iter()
            .filter_map(|wait| {
                let thread = self.threads.get(&self.by_number(wait.thread as u32)?)?;
                Some((wait.thread, thread.turns, wait.lock))
            })
            .collect();
        if !circle.is_empty() && circle == self.circle {
            self.found.deadlock = acquisitions;
        }
        self.circle = circle;
    }
}

/// A wait and the hold that it waits for.
fn acquisitions_of(waiter: u32, holder: u32, lock: u64, call: Option<u64>) -> [Acquisition; 2] {
    let wait = Acquisition {
        thread: waiter.into(),
        node: None,
        lock,
        call: Some(call.unwrap_or_default()),
        begun: None,
        acquired: None,
        released: None,
    };
    let hold = Acquisition {
        thread: holder.into(),
        call: None,
        acquired: Some(0),
        ..wait
    };
    [wait, hold]
}

fn is_of_libc(place: &Place) -> bool {
    let file = place.module.as_deref().and_then(|path| path.file_name());
    file.is_some_and(|name| name == "libc.so.6" || name == "libpthread.so.0")
}

/// The occupation of a holder, in words.
pub fn meanwhile(doing: &Doing) -> String {
    let at = || {
        doing
            .at
            .as_ref()
            .map_or(String::new(), |place| format!(" at {}", place.name()))
    };
    match doing.what {
        What::Ran => "holder ran, or had no CPU".to_owned(),
        What::InTurn => "lock changed hands".to_owned(),
        What::Slept => format!("{}{}", doing.words(), at()),
        What::Unseen => doing.error.clone().unwrap_or_default(),
        _ => doing.words(),
    }
}

/// The rate of samples, lowered so far that they take little of a CPU.
pub struct Pace {
    interval: Duration,
    cost: Duration,
    cpus: f64,
    nth: u32,
}

impl Pace {
    /// A pace of `hz` samples a second at most.
    pub fn new(hz: u32) -> Self {
        Self {
            interval: Duration::from_secs(1) / hz,
            cost: Duration::ZERO,
            cpus: std::thread::available_parallelism().map_or(1, usize::from) as f64,
            nth: 0,
        }
    }

    /// Runs a step, and returns how long to wait for the next one. Lengths differ, so that a program that
    /// does something at regular times is not always met at the same point.
    pub fn step<T>(&mut self, step: impl FnOnce() -> T) -> (T, Duration) {
        let (result, interval) = self.regular_step(step);
        let golden = (f64::from(self.nth) * 0.618_034).fract();
        (result, interval.mul_f64(0.5 + golden))
    }

    /// The same with waits that do not differ.
    pub fn regular_step<T>(&mut self, step: impl FnOnce() -> T) -> (T, Duration) {
        let used = || {
            clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
        };
        let before = used();
        let result = step();
        let cost = used().saturating_sub(before);
        self.add(cost);
        let interval = self.interval.max(self.cost.div_f64(SHARE * self.cpus));
        (result, interval)
    }

    /// Adds the cost of a step to the mean. A step counts as little more than twice the mean, so that one that reads
    /// symbols counts little, and steps that all take long count in full.
    fn add(&mut self, cost: Duration) {
        let most = self.cost * 2 + Duration::from_millis(2);
        self.cost = match self.nth {
            0 => Duration::ZERO,
            _ => (self.cost * 7 + cost.min(most)) / 8,
        };
        self.nth += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_take_long_are_seldom_and_one_of_them_is_forgotten() {
        let mut pace = Pace::new(100);
        let (long, short) = (Duration::from_millis(50), Duration::from_micros(100));
        (0..200).for_each(|_| pace.add(long));
        assert!(pace.cost > long * 9 / 10, "{:?}", pace.cost);
        let mut pace = Pace::new(100);
        (0..200).for_each(|_| pace.add(short));
        pace.add(Duration::from_secs(1));
        assert!(pace.cost < short * 10, "{:?}", pace.cost);
    }
}
