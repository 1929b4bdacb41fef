//! The search through all states of a check, breadth first.
//!
//! The search keeps each state as a 128-bit hash of its bytes, with the state it was first reached
//! from. Only states that are still to be explored are kept whole.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::automaton::{Automata, Surroundings};
use crate::cells::{Findings, VIEWS};
use crate::config::{Config, ConfigError, Memory, Subject};
use crate::headers::{Client, LitmusTest};
use crate::hooks;
use crate::layout;
use crate::model::{Choice, Model, Stop};
use crate::mutation::{self, Change, Mutation};
use crate::state::State;
use crate::symmetry::{Renaming, Symmetry};
use crate::violation::Violation;

/// A step: which thread, and which of its choices.
pub(crate) type Step = (u8, u16);

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

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// All states were explored, and no promise is broken in any.
    Kept,
    /// A promise was broken.
    Broken(Broken),
    /// Not all states were explored, for this reason: a limit, or a state that cannot be encoded.
    Unfinished(&'static str),
}

/// A broken promise, and the run that breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The promise.
    pub violation: Violation,
    pub(crate) steps: Vec<Step>,
    /// No shorter run breaks a promise.
    pub shortest: bool,
}

impl Broken {
    /// The number of operations and interruptions up to the violation.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// The number of different states.
    pub states: usize,
    /// The number of transitions between states.
    pub transitions: usize,
    /// The number of states found but not explored.
    pub waiting: usize,
    /// The greatest distance of a state from the start, in states.
    pub depth: usize,
    /// The most memory that the search used, in bytes, by its own count.
    pub memory: usize,
    /// The number of local states of threads.
    pub local_states: usize,
    /// The staleness bound may have left out reads.
    pub cut: bool,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the search ended.
    pub end: End,
    /// The extent of the search.
    pub coverage: Coverage,
    /// The duration of the search.
    pub time: Duration,
    /// For each operation, by the number of its site: whether any run performed it.
    pub covered: Vec<bool>,
    /// The events that the lock counted.
    pub events: Vec<Event>,
}

/// An event that a lock counted; `locks/registry/events_list.h` lists all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Event {
    /// The event's name.
    pub name: &'static str,
    /// The event was counted while the lock word had a tail.
    pub queued: bool,
    /// The event was counted while the lock word had no tail.
    pub empty: bool,
}

impl Event {
    fn of([empty, queued]: [u64; 2]) -> Vec<Self> {
        hooks::event_names()
            .enumerate()
            .map(|(i, name)| Self {
                name,
                queued: queued & 1 << i != 0,
                empty: empty & 1 << i != 0,
            })
            .filter(|event| event.queued || event.empty)
            .collect()
    }
}

impl Outcome {
    /// Whether all runs were explored, or a promise is broken.
    pub fn is_complete(&self) -> bool {
        !matches!(self.end, End::Unfinished(_)) && !self.coverage.cut
    }
}

/// A check that can be run.
pub struct Check<'a> {
    pub(crate) config: &'a Config,
    pub(crate) subject: Subject,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) program: unsafe extern "C" fn(*const Client, u32),
    /// NULL if the check is no litmus test.
    pub(crate) litmus: *const LitmusTest,
    /// Threads that behave alike may change places.
    pub(crate) symmetric: bool,
}

