//! Threads as automata, learned from the running lock code.
//!
//! Between two operations a thread computes on its own. Its next step depends only on its stack,
//! its registers and the result of its last operation. Each such local state is kept once. The real
//! code runs once for each local state and result; from then on the next local state is looked up.
//! So the search itself runs no code and copies no stacks.
//!
//! All threads run on one stack, one at a time, so that their frames have the same addresses.

mod cycle;
mod images;
mod log;

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use lockworks_explore::{LocalId, Symmetry};

use crate::liveness;
use crate::machine::{Answer, Attributes, Effect, Machine, Stopped, Surroundings};
use crate::site::Request;

pub(crate) use log::{Learned, Log};

#[cfg(test)]
mod twins;

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

impl Local {
    /// Runs the thread from here up to its next operation or its end.
    fn resume_in(&self, machine: &Machine, answer: Answer) {
        let thread = self.thread.into();
        machine.resume(thread, self.attributes, &self.context, &self.stack, answer);
    }
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

/// The local states found so far, and the means to find more.
pub(crate) struct Automata {
    pub(crate) locals: Vec<Local>,
    known: HashMap<Key, LocalId>,
    /// The steps learned, by these automata and by others of the same check.
    log: Arc<Log>,
    /// The number of those that these automata have learned.
    learned: usize,
    /// The search took it that an operation has no further result, and then it had one.
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
            machine: Box::new(Machine::new(surroundings)),
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
            self.machine.die();
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
        self.locals[local as usize].resume_in(&self.machine, answer);
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
        let Stopped {
            request,
            attributes,
            context,
            stack,
            mut frames,
            frames_at,
            effects,
            events,
        } = self.machine.stopped();
        liveness::clear_dead(&mut frames, frames_at);
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
                context: context.clone(),
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
                context,
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
