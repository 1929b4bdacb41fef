//! What threads may do in a state, and what state that leads to.

use std::fmt;
use std::rc::Rc;

use hashbrown::HashMap;

use crate::automaton::{Answer, Attributes, Automata, Effect, Local, LocalId, Next};
use crate::cells::{
    Cell, CellId, CellNames, Cells, Findings, PARTS, Parts, Place, Refusal, RenamedCells, Sibling,
};
use crate::config::{Config, LOCKREF_COUNT, Memory, Subject, Time};
use crate::hooks::{self, Request};
use crate::layout::{self, Region};
use crate::mutation::{self, Change, Mutation};
use crate::site::{Kind, Order, Site};
use crate::state::{Message, State, Thread, UNINITIALISED, View};
use crate::symmetry::{Composed, Renaming, Symmetry};

/// Clocks that have just begun, and that have gone on for longer than any threshold.
pub(crate) const EARLY: u64 = 1;
pub(crate) const LATE: u64 = 1 << 62;

/// Which write each part of an operation reads, or where in the modification order it goes; what
/// else it leaves open.
pub(crate) type Picks = [u8; 4];

/// One of the things that a thread may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The operation it is at. `newest`: with the newest values, or as well as with those.
    Operate { picks: Picks, newest: bool },
    /// An interruption comes in before it.
    Interruption,
    /// It wakes, though nobody woke it.
    Wake,
}

impl Choice {
    /// It comes about when everybody sees the newest values, without interruptions or wake-ups
    /// for no reason. What waits for anything else may wait for ever.
    pub(crate) fn is_progress(self) -> bool {
        matches!(self, Self::Operate { newest: true, .. })
    }
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two threads are in the critical section at once.
    MutualExclusion {
        /// The one that was in.
        holder: usize,
        /// The one that came.
        other: usize,
    },
    /// Nothing orders two accesses to the protected data.
    DataRace {
        /// The thread whose access nothing orders after the one before.
        thread: usize,
    },
    /// Threads wait and no thread can go on.
    Deadlock {
        /// Those that wait.
        threads: Vec<usize>,
    },
    /// Threads can go on, but never to the end.
    Livelock,
    /// A queue node was touched that its owner does not use.
    NodeReleased {
        /// Whose node it is.
        owner: usize,
        /// Who touched it.
        thread: usize,
    },
    /// A queue node was read before its owner's initialisation was visible.
    Uninitialised {
        /// Who read it.
        thread: usize,
    },
    /// There is no memory at that address.
    NoMemory {
        /// Who accessed it.
        thread: usize,
        /// The address.
        address: usize,
    },
    /// A piece of the lock word has a value that it never may.
    OutOfRange {
        /// Which piece.
        piece: &'static str,
        /// Its value.
        value: u64,
    },
    /// A thread has seen a promise broken.
    Promise {
        /// Who has.
        thread: usize,
        /// What was wrong.
        what: &'static str,
    },
    /// A waiter was overtaken more often than the lock promises.
    Overtaken {
        /// The waiter.
        thread: usize,
        /// How often.
        times: u8,
    },
    /// All threads are done, but something is not as at first.
    LeftBehind {
        /// What.
        what: &'static str,
    },
}

impl Violation {
    /// The kind of violation, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MutualExclusion { .. } => "mutual_exclusion",
            Self::DataRace { .. } => "data_race",
            Self::Deadlock { .. } => "deadlock",
            Self::Livelock => "livelock",
            Self::NodeReleased { .. } => "node_released",
            Self::Uninitialised { .. } => "uninitialised",
            Self::NoMemory { .. } => "no_memory",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Promise { .. } => "promise",
            Self::Overtaken { .. } => "overtaken",
            Self::LeftBehind { .. } => "left_behind",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MutualExclusion { holder, other } => write!(
                f,
                "mutual exclusion: thread {other} has acquired the lock while thread {holder} holds it"
            ),
            Self::DataRace { thread } => write!(
                f,
                "data race: nothing orders the protected access of thread {thread} after the one before"
            ),
            Self::Deadlock { threads } => {
                let list: Vec<String> = threads.iter().map(usize::to_string).collect();
                let (noun, verb) = match threads.len() {
                    1 => ("thread", "waits"),
                    _ => ("threads", "wait"),
                };
                write!(f, "deadlock: {noun} {} {verb} for ever", list.join(", "))
            }
            Self::Livelock => write!(f, "livelock: threads can go on, but never to the end"),
            Self::NodeReleased { owner, thread } => write!(
                f,
                "node use: thread {thread} is at a queue node of thread {owner}, who does not use it now"
            ),
            Self::Uninitialised { thread } => write!(
                f,
                "uninitialised: thread {thread} reads a field of a queue node before its initialisation"
            ),
            Self::NoMemory { thread, address } => write!(
                f,
                "bad address: thread {thread} is at {address:#x}, where nothing is"
            ),
            Self::OutOfRange { piece, value } => {
                write!(f, "lock word: {piece} has become {value:#x}")
            }
            Self::Promise { thread, what } => write!(f, "promise: thread {thread}: {what}"),
            Self::Overtaken { thread, times } => write!(
                f,
                "overtaken: thread {thread} was overtaken {times} times while it waited"
            ),
            Self::LeftBehind { what } => {
                write!(f, "left behind: all threads are done, but {what}")
            }
        }
    }
}

/// Why a step was not taken to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A promise was broken.
    Violation(Violation),
    /// An assumption failed; start anew.
    Anew,
    /// The state encoding has no room for it.
    TooLarge(&'static str),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// A check's threads and memory, and what is known of them so far.
pub(crate) struct Model<'a, const N: usize> {
    pub(crate) config: &'a Config,
    subject: Subject,
    mutation: Option<Mutation>,
    pub(crate) automata: Automata,
    pub(crate) cells: Cells,
    findings: &'a mut Findings,
    parts: Vec<Option<Parts>>,
    /// What shared and private cells hold at first.
    pub(crate) shared: Vec<u64>,
    pub(crate) private: Vec<u64>,
    siblings: Rc<[Vec<Sibling>]>,
    /// Threads that may change places,
    symmetry: Rc<Symmetry>,
    /// what becomes of cells in each of its renamings,
    renamed_cells: Vec<RenamedCells>,
    names: CellNames,
    /// and room for a state and its bytes.
    renamed: (State<N>, Vec<u8>),
    chosen: HashMap<LocalId, Vec<u8>>,
    /// Operations done, by the number of their site.
    pub(crate) covered: Vec<bool>,
    /// Events counted, a bit each, and those of them with waiters in the lock's queue.
    pub(crate) events: [u64; 2],
    /// Reads of writes too far behind the newest may not have been tried.
    pub(crate) cut: bool,
}

