//! A proof by states with merged histories, each of which stands for many.
//!
//! For each key there is one state, which unites all that were found with that key. A state that has grown
//! is explored again. At the end, what a state leads to is within a known state. If none of them breaks a
//! promise, no run does. If one does, that says nothing: perhaps no run leads there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::limits::Limits;
use crate::model::{Model, Stop};
use crate::results::Coverage;

use super::expand::{Encoded, Expanded, Expander, Halt};
use super::livelock::Edges;
use super::tape::Tape;

/// The most states of a job.
const JOB: usize = 64;
/// The bytes that a state takes beside its own: its place, its box, and its entry in the table.
const BESIDE: usize = 64;

/// How a proof ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// No run breaks a promise.
    Proven,
    /// A state breaks a promise, or there are too many.
    Open,
    /// An assumption of the search failed.
    Restart,
}

struct Merged {
    bytes: Box<[u8]>,
    waits: bool,
    /// It was not explored before.
    is_new: bool,
}

/// States to be explored, each with whether it was not explored before.
struct Job {
    number: u64,
    states: Vec<(Box<[u8]>, bool)>,
}

/// A proof that OS threads work on.
pub struct Proof<'a> {
    inner: Mutex<Inner>,
    /// There are more states, it is another job's turn, or the proof has ended.
    more: Condvar,
    limits: &'a Limits,
    /// The most memory, in bytes, and the latest end.
    memory: Option<usize>,
    end: Option<Instant>,
}

struct Inner {
    /// The numbers of states, by their keys.
    known: HashTable<u32>,
    states: Vec<Merged>,
    waiting: VecDeque<u32>,
    edges: Edges,
    transitions: usize,
    bytes: usize,
    most_bytes: usize,
    /// The number of jobs that were given, and of those whose results were added.
    given: u64,
    added: u64,
    outcome: Option<Outcome>,
}

/// Buffers in which an OS thread unites states.
struct Workshop<M: Model> {
    one: M::State,
    other: M::State,
    bytes: Vec<u8>,
}

impl<'a> Proof<'a> {
    /// A proof that takes at most the memory, of which so many bytes are `used`, and half of the time that
    /// is left.
    pub fn new(limits: &'a Limits, used: usize, begin: Instant) -> Self {
        let left = |time: Duration| time.saturating_sub(begin.elapsed());
        Self {
            inner: Mutex::new(Inner {
                known: HashTable::new(),
                states: Vec::new(),
                waiting: VecDeque::new(),
                edges: Edges(Tape::default()),
                transitions: 0,
                bytes: 0,
                most_bytes: 0,
                given: 0,
                added: 0,
                outcome: None,
            }),
            more: Condvar::new(),
            limits,
            memory: limits.memory.map(|most| most.saturating_sub(used)),
            end: limits.time.map(|time| Instant::now() + left(time) / 2),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, inner: MutexGuard<'g, Inner>) -> MutexGuard<'g, Inner> {
        self.more
            .wait(inner)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the proof. An assumption that failed counts more than any other end.
    pub(super) fn finish(&self, outcome: Outcome) {
        let mut inner = self.lock();
        if inner.outcome != Some(Outcome::Restart) {
            inner.outcome = Some(outcome);
        }
        self.more.notify_all();
    }

    /// Ends the proof when the OS thread that holds the guard panics, so that none waits for it.
    fn end_on_panic(&self) -> impl Drop + use<'_, 'a> {
        struct Guard<'g, 'a>(&'g Proof<'a>);
        impl Drop for Guard<'_, '_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.finish(Outcome::Open);
                }
            }
        }
        Guard(self)
    }

    pub(super) fn coverage(&self) -> Coverage {
        let inner = self.lock();
        Coverage {
            states: inner.states.len(),
            transitions: inner.transitions,
            waiting: inner.waiting.len(),
            memory: inner.most_bytes.max(inner.memory()),
            disk: inner.edges.0.on_disk(),
            merged: true,
            ..Coverage::default()
        }
    }