impl<'a> Check<'a> {
    /// A check of `config`'s lock or lockref, changed by `mutation`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn new(config: &'a Config, mutation: Option<Mutation>) -> Result<Self, ConfigError> {
        let subject = config.subject()?;
        Ok(Self {
            config,
            subject,
            mutation,
            program: match subject {
                Subject::Lock(_) => hooks::lw_check_thread,
                Subject::Lockref(_) => hooks::lw_check_lockref_thread,
                Subject::Cond(_) => hooks::lw_check_cond_thread,
            },
            litmus: std::ptr::null(),
            // The threads of a lockref, and of a condition variable, behave differently.
            symmetric: matches!(subject, Subject::Lock(_)),
        })
    }

    /// The ways in which threads may change places.
    fn symmetry(&self) -> Rc<Symmetry> {
        let config = self.config;
        Symmetry::new(config.threads, |one, other| {
            let alike = |of: &dyn Fn(usize) -> bool| of(one) == of(other);
            self.symmetric
                && config.node(one) == config.node(other)
                && alike(&|thread| config.has_slot(thread))
                && alike(&|thread| config.priority.contains(&thread))
                // Every other thread begins with a trylock.
                && (!config.trylock || alike(&|thread| thread % 2 == 0))
        })
    }

    /// Makes random runs before the search, which yield most of the findings that it relies on.
    /// None: views need more entries.
    pub(crate) fn rehearse<const N: usize>(&self, findings: &mut Findings) -> Option<Automata> {
        let mut random = Pcg32::seed_from_u64(REHEARSALS);
        let mut automata = Automata::new(self.surroundings(), self.symmetry());
        let mut choices = Vec::new();
        for _ in 0..REHEARSALS {
            let mut model = self.model::<N>(findings, automata);
            let mut run = || -> Result<(), Stop> {
                let mut state = model.start()?;
                for _ in 0..REHEARSED_STEPS {
                    let thread = random.random_range(0..state.threads.len());
                    model.choices(&state, thread, &mut choices)?;
                    if let Some(choice) = choices.choose(&mut random) {
                        model.apply(&mut state, thread, *choice)?;
                    }
                }
                Ok(())
            };
            // The search finds a violation too.
            _ = run();
            automata = model.automata;
            if findings.view != N {
                return None;
            }
        }
        Some(automata)
    }

    /// The check's model, on automata of this check.
    pub(crate) fn model<'f, const N: usize>(
        &self,
        findings: &'f mut Findings,
        automata: Automata,
    ) -> Model<'f, N>
    where
        'a: 'f,
    {
        Model::new(self.config, self.subject, self.mutation, findings, automata)
    }

    /// The first assumptions of a search.
    pub(crate) fn findings(&self) -> Findings {
        Findings::new(match self.config.memory {
            Memory::Weak => VIEWS[0],
            Memory::Sc => 0,
        })
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let config = self.config;
        let inverted = self
            .mutation
            .is_some_and(|m| m.change == Change::InvertPriority);
        Surroundings {
            client: Client {
                lock: self.subject.lock(),
                locks: std::array::from_fn(layout::lock),
                data: std::array::from_fn(layout::data),
                threads: config.threads as u32,
                acquisitions: config.acquisitions,
                two_locks: config.locks == 2,
                trylock: config.trylock,
                cancel: config.cancel,
                lockref: match self.subject {
                    Subject::Lock(_) | Subject::Cond(_) => std::ptr::null(),
                    Subject::Lockref(lockref) => lockref,
                },
                object: layout::variables(),
                litmus: self.litmus,
                variables: layout::variables(),
            },
            has_slot: (0..config.threads).map(|t| config.has_slot(t)).collect(),
            numa_nodes: (0..config.threads).map(|t| config.node(t)).collect(),
            priority: (0..config.threads)
                .map(|t| config.priority.contains(&t) != inverted)
                .collect(),
            tunables: mutation::tunables(self.mutation, config.tunables),
            split_release: config.split_release,
            mutation: self.mutation,
            tail_word: self.subject.lock().has_tail_word(),
            program: self.program,
        }
    }

    /// Explores all states, and calls `progress` from time to time.
    pub fn run(&self, limits: &Limits, progress: &mut dyn FnMut(&Coverage)) -> Outcome {
        self.search(limits, true, &mut |_| {}, progress)
    }

    /// Searches for the shortest run that breaks a promise, where one that does is known.
    pub fn shorten(&self, limits: &Limits, broken: Broken) -> Broken {
        let outcome = self.search(limits, false, &mut |_| {}, &mut |_| {});
        match outcome.end {
            End::Broken(shorter) => Broken {
                shortest: true,
                ..shorter
            },
            _ => broken,
        }
    }

    pub(crate) fn search(
        &self,
        limits: &Limits,
        reduce: bool,
        ended: &mut dyn FnMut(Vec<u64>),
        progress: &mut dyn FnMut(&Coverage),
    ) -> Outcome {
        let begin = Instant::now();
        let mut findings = self.findings();
        let mut plan = SearchPlan {
            limits,
            reduce,
            begin,
            ended,
            progress,
        };
        loop {
            let outcome = match findings.view {
                0 => self.attempt::<0>(&mut findings, &mut plan),
                32 => self.attempt::<32>(&mut findings, &mut plan),
                64 => self.attempt::<64>(&mut findings, &mut plan),
                _ => self.attempt::<128>(&mut findings, &mut plan),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// Searches with views of N entries. None: N is too small.
    fn attempt<const N: usize>(
        &self,
        findings: &mut Findings,
        plan: &mut SearchPlan,
    ) -> Option<Outcome> {
        let mut automata = self.rehearse::<N>(findings)?;
        while findings.view == N {
            let mut search = Search::new(self.model::<N>(findings, automata), plan.reduce);
            if let Some(end) = search.run(plan) {
                return Some(Outcome {
                    end,
                    coverage: search.coverage(),
                    time: plan.begin.elapsed(),
                    events: Event::of(search.model.events),
                    covered: search.model.covered,
                });
            }
            automata = search.model.automata;
        }
        None
    }
}

/// The options and callbacks of a search.
struct SearchPlan<'a> {
    limits: &'a Limits,
    /// Take local steps at once, without a choice between threads.
    reduce: bool,
    begin: Instant,
    /// Called with the results of each run's end.
    ended: &'a mut dyn FnMut(Vec<u64>),
    /// Called from time to time.
    progress: &'a mut dyn FnMut(&Coverage),
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

/// A run in which each thread keeps its name.
struct Run<const N: usize> {
    steps: Vec<Step>,
    state: State<N>,
    /// The names of its threads in the state of the search.
    names: Renaming,
}

struct Search<'a, const N: usize> {
    model: Model<'a, N>,
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
    fn new(model: Model<'a, N>, reduce: bool) -> Self {
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

    fn coverage(&self) -> Coverage {
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
    fn run(&mut self, plan: &mut SearchPlan) -> Option<End> {
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
            Stop::Anew => None,
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

    /// The run that first reached a state, followed by the `last` moves, which break a promise; and
    /// the violation in terms of this run.
    fn run_to(&mut self, number: u32, last: &[Move], found: Violation) -> (Vec<Step>, Violation) {
        let mut way = Vec::new();
        let mut at = number;
        while at != START {
            let origin = self.origins[at as usize];
            way.push(origin.successor as usize);
            at = origin.state;
        }
        let Ok(start) = self.model.start() else {
            return (Vec::new(), found);
        };
        let mut run = Run {
            steps: Vec::new(),
            names: Renaming::identity(start.threads.len()),
            state: start.clone(),
        };
        let mut state = None;
        for i in way.into_iter().rev() {
            let successors = match state {
                None => self.settled(start.clone()),
                Some(ref state) => self.successors(state),
            };
            let Ok(successors) = successors else {
                unreachable!("this state was passed before");
            };
            let mut next = successors.into_iter().nth(i).expect("it was found here");
            let broken = self.follow(&mut run, &next.moves);
            assert_eq!(broken, None, "this state was passed before");
            let renaming = self.model.encode(&mut next.state, &mut self.buffer);
            self.model.normalise(&mut run.state);
            run.names = run.names.then(self.model.renaming(renaming));
            self.model.decode(&self.buffer, &mut next.state);
            state = Some(next.state);
        }
        let violation = match (self.follow(&mut run, last), found) {
            (Some(broken), _) => broken,
            (None, Violation::Deadlock { .. }) => self.model.deadlock(&run.state),
            (None, found) => found,
        };
        (run.steps, violation)
    }

    /// Repeats moves in a run, up to a violation.
    fn follow(&mut self, run: &mut Run<N>, moves: &[Move]) -> Option<Violation> {
        let mut choices = Vec::new();
        for (thread, choice) in moves {
            let thread = run.names.old(usize::from(*thread));
            let names = run.names.inverse();
            let choice = self
                .model
                .renamed_choice(&run.state, thread, *choice, &names);
            let listed = self.model.choices(&run.state, thread, &mut choices);
            let step = choices.iter().position(|other| *other == choice);
            let (Ok(()), Some(step)) = (listed, step) else {
                unreachable!("threads that do alike have the same choices");
            };
            run.steps.push((thread as u8, step as u16));
            match self.model.apply(&mut run.state, thread, choice) {
                Ok(()) => {}
                Err(Stop::Violation(violation)) => return Some(violation),
                Err(_) => unreachable!("this step was made before"),
            }
        }
        None
    }

    /// A state from which no progress leads to an end: a livelock.
    fn stranded(&self) -> Option<u32> {
        if !self.model.automata.has_cycle() {
            // Every run ends, and none in a deadlock.
            return None;
        }
        let states = self.degrees.len();
        // Predecessors, by counting.
        let mut first = vec![0u32; states + 1];
        for to in &self.edges {
            first[*to as usize + 1] += 1;
        }
        for i in 0..states {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut predecessors = vec![0u32; self.edges.len()];
        let mut edges = self.edges.iter();
        for (state, degree) in self.degrees.iter().enumerate() {
            for to in edges.by_ref().take(*degree as usize) {
                let slot = &mut next[*to as usize];
                predecessors[*slot as usize] = state as u32;
                *slot += 1;
            }
        }
        let mut can_end = vec![false; states];
        let mut open = self.ends.clone();
        for end in &open {
            can_end[*end as usize] = true;
        }
        while let Some(state) = open.pop() {
            let range = first[state as usize] as usize..first[state as usize + 1] as usize;
            for from in &predecessors[range] {
                if !std::mem::replace(&mut can_end[*from as usize], true) {
                    open.push(*from);
                }
            }
        }
        can_end.iter().position(|can| !can).map(|i| i as u32)
    }
}

/// The number of random runs before a search.
const REHEARSALS: u64 = 1000;
/// The most steps of each random run.
const REHEARSED_STEPS: usize = 1000;
/// The most local steps in a row; a thread that takes more is assumed never to stop.
const MOST_LOCAL_STEPS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{Kind, Order, Site};

    /// Taking local steps at once finds a violation exactly where single steps do.
    #[test]
    fn reduction_hides_no_violation() {
        for (lock, file) in [("tas", "tas.h"), ("ticket", "ticket.h"), ("mcs", "mcs.h")] {
            let config = Config {
                trylock: true,
                ..Config::new(lock)
            };
            let sites = Site::all().iter().filter(|site| site.file() == file);
            let changes = sites.flat_map(|site| {
                let mut changes = vec![Change::Drop, Change::Order(Order::Relaxed)];
                changes.extend((site.kind == Kind::CompareExchange).then_some(Change::Blind));
                changes.extend((site.kind == Kind::Store).then_some(Change::Defer));
                changes
                    .into_iter()
                    .map(move |change| Mutation::at(site, change))
            });
            for mutation in changes.map(Some).chain([None]) {
                let check = Check::new(&config, mutation).expect("a lock that there is");
                let limits = Limits {
                    states: Some(50_000),
                    ..Limits::NONE
                };
                let [reduced, single] = [true, false].map(|reduce| {
                    let end = check.search(&limits, reduce, &mut |_| {}, &mut |_| {}).end;
                    matches!(end, End::Broken(_))
                });
                assert_eq!(reduced, single, "{lock}: {mutation:?}");
            }
        }
    }

    fn search(config: &Config, mutation: Option<Mutation>, symmetric: bool) -> Outcome {
        let mut check = Check::new(config, mutation).expect("a lock that there is");
        check.symmetric = symmetric;
        let limits = Limits {
            states: mutation.map(|_| 30_000),
            ..Limits::NONE
        };
        let outcome = check.run(&limits, &mut |_| {});
        if let End::Broken(broken) = &outcome.end {
            let violation = check.replay(&broken.steps).map(|(_, violation)| violation);
            assert_eq!(violation, Some(broken.violation.clone()), "{config}");
        }
        outcome
    }

    /// Three threads that acquire once, without spurious wake-ups.
    fn three(lock: &str) -> Config {
        Config {
            threads: 3,
            acquisitions: 1,
            spurious: 0,
            ..Config::new(lock)
        }
    }

    #[test]
    fn threads_that_change_places_do_all_that_they_did() {
        let with = |lock: &str, change: fn(&mut Config)| {
            let mut config = three(lock);
            change(&mut config);
            config
        };
        for (config, renamings) in [
            (with("mcs", |c| c.acquisitions = 2), 6),
            (with("mcs", |c| c.trylock = true), 2),
            (with("mcs", |c| c.overtaking = Some(0)), 6),
            (with("qspinlock", |c| c.acquisitions = 2), 6),
            (with("qspinlock", |c| c.slots = Some(2)), 2),
            (with("cna", |c| c.acquisitions = 2), 6),
            (with("cna", |c| c.priority = vec![0, 1]), 2),
            (with("hq", |c| c.nodes = 2), 2),
            (with("pv42", |c| c.spurious = 1), 6),
            (with("unfair", |c| c.spurious = 1), 6),
            (
                with("qspinlock", |c| {
                    c.threads = 4;
                    c.memory = Memory::Sc;
                }),
                24,
            ),
        ] {
            let [symmetric, all] = [true, false].map(|how| search(&config, None, how));
            assert_eq!(
                (&symmetric.end, &all.end),
                (&End::Kept, &End::Kept),
                "{config}"
            );
            assert_eq!(symmetric.covered, all.covered, "{config}");
            assert_eq!(symmetric.events, all.events, "{config}");
            // A few states are the same after some of the renamings.
            let [fewer, states] = [symmetric, all].map(|outcome| outcome.coverage.states);
            let all_renamed = fewer * renamings;
            assert!(
                (states..states * 3 / 2).contains(&all_renamed),
                "{config}: {fewer} of {states}"
            );
        }
    }

    /// A search in which threads change places finds a violation exactly where another does.
    #[test]
    fn symmetry_hides_no_violation() {
        let file = |site: &Site| {
            let files = [
                "mcs.h",
                "fifo_queue.h",
                "pending_bit.h",
                "queue_slot.h",
                "parking.h",
                "parking_head.h",
                "parking_poll.h",
                "parking_queue.h",
                "parking_release.h",
                "parking_waiter.h",
                "parking_wake.h",
                "parking_word.h",
                "parked_heads.h",
                "lock_word.h",
            ];
            files.contains(&site.file())
        };
        for lock in ["mcs", "qspinlock", "pv42"] {
            let config = three(lock);
            let covered = search(&config, None, true).covered;
            let sites = Site::all()
                .iter()
                .filter(|site| file(site) && covered[site.number()]);
            for site in sites {
                for change in [Change::Drop, Change::Order(Order::Relaxed)] {
                    let mutation = Mutation::at(site, change);
                    let [symmetric, all] =
                        [true, false].map(|how| search(&config, Some(mutation), how).end);
                    let what = format!("{lock}: {mutation:?}: {symmetric:?}, {all:?}");
                    match (symmetric, all) {
                        (End::Broken(_), End::Broken(_)) | (End::Kept, End::Kept) => {}
                        // Too many states for this test.
                        (_, End::Unfinished(_)) => {}
                        _ => panic!("{what}"),
                    }
                }
            }
        }
    }

    /// The staleness bound holds in the replay of a run, as in the search.
    #[test]
    fn runs_of_bounded_reads_can_be_made_again() {
        let sites = |file: &'static str| Site::all().iter().filter(move |s| s.file() == file);
        for (lock, file) in [
            ("mcs", "mcs.h"),
            ("qspinlock", "fifo_queue.h"),
            ("qspinlock", "pending_bit.h"),
            ("qspinlock", "queue_slot.h"),
        ] {
            for (bound, site) in (0..3).flat_map(|bound| sites(file).map(move |s| (bound, s))) {
                let config = Config {
                    staleness: Some(bound),
                    ..three(lock)
                };
                for change in [Change::Drop, Change::Order(Order::Relaxed)] {
                    search(&config, Some(Mutation::at(site, change)), true);
                }
            }
        }
    }

    /// The search notices that the threads of a lockref differ, even if its caller says otherwise.
    #[test]
    fn threads_that_differ_are_found_out() {
        let config = three("lockref-tas");
        let [symmetric, all] = [true, false].map(|how| search(&config, None, how));
        assert_eq!(symmetric.end, all.end);
        assert_eq!(symmetric.coverage.states, all.coverage.states);
    }
}
