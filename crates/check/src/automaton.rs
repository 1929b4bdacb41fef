//! Threads as automata, learned from the running lock code.
//!
//! Between two operations a thread computes on its own. Its next step depends only on its stack,
//! its registers and the result of its last operation. Each such local state is kept once. The real
//! code runs once for each local state and result; from then on the next local state is looked up.
//! So the search itself runs no code and copies no stacks.
//!
//! All threads run on one stack, one at a time, so that their frames have the same addresses.

mod attributes;
mod cycle;
mod images;
mod log;

use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use lockworks::Settings;
use serde::{Deserialize, Serialize};

use crate::headers::{Client, Had, Mark};
use crate::hooks::{self, Request};
use crate::layout;
use crate::liveness;
use crate::mutation::{self, Mutation};
use crate::symmetry::{LockWord, Symmetry};

pub(crate) use attributes::Attributes;
pub(crate) use log::{Learned, Log};

#[cfg(test)]
mod twins;

const STACK: usize = 16 << 10;

/// The event with which a thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The operation is done, and this is its result.
    Value(u64),
    /// An interruption begins before the operation.
    Interruption,
    /// The thread forks before the operation.
    Fork,
}

/// Something that a thread did between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The thread has acquired a lock alone.
    Acquired(usize),
    /// The thread has acquired a lock as a reader.
    Reads(usize),
    /// The thread no longer uses a node. Slot nodes are numbered first, then lent nodes.
    NodeFreed(usize),
    /// The thread is about to reuse the memory of a lock.
    Destroyed(usize),
    /// The thread has seen a broken promise.
    Broken(&'static str),
    /// In the child of a fork new threads begin, in these slots.
    ChildBegins { free: u64 },
}

/// The number of a local state.
pub(crate) type LocalId = u32;

const UNKNOWN: LocalId = LocalId::MAX;

/// A local state.
pub(crate) struct Local {
    /// The thread whose state it is.
    pub(crate) thread: u8,
    /// The operation that the thread is about to do; None: the thread has ended.
    pub(crate) request: Option<Request>,
    pub(crate) attributes: Attributes,
    context: Box<libc::ucontext_t>,
    stack: Box<[u8]>,
    next: Vec<(Answer, Next)>,
    /// The search relies on it that the operation, and those of the local states that this one stands for,
    /// have no other results than those in `next`.
    is_relied_on: bool,
    /// For each swap of two threads, the local state that this one becomes.
    images: Box<[LocalId]>,
    /// The local state that stands for this one and all its images.
    pub(crate) representative: LocalId,
}

/// The local state that an answer leads to.
#[derive(Clone, PartialEq)]
pub(crate) struct Next {
    pub(crate) local: LocalId,
    pub(crate) effects: Rc<[Effect]>,
    /// The events that the lock counts on the way, one bit each.
    pub(crate) events: u64,
}

/// The identity of a local state.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    thread: usize,
    attributes: Attributes,
    /// The next operation: its site, address and operands.
    request: Option<(usize, usize, u64, u64)>,
    /// The frames of the lock code and, before them, the registers that it relies on, with zeros in
    /// place of dead values. The frames of the hooks below are left out.
    frames: Box<[u8]>,
}

/// The surroundings of the threads of a check.
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) has_slot: Vec<bool>,
    pub(crate) numa_nodes: Vec<u16>,
    pub(crate) priority: Vec<bool>,
    pub(crate) tunables: Settings,
    pub(crate) split_release: bool,
    pub(crate) never_park: bool,
    /// A thread may fork.
    pub(crate) forks: bool,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) word: LockWord,
    /// The function that each thread runs, with the client and the thread's number.
    pub(crate) program: unsafe extern "C" fn(*const Client, u32),
}

/// The local states found so far, and the means to find more.
pub(crate) struct Automata {
    pub(crate) locals: Vec<Local>,
    known: HashMap<Key, LocalId>,
    /// The steps learned, by these automata and by others of the same check.
    log: Arc<Log>,
    /// The number of those that these automata have learned.
    learned: usize,
    /// An operation had a result that the search relied on it not to have.
    surprised: bool,
    /// The threads that have behaved alike so far.
    pub(crate) symmetry: Rc<Symmetry>,
    /// If a thread may fork: the first local states of threads in the child, with queues of NUMA nodes and
    /// without, and those of threads that are not in the child.
    child: [Vec<LocalId>; 2],
    dead: Vec<LocalId>,
    /// The coroutine. It is boxed, since the lock code keeps pointers into it.
    machine: Box<Machine>,
    #[cfg(test)]
    twins: twins::Twins,
}

