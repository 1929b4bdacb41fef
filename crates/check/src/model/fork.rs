//! Forks: a thread goes on in a child that has a copy of the memory, and no other thread.

use lockworks_explore::{LocalId, State, Thread};

use crate::cells::{Cell, CellId, Place};
use crate::headers;
use crate::layout::{self, Region};
use crate::machine::Attributes;
use crate::site::OperationKind;

use super::{Model, Stop, initial};

impl<const N: usize> Model<'_, N> {
    /// Whether a thread with these attributes may see a fork of its own or of another thread.
    pub(super) fn may_still_fork(&self, now: Attributes) -> bool {
        self.config.fork && !now.forked
    }

    /// Whether a thread may fork before the operation of `local`: while it holds the lock, or between two
    /// acquisitions. Nothing is promised to a thread that forks in a signal handler within lock code.
    pub(super) fn may_fork(&self, state: &State<N>, thread: usize, local: LocalId) -> bool {
        let now = self.local(local).attributes;
        let is_outside = now.holding != 0 || now.fresh;
        self.may_still_fork(now)
            && is_outside
            && state.threads[thread].deferred.is_none()
            && !self.is_queue_locked(state)
    }

    /// Whether a thread is about to leave the queue, in a lock that promises nothing after a fork just then.
    fn is_queue_locked(&self, state: &State<N>) -> bool {
        // Such a lock has the flag in another meaning.
        !self.subject.lock().has_mutex_word()
            && self.word(state) & u64::from(headers::WORD.queue_locked) != 0
    }

    fn word(&self, state: &State<N>) -> u64 {
        let word = self.newest(state, layout::lock(0), size_of::<u32>());
        word.unwrap_or(0)
    }

    /// Whether the child of a fork may find in memory that an operation was done.
    pub(super) fn is_seen_after_fork(&self, kind: OperationKind, cells: &[CellId]) -> bool {
        let own = |cell: &Cell| cell.region.node().is_some() && !self.is_count(cell);
        (kind == OperationKind::Store || kind.is_read_modify_write())
            && cells.iter().any(|id| !own(self.cell(*id)))
    }

    /// Lets a thread go on in the child of a fork, which sees the newest values. There it initialises a lock
    /// again that another thread holds.
    pub(super) fn fork(&mut self, state: &mut State<N>, thread: usize) {
        for other in (0..state.threads.len()).filter(|other| *other != thread) {
            state.threads[other] = Thread::new(self.automata.dead(other));
        }
        if self.weak() {
            let now = state.snapshot();
            state.threads[thread].seen.join(&now, state.histories);
            state.threads[thread].read.join(&now, state.histories);
        }
        let attributes = self.local(state.threads[thread].local).attributes;
        let held = self.word(state) & u64::from(headers::WORD.locked_mask) != 0;
        if held && attributes.wanted != 0 {
            self.initialise_lock(state);
        }
    }

    fn initialise_lock(&self, state: &mut State<N>) {
        let unlocked = self.config.unlocked(self.subject.lock());
        let cells = self.cells.cells.iter();
        for cell in cells.filter(|cell| cell.region == Region::Lock(0)) {
            let value = initial(unlocked, self.config.tokens, cell);
            match cell.place {
                Place::Private { number, .. } => state.private[usize::from(number)] = value,
                Place::Shared { number } if self.weak() => state.reset(number.into(), value),
                Place::Shared { number } => state.set(number.into(), value),
            }
        }
    }

    /// Begins the other threads of the child, which get the slots that are `free`.
    pub(super) fn begin_child(
        &mut self,
        state: &mut State<N>,
        thread: usize,
        free: u64,
    ) -> Result<(), Stop> {
        let parent = state.threads[thread];
        let queues_ended = self.local(parent.local).attributes.queues_ended;
        let begins = |other: &usize| *other != thread && free & 1 << other != 0;
        for other in (0..state.threads.len()).filter(begins) {
            let local = self.automata.in_child(other, queues_ended);
            state.threads[other] = Thread {
                seen: parent.seen,
                read: parent.seen,
                ..Thread::new(local)
            };
            for node in 0..layout::NODES + layout::LENT {
                self.free_node(state, other, node)?;
            }
            self.find_cells(other, local)?;
        }
        self.grow(state);
        Ok(())
    }

    /// Whether the run goes on in the child of a fork.
    pub(super) fn is_forked(&self, state: &State<N>) -> bool {
        let mut threads = state.threads.iter();
        threads.any(|thread| self.local(thread.local).attributes.forked)
    }

    /// Whether a thread is not in the child of a fork.
    pub(super) fn is_dead(&self, state: &State<N>, thread: usize) -> bool {
        self.local(state.threads[thread].local).attributes.dead
    }
}