    /// Finds the states that a run begins with.
    pub fn begin<M: Model>(&self, expander: &mut Expander<M>) {
        let successors = match expander.model.start() {
            Ok(state) => expander.settled(state).map_err(|(stop, _)| stop),
            Err(stop) => Err(stop),
        };
        match successors {
            Ok(successors) => {
                let (mut found, mut bytes) = (Vec::new(), Vec::new());
                expander.encode(successors, &mut found, &mut bytes);
                let mut workshop = Workshop::<M>::new();
                let mut inner = self.lock();
                let mut start = 0;
                for Encoded { end, .. } in found {
                    let state = &bytes[start..end];
                    if inner.add(state, &expander.model, &mut workshop).is_none() {
                        inner.outcome = Some(Outcome::Open);
                    }
                    start = end;
                }
            }
            Err(stop) => self.finish(after(&stop)),
        }
    }

    /// Explores states until the proof has ended. `show` is called between jobs.
    pub fn work<M: Model>(&self, expander: &mut Expander<M>, show: &mut dyn FnMut()) {
        let _guard = self.end_on_panic();
        let mut workshop = Workshop::<M>::new();
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        while let Some(job) = self.next_job() {
            show();
            let caught_up = expander.model.catch_up();
            found.clear();
            bytes.clear();
            let mut expanded = Vec::with_capacity(job.states.len());
            if caught_up.is_ok() {
                for (state, _) in &job.states {
                    expanded.push(expander.expand(state, &mut found, &mut bytes));
                }
            }
            let mut inner = self.lock();
            while inner.outcome.is_none() && inner.added != job.number {
                inner = self.wait(inner);
            }
            if inner.outcome.is_some() {
                return;
            }
            // Others may have added states with cells that were not known before.
            let added = caught_up
                .and_then(|()| expander.model.catch_up())
                .map_err(|stop| after(&stop))
                .and_then(|()| {
                    inner.add_all(
                        &job,
                        expanded,
                        &found,
                        &bytes,
                        &expander.model,
                        &mut workshop,
                    )
                });
            inner.added += 1;
            if let Err(outcome) = added {
                inner.outcome = Some(outcome);
            }
            drop(inner);
            self.more.notify_all();
        }
    }

    /// Takes states that wait; None: the proof has ended.
    fn next_job(&self) -> Option<Job> {
        let mut inner = self.lock();
        loop {
            if inner.outcome.is_none() {
                inner.outcome = self.limit(&mut inner);
            }
            if inner.outcome.is_some() {
                self.more.notify_all();
                return None;
            }
            if !inner.waiting.is_empty() {
                return Some(inner.job(self.limits.threads.max(1)));
            }
            if inner.added == inner.given {
                let states = inner.states.len() as u32;
                inner.outcome = Some(match inner.edges.stranded(states) {
                    Ok(None) => Outcome::Proven,
                    _ => Outcome::Open,
                });
                continue;
            }
            inner = self.wait(inner);
        }
    }

    /// The end of the proof if a limit is reached.
    fn limit(&self, inner: &mut Inner) -> Option<Outcome> {
        inner.most_bytes = inner.most_bytes.max(inner.memory());
        let limits = self.limits;
        let is_reached = self.memory.is_some_and(|most| inner.memory() > most)
            || limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
            || self.end.is_some_and(|end| Instant::now() > end)
            || inner.states.len() > u32::MAX as usize / 2;
        is_reached.then_some(Outcome::Open)
    }

    /// The states that were found, as bytes.
    pub fn states(&self) -> Vec<Box<[u8]>> {
        let inner = self.lock();
        inner
            .states
            .iter()
            .map(|state| state.bytes.clone())
            .collect()
    }

    /// How the proof has ended.
    pub fn outcome(self) -> Outcome {
        let inner = self.inner.into_inner().expect("no OS thread panics");
        inner.outcome.expect("the proof has ended")
    }
}