/// The coroutine in which threads run.
pub(crate) struct Machine {
    surroundings: Surroundings,
    stack: Box<[UnsafeCell<u8>]>,
    engine: UnsafeCell<MaybeUninit<libc::ucontext_t>>,
    thread: UnsafeCell<MaybeUninit<libc::ucontext_t>>,
    number: Cell<usize>,
    request: Cell<Option<Request>>,
    /// The address where the frames of the lock code begin.
    frames: Cell<usize>,
    /// The answer for the thread, in two cells, so that no copy of it remains on the stack.
    interrupted: Cell<bool>,
    forks: Cell<bool>,
    value: Cell<u64>,
    attributes: Cell<Attributes>,
    effects: RefCell<Vec<Effect>>,
}

impl Automata {
    pub(crate) fn new(surroundings: Surroundings, symmetry: Rc<Symmetry>, log: Arc<Log>) -> Self {
        Self {
            locals: Vec::new(),
            known: HashMap::new(),
            log,
            learned: 0,
            surprised: false,
            symmetry,
            child: Default::default(),
            dead: Vec::new(),
            machine: Box::new(Machine {
                surroundings,
                stack: (0..STACK).map(|_| UnsafeCell::new(0)).collect(),
                engine: UnsafeCell::new(MaybeUninit::zeroed()),
                thread: UnsafeCell::new(MaybeUninit::zeroed()),
                number: Cell::new(0),
                request: Cell::new(None),
                frames: Cell::new(0),
                interrupted: Cell::new(false),
                forks: Cell::new(false),
                value: Cell::new(0),
                attributes: Cell::default(),
                effects: RefCell::default(),
            }),
            #[cfg(test)]
            twins: twins::Twins::default(),
        }
    }

    /// The first local state of each thread.
    pub(crate) fn start(&mut self) -> Vec<LocalId> {
        let threads = self.machine.surroundings.has_slot.len();
        let starts: Vec<Next> = (0..threads)
            .map(|thread| {
                self.machine.start(thread, Attributes::default());
                self.arrive(thread)
            })
            .collect();
        if self.machine.surroundings.forks {
            self.find_threads_after_fork(threads);
        }
        let symmetry = Rc::clone(&self.symmetry);
        let mut pairs = starts.iter().enumerate().flat_map(|(thread, start)| {
            let swaps = symmetry.swaps.iter().enumerate();
            swaps.map(move |(number, swap)| (number, start, swap.thread(thread)))
        });
        pairs.all(|(number, start, image)| self.pair(number, start, &starts[image]));
        starts.iter().map(|start| start.local).collect()
    }

    fn find_threads_after_fork(&mut self, threads: usize) {
        for queues_ended in [false, true] {
            let local = |thread| {
                self.machine
                    .start(thread, Attributes::of_child(queues_ended));
                self.arrive(thread).local
            };
            self.child[usize::from(queues_ended)] = (0..threads).map(local).collect();
        }
        let local = |thread| {
            self.machine.request.set(None);
            self.machine.attributes.set(Attributes::of_dead());
            self.arrive(thread).local
        };
        self.dead = (0..threads).map(local).collect();
    }

    /// The first local state of a thread in the child of a fork.
    pub(crate) fn in_child(&self, thread: usize, queues_ended: bool) -> LocalId {
        self.child[usize::from(queues_ended)][thread]
    }

    /// The local state of a thread that is not in the child of a fork.
    pub(crate) fn dead(&self, thread: usize) -> LocalId {
        self.dead[thread]
    }

    /// The step of `thread` from `local` with `answer`.
    #[inline]
    pub(crate) fn step(&mut self, thread: usize, local: LocalId, answer: Answer) -> Next {
        match self.known(local, answer) {
            Some(next) => next.clone(),
            None => self.find_out(thread, local, answer),
        }
    }

    /// The results that an operation has had so far.
    pub(crate) fn results(&self, local: LocalId) -> impl Iterator<Item = u64> {
        let answers = self.locals[local as usize].next.iter();
        answers.filter_map(|(answer, _)| match answer {
            Answer::Value(value) => Some(*value),
            Answer::Interruption | Answer::Fork => None,
        })
    }

