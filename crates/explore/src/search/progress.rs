//! How far a search is, and the OS threads that take it further.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::limits::{LIMIT_OF_STATES, Limits, reason};
use crate::results::Coverage;

use super::expand::{Encoded, Expanded};
use super::known::Known;
use super::livelock::Edges;
use super::queue::Queue;
use super::tape::Tape;

/// The most states of a job.
const JOB: u32 = 256;
/// The limits are tested once in so many states.
const ROUND: u32 = 4096;
/// The fewest states in memory before they go to disk.
const FEW: usize = 1000;
/// In place of a state: the state before the first step.
const START: u32 = u32::MAX;

/// The number of bytes of an origin.
const ORIGIN: usize = 2 * size_of::<u32>();

/// The numbers of a search.
#[derive(Serialize, Deserialize)]
pub(super) struct Counts {
    found: u32,
    explored: u32,
    level_end: u32,
    depth: usize,
    transitions: usize,
    known_before: Vec<(u32, u32)>,
    /// The numbers of known states in sorted parts.
    known: Vec<u64>,
    twice: u32,
    waiting: usize,
    waiting_bytes: u64,
    /// The bytes of the edges.
    edges: u64,
}

/// How a search ended.
pub(super) enum Finish<H> {
    /// All states are explored.
    Complete,
    Unfinished(&'static str),
    /// A step from this state stopped. None: before the first state.
    Halt(Option<u32>, H),
    /// An assumption failed.
    Restart,
}

/// States to be explored.
pub(super) struct Job {
    pub(super) first: u32,
    /// Each with its length before it.
    bytes: Vec<u8>,
    /// Those that were known before, with the number that they had.
    known: Vec<(u32, u32)>,
}

impl Job {
    /// The states, each with the number under which it was known.
    pub(super) fn states(&self) -> impl Iterator<Item = (&[u8], Option<u32>)> {
        let mut rest = self.bytes.as_slice();
        (self.first..).map_while(move |number| {
            let (length, states) = rest.split_first_chunk()?;
            let (state, after) = states.split_at(u32::from_le_bytes(*length) as usize);
            rest = after;
            let mut known = self.known.iter();
            let known = known.find(|(twice, _)| *twice == number);
            Some((state, known.map(|(_, number)| *number)))
        })
    }
}

/// The states that those of a job lead to.
pub(super) struct Output<H> {
    first: u32,
    pub(super) expanded: Vec<Expanded<H>>,
    pub(super) found: Vec<Encoded>,
    pub(super) bytes: Vec<u8>,
}

impl<H> Default for Output<H> {
    fn default() -> Self {
        Self {
            first: 0,
            expanded: Vec::new(),
            found: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

impl<H> Output<H> {
    /// Makes this the output of the job that begins with `first`.
    pub(super) fn clear(&mut self, first: u32) {
        self.first = first;
        self.expanded.clear();
        self.found.clear();
        self.bytes.clear();
    }
}

/// How far a search is.
pub(super) struct Progress {
    known: Known,
    queue: Queue,
    edges: Edges,
    /// The states from which the states were first reached, and their numbers among the successors of
    /// those.
    origins: Tape,
    /// The number of states found, some of them twice.
    found: u32,
    /// The number of states found twice.
    twice: u32,
    /// Those that wait, with the number that they had before.
    known_before: HashMap<u32, u32>,
    /// The number of states that were explored, or are.
    given: u32,
    /// The number of states that were explored.
    explored: u32,
    level_end: u32,
    depth: usize,
    transitions: usize,
    most_bytes: usize,
    pub(super) results: BTreeSet<Vec<u64>>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            known: Known::new(),
            queue: Queue::new(),
            edges: Edges(Tape::default()),
            origins: Tape::default(),
            found: 0,
            twice: 0,
            known_before: HashMap::new(),
            given: 0,
            explored: 0,
            level_end: 0,
            depth: 0,
            transitions: 0,
            most_bytes: 0,
            results: BTreeSet::new(),
        }
    }

    pub(super) fn coverage(&self) -> Coverage {
        Coverage {
            states: (self.found - self.twice) as usize,
            transitions: self.transitions,
            waiting: self.queue.len(),
            depth: self.depth,
            memory: self.most_bytes.max(self.memory()),
            disk: self.on_disk(),
            local_states: 0,
            cut: false,
            delays_cut: false,
            merged: false,
        }
    }

    fn memory(&self) -> usize {
        self.known.memory() + self.queue.memory() + self.edges.0.memory() + self.origins.memory()
    }

    /// The number of bytes on disk.
    fn on_disk(&self) -> u64 {
        self.known.on_disk()
            + self.queue.on_disk()
            + self.edges.0.on_disk()
            + self.origins.on_disk()
    }

    /// Whether the search has not begun.
    pub(super) fn is_new(&self) -> bool {
        self.found == 0
    }

    /// Whether no state was lost, as when a disk fails.
    pub(super) fn is_whole(&self) -> bool {
        self.queue.len() == (self.found - self.explored) as usize
    }

    /// The numbers that [`read`](Self::read) needs. All states are compared with those on disk.
    pub(super) fn counts(&mut self) -> io::Result<Counts> {
        self.compare()?;
        Ok(Counts {
            found: self.found,
            explored: self.explored,
            level_end: self.level_end,
            depth: self.depth,
            transitions: self.transitions,
            known_before: self.known_before.iter().map(|(a, b)| (*a, *b)).collect(),
            known: self.known.parts(),
            twice: self.twice,
            waiting: self.queue.len(),
            waiting_bytes: self.queue.bytes(),
            edges: self.edges.0.len(),
        })
    }

    /// Writes the states, the edges and the origins to a file.
    pub(super) fn write(&self, file: &mut impl Write) -> io::Result<()> {
        self.known.write(file)?;
        self.queue.write(file)?;
        self.edges.0.write(0, file)?;
        self.origins.write(0, file)
    }

    /// Reads what [`write`](Self::write) has written.
    pub(super) fn read(
        counts: Counts,
        results: BTreeSet<Vec<u64>>,
        memory: Option<usize>,
        file: &mut impl Read,
    ) -> io::Result<Self> {
        let known = Known::read(&counts.known, counts.found, memory, file)?;
        let queue = Queue::read(counts.waiting, counts.waiting_bytes, file)?;
        let mut edges = Edges(Tape::default());
        edges.0.push_from(counts.edges, file)?;
        let mut origins = Tape::default();
        origins.push_from(u64::from(counts.found) * ORIGIN as u64, file)?;
        Ok(Self {
            known,
            queue,
            edges,
            origins,
            found: counts.found,
            twice: counts.twice,
            known_before: counts.known_before.into_iter().collect(),
            given: counts.explored,
            explored: counts.explored,
            level_end: counts.level_end,
            depth: counts.depth,
            transitions: counts.transitions,
            most_bytes: 0,
            results,
        })
    }

    /// Adds the states with which the search begins.
    pub(super) fn begin(&mut self, found: &[Encoded], bytes: &[u8]) {
        self.add_successors(START, found, 0, bytes);
    }

    /// The state from which another was first reached, and the number among its successors; None for
    /// the first state: the number among the first states.
    pub(super) fn origin(&self, number: u32) -> io::Result<(Option<u32>, usize)> {
        let mut bytes = [0; ORIGIN];
        self.origins
            .read(u64::from(number) * bytes.len() as u64, &mut bytes)?;
        let number = |i: usize| u32::from_le_bytes(bytes[4 * i..][..4].try_into().expect("four"));
        Ok((
            Some(number(0)).filter(|from| *from != START),
            number(1) as usize,
        ))
    }

    /// One of the states from which no progress leads to an end.
    pub(super) fn stranded(&self) -> io::Result<Option<u32>> {
        self.edges.stranded(self.found)
    }

    /// Takes states that wait; None: none waits.
    fn next_job(&mut self, workers: u32) -> io::Result<Option<Job>> {
        if self.queue.len() == 0 {
            return Ok(None);
        }
        if self.known.is_doubtful(self.given) {
            self.compare()?;
        }
        let waiting = self.queue.len() as u32;
        let count = (waiting / (2 * workers))
            .clamp(1, JOB)
            .min(ROUND - self.given % ROUND)
            .min(self.known.compared_from(self.given));
        let mut job = Job {
            first: self.given,
            bytes: Vec::new(),
            known: Vec::new(),
        };
        for number in self.given..self.given + count {
            if !self.queue.pop_into(&mut job.bytes)? {
                break;
            }
            self.given += 1;
            job.known.extend(
                self.known_before
                    .remove(&number)
                    .map(|known| (number, known)),
            );
        }
        Ok(Some(job))
    }

    /// Compares new states with those on disk.
    fn compare(&mut self) -> io::Result<()> {
        let twice = self.known.compare(self.found)?;
        self.twice += twice.len() as u32;
        self.known_before.extend(twice);
        Ok(())
    }

    /// Adds the output of the next job.
    fn add<H>(&mut self, output: &mut Output<H>) -> Result<(), Finish<H>> {
        let mut found = output.found.as_slice();
        let mut start = 0;
        for expanded in output.expanded.drain(..) {
            let number = self.explored;
            if number >= self.level_end && !matches!(expanded, Expanded::Known(_)) {
                self.level_end = self.found;
                self.depth += 1;
            }
            self.explored += 1;
            match expanded {
                Expanded::Known(before) => self.edges.push(&[before]),
                Expanded::End(results) => {
                    if !self.results.contains(&results) {
                        self.results.insert(results);
                    }
                    self.edges.push_end();
                }
                Expanded::Successors(count) => {
                    let (these, rest) = found.split_at(count);
                    start = self.add_successors(number, these, start, &output.bytes);
                    found = rest;
                }
                Expanded::Halt(halt) => return Err(Finish::Halt(Some(number), halt)),
            }
        }
        Ok(())
    }

    /// Records the successors of a state, and queues those that are new. Their bytes begin at `start`.
    fn add_successors(
        &mut self,
        from: u32,
        successors: &[Encoded],
        mut start: usize,
        bytes: &[u8],
    ) -> usize {
        let mut edges = Vec::with_capacity(successors.len());
        for (i, successor) in successors.iter().enumerate() {
            self.transitions += 1;
            let number = match self.known.find_or_add(successor.hash, self.found) {
                Some(known) => known,
                None => {
                    let origin = [from.to_le_bytes(), (i as u32).to_le_bytes()];
                    self.origins.push(origin.as_flattened());
                    self.queue.push(&bytes[start..successor.end]);
                    self.found += 1;
                    self.found - 1
                }
            };
            if successor.is_progress {
                edges.push(number);
            }
            start = successor.end;
        }
        if from != START {
            self.edges.push(&edges);
        }
        start
    }

    /// Moves to disk what can be read one after another, and known states if that is not enough.
    fn leave_memory(&mut self, limit: Option<usize>) -> io::Result<()> {
        self.queue.leave_memory()?;
        self.edges.0.leave_memory()?;
        self.origins.leave_memory()?;
        if limit.is_some_and(|memory| self.memory() > memory) && self.known.count() > FEW {
            self.compare()?;
            self.known.clear_memory()?;
        }
        Ok(())
    }

    /// Makes room if memory is full. Returns the reason if a limit is reached.
    fn keep_limits<H>(&mut self, limits: &Limits, begin: Instant) -> Result<(), Finish<H>> {
        self.most_bytes = self.most_bytes.max(self.memory());
        let failed = |error: io::Error| Finish::Unfinished(reason(&error));
        if limits.memory.is_some_and(|memory| self.memory() > memory) {
            if limits.disk == Some(0) {
                return Err(Finish::Unfinished("the memory limit is reached"));
            }
            self.leave_memory(limits.memory).map_err(failed)?;
        }
        if limits.disk.is_some_and(|most| self.on_disk() > most) {
            return Err(Finish::Unfinished("the disk limit is reached"));
        }
        if limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Finish::Unfinished("it was interrupted"));
        }
        if limits.time.is_some_and(|time| begin.elapsed() > time) {
            return Err(Finish::Unfinished("the time limit is reached"));
        }
        let states = self.found - self.twice;
        if limits.states.is_some_and(|most| states as usize > most) || self.found > START / 2 {
            return Err(Finish::Unfinished(LIMIT_OF_STATES));
        }
        Ok(())
    }
}