impl<'a, const N: usize> Model<'a, N> {
    pub(crate) fn new(
        config: &'a Config,
        subject: Subject,
        mutation: Option<Mutation>,
        findings: &'a mut Findings,
        automata: Automata,
    ) -> Self {
        Self {
            config,
            subject,
            mutation,
            symmetry: Rc::clone(&automata.symmetry),
            renamed_cells: Vec::new(),
            names: CellNames::default(),
            renamed: (State::new(std::iter::empty(), Rc::new([])), Vec::new()),
            automata,
            cells: Cells::new(config.threads),
            findings,
            parts: Vec::new(),
            shared: Vec::new(),
            private: Vec::new(),
            siblings: Rc::new([]),
            chosen: HashMap::new(),
            covered: vec![false; Site::all().len()],
            events: [0; 2],
            cut: false,
        }
    }

    /// The state in which all threads are about to begin.
    pub(crate) fn start(&mut self) -> Result<State<N>, Stop> {
        let locals = self.automata.start();
        self.check_symmetry()?;
        let siblings = Rc::clone(&self.siblings);
        let mut state = State::new(locals.iter().copied(), siblings);
        for (thread, local) in locals.into_iter().enumerate() {
            self.look_at(thread, local)?;
        }
        self.grow(&mut state);
        Ok(state)
    }

    /// Makes `state` the one that was encoded.
    pub(crate) fn decode(&self, bytes: &[u8], state: &mut State<N>) {
        let threads = self.config.threads;
        state.decode(threads, &self.shared, &self.siblings, bytes);
        self.grow(state);
    }

    /// The bytes of a state, normalised, after a renaming of threads of which the number is given:
    /// the same bytes for states that differ by such renamings only.
    pub(crate) fn encode(&mut self, state: &mut State<N>, bytes: &mut Vec<u8>) -> usize {
        self.normalise(state);
        let thread = |number| {
            state
                .threads
                .get(number)
                .map(|thread| self.nameless(thread))
        };
        let keys: [_; layout::THREADS] = std::array::from_fn(thread);
        let symmetry = Rc::clone(&self.symmetry);
        let mut sorting = symmetry.sorting(&keys);
        let mut best = sorting.next().expect("threads can be sorted");
        self.encode_renamed(state, best, bytes);
        for other in sorting {
            let mut trial = std::mem::take(&mut self.renamed.1);
            self.encode_renamed(state, other, &mut trial);
            if trial < *bytes {
                std::mem::swap(&mut trial, bytes);
                best = other;
            }
            self.renamed.1 = trial;
        }
        best
    }

    pub(crate) fn normalise(&self, state: &mut State<N>) {
        self.grow(state);
        if self.weak() {
            state.normalise(self.live(state));
        }
    }

    /// What stays the same of a thread when threads are renamed, or part of it.
    fn nameless(&self, thread: &Thread<N>) -> impl Ord + use<N> {
        let like = |local: LocalId| self.local(local).like;
        (
            like(thread.local),
            thread.parked,
            thread.exposed,
            thread.deferred.map(|(local, due)| (like(local), due)),
            thread.overtaken,
        )
    }

    fn encode_renamed(&mut self, state: &State<N>, number: usize, bytes: &mut Vec<u8>) {
        let composed = &self.symmetry.renamings[number];
        if composed.swaps.is_empty() {
            state.encode(&self.shared, bytes);
            return;
        }
        self.renamed.0.rename_from(
            state,
            &composed.renaming,
            &self.renamed_cells[number],
            &self.names,
            |local| self.automata.image(local, &composed.swaps),
        );
        self.renamed.0.encode(&self.shared, bytes);
    }

    pub(crate) fn renaming(&self, number: usize) -> &Renaming {
        &self.symmetry.renamings[number].renaming
    }

    /// What a choice of a thread becomes when threads are renamed.
    pub(crate) fn renamed_choice(
        &self,
        state: &State<N>,
        thread: usize,
        choice: Choice,
        renaming: &Renaming,
    ) -> Choice {
        let request = self.request(state, thread);
        match choice {
            Choice::Operate { picks, newest }
                if request.is_some_and(|r| self.kind(&r) == Kind::Unpark) =>
            {
                Choice::Operate {
                    picks: [renaming.set(picks[0]), 0, 0, 0],
                    newest,
                }
            }
            _ => choice,
        }
    }

    /// That threads do alike is assumed until one does not.
    fn check_symmetry(&self) -> Result<(), Stop> {
        match Rc::ptr_eq(&self.symmetry, &self.automata.symmetry) {
            true => Ok(()),
            false => Err(Stop::Anew),
        }
    }

    fn live(&self, state: &State<N>) -> u8 {
        (0..state.threads.len())
            .filter(|t| self.current(state, *t).is_some())
            .fold(0, |live, t| live | 1 << t)
    }

    fn weak(&self) -> bool {
        self.config.memory == Memory::Weak
    }

    fn local(&self, local: LocalId) -> &Local {
        &self.automata.locals[local as usize]
    }

    /// The local state whose operation `thread` does next; None: it has ended.
    pub(crate) fn current(&self, state: &State<N>, thread: usize) -> Option<LocalId> {
        let thread = &state.threads[thread];
        let at = Some(thread.local).filter(|l| self.local(*l).request.is_some());
        match thread.deferred {
            Some((local, due)) if due || at.is_none() => Some(local),
            _ => at,
        }
    }

    /// The operation that `thread` does next.
    pub(crate) fn request(&self, state: &State<N>, thread: usize) -> Option<Request> {
        self.current(state, thread)
            .and_then(|local| self.operation(local))
    }

    fn change(&self, request: &Request) -> Option<Change> {
        self.mutation.and_then(|m| m.change_of(request))
    }