    /// Notes that the search relies on it that the operation has no further results, and neither have those
    /// of the threads that behave alike.
    pub(crate) fn rely_on(&mut self, local: LocalId) {
        let representative = self.locals[local as usize].representative;
        self.locals[representative as usize].is_relied_on = true;
    }

    /// The local states at whose operations the search relies on it that there are no further results.
    pub(crate) fn relied_on(&self) -> Vec<LocalId> {
        (0..self.locals.len() as LocalId)
            .filter(|local| self.locals[*local as usize].is_relied_on)
            .collect()
    }

    /// Whether an operation had a result that the search relied on it not to have.
    pub(crate) fn is_surprised(&self) -> bool {
        self.surprised
    }

    /// Forgets the surprise: the search starts again with all results found.
    pub(crate) fn forget_surprise(&mut self) {
        self.surprised = false;
    }

    #[inline]
    pub(crate) fn known(&self, local: LocalId, answer: Answer) -> Option<&Next> {
        self.locals[local as usize]
            .next
            .iter()
            .find(|(a, _)| *a == answer)
            .map(|(_, next)| next)
    }

    #[cold]
    fn learn(&mut self, thread: usize, local: LocalId, answer: Answer) -> Next {
        self.machine
            .resume(thread, &self.locals[local as usize], answer);
        let next = self.arrive(thread);
        let state = &mut self.locals[local as usize];
        state.next.push((answer, next.clone()));
        let all_alike = &self.locals[self.locals[local as usize].representative as usize];
        self.surprised |= all_alike.is_relied_on && matches!(answer, Answer::Value(_));
        #[cfg(test)]
        self.compare_twins(thread, local);
        next
    }

    /// Records the local state of `thread`, which has just stopped at an operation or ended.
    fn arrive(&mut self, thread: usize) -> Next {
        let machine = &self.machine;
        let effects = machine.effects.take().into();
        let events = hooks::take_events();
        let request = machine.request.get();
        let attributes = machine.attributes.get();
        let context = machine.context();
        let (mut frames, stack) = match request {
            Some(_) => (
                machine.stack_from(machine.frames.get()),
                machine.stack_from(stack_pointer(&context)),
            ),
            None => Default::default(),
        };
        liveness::clear_dead(&mut frames, machine.frames.get());
        let key = Key {
            thread,
            attributes,
            request: request.map(|r| (r.site.number(), r.address, r.a, r.b)),
            frames,
        };
        #[cfg(test)]
        if twins::are_compared()
            && let Some(known) = self.known.get(&key)
        {
            let twin = Local {
                thread: thread as u8,
                request,
                attributes,
                context: Box::new(context),
                stack: stack.clone(),
                next: Vec::new(),
                is_relied_on: false,
                images: Box::default(),
                representative: *known,
            };
            self.twins.add(&self.locals[*known as usize], twin);
        }
        let swaps = self.symmetry.swaps.len();
        let local = *self.known.entry(key).or_insert_with(|| {
            let number = self.locals.len() as LocalId;
            self.locals.push(Local {
                thread: thread as u8,
                request,
                attributes,
                context: Box::new(context),
                stack,
                next: Vec::new(),
                is_relied_on: false,
                images: vec![UNKNOWN; swaps].into(),
                representative: number,
            });
            number
        });
        Next {
            local,
            effects,
            events,
        }
    }
}

impl Machine {
    fn stack_bounds(&self) -> (usize, usize) {
        let base = self.stack.as_ptr() as usize;
        (base, (base + self.stack.len()) & !15)
    }

    fn start(&self, thread: usize, attributes: Attributes) {
        let (base, top) = self.stack_bounds();
        self.attributes.set(attributes);
        // SAFETY: the stack is ours and no thread runs on it.
        unsafe {
            ptr::write_bytes(base as *mut u8, 0, top - base);
            let context = self.thread.get().cast::<libc::ucontext_t>();
            libc::getcontext(context);
            clear_registers(&mut *context);
            (*context).uc_stack.ss_sp = base as *mut _;
            (*context).uc_stack.ss_size = top - base;
            (*context).uc_link = ptr::null_mut();
            libc::makecontext(context, main, 0);
        }
        self.run(thread);
    }