/// A search that OS threads take further.
pub(super) struct Shared<H> {
    inner: Mutex<Inner<H>>,
    /// There are more states, or the search has ended.
    more: Condvar,
    limits: Limits,
    begin: Instant,
}

struct Inner<H> {
    progress: Progress,
    /// The outputs of jobs that had others before them.
    early: BTreeMap<u32, Output<H>>,
    finish: Option<Finish<H>>,
}

impl<H> Inner<H> {
    /// Adds the output of a job, or keeps it until those before it have been added.
    fn add(&mut self, output: Output<H>) -> Result<Option<Output<H>>, Finish<H>> {
        let mut spare = None;
        self.early.insert(output.first, output);
        while let Some(next) = self.early.first_entry()
            && *next.key() == self.progress.explored
        {
            let mut output = next.remove();
            self.progress.add(&mut output)?;
            spare = Some(output);
        }
        Ok(spare)
    }
}

impl<H> Shared<H> {
    pub(super) fn new(progress: Progress, limits: Limits, begin: Instant) -> Self {
        Self {
            inner: Mutex::new(Inner {
                progress,
                early: BTreeMap::new(),
                finish: None,
            }),
            more: Condvar::new(),
            limits,
            begin,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<H>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the search when the OS thread that holds the guard panics, so that none waits for it.
    pub(super) fn end_on_panic(&self) -> impl Drop + use<'_, H> {
        struct Guard<'a, H>(&'a Shared<H>);
        impl<H> Drop for Guard<'_, H> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.finish(Finish::Unfinished("an OS thread panicked"));
                }
            }
        }
        Guard(self)
    }

    pub(super) fn coverage(&self) -> Coverage {
        self.lock().progress.coverage()
    }

    /// The next states to be explored, once there are any; None: the search has ended.
    pub(super) fn next_job(&self) -> Option<Job> {
        let mut inner = self.lock();
        loop {
            if inner.finish.is_some() {
                return None;
            }
            let Inner {
                progress, finish, ..
            } = &mut *inner;
            if progress.given.is_multiple_of(ROUND)
                && let Err(limit) = progress.keep_limits(&self.limits, self.begin)
            {
                *finish = Some(limit);
            } else {
                match progress.next_job(self.limits.threads.max(1) as u32) {
                    Ok(Some(job)) => return Some(job),
                    Ok(None) if progress.given == progress.explored => {
                        *finish = Some(Finish::Complete);
                    }
                    Ok(None) => {
                        inner = self
                            .more
                            .wait(inner)
                            .unwrap_or_else(PoisonError::into_inner);
                        continue;
                    }
                    Err(error) => *finish = Some(Finish::Unfinished(reason(&error))),
                }
            }
            self.more.notify_all();
        }
    }

    /// Adds what states lead to. Returns an output whose memory can be used again.
    pub(super) fn add(&self, output: Output<H>) -> Output<H> {
        let mut inner = self.lock();
        // A limit does not lose what others have found out meanwhile.
        if !matches!(inner.finish, None | Some(Finish::Unfinished(_))) {
            return Output::default();
        }
        let added = inner.add(output);
        self.more.notify_all();
        added
            .unwrap_or_else(|finish| {
                inner.finish = Some(finish);
                None
            })
            .unwrap_or_default()
    }

    /// Ends the search. An assumption that failed counts more than any other end.
    pub(super) fn finish(&self, finish: Finish<H>) {
        self.lock().finish = Some(finish);
        self.more.notify_all();
    }

    pub(super) fn into_parts(self) -> (Progress, Finish<H>) {
        let inner = self.inner.into_inner().expect("no OS thread panics");
        let finish = inner.finish.expect("the search has ended");
        (inner.progress, finish)
    }
}