    /// The order of an operation, in a mutant perhaps another than in the source.
    pub(crate) fn order(&self, request: &Request) -> Order {
        match self.change(request) {
            Some(Change::Order(order)) => order,
            _ => request.site.order,
        }
    }

    /// What an operation does, in a mutant perhaps something else than in the source.
    pub(crate) fn kind(&self, request: &Request) -> Kind {
        let kind = request.site.kind;
        mutation::kind(self.change(request), kind).unwrap_or(kind)
    }

    fn is_dropped(&self, request: &Request) -> bool {
        mutation::kind(self.change(request), request.site.kind).is_none()
    }

    /// The operation of a local state, in a mutant perhaps with other values.
    fn operation(&self, local: LocalId) -> Option<Request> {
        let request = self.local(local).request?;
        Some(self.mutation.map_or(request, |m| m.apply(request)))
    }

    /// Finds out which cells a newly found local state's operation touches, and the same of other
    /// threads that do alike.
    fn look_at(&mut self, thread: usize, local: LocalId) -> Result<(), Stop> {
        let is_known = self.parts.get(local as usize).is_some_and(Option::is_some);
        if is_known || self.local(local).request.is_none() {
            return Ok(());
        }
        let cells = self.cells.cells.len();
        let symmetry = Rc::clone(&self.symmetry);
        for Composed { renaming, swaps } in &symmetry.renamings {
            let image = self.automata.image(local, swaps);
            self.look_at_one(renaming.thread(thread), image)?;
        }
        if self.cells.cells.len() > cells {
            self.names = self.cells.names(self.has_tail_word());
            self.renamed_cells = symmetry
                .renamings
                .iter()
                .map(|composed| self.cells.renamed(&composed.renaming))
                .collect();
        }
        Ok(())
    }

    fn look_at_one(&mut self, thread: usize, local: LocalId) -> Result<(), Stop> {
        let index = local as usize;
        if self.parts.len() <= index {
            self.parts.resize(index + 1, None);
        }
        if self.parts[index].is_some() {
            return Ok(());
        }
        let request = self.local(local).request.expect("it has not ended");
        match self.cells.touch(self.findings, thread, &request) {
            Ok(parts) => {
                if request.site.kind.is_access()
                    && !is_plain(request.site.kind)
                    && parts.cells().len() > Picks::default().len()
                {
                    return Err(Stop::TooLarge("an operation on more than four cells"));
                }
                self.parts[index] = Some(parts);
                for cell in &self.cells.cells[self.shared.len() + self.private.len()..] {
                    match cell.place {
                        Place::Shared { .. } => self
                            .shared
                            .push(initial(self.config.unlocked(self.subject.lock()), cell)),
                        Place::Private { .. } => self.private.push(0),
                    }
                }
                if *self.siblings != *self.cells.siblings {
                    self.siblings = self.cells.siblings.as_slice().into();
                }
                Ok(())
            }
            Err(Refusal::Anew) => Err(Stop::Anew),
            Err(Refusal::TooManyCells) => Err(Stop::TooLarge(
                "more shared variables than a view has entries; check fewer threads, or less nesting",
            )),
            Err(Refusal::NoMemory) => Err(Stop::Violation(Violation::NoMemory {
                thread,
                address: request.address,
            })),
        }
    }

    fn grow(&self, state: &mut State<N>) {
        state.grow(&self.shared, &self.private, &self.siblings);
    }

    fn cell(&self, id: CellId) -> &Cell {
        &self.cells.cells[usize::from(id)]
    }

    /// The cells that a local state's operation touches.
    pub(crate) fn parts_of(&self, local: LocalId) -> Option<Parts> {
        self.parts[local as usize]
    }

    pub(crate) fn attributes(&self, state: &State<N>, thread: usize) -> Attributes {
        self.local(state.threads[thread].local).attributes
    }

    pub(crate) fn has_tail_word(&self) -> bool {
        self.subject.lock().has_tail_word()
    }

    pub(crate) fn subject(&self) -> Subject {
        self.subject
    }

    fn parts(&self, local: LocalId) -> Parts {
        self.parts[local as usize].expect("looked at when it was found")
    }

    /// May `thread` go on before all others without any of them, or anything that is checked,
    /// being able to tell? What it does then commutes with all that others can do.
    pub(crate) fn is_local(&self, state: &State<N>, thread: usize) -> bool {
        let Some(local) = self.current(state, thread) else {
            return false;
        };
        let request = self.operation(local).expect("it has not ended");
        let order = self.order(&request);
        let kind = self.kind(&request);
        let now = self.local(state.threads[thread].local).attributes;
        if self.config.overtaking.is_some() && now.fresh && now.wanted & 1 != 0 {
            // When an acquisition is begun is seen by those who wait.
            return false;
        }
        if self.is_dropped(&request)
            || matches!(kind, Kind::Pause | Kind::Clock | Kind::Choose)
            || is_plain(kind)
        {
            return true;
        }
        if kind == Kind::Fence {
            return order != Order::SeqCst || !self.weak();
        }
        if kind.waits()
            || matches!(kind, Kind::Park | Kind::Unpark)
            || (order == Order::SeqCst && self.weak())
        {
            return false;
        }
        // In a view machine a write takes nothing away from anyone; but others give nodes back.
        let foreign = |id: &CellId| {
            self.cell(*id)
                .region
                .node()
                .is_some_and(|(owner, _)| owner != thread)
        };
        if kind == Kind::Store && self.weak() && !self.parts(local).cells().iter().any(foreign) {
            return true;
        }
        let own = |id: &CellId| {
            let cell = self.cell(*id);
            match cell.place {
                Place::Private { .. } => true,
                Place::Shared { .. } => cell.region.node().is_some_and(|(owner, node)| {
                    owner == thread && state.threads[thread].exposed & 1 << node == 0
                }),
            }
        };
        self.parts(local).cells().iter().all(own)
    }

