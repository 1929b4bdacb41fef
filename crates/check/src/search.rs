//! The search through all states of a check, breadth first.
//!
//! The search keeps each state as a 128-bit hash of its bytes, with the state it was first reached
//! from. Only states that are still to be explored are kept whole.

mod livelock;
mod run;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use xxhash_rust::xxh3::xxh3_128;

use crate::model::{Choice, Model, Stop};
use crate::results::{Broken, Coverage, End};
use crate::state::State;
use crate::violation::Violation;

/// The most local steps in a row; a thread that takes more is assumed never to stop.
const MOST_LOCAL_STEPS: usize = 1000;

/// The limits at which a search ends before it has explored all states.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest time.
    pub time: Option<Duration>,
    /// The most memory, in bytes, approximately.
    pub memory: Option<usize>,
    /// The most states.
    pub states: Option<usize>,
}

/// The reason of [`End::Unfinished`] at the limit of states.
pub const LIMIT_OF_STATES: &str = "the limit of states is reached";

impl Limits {
    /// No limits.
    pub const NONE: Self = Self {
        time: None,
        memory: None,
        states: None,
    };
}

/// The options and callbacks of a search.
pub(crate) struct SearchPlan<'a> {
    pub(crate) limits: &'a Limits,
    /// Take local steps at once, without a choice between threads.
    pub(crate) reduce: bool,
    pub(crate) begin: Instant,
    /// Called with the results of each run's end.
    pub(crate) ended: &'a mut dyn FnMut(Vec<u64>),
    /// Called from time to time.
    pub(crate) progress: &'a mut dyn FnMut(&Coverage),
}

/// The state from which a state was first reached.
#[derive(Clone, Copy)]
struct Origin {
    state: u32,
    /// The number of the state among that one's successors.
    successor: u32,
}

const START: u32 = u32::MAX;

/// A thread, and its choice in a state.
type Move = (u8, Choice);

struct Successor<const N: usize> {
    state: State<N>,
    moves: Vec<Move>,
    /// The moves need no old values, interruptions or spurious wake-ups.
    is_progress: bool,
}

/// The reason why the expansion of a state stopped, and the moves up to there.
type Halt = (Stop, Vec<Move>);

pub(crate) struct Search<'a, const N: usize> {
    pub(crate) model: Model<'a, N>,
    reduce: bool,
    /// The hashes of the states, in the order in which they were found.
    hashes: Vec<u128>,
    /// The numbers of the states, by hash.
    known: HashTable<u32>,
    origins: Vec<Origin>,
    /// The successors by progress of all explored states, those of one state after another.
    edges: Vec<u32>,
    /// The number of successors by progress of each state.
    degrees: Vec<u32>,
    /// States where all threads have ended.
    ends: Vec<u32>,
    waiting: VecDeque<Box<[u8]>>,
    waiting_bytes: usize,
    most_bytes: usize,
    depth: usize,
    transitions: usize,
    buffer: Vec<u8>,
    spare: Spare<N>,
}

/// Objects that are no longer needed, kept for their memory.
#[derive(Default)]
struct Spare<const N: usize> {
    states: Vec<State<N>>,
    moves: Vec<Vec<Move>>,
    choices: Vec<Vec<Choice>>,
    found: Vec<Successor<N>>,
}

impl<const N: usize> Spare<N> {
    fn copy(&mut self, state: &State<N>) -> State<N> {
        match self.states.pop() {
            Some(mut copy) => {
                copy.copy_from(state);
                copy
            }
            None => state.clone(),
        }
    }

    fn moves(&mut self, moves: &[Move]) -> Vec<Move> {
        let mut copy = self.moves.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(moves);
        copy
    }
}

