//! The model: the choices that threads have in a state, and the states that these lead to.

use std::rc::Rc;

use hashbrown::HashMap;
use lockworks_explore::{
    Barrier, CellNames, Composed, Histories, LocalId, RenamedCells, Sibling, State, Symmetry, WORD,
    Window,
};
use lockworks_litmus::Memory;
use serde::{Deserialize, Serialize};

use crate::automaton::{Automata, Learned, Local, Next};
use crate::cells::{Cell, CellId, Cells, Findings, Mortal, PARTS, Parts, Place, Refusal};
use crate::config::{Config, Subject};
use crate::headers;
use crate::image;
use crate::layout::{self, Region, UNINITIALISED};
use crate::machine::{Answer, Attributes, Effect};
use crate::mutation::{self, Change, Mutation};
use crate::names::Names;
use crate::site::{OperationKind, Order, Request, Site};
use crate::violation::Violation;

mod choices;
mod delays;
mod explored;
mod fork;
mod memory;
mod promises;

/// The time at which clocks start, and a time later than any threshold.
pub(crate) const EARLY: u64 = 1;
pub(crate) const LATE: u64 = 1 << 62;

/// The results that an operation leaves open: for each of its cells, the write that it reads, or the
/// place of its own write in the modification order. Other operations use the first entry: an unpark
/// for the thread that it wakes, plus 1.
pub(crate) type Picks = [u8; PARTS];

/// The thread that an unpark wakes.
pub(crate) fn woken(picks: &Picks) -> Option<usize> {
    picks[0].checked_sub(1).map(usize::from)
}

/// One of the things that a thread may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The thread's operation. `newest`: it reads the newest values, or its effect is the same.
    Operate { picks: Picks, newest: bool },
    /// An interruption before the thread's operation.
    Interruption,
    /// The thread forks before its operation, and goes on in the child.
    Fork,
    /// A parked thread wakes spuriously.
    Wake,
    /// The sleep of a parked thread ends by time.
    TimeOut,
    /// The thread's operation is delayed: later ones may be done first.
    Delay,
    /// A delayed operation is done, by its number in the window.
    Late {
        entry: u8,
        picks: Picks,
        newest: bool,
    },
    /// The thread's load reads its own delayed store, by that one's number in the window.
    Forward { entry: u8 },
    /// The full barrier before or after a read-modify-write of the kernel.
    Barrier,
}

/// The reason why a step was not completed.
pub(crate) type Stop = lockworks_explore::Stop<Violation>;

/// The findings of a model, for another model of the same check.
#[derive(Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) findings: Findings,
    /// The steps of threads that were learned.
    pub(crate) steps: Vec<Learned>,
    relied_on: Vec<LocalId>,
    covered: Vec<bool>,
    events: [u64; 2],
    cut: bool,
    cut_by_window: bool,
}

/// The threads and the memory of a check, and the findings of the search about them.
pub(crate) struct Model<'a, const N: usize> {
    pub(crate) config: &'a Config,
    subject: Subject,
    mutation: Option<Mutation>,
    pub(crate) automata: Automata,
    pub(crate) cells: Cells,
    pub(crate) findings: Findings,
    parts: Vec<Option<Parts>>,
    /// Cells get their numbers in the order of local states, not in that of a run. The number of local
    /// states that were looked at. None: in that of a run, which then does not depend on others.
    in_order: Option<usize>,
    /// The first values of shared and of private cells.
    pub(crate) shared: Vec<u64>,
    pub(crate) private: Vec<u64>,
    siblings: Rc<[Vec<Sibling>]>,
    /// The threads that may change places.
    symmetry: Rc<Symmetry>,
    /// For each renaming of threads, the cells that cells become.
    renamed_cells: Vec<RenamedCells>,
    names: CellNames<Names>,
    /// A buffer for a renamed state and its bytes.
    renamed: (State<N>, Vec<u8>),
    /// A buffer for the windows of threads after a renaming, in the old order of threads.
    windows: Vec<Window>,
    /// A buffer for the parts of threads' states that renaming does not change.
    keys: Vec<ThreadKey>,
    distinct: HashMap<LocalId, Vec<u8>>,
    /// The operations that were performed, by the number of their site.
    pub(crate) covered: Vec<bool>,
    /// The events that locks counted, one bit each: with an empty queue, and with a queue.
    pub(crate) events: [u64; 2],
    /// The staleness bound may have left out reads.
    pub(crate) cut: bool,
    /// A thread that delays operations might have gone on further.
    pub(crate) cut_by_window: bool,
    /// How states keep older writes.
    pub(crate) histories: Histories,
    /// The initial values of the variables of a litmus test from a file, whose final values are results.
    variables: &'static [u64],
}