    /// What `thread` may do next, the best of it first; nothing, if it waits or has ended.
    pub(crate) fn choices(
        &mut self,
        state: &State<N>,
        thread: usize,
        choices: &mut Vec<Choice>,
    ) -> Result<(), Stop> {
        choices.clear();
        let Some(local) = self.current(state, thread) else {
            return Ok(());
        };
        if state.threads[thread].parked {
            if state.spurious < self.config.spurious {
                choices.push(Choice::Wake);
            }
        } else {
            self.operations(state, thread, local, choices)?;
        }
        let attributes = self.local(local).attributes;
        if attributes.level < self.config.nesting
            && attributes.interrupted & 1 << attributes.level == 0
            && state.threads[thread].deferred.is_none()
            // One that comes while it sleeps might as well have come just before.
            && !state.threads[thread].parked
        {
            choices.push(Choice::Interruption);
        }
        Ok(())
    }

    fn operations(
        &mut self,
        state: &State<N>,
        thread: usize,
        local: LocalId,
        choices: &mut Vec<Choice>,
    ) -> Result<(), Stop> {
        let request = self.operation(local).expect("it has not ended");
        let mut one = |pick: u8| {
            choices.push(Choice::Operate {
                picks: [pick, 0, 0, 0],
                newest: true,
            });
        };
        let deferred = self.change(&request) == Some(Change::Defer)
            && state.threads[thread].deferred.is_none();
        if self.is_dropped(&request) || deferred {
            one(0);
            return Ok(());
        }
        match self.kind(&request) {
            Kind::Fence | Kind::Pause | Kind::PlainRead | Kind::PlainWrite => one(0),
            Kind::Clock => {
                let time = match self.mutation {
                    Some(m) if m.change == Change::NeverLate => Time::Early,
                    _ => self.config.time,
                };
                if time != Time::Late {
                    one(0);
                }
                if time != Time::Early {
                    one(1);
                }
            }
            Kind::Choose => {
                for value in self.distinct(thread, local, request.a)? {
                    one(value);
                }
            }
            Kind::Unpark => {
                let parked = self.parked_at(state, request.address);
                let woken = request.a.min(parked.count_ones().into()) as u32;
                (0..=u8::MAX)
                    .filter(|set| set & !parked == 0 && set.count_ones() == woken)
                    .for_each(one);
            }
            kind => {
                self.accesses(state, thread, local, &request, choices);
                let reads = !kind.is_read_modify_write() && kind != Kind::Store;
                if self.weak() && (reads || kind == Kind::CompareExchange) && choices.len() > 1 {
                    self.drop_dominated(state, thread, local, &request, choices);
                }
            }
        }
        Ok(())
    }

    /// Of reads after which the thread goes on alike, keeps those after which it has seen least.
    /// All that can happen after another of them can happen after one of these too: who has seen
    /// less may still see more, may write where the other may, and knows of no more accesses to
    /// plain data. What can no longer happen when only the newest values are read, as deadlocks
    /// are defined, does not depend on what has been seen.
    fn drop_dominated(
        &mut self,
        state: &State<N>,
        thread: usize,
        local: LocalId,
        request: &Request,
        choices: &mut Vec<Choice>,
    ) {
        let parts = self.parts(local);
        let kind = self.kind(request);
        let acquires = self.findings.acquire_fences
            || self.order(request).acquires() && kind != Kind::CompareExchange;
        let mut kept: Vec<(Option<Next>, View<N>, Choice)> = Vec::new();
        for choice in choices.drain(..) {
            let Choice::Operate { picks, newest } = choice else {
                unreachable!("only operations have been found so far");
            };
            let value = self.value(state, &parts, &picks);
            let changes = matches!(kind, Kind::CompareExchange | Kind::Park) && value == request.a;
            let next = if changes || self.is_uninitialised(state, &parts, &picks) {
                None
            } else {
                let at = state.threads[thread].local;
                Some(self.automata.step(thread, at, Answer::Value(value)))
            };
            let mut seen = state.threads[thread].seen;
            for (id, pick) in parts.cells().iter().zip(&picks) {
                if let Place::Shared { number } = self.cell(*id).place {
                    let cell = usize::from(number);
                    seen.0[cell] = seen.0[cell].max(*pick);
                    if acquires {
                        seen.join(&state.messages(cell)[usize::from(*pick)].view);
                    }
                }
            }
            let alike = |other: &Option<Next>| next.is_some() && *other == next;
            if let Some((_, _, dominant)) = kept
                .iter_mut()
                .find(|(other, less, _)| alike(other) && less.is_within(&seen))
            {
                if let Choice::Operate { newest: n, .. } = dominant {
                    *n |= newest;
                }
                continue;
            }
            let mut newest = newest;
            kept.retain(|(other, more, dominated)| {
                let keep = !(alike(other) && seen.is_within(more));
                newest |= !keep && matches!(dominated, Choice::Operate { newest: true, .. });
                keep
            });
            kept.push((next, seen, Choice::Operate { picks, newest }));
        }
        choices.extend(kept.into_iter().map(|(_, _, choice)| choice));
    }

    /// Those of the values 0 to n - 1 that lead to different states.
    fn distinct(&mut self, thread: usize, local: LocalId, n: u64) -> Result<Vec<u8>, Stop> {
        if let Some(values) = self.chosen.get(&local) {
            return Ok(values.clone());
        }
        if !(1..=256).contains(&n) {
            return Err(Stop::TooLarge("lw_choose() of other than 1 to 256 values"));
        }
        let mut found: Vec<Next> = Vec::new();
        let mut values = Vec::new();
        for value in 0..n {
            let next = self.automata.step(thread, local, Answer::Value(value));
            if !found.contains(&next) {
                found.push(next);
                values.push(value as u8);
            }
        }
        self.chosen.insert(local, values.clone());
        Ok(values)
    }

    /// The threads parked at an address, a bit each.
    fn parked_at(&self, state: &State<N>, address: usize) -> u8 {
        (0..state.threads.len())
            .filter(|t| {
                state.threads[*t].parked
                    && self
                        .request(state, *t)
                        .is_some_and(|r| r.address == address)
            })
            .fold(0, |set, t| set | 1 << t)
    }