    fn resume(&self, thread: usize, local: &Local, answer: Answer) {
        let (base, top) = self.stack_bounds();
        let used = local.stack.len();
        self.attributes.set(local.attributes);
        self.interrupted.set(answer == Answer::Interruption);
        self.forks.set(answer == Answer::Fork);
        if let Answer::Value(value) = answer {
            self.value.set(value);
            self.change(Attributes::go_on);
        }
        // SAFETY: the stack is ours and no thread runs on it; the frames go back to where they were.
        // Below them zeros, so that what is left over never tells equal states apart.
        unsafe {
            ptr::write_bytes(base as *mut u8, 0, top - base - used);
            ptr::copy_nonoverlapping(local.stack.as_ptr(), (top - used) as *mut u8, used);
            *self.thread.get() = MaybeUninit::new(*local.context);
        }
        self.run(thread);
    }

    /// Runs the thread up to its next operation or its end.
    fn run(&self, thread: usize) {
        self.number.set(thread);
        self.request.set(None);
        hooks::take_events();
        let _guard = hooks::enter(self);
        // SAFETY: `thread` is a context that makecontext or swapcontext has made.
        unsafe { libc::swapcontext(self.engine.get().cast(), self.thread.get().cast()) };
    }

    /// Switches back to the engine, which later resumes this thread.
    fn leave(&self) {
        // SAFETY: `run` has saved the engine's context and is waiting.
        unsafe { libc::swapcontext(self.thread.get().cast(), self.engine.get().cast()) };
    }

    fn context(&self) -> libc::ucontext_t {
        // SAFETY: initialised by getcontext in `start`.
        unsafe { (*self.thread.get()).assume_init() }
    }

    fn stack_from(&self, address: usize) -> Box<[u8]> {
        let (_, top) = self.stack_bounds();
        // SAFETY: a suspended thread's frames reach from its stack pointer to the top.
        unsafe { std::slice::from_raw_parts(address as *const u8, top - address) }.into()
    }

    fn change(&self, f: impl FnOnce(&mut Attributes)) {
        let mut attributes = self.attributes.get();
        f(&mut attributes);
        self.attributes.set(attributes);
    }
}

extern "C" fn main() {
    hooks::with(|machine| {
        let surroundings = &machine.surroundings;
        // SAFETY: the client's lock type and addresses are those of this check.
        unsafe { (surroundings.program)(&surroundings.client, machine.thread() as u32) };
        machine.request.set(None);
        machine.leave();
    });
    unreachable!("a thread that has ended is not resumed");
}

/// The answers to the hooks. They take `&self`, since a thread may be suspended in one.
impl Machine {
    /// Performs an operation. `frames` is the stack address where the caller's frames begin, with its
    /// registers first.
    pub(crate) fn operate(&self, request: Request, frames: usize) -> u64 {
        loop {
            self.frames.set(frames);
            self.request.set(Some(request));
            self.leave();
            if self.interrupted.get() {
                self.interrupt();
            } else if self.forks.get() {
                self.fork();
            } else {
                return self.value.get();
            }
        }
    }