/// A part of a thread's state that renaming threads does not change.
type ThreadKey = (LocalId, bool, u16, Option<(LocalId, bool)>, u8);

impl<'a, const N: usize> Model<'a, N> {
    pub(crate) fn new(
        config: &'a Config,
        subject: Subject,
        mutation: Option<Mutation>,
        findings: Findings,
        automata: Automata,
    ) -> Self {
        Self {
            config,
            subject,
            mutation,
            symmetry: Rc::clone(&automata.symmetry),
            renamed_cells: Vec::new(),
            names: CellNames {
                shared: Vec::new(),
                private: Vec::new(),
            },
            renamed: (State::empty(), Vec::new()),
            windows: Vec::new(),
            keys: Vec::new(),
            automata,
            cells: Cells::new(config.threads, subject.size(), mortal(config, subject))
                .with_races(config.memory == Memory::C11),
            findings,
            parts: Vec::new(),
            in_order: None,
            shared: Vec::new(),
            private: Vec::new(),
            siblings: Rc::new([]),
            distinct: HashMap::new(),
            covered: vec![false; Site::all().len()],
            events: [0; 2],
            cut: false,
            cut_by_window: false,
            histories: Histories::Ordered,
            variables: &[],
        }
    }

    /// Gives the variables of a litmus test these initial values, and reports their final ones.
    pub(crate) fn with_variables(self, variables: &'static [u64]) -> Self {
        Self { variables, ..self }
    }

    /// Gives cells their numbers in the order of local states, so that the models of several OS threads
    /// agree.
    pub(crate) fn number_cells_in_order(&mut self) {
        self.in_order = Some(0);
    }

    fn find_cells_in_order(&mut self) -> Result<(), Stop> {
        while let Some(known) = self.in_order
            && known < self.automata.locals.len()
        {
            let local = known as LocalId;
            self.in_order = Some(known + 1);
            if !self.automata.has_images(local) {
                // Only a test of the automata has come there.
                continue;
            }
            match self.find_cells_of_alike(self.local(local).thread.into(), local) {
                // It breaks a promise only when a thread comes there.
                Ok(()) | Err(Stop::Violation(_)) => {}
                stop => return stop,
            }
        }
        Ok(())
    }

    /// Threads are assumed to behave alike until one does not.
    fn check_symmetry(&self) -> Result<(), Stop> {
        match Rc::ptr_eq(&self.symmetry, &self.automata.symmetry) {
            true => Ok(()),
            false => Err(Stop::Restart),
        }
    }

    pub(crate) fn live(&self, state: &State<N>) -> u64 {
        (0..state.threads.len())
            .filter(|t| self.is_live(state, *t))
            .fold(0, |live, t| live | 1 << t)
    }

    /// Whether a thread has something left to do.
    fn is_live(&self, state: &State<N>, thread: usize) -> bool {
        self.current(state, thread).is_some() || !state.threads[thread].window.is_empty()
    }