    /// The ways in which an operation on memory may read and write it.
    fn accesses(
        &self,
        state: &State<N>,
        thread: usize,
        local: LocalId,
        request: &Request,
        choices: &mut Vec<Choice>,
    ) {
        let parts = self.parts(local);
        let kind = self.kind(request);
        let order = self.order(request);
        let mut candidates: [std::ops::Range<u8>; 4] = Default::default();
        for (range, id) in candidates.iter_mut().zip(parts.cells()) {
            let Place::Shared { number } = self.cell(*id).place else {
                *range = 0..1;
                continue;
            };
            let cell = usize::from(number);
            let count = state.messages(cell).len() as u8;
            if !self.weak() {
                *range = match kind {
                    Kind::Store => 1..2,
                    _ => 0..1,
                };
                continue;
            }
            let mut oldest = state.threads[thread].seen.0[cell];
            // A compare-and-exchange that fails is relaxed.
            if order == Order::SeqCst && kind != Kind::CompareExchange {
                oldest = oldest.max(state.sc.0[cell]);
            }
            *range = if kind == Kind::Store {
                oldest + 1..count + 1
            } else {
                oldest..count
            };
        }
        let mut picks = Picks::default();
        self.combine(state, request, &parts, &candidates, &mut picks, 0, choices);
    }

    #[allow(clippy::too_many_arguments)]
    fn combine(
        &self,
        state: &State<N>,
        request: &Request,
        parts: &Parts,
        candidates: &[std::ops::Range<u8>; 4],
        picks: &mut Picks,
        part: usize,
        choices: &mut Vec<Choice>,
    ) {
        if part == parts.cells().len() {
            let newest = candidates
                .each_ref()
                .map(|range| range.end.saturating_sub(1));
            if self.is_possible(state, request, parts, picks) {
                choices.push(Choice::Operate {
                    picks: *picks,
                    newest: part == 0 || picks[..part] == newest[..part],
                });
            }
            return;
        }
        // The newest first, so that short traces come first.
        for pick in candidates[part].clone().rev() {
            picks[part] = pick;
            self.combine(state, request, parts, candidates, picks, part + 1, choices);
        }
    }

    fn is_possible(
        &self,
        state: &State<N>,
        request: &Request,
        parts: &Parts,
        picks: &Picks,
    ) -> bool {
        let kind = self.kind(request);
        let shared =
            || {
                parts.cells().iter().zip(picks).filter_map(|(id, pick)| {
                    match self.cell(*id).place {
                        Place::Shared { number } => Some((usize::from(number), usize::from(*pick))),
                        Place::Private { .. } => None,
                    }
                })
            };
        // Of two writes to a word, one comes first in all of its parts, and both are seen whole or
        // not at all.
        let before = usize::from(kind == Kind::Store);
        let whole = shared().all(|(cell, pick)| {
            shared().all(|(other, other_pick)| {
                state.fit((cell, pick - before), (other, other_pick - before))
            })
        });
        if !whole {
            return false;
        }
        if kind == Kind::Store {
            // Nothing comes between a read-modify-write and what it read.
            return shared().all(|(cell, position)| {
                state
                    .messages(cell)
                    .get(position)
                    .is_none_or(|after| !after.attached)
            });
        }
        let value = self.value(state, parts, picks);
        match kind {
            Kind::AwaitEqual => value & request.a == request.b,
            Kind::AwaitNotEqual => value & request.a != request.b,
            Kind::CompareExchange if value != request.a => true,
            Kind::CompareExchange
                if self.weak()
                    && self.order(request) == Order::SeqCst
                    && shared().any(|(cell, pick)| pick < usize::from(state.sc.0[cell])) =>
            {
                false
            }
            _ if kind.is_read_modify_write() => shared().all(|(cell, pick)| {
                state
                    .messages(cell)
                    .get(pick + 1)
                    .is_none_or(|after| !after.attached)
            }),
            _ => true,
        }
    }