/// The outcome of a proof after a step that was not completed.
fn after<V>(stop: &Stop<V>) -> Outcome {
    match stop {
        Stop::Restart => Outcome::Restart,
        Stop::Violation(_) | Stop::TooLarge(_) => Outcome::Open,
    }
}

impl Inner {
    fn memory(&self) -> usize {
        self.bytes + self.states.len() * BESIDE + self.edges.0.memory()
    }

    fn job(&mut self, workers: usize) -> Job {
        let count = (self.waiting.len() / (2 * workers)).clamp(1, JOB);
        let states = self.waiting.drain(..count).map(|number| {
            let state = &mut self.states[number as usize];
            state.waits = false;
            let is_new = std::mem::take(&mut state.is_new);
            (state.bytes.clone(), is_new)
        });
        let states = states.collect();
        self.given += 1;
        Job {
            number: self.given - 1,
            states,
        }
    }

    /// Adds what the states of a job lead to.
    fn add_all<M: Model>(
        &mut self,
        job: &Job,
        expanded: Vec<Expanded<Halt<M>>>,
        found: &[Encoded],
        bytes: &[u8],
        model: &M,
        workshop: &mut Workshop<M>,
    ) -> Result<(), Outcome> {
        let mut found = found.iter();
        let mut start = 0;
        let mut edges = Vec::new();
        for (expanded, (_, is_new)) in expanded.into_iter().zip(&job.states) {
            edges.clear();
            match expanded {
                Expanded::Known(_) => unreachable!("only a search knows states"),
                Expanded::Halt((stop, _)) => return Err(after(&stop)),
                Expanded::End(_) if *is_new => self.edges.push_end(),
                Expanded::End(_) => {}
                Expanded::Successors(count) => {
                    for successor in found.by_ref().take(count) {
                        let bytes = &bytes[start..successor.end];
                        let number = self.add(bytes, model, workshop).ok_or(Outcome::Open)?;
                        edges.extend(successor.is_progress.then_some(number));
                        start = successor.end;
                    }
                    self.transitions += count;
                    // Progress is about newest values, which are the same when the state has grown.
                    if *is_new {
                        self.edges.push(&edges);
                    }
                }
            }
        }
        Ok(())
    }

    /// Unites a state with the known one of its key, and returns the number; None: there are too many
    /// older writes.
    fn add<M: Model>(
        &mut self,
        bytes: &[u8],
        model: &M,
        workshop: &mut Workshop<M>,
    ) -> Option<u32> {
        let hash = xxh3_64(M::key(bytes));
        let same = |number: &u32| M::key(&self.states[*number as usize].bytes) == M::key(bytes);
        if let Some(number) = self.known.find(hash, same).copied() {
            let known = &mut self.states[number as usize];
            if *known.bytes != *bytes && workshop.unite(&known.bytes, bytes, model)? {
                self.bytes += workshop.bytes.len();
                self.bytes -= known.bytes.len();
                known.bytes = workshop.bytes.as_slice().into();
                if !known.waits {
                    known.waits = true;
                    self.waiting.push_back(number);
                }
            }
            return Some(number);
        }
        let number = self.states.len() as u32;
        self.bytes += bytes.len();
        self.states.push(Merged {
            bytes: bytes.into(),
            waits: true,
            is_new: true,
        });
        let states = &self.states;
        let hash_of = |number: &u32| xxh3_64(M::key(&states[*number as usize].bytes));
        self.known.insert_unique(hash, number, hash_of);
        self.waiting.push_back(number);
        Some(number)
    }
}

impl<M: Model> Workshop<M> {
    fn new() -> Self {
        Self {
            one: M::empty(),
            other: M::empty(),
            bytes: Vec::new(),
        }
    }

    /// Unites two states of one key, and returns whether that is more than the first; None: there are too
    /// many older writes.
    fn unite(&mut self, one: &[u8], other: &[u8], model: &M) -> Option<bool> {
        model.decode(one, &mut self.one);
        model.decode(other, &mut self.other);
        model
            .unite(&mut self.one, &mut self.other, &mut self.bytes)
            .then(|| *one != *self.bytes)
    }
}