    fn weak(&self) -> bool {
        self.config.memory.is_weak()
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

    /// The local state whose operation a choice is about.
    pub(crate) fn chosen(&self, state: &State<N>, thread: usize, choice: Choice) -> LocalId {
        match choice {
            Choice::Late { entry, .. } => {
                let window = &state.threads[thread].window;
                let local = self.walk(window).nth(entry.into());
                local.expect("it was delayed")
            }
            _ => self.current(state, thread).expect("a choice was made"),
        }
    }

    fn change(&self, request: &Request) -> Option<Change> {
        let mutated = self.mutation.and_then(|m| m.change_of(request));
        let orders = self.config.variant.iter().flat_map(|v| &v.orders);
        mutated.or_else(|| {
            orders
                .into_iter()
                .find_map(|order| order.change_of(request))
        })
    }

    /// The memory order of an operation, which a mutant may have changed.
    pub(crate) fn order(&self, request: &Request) -> Order {
        let order = match self.change(request) {
            Some(Change::Order(order)) => order,
            Some(Change::Wmb) => Order::Relaxed,
            _ => request.site.order,
        };
        match (self.kind(request), order) {
            _ if !self.config.memory.is_kernel() => order,
            // worlds/kernel/world.h: each fence is smp_mb(), and no load is stronger than
            // smp_load_acquire().
            (OperationKind::Fence, _) => Order::SeqCst,
            (OperationKind::Park | OperationKind::Unpark | OperationKind::Store, _) => order,
            (_, Order::SeqCst) if request.site.kind.is_read_modify_write() => Order::AcqRel,
            (_, Order::SeqCst) => Order::Acquire,
            _ => order,
        }
    }

    /// The memory order of a compare-and-swap that fails. One that is sequentially consistent only acquires
    /// then.
    pub(crate) fn failure_order(&self, request: &Request) -> Order {
        let is_changed = matches!(self.change(request), Some(Change::Order(_) | Change::Wmb));
        match request.site.failure {
            _ if is_changed || self.config.memory.is_kernel() => Order::Relaxed,
            Order::SeqCst => Order::Acquire,
            order => order,
        }
    }

    /// The result of a sleep that has begun: no value of a futex, which one that does not begin returns. The
    /// locks that are built in do not read it.
    pub(super) fn end_of_sleep(&self, local: LocalId, by_time: bool) -> Answer {
        let request = self.operation(local).expect("it sleeps");
        Answer::Value(match by_time || request.site.is_built_in() {
            true => 0,
            // WOKEN in worlds/check/source/accesses.c
            false => 1 << 32,
        })
    }

    /// The kind of an operation, which a mutant may have changed.
    pub(crate) fn kind(&self, request: &Request) -> OperationKind {
        let kind = request.site.kind;
        mutation::kind(self.change(request), kind).unwrap_or(kind)
    }

    fn is_dropped(&self, request: &Request) -> bool {
        mutation::kind(self.change(request), request.site.kind).is_none()
    }

    /// The operation of a local state, whose values a mutant may have changed.
    pub(crate) fn operation(&self, local: LocalId) -> Option<Request> {
        let request = self.local(local).request?;
        Some(self.mutation.map_or(request, |m| m.apply(request)))
    }

    /// Finds out which cells the operation of a local state touches.
    fn find_cells(&mut self, thread: usize, local: LocalId) -> Result<(), Stop> {
        self.find_cells_in_order()?;
        self.find_cells_of_alike(thread, local)
    }

    /// The same for the threads that behave alike.
    fn find_cells_of_alike(&mut self, thread: usize, local: LocalId) -> Result<(), Stop> {
        let is_known = self.parts.get(local as usize).is_some_and(Option::is_some);
        if is_known || self.local(local).request.is_none() {
            return Ok(());
        }
        let cells = self.cells.cells.len();
        let symmetry = Rc::clone(&self.symmetry);
        for Composed { renaming, swaps } in &symmetry.renamings {
            let image = self.automata.image(local, swaps);
            self.find_cells_of(renaming.thread(thread), image)?;
        }
        if self.cells.cells.len() > cells {
            self.names = self.cells.names(self.subject.lock().has_tail_word());
            self.renamed_cells = symmetry
                .renamings
                .iter()
                .map(|composed| self.cells.renamed(&composed.renaming))
                .collect();
        }
        Ok(())
    }

    fn find_cells_of(&mut self, thread: usize, local: LocalId) -> Result<(), Stop> {
        let index = local as usize;
        if self.parts.len() <= index {
            self.parts.resize(index + 1, None);
        }
        if self.parts[index].is_some() {
            return Ok(());
        }
        let request = self.local(local).request.expect("it has not ended");
        match self.cells.touch(&mut self.findings, thread, &request) {
            Ok(parts) => {
                self.parts[index] = Some(parts);
                for cell in &self.cells.cells[self.shared.len() + self.private.len()..] {
                    match cell.place {
                        Place::Shared { .. } => {
                            self.shared
                                .push(initial_value(self.variables, cell).unwrap_or_else(|| {
                                    initial(
                                        self.config.unlocked(self.subject.lock()),
                                        self.config.tokens,
                                        cell,
                                    )
                                }))
                        }
                        Place::Private { .. } => {
                            let value = image::value(cell, self.config.tokens);
                            self.private.push(value.unwrap_or(0));
                        }
                    }
                }
                if *self.siblings != *self.cells.siblings {
                    self.siblings = self.cells.siblings.as_slice().into();
                }
                Ok(())
            }
            Err(Refusal::Restart) => Err(Stop::Restart),
            Err(Refusal::TooManyCells) => Err(Stop::TooLarge(
                "more shared variables than a view has entries; check fewer threads, or less nesting",
            )),
            Err(Refusal::TooManyParts) => {
                Err(Stop::TooLarge("an operation on more than four cells"))
            }
            Err(Refusal::NoMemory) => Err(Stop::Violation(Violation::NoMemory {
                thread,
                address: request.address,
                site: request.site,
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

    /// The newest value at an address. None: nothing is known of that memory.
    pub(crate) fn newest(&self, state: &State<N>, address: usize, size: usize) -> Option<u64> {
        let mut value = 0;
        let mut at = address;
        while at < address + size {
            let cell = self.cells.cells.iter().find(|cell| cell.address == at)?;
            let part = match cell.place {
                Place::Private { number, .. } => *state.private.get(usize::from(number))?,
                Place::Shared { number } => state.newest(usize::from(number)),
            };
            value |= part << (8 * (at - address));
            at += cell.size;
        }
        Some(value)
    }

    pub(crate) fn has_tail_word(&self) -> bool {
        self.subject.lock().has_tail_word()
    }

    pub(crate) fn subject(&self) -> Subject {
        self.subject
    }

    fn parts(&self, local: LocalId) -> Parts {
        self.parts[local as usize].expect("found with the local state")
    }

    fn make(&mut self, state: &mut State<N>, thread: usize, choice: Choice) -> Result<(), Stop> {
        if choice == Choice::Barrier {
            return self.barrier(state, thread);
        }
        let local = self.chosen(state, thread, choice);
        match choice {
            Choice::Barrier => unreachable!("done above"),
            Choice::Delay => self.delay(state, thread),
            Choice::Forward { entry } => {
                let answer = self.forwarded(state, thread, entry.into());
                self.go_on(state, thread, answer)
            }
            Choice::Late { entry, picks, .. } => {
                let request = self.operation(local).expect("it was delayed");
                self.covered[request.site.number()] = true;
                let result = self.operate(state, thread, local, &request, &picks)?;
                self.done_late(state, thread, entry.into(), result.unwrap_or(0))
            }
            Choice::Interruption => self.go_on(state, thread, Answer::Interruption),
            Choice::Fork => {
                self.fork(state, thread);
                self.go_on(state, thread, Answer::Fork)
            }
            Choice::Wake | Choice::TimeOut => {
                state.threads[thread].parked = false;
                state.spurious += u8::from(choice == Choice::Wake);
                let result = self.end_of_sleep(local, choice == Choice::TimeOut);
                self.go_on(state, thread, result)
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
                state.threads[thread].barrier = match state.threads[thread].barrier {
                    Barrier::Begun => Barrier::Owed,
                    _ if self.is_store_with_barrier(&request) => Barrier::Owed,
                    before => before,
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

    /// Gives the thread the result of its operation, and runs it up to its next operation.
    fn go_on(&mut self, state: &mut State<N>, thread: usize, answer: Answer) -> Result<(), Stop> {
        let now = &mut state.threads[thread];
        let next = self.automata.step(thread, now.local, answer);
        if let (false, Answer::Value(result)) = (now.window.is_empty(), answer) {
            now.window.push(now.local, Some(result));
        }
        self.arrive(state, thread, next)
    }

    /// Lets the thread come to its next operation.
    fn arrive(&mut self, state: &mut State<N>, thread: usize, next: Next) -> Result<(), Stop> {
        let window = state.threads[thread].window;
        if !window.is_empty() {
            self.members(thread, &window)?;
        }
        self.check_symmetry()?;
        if self.automata.is_surprised() {
            return Err(Stop::Restart);
        }
        let local = match window.is_empty() {
            true => next.local,
            false => self.standing(&window),
        };
        state.threads[thread].local = local;
        self.find_cells(thread, local)?;
        self.grow(state);
        if next.events != 0 {
            self.events[usize::from(self.is_queued(state))] |= next.events;
        }
        for effect in next.effects.iter() {
            match *effect {
                Effect::NodeFreed(node) => self.free_node(state, thread, node)?,
                Effect::Destroyed(lock) => self.end_uses(state, thread, Region::Lock(lock))?,
                Effect::Acquired(lock) => self.acquired(state, thread, lock, false)?,
                Effect::Reads(lock) => self.acquired(state, thread, lock, true)?,
                Effect::ChildBegins { free } => self.begin_child(state, thread, free)?,
                Effect::Broken(what) => return Err(Violation::Promise { thread, what }.into()),
            }
        }
        Ok(())
    }
}

/// The memory of a check that ends while threads run. Only in C11's memory: in the models of processors and
/// of the kernel a dependency orders that end too, which views do not show.
fn mortal(config: &Config, subject: Subject) -> Mortal {
    match subject {
        _ if config.memory != Memory::C11 => Mortal::Nothing,
        Subject::Cond(_) => Mortal::LentAndLock(headers::LW_CHECK_COND),
        Subject::Lock(lock) if lock.node_size() > 0 => Mortal::Lent,
        Subject::Lock(_) | Subject::Lockref(_) => Mortal::Nothing,
    }
}

fn is_plain(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::PlainRead | OperationKind::PlainWrite)
}

fn bytes(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size)
}

/// Whether the cell's value is lost when its owner, a thread or a lock, no longer uses it.
fn has_owner(cell: &Cell) -> bool {
    match cell.region {
        // The number of a slot's nodes in use stays known when it is 0.
        Region::Node { .. } => cell.address % headers::NODE.size != headers::NODE.count,
        Region::Lent { .. } => !cell.is_record(),
        Region::Queue { .. } => !is_waiters(cell),
        Region::Lock(_)
        | Region::Data(_)
        | Region::Wanted { .. }
        | Region::Reads { .. }
        | Region::Held { .. }
        | Region::Table
        | Region::Variables
        | Region::Local { .. }
        | Region::Global => false,
    }
}

/// Whether the cell says which lock has the queue of a NUMA node.
fn is_waiters(cell: &Cell) -> bool {
    matches!(cell.region, Region::Queue { .. })
        && cell.address % headers::NODE.size == headers::NODE.waiters
}

/// Whether the cell says which lock a reader has announced.
fn is_announcement(cell: &Cell) -> bool {
    matches!(cell.region, Region::Reads { .. }) && cell.address.is_multiple_of(headers::READ_SIZE)
}

/// Whether the cell says which lock an entry of the table of parked queue heads is for.
fn is_parked_lock(cell: &Cell) -> bool {
    cell.region == Region::Table && cell.address.is_multiple_of(headers::PARKED_HEAD_SIZE)
}

/// The initial value of a variable of a litmus test that has initial values.
fn initial_value(variables: &[u64], cell: &Cell) -> Option<u64> {
    let offset = cell.address.checked_sub(layout::variables())?;
    let number =
        (cell.region == Region::Variables && offset % WORD == 0).then_some(offset / WORD)?;
    variables.get(number).copied()
}

fn initial(unlocked: u32, tokens: u8, cell: &Cell) -> u64 {
    if let Some(value) = image::value(cell, tokens) {
        return value;
    }
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