    /// What reading the picked writes gives.
    pub(crate) fn value(&self, state: &State<N>, parts: &Parts, picks: &Picks) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        for (id, pick) in parts.cells().iter().zip(picks) {
            let cell = self.cell(*id);
            let part = match cell.place {
                Place::Private { number, .. } => state.private[usize::from(number)],
                Place::Shared { number } => {
                    state.messages(usize::from(number))[usize::from(*pick)].value
                }
            };
            value |= part << shift;
            shift += 8 * cell.size;
        }
        value
    }

    /// `thread` does what `choice` says.
    pub(crate) fn apply(
        &mut self,
        state: &mut State<N>,
        thread: usize,
        choice: Choice,
    ) -> Result<(), Stop> {
        let local = self.current(state, thread).expect("a choice was made");
        match choice {
            Choice::Interruption => self.go_on(state, thread, Answer::Interruption),
            Choice::Wake => {
                state.threads[thread].parked = false;
                state.spurious += 1;
                self.go_on(state, thread, Answer::Value(0))
            }
            Choice::Operate { picks, .. } => {
                let request = self.operation(local).expect("it has not ended");
                self.covered[request.site.number()] = true;
                self.note_begin(state, thread);
                if self.change(&request) == Some(Change::Defer)
                    && state.threads[thread].deferred.is_none()
                {
                    state.threads[thread].deferred = Some((local, false));
                    return self.go_on(state, thread, Answer::Value(0));
                }
                let answer = if self.is_dropped(&request) {
                    Some(0)
                } else {
                    self.operate(state, thread, local, &request, &picks)?
                };
                match (answer, state.threads[thread].deferred) {
                    (_, Some((deferred, _))) if deferred == local => {
                        state.threads[thread].deferred = None;
                        Ok(())
                    }
                    (None, _) => Ok(()),
                    (Some(value), deferred) => {
                        state.threads[thread].deferred = deferred.map(|(l, _)| (l, true));
                        self.go_on(state, thread, Answer::Value(value))
                    }
                }
            }
        }
    }

    /// What a compare-and-swap expects, also one that does not compare in a mutant.
    fn expected(&self, local: LocalId) -> u64 {
        self.local(local).request.expect("it has not ended").a
    }

    /// Performs an operation; None if the thread sleeps within it.
    fn operate(
        &mut self,
        state: &mut State<N>,
        thread: usize,
        local: LocalId,
        request: &Request,
        picks: &Picks,
    ) -> Result<Option<u64>, Stop> {
        let kind = self.kind(request);
        let order = self.order(request);
        let parts = self.parts(local);
        match kind {
            Kind::Fence => {
                if self.weak() {
                    self.fence(state, thread, order);
                }
                Ok(Some(0))
            }
            Kind::Pause => Ok(Some(0)),
            Kind::Clock if picks[0] == 0 => Ok(Some(EARLY)),
            // What one place of a lock keeps, another finds long ago.
            Kind::Clock if self.config.time == Time::Late => {
                Ok(Some(LATE + ((request.site.number() as u64) << 44)))
            }
            Kind::Clock => Ok(Some(LATE)),
            Kind::Choose => Ok(Some(picks[0].into())),
            Kind::PlainRead | Kind::PlainWrite => {
                self.plain(state, thread, kind, &parts, request.a).map(Some)
            }
            Kind::Unpark => {
                if let Place::Shared { number } = self.cell(parts.cells()[0]).place
                    && self.weak()
                {
                    let cell = usize::from(number);
                    state.sc.0[cell] = state.sc.0[cell].max(state.threads[thread].seen.0[cell]);
                }
                for other in (0..state.threads.len()).filter(|t| picks[0] & 1 << t != 0) {
                    state.threads[other].parked = false;
                    self.go_on(state, other, Answer::Value(0))?;
                }
                Ok(Some(0))
            }
            Kind::Store => {
                self.check_nodes(state, thread, &parts)?;
                self.write(state, thread, &parts, picks, request.a, order, false)?;
                Ok(Some(0))
            }
            _ => {
                self.check_nodes(state, thread, &parts)?;
                let old = self.value(state, &parts, picks);
                if self.is_uninitialised(state, &parts, picks) {
                    return Err(Violation::Uninitialised { thread }.into());
                }
                let new = match kind {
                    Kind::Exchange => Some(request.a),
                    Kind::CompareExchange => (old == request.a).then_some(request.b),
                    Kind::Or => Some(old | request.a),
                    Kind::And => Some(old & request.a),
                    Kind::Add => Some(old.wrapping_add(request.a)),
                    _ => None,
                };
                let failed = kind == Kind::CompareExchange && new.is_none();
                let read_order = if failed || kind == Kind::Park {
                    Order::Relaxed
                } else {
                    order
                };
                self.read(state, thread, &parts, picks, read_order);
                if let Some(new) = new {
                    let mut positions = *picks;
                    positions.iter_mut().for_each(|p| *p += 1);
                    self.write(state, thread, &parts, &positions, new, order, true)?;
                }
                if kind == Kind::Park && old == request.a {
                    state.threads[thread].parked = true;
                    return Ok(None);
                }
                Ok(Some(match self.change(request) {
                    Some(Change::Blind) => self.expected(local),
                    _ => old,
                }))
            }
        }
    }

    fn fence(&self, state: &mut State<N>, thread: usize, order: Order) {
        let State { threads, sc, .. } = state;
        let thread = &mut threads[thread];
        if order.acquires() {
            thread.seen.join(&thread.read);
        }
        if order == Order::SeqCst {
            thread.seen.join(sc);
            sc.join(&thread.seen);
        }
        if order.releases() {
            thread.fenced = thread.seen;
        }
        if self.findings.acquire_fences {
            thread.read.join(&thread.seen);
        }
    }

    fn read(
        &self,
        state: &mut State<N>,
        thread: usize,
        parts: &Parts,
        picks: &Picks,
        order: Order,
    ) {
        if !self.weak() {
            return;
        }
        for (id, pick) in parts.cells().iter().zip(picks) {
            let Place::Shared { number } = self.cell(*id).place else {
                continue;
            };
            let cell = usize::from(number);
            let view = state.messages(cell)[usize::from(*pick)].view;
            let thread = &mut state.threads[thread];
            thread.seen.0[cell] = thread.seen.0[cell].max(*pick);
            if order.acquires() {
                thread.seen.join(&view);
            }
            if self.findings.acquire_fences {
                thread.read.join(&view);
                thread.read.0[cell] = thread.read.0[cell].max(*pick);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn write(
        &mut self,
        state: &mut State<N>,
        thread: usize,
        parts: &Parts,
        positions: &Picks,
        value: u64,
        order: Order,
        attached: bool,
    ) -> Result<(), Stop> {
        if value == 0 && is_waiters(self.cell(parts.cells()[0])) {
            self.free_queue(state, thread, self.cell(parts.cells()[0]).region)?;
        }
        let mut rest = value;
        let mut written = [(0, 0); PARTS];
        let mut count = 0;
        for (id, position) in parts.cells().iter().zip(positions) {
            let cell = self.cell(*id);
            let value = rest & bytes(cell.size);
            rest = rest.checked_shr(8 * cell.size as u32).unwrap_or(0);
            self.check_range(cell, value)?;
            let number = match cell.place {
                Place::Private { number, .. } => {
                    state.private[usize::from(number)] = value;
                    continue;
                }
                Place::Shared { number } => usize::from(number),
            };
            written[count] = (number, usize::from(*position));
            count += 1;
            if !self.weak() {
                state.set(number, value);
                continue;
            }
            let position = usize::from(*position);
            let message = Message {
                attached,
                ..Message::new(value)
            };
            if !state.insert(number, position, message) {
                return Err(Stop::TooLarge("more writes than a view can count"));
            }
            state.threads[thread].seen.0[number] = position as u8;
            if self.findings.acquire_fences {
                let read = &mut state.threads[thread].read.0[number];
                *read = (*read).max(position as u8);
            }
            if order == Order::SeqCst {
                state.sc.0[number] = state.sc.0[number].max(position as u8);
            }
        }
        if count > 0 {
            self.note_exposure(state, thread, parts);
        }
        if self.weak() {
            self.publish(state, thread, &written[..count], order, attached);
            if let Some(bound) = self.config.staleness {
                let live = self.live(state);
                for (cell, _) in &written[..count] {
                    self.cut |= state.forget_older(*cell, bound, live);
                }
            }
        }
        Ok(())
    }

    /// Gives the parts of a write, by cell and position, the view that they carry.
    fn publish(
        &self,
        state: &mut State<N>,
        thread: usize,
        written: &[(usize, usize)],
        order: Order,
        attached: bool,
    ) {
        let mut carried = if order.releases() {
            state.threads[thread].seen
        } else {
            state.threads[thread].fenced
        };
        // A read-modify-write passes on what it read, whichever part it read it from.
        for (cell, position) in written.iter().filter(|_| attached) {
            carried.join(&state.messages(*cell)[position - 1].view);
        }
        for (cell, position) in written {
            carried.0[*cell] = *position as u8;
        }
        for (cell, position) in written {
            let mut view = carried;
            // Its own place is known to whoever reads it.
            view.0[*cell] = 0;
            state.message_mut(*cell, *position).view = view;
        }
        state.join_floors(written, &carried);
    }

    /// After a write outside of its own nodes, others may know of them.
    fn note_exposure(&self, state: &mut State<N>, thread: usize, parts: &Parts) {
        let inside = parts.cells().iter().all(|id| {
            self.cell(*id).region.node().is_some_and(|(owner, node)| {
                owner == thread && state.threads[thread].exposed & 1 << node == 0
            })
        });
        if !inside {
            let now = self.local(state.threads[thread].local).attributes;
            let slot = (1u16 << now.depth.min(layout::NODES as u8)) - 1;
            state.threads[thread].exposed |= slot | u16::from(now.lent) << layout::NODES;
        }
    }

    fn plain(
        &self,
        state: &mut State<N>,
        thread: usize,
        kind: Kind,
        parts: &Parts,
        value: u64,
    ) -> Result<u64, Stop> {
        let cell = |i: usize| match self.cell(parts.cells()[i]).place {
            Place::Shared { number } => usize::from(number),
            Place::Private { .. } => unreachable!("plain data is shared from the start"),
        };
        let old = state.newest(cell(0));
        if !self.weak() {
            if kind == Kind::PlainWrite {
                state.set(cell(0), value);
            }
            return Ok(old);
        }
        let knows = |state: &State<N>, cell: usize| {
            usize::from(state.threads[thread].seen.0[cell]) + 1 == state.messages(cell).len()
        };
        if !knows(state, cell(0)) {
            return Err(Violation::DataRace { thread }.into());
        }
        if kind == Kind::PlainRead {
            state.event(cell(1), thread, 0);
            return Ok(old);
        }
        for reads in (1..parts.cells().len()).map(cell) {
            if !knows(state, reads) {
                return Err(Violation::DataRace { thread }.into());
            }
            state.reset(reads, 0);
        }
        state.event(cell(0), thread, value);
        Ok(old)
    }

    /// Nodes of others are touched only while those use them.
    fn check_nodes(&self, state: &State<N>, thread: usize, parts: &Parts) -> Result<(), Stop> {
        for id in parts.cells() {
            let Some((owner, node)) = self.cell(*id).region.node() else {
                continue;
            };
            let now = self.local(state.threads[owner].local).attributes;
            let used = match node.checked_sub(layout::NODES) {
                None => usize::from(now.depth) > node,
                Some(lent) => now.lent & 1 << lent != 0,
            };
            if owner != thread && !used {
                return Err(Violation::NodeReleased { owner, thread }.into());
            }
        }
        Ok(())
    }

    fn is_uninitialised(&self, state: &State<N>, parts: &Parts, picks: &Picks) -> bool {
        parts.cells().iter().zip(picks).any(|(id, pick)| {
            let cell = self.cell(*id);
            match cell.place {
                Place::Shared { number } if has_owner(cell) => {
                    let value = state.messages(usize::from(number))[usize::from(*pick)].value;
                    value == poison(cell.size)
                }
                _ => false,
            }
        })
    }

    /// Does it say how many of a slot's nodes are in use?
    fn is_count(&self, cell: &Cell) -> bool {
        matches!(cell.region, Region::Node { thread, index: 0 }
            if cell.address == layout::slot_nodes(thread + 1) + hooks::node_layout().count)
    }

    /// The pieces of a lock word that has a tail.
    fn check_range(&self, cell: &Cell, value: u64) -> Result<(), Stop> {
        let Region::Lock(i) = cell.region else {
            return Ok(());
        };
        let offset = cell.address - layout::lock(i);
        if !self.has_tail_word() || offset >= size_of::<u32>() {
            return Ok(());
        }
        let shift = 8 * offset;
        match self.config.wrong_piece(
            self.subject.lock(),
            (value << shift) as u32,
            (bytes(cell.size) << shift) as u32,
        ) {
            None => Ok(()),
            Some((piece, value)) => Err(Violation::OutOfRange { piece, value }.into()),
        }
    }

    /// The thread gets its answer and goes on to its next operation.
    fn go_on(&mut self, state: &mut State<N>, thread: usize, answer: Answer) -> Result<(), Stop> {
        let next = self
            .automata
            .step(thread, state.threads[thread].local, answer);
        self.check_symmetry()?;
        state.threads[thread].local = next.local;
        self.look_at(thread, next.local)?;
        self.grow(state);
        if next.events != 0 {
            self.events[usize::from(self.is_queued(state))] |= next.events;
        }
        for effect in next.effects.iter() {
            match *effect {
                Effect::NodeFreed(node) => self.free_node(state, thread, node),
                Effect::Acquired(lock) => self.acquired(state, thread, lock)?,
                Effect::Broken(what) => return Err(Violation::Promise { thread, what }.into()),
            }
        }
        Ok(())
    }

    /// What a node holds is lost when its owner is done with it: the next use may be for
    /// another lock.
    fn free_node(&self, state: &mut State<N>, thread: usize, node: usize) {
        state.threads[thread].exposed &= !(1 << node);
        for cell in &self.cells.cells {
            if let (Some(owned), Place::Shared { number }) = (cell.region.node(), cell.place)
                && owned == (thread, node)
                && has_owner(cell)
            {
                let number = usize::from(number);
                match self.weak() {
                    true => state.reset(number, poison(cell.size)),
                    false => state.set(number, poison(cell.size)),
                }
            }
        }
    }

    /// What a NUMA node's queue holds is lost when its lock is done with it. That is one more
    /// store, which those who have the queue next must know of.
    fn free_queue(&self, state: &mut State<N>, thread: usize, region: Region) -> Result<(), Stop> {
        for cell in &self.cells.cells {
            let Place::Shared { number } = cell.place else {
                continue;
            };
            let number = usize::from(number);
            if cell.region != region || is_waiters(cell) {
                continue;
            }
            if !self.weak() {
                state.set(number, poison(cell.size));
                continue;
            }
            let last = state.messages(number).len();
            if !state.insert(number, last, Message::new(poison(cell.size))) {
                return Err(Stop::TooLarge("more writes than a view can count"));
            }
            state.threads[thread].seen.0[number] = last as u8;
        }
        Ok(())
    }

    /// Has the word of a lock of the threads a tail?
    fn is_queued(&self, state: &State<N>) -> bool {
        let tail = u64::from(hooks::word_layout().tail);
        self.has_tail_word()
            && self
                .cells
                .cells
                .iter()
                .any(|cell| match (cell.region, cell.place) {
                    (Region::Lock(lock), Place::Shared { number }) => {
                        let shift = 8 * (cell.address - layout::lock(lock));
                        tail & state.newest(usize::from(number)) << shift != 0
                    }
                    _ => false,
                })
    }

    fn acquired(&self, state: &mut State<N>, thread: usize, lock: usize) -> Result<(), Stop> {
        let holder = (0..state.threads.len()).find(|other| {
            *other != thread
                && self.local(state.threads[*other].local).attributes.holding & 1 << lock != 0
        });
        if let Some(holder) = holder {
            return Err(Violation::MutualExclusion {
                holder,
                other: thread,
            }
            .into());
        }
        let Some(bound) = self.config.overtaking.filter(|_| lock == 0) else {
            return Ok(());
        };
        state.threads[thread].later = 0;
        state.threads[thread].overtaken = 0;
        for (other, waiter) in state.threads.iter_mut().enumerate() {
            if waiter.later & 1 << thread == 0 {
                continue;
            }
            waiter.later &= !(1 << thread);
            waiter.overtaken += 1;
            if waiter.overtaken > bound {
                return Err(Violation::Overtaken {
                    thread: other,
                    times: waiter.overtaken,
                }
                .into());
            }
        }
        Ok(())
    }

    /// If `thread` is about to begin an acquisition: it comes later than all who wait now.
    fn note_begin(&self, state: &mut State<N>, thread: usize) {
        let now = self.local(state.threads[thread].local).attributes;
        if self.config.overtaking.is_none() || !now.fresh || now.wanted & 1 == 0 {
            return;
        }
        for other in (0..state.threads.len()).filter(|t| *t != thread) {
            let attributes = self.local(state.threads[other].local).attributes;
            let protected =
                self.config.priority.is_empty() || self.config.priority.contains(&other);
            let waits = self
                .request(state, other)
                .is_some_and(|r| r.site.kind.waits() || r.site.kind == Kind::Park);
            if protected && waits && attributes.wanted & 1 != 0 {
                state.threads[other].later |= 1 << thread;
            }
        }
    }

    /// Have all threads ended?
    pub(crate) fn is_over(&self, state: &State<N>) -> bool {
        (0..state.threads.len()).all(|t| self.current(state, t).is_none())
    }

    /// What it is if no thread can go on.
    pub(crate) fn deadlock(&self, state: &State<N>) -> Violation {
        let threads = (0..state.threads.len())
            .filter(|t| self.current(state, *t).is_some())
            .collect();
        Violation::Deadlock { threads }
    }

    /// Is everything as at first, now that all threads have ended?
    pub(crate) fn check_end(&self, state: &State<N>) -> Result<(), Violation> {
        let service = hooks::word_layout().service;
        for cell in &self.cells.cells {
            let value = match cell.place {
                Place::Private { number, .. } => state.private[usize::from(number)],
                Place::Shared { number } => state.newest(usize::from(number)),
            };
            let what = match cell.region {
                Region::Lock(i) if cell.address >= layout::lock(i) + LOCKREF_COUNT => {
                    match self.subject {
                        Subject::Lockref(_) if (value as i32) > 0 => "a reference was not put",
                        _ => continue,
                    }
                }
                Region::Lock(_) if self.has_tail_word() => "the lock is not free",
                Region::Node { .. } if self.is_count(cell) => "a queue node was not given back",
                Region::Wanted { .. } => "a slot wants something still",
                Region::Queue { .. } if is_waiters(cell) => {
                    "the queue of a NUMA node was not given back"
                }
                Region::Table if is_parked_lock(cell) => {
                    "the table of parked queue heads is not empty"
                }
                _ => continue,
            };
            let stays = match cell.region {
                Region::Lock(i) => service.checked_shr(8 * (cell.address - layout::lock(i)) as u32),
                _ => None,
            };
            if value & !u64::from(stays.unwrap_or(0)) != 0 {
                return Err(Violation::LeftBehind { what });
            }
        }
        Ok(())
    }

    /// What each thread of a litmus test has seen.
    pub(crate) fn results(&self, state: &State<N>) -> Vec<u64> {
        state
            .threads
            .iter()
            .map(|t| self.local(t.local).attributes.result)
            .collect()
    }
}

fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::PlainRead | Kind::PlainWrite)
}