    /// The lowest address of the stack on which the running thread runs. Values that the thread
    /// leaves on its unused part are set to zero.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn stack_end(&self) -> usize {
        self.stack_bounds().0
    }

    /// The number of the running thread.
    pub(crate) fn thread(&self) -> usize {
        self.number.get()
    }

    pub(crate) fn numa_node(&self) -> u16 {
        self.surroundings.numa_nodes[self.thread()]
    }

    pub(crate) fn is_priority(&self) -> bool {
        self.surroundings.priority[self.thread()]
    }

    pub(crate) fn tunables(&self) -> *const Settings {
        &self.surroundings.tunables
    }

    pub(crate) fn release_is_split(&self) -> bool {
        self.surroundings.split_release
    }

    pub(crate) fn waiters_park(&self) -> bool {
        !self.surroundings.never_park
    }

    /// The number that stands for a lock's address where locks share the queues of NUMA nodes.
    pub(crate) fn identity(&self, address: usize) -> u64 {
        mutation::identity(self.surroundings.mutation, address)
    }

    /// The number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.surroundings.has_slot.len() as u32
    }

    /// The running thread's slot, if it has one.
    pub(crate) fn slot(&self) -> Option<usize> {
        self.surroundings.has_slot[self.thread()].then(|| self.thread() + 1)
    }

    /// Takes a node of the running thread's slot, which is returned; 0 if it has none.
    pub(crate) fn slot_enter(&self) -> u32 {
        if !self.surroundings.has_slot[self.thread()] {
            return 0;
        }
        self.change(|now| now.depth += 1);
        self.thread() as u32 + 1
    }

    pub(crate) fn slot_leave(&self, slot: u32) {
        if slot == 0 {
            return;
        }
        self.change(|now| now.depth -= 1);
        let depth = usize::from(self.attributes.get().depth);
        if depth < layout::NODES {
            self.effects.borrow_mut().push(Effect::NodeFreed(depth));
        }
    }

    pub(crate) fn note(&self, mark: Mark, lock: usize, node: usize) {
        self.change(|now| now.note(mark, lock, node));
        match mark {
            Mark::Acquired => self.effects.borrow_mut().push(Effect::Acquired(lock)),
            Mark::Reads => self.effects.borrow_mut().push(Effect::Reads(lock)),
            Mark::Released => {
                let freed = Effect::NodeFreed(layout::NODES + node);
                self.effects.borrow_mut().push(freed);
            }
            Mark::Destroyed => self.effects.borrow_mut().push(Effect::Destroyed(lock)),
            Mark::Begin | Mark::Release => {}
        }
    }

    /// How far the code that the thread runs or has interrupted is with a lock.
    pub(crate) fn had(&self, lock: usize) -> Had {
        let now = self.attributes.get();
        // Each thread lends the node with the lock's number for the lock.
        match 1 << lock {
            bit if now.holding & bit != 0 => Had::Held,
            bit if (now.wanted | now.lent) & bit != 0 => Had::Tries,
            _ => Had::Nothing,
        }
    }

    pub(crate) fn result(&self, digit: u64) {
        self.change(|now| now.result = now.result << 4 | (digit + 1));
    }

    pub(crate) fn broken(&self, promise: &'static str) {
        self.effects.borrow_mut().push(Effect::Broken(promise));
    }

    /// Whether a thread may fork in this check.
    pub(crate) fn may_fork(&self) -> bool {
        self.surroundings.forks
    }

    /// Whether the running thread is in the child of a fork.
    pub(crate) fn is_forked(&self) -> bool {
        self.attributes.get().forked
    }

    /// The queues of a NUMA node.
    pub(crate) fn node_queues(&self, node: usize) -> usize {
        match self.attributes.get().queues_ended {
            true => 0,
            false => layout::node_queues(node),
        }
    }

    pub(crate) fn node_queues_end(&self) {
        self.change(|now| now.queues_ended = true);
    }

    pub(crate) fn slot_free(&self, slot: usize) {
        self.change(|now| now.free |= 1 << (slot - 1));
    }

    /// Runs the child of a fork up to the point where its other threads begin.
    fn fork(&self) {
        let before = self.attributes.get();
        self.change(Attributes::fork);
        let slot = self.slot().unwrap_or(0);
        // SAFETY: it calls the hooks of this check only.
        unsafe { hooks::lw_check_forked_child(slot as u32) };
        let free = self.attributes.get().free;
        self.effects.borrow_mut().push(Effect::ChildBegins { free });
        self.change(|now| {
            now.resume(&before);
            now.alone = false;
            now.free = 0;
        });
    }

    fn interrupt(&self) {
        let before = self.attributes.get();
        self.change(Attributes::interrupt);
        let level = self.attributes.get().level;
        // SAFETY: the client's lock type and addresses are those of this check.
        unsafe { hooks::lw_check_interruption(&self.surroundings.client, level.into()) };
        self.change(|now| now.resume(&before));
    }
}

/// Clears the registers with which a thread starts. The thread saves them in its frames, where they
/// would make equal local states different.
fn clear_registers(context: &mut libc::ucontext_t) {
    #[cfg(target_arch = "x86_64")]
    context.uc_mcontext.gregs.fill(0);
    #[cfg(target_arch = "aarch64")]
    context.uc_mcontext.regs.fill(0);
}

#[cfg(target_arch = "x86_64")]
fn stack_pointer(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
}

#[cfg(target_arch = "aarch64")]
fn stack_pointer(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.sp as usize
}