impl<'a, const N: usize> Search<'a, N> {
    pub(crate) fn new(model: Model<'a, N>, reduce: bool) -> Self {
        Self {
            model,
            reduce,
            hashes: Vec::new(),
            known: HashTable::new(),
            origins: Vec::new(),
            edges: Vec::new(),
            degrees: Vec::new(),
            ends: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            most_bytes: 0,
            depth: 0,
            transitions: 0,
            buffer: Vec::new(),
            spare: Spare::default(),
        }
    }

    pub(crate) fn coverage(&self) -> Coverage {
        Coverage {
            states: self.origins.len(),
            transitions: self.transitions,
            waiting: self.waiting.len(),
            depth: self.depth,
            memory: self.most_bytes,
            local_states: self.model.automata.locals.len(),
            cut: self.model.cut,
        }
    }

    fn bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u128>()
            + self.known.allocation_size()
            + self.origins.capacity() * size_of::<Origin>()
            + self.edges.capacity() * size_of::<u32>()
            + self.degrees.capacity() * size_of::<u32>()
            + self.waiting_bytes
    }

    /// Runs the search. None: an assumption failed, and the search must start again.
    pub(crate) fn run(&mut self, plan: &mut SearchPlan) -> Option<End> {
        let mut level_end = 0;
        let first = match self.model.start() {
            Ok(state) => self.settled(state),
            Err(stop) => Err((stop, Vec::new())),
        };
        match first {
            Ok(successors) => self.keep(START, successors),
            Err(halt) => return self.halted(START, halt),
        }
        let mut state = State::new(std::iter::empty(), Rc::new([]));
        while let Some(bytes) = self.waiting.pop_front() {
            let number = self.degrees.len() as u32;
            if number as usize == level_end {
                level_end = self.origins.len();
                self.depth += 1;
            }
            self.waiting_bytes -= bytes.len() + size_of::<Box<[u8]>>();
            if number.is_multiple_of(4096) {
                self.most_bytes = self.most_bytes.max(self.bytes());
                (plan.progress)(&self.coverage());
                if let Some(reason) = self.exceeded(plan) {
                    return Some(End::Unfinished(reason));
                }
            }
            self.model.decode(&bytes, &mut state);
            if self.model.is_over(&state) {
                if let Err(violation) = self.model.check_end(&state) {
                    return self.halted(number, (violation.into(), Vec::new()));
                }
                (plan.ended)(self.model.results(&state));
                self.ends.push(number);
                self.degrees.push(0);
                continue;
            }
            match self.successors(&state) {
                Ok(successors) => {
                    if !successors.iter().any(|s| s.is_progress) {
                        let deadlock = self.model.deadlock(&state);
                        return self.halted(number, (deadlock.into(), Vec::new()));
                    }
                    self.keep(number, successors);
                }
                Err(halt) => return self.halted(number, halt),
            }
        }
        self.most_bytes = self.most_bytes.max(self.bytes());
        match self.stranded() {
            Some(number) => self.halted(number, (Violation::Livelock.into(), Vec::new())),
            None => Some(End::Kept),
        }
    }

    fn exceeded(&self, plan: &SearchPlan) -> Option<&'static str> {
        let limits = plan.limits;
        if limits.time.is_some_and(|time| plan.begin.elapsed() > time) {
            return Some("the time limit is reached");
        }
        if limits.memory.is_some_and(|memory| self.bytes() > memory) {
            return Some("the memory limit is reached");
        }
        if limits
            .states
            .is_some_and(|states| self.origins.len() > states)
            || self.origins.len() >= START as usize
        {
            return Some(LIMIT_OF_STATES);
        }
        None
    }

    /// Records the successors of a state, and queues those that are new.
    fn keep(&mut self, from: u32, mut successors: Vec<Successor<N>>) {
        let edges = self.edges.len();
        for (i, mut successor) in successors.drain(..).enumerate() {
            self.transitions += 1;
            self.model.encode(&mut successor.state, &mut self.buffer);
            let hash = xxh3_128(&self.buffer);
            let hashes = &mut self.hashes;
            let known = self.known.entry(
                hash as u64,
                |number| hashes[*number as usize] == hash,
                |number| hashes[*number as usize] as u64,
            );
            let number = match known {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let number = self.origins.len() as u32;
                    new.insert(number);
                    hashes.push(hash);
                    self.origins.push(Origin {
                        state: from,
                        successor: i as u32,
                    });
                    let bytes: Box<[u8]> = self.buffer.as_slice().into();
                    self.waiting_bytes += bytes.len() + size_of::<Box<[u8]>>();
                    self.waiting.push_back(bytes);
                    number
                }
            };
            if successor.is_progress && from != START {
                self.edges.push(number);
            }
            self.spare.states.push(successor.state);
            self.spare.moves.push(successor.moves);
        }
        self.spare.found = successors;
        if from != START {
            self.degrees.push((self.edges.len() - edges) as u32);
        }
    }

    /// The states after one step of a thread and all local steps that follow.
    fn successors(&mut self, state: &State<N>) -> Result<Vec<Successor<N>>, Halt> {
        let mut found = std::mem::take(&mut self.spare.found);
        let mut choices = self.spare.choices.pop().unwrap_or_default();
        for thread in 0..state.threads.len() {
            self.model
                .choices(state, thread, &mut choices)
                .map_err(|stop| (stop, Vec::new()))?;
            for choice in &choices {
                let moves = self.spare.moves(&[(thread as u8, *choice)]);
                let mut next = self.spare.copy(state);
                if let Err(stop) = self.model.apply(&mut next, thread, *choice) {
                    return Err((stop, moves));
                }
                let is_progress = choice.is_progress();
                self.settle(next, moves, is_progress, &mut found)?;
            }
        }
        self.spare.choices.push(choices);
        Ok(found)
    }

    fn settled(&mut self, state: State<N>) -> Result<Vec<Successor<N>>, Halt> {
        let mut found = Vec::new();
        self.settle(state, Vec::new(), true, &mut found)?;
        Ok(found)
    }

    /// Takes all local steps.
    fn settle(
        &mut self,
        mut state: State<N>,
        mut moves: Vec<Move>,
        mut is_progress: bool,
        found: &mut Vec<Successor<N>>,
    ) -> Result<(), Halt> {
        let mut choices = self.spare.choices.pop().unwrap_or_default();
        while self.reduce
            && let Some(thread) = (0..state.threads.len()).find(|t| self.model.is_local(&state, *t))
        {
            if moves.len() > MOST_LOCAL_STEPS {
                let reason = "a thread that never touches what others do";
                return Err((Stop::TooLarge(reason), moves));
            }
            if let Err(stop) = self.model.choices(&state, thread, &mut choices) {
                return Err((stop, moves));
            }
            let last = choices.len() - 1;
            for choice in &choices[..last] {
                let mut next = self.spare.copy(&state);
                let mut moves = self.spare.moves(&moves);
                moves.push((thread as u8, *choice));
                if let Err(stop) = self.model.apply(&mut next, thread, *choice) {
                    return Err((stop, moves));
                }
                let is_progress = is_progress && choice.is_progress();
                self.settle(next, moves, is_progress, found)?;
            }
            is_progress &= choices[last].is_progress();
            moves.push((thread as u8, choices[last]));
            if let Err(stop) = self.model.apply(&mut state, thread, choices[last]) {
                return Err((stop, moves));
            }
        }
        self.spare.choices.push(choices);
        found.push(Successor {
            state,
            moves,
            is_progress,
        });
        Ok(())
    }

    /// The end of the search that follows from a halt in state `number`.
    fn halted(&mut self, number: u32, (stop, last): Halt) -> Option<End> {
        match stop {
            Stop::Restart => None,
            Stop::TooLarge(reason) => Some(End::Unfinished(reason)),
            Stop::Violation(found) => {
                let (steps, violation) = self.run_to(number, &last, found);
                Some(End::Broken(Broken {
                    violation,
                    steps,
                    shortest: false,
                }))
            }
        }
    }
}