fn bytes(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size)
}

/// Is what it holds lost when whose it is, a thread or lock, is done with it?
fn has_owner(cell: &Cell) -> bool {
    match cell.region {
        // How many of a slot's nodes are in use is known also when none is.
        Region::Node { .. } => {
            cell.address % hooks::node_layout().size != hooks::node_layout().count
        }
        Region::Lent { .. } => true,
        Region::Queue { .. } => !is_waiters(cell),
        Region::Lock(_)
        | Region::Data(_)
        | Region::Wanted { .. }
        | Region::Table
        | Region::Variables => false,
    }
}

/// Does it say which lock has a NUMA node's queue?
fn is_waiters(cell: &Cell) -> bool {
    matches!(cell.region, Region::Queue { .. })
        && cell.address % hooks::node_layout().size == hooks::node_layout().waiters
}

/// Does it say which lock an entry of the table of parked queue heads is for?
fn is_parked_lock(cell: &Cell) -> bool {
    cell.region == Region::Table && cell.address.is_multiple_of(hooks::parked_head_size())
}

fn initial(unlocked: u32, cell: &Cell) -> u64 {
    match cell.region {
        Region::Lock(i) => {
            let offset = cell.address - layout::lock(i);
            u64::from(unlocked) >> (8 * offset.min(7)) & bytes(cell.size)
        }
        _ if has_owner(cell) => poison(cell.size),
        _ => 0,
    }
}

fn poison(size: usize) -> u64 {
    UNINITIALISED & bytes(size)
}
