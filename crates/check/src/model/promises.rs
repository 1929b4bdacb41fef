//! The promises of locks, checked in each step and state.

use lockworks_explore::{LocalId, State, WORD};

use crate::cells::{Cell, Parts, Place};
use crate::config::{LOCKREF_COUNT, Subject};
use crate::headers;
use crate::layout::{self, Region};
use crate::locks;
use crate::site::OperationKind;
use crate::source::Kind;
use crate::violation::Violation;

use super::{
    Choice, Model, Stop, bytes, initial_value, is_announcement, is_parked_lock, is_waiters,
};

/// The states of a queue node, in its lowest byte, whose waiter is queue head.
const NODE_STATE: u64 = 0xff;
const HEAD: u64 = headers::LW_NODE_HEAD as u64;
const PARKED_HEAD: u64 = headers::LW_NODE_PARKED_HEAD as u64;

impl<const N: usize> Model<'_, N> {
    /// Checks that a thread touches a node of another thread only while that thread uses it.
    pub(super) fn check_nodes(
        &self,
        state: &State<N>,
        thread: usize,
        parts: &Parts,
        kind: OperationKind,
    ) -> Result<(), Stop> {
        if self.local(state.threads[thread].local).attributes.alone {
            return Ok(());
        }
        for id in parts.cells() {
            let cell = self.cell(*id);
            let Some((owner, node)) = cell.region.node() else {
                continue;
            };
            let now = self.local(state.threads[owner].local).attributes;
            // A thread may find out that the node of another one is dead.
            if now.dead
                && kind == OperationKind::Load
                && cell.address % headers::NODE.size == headers::NODE.locked
            {
                continue;
            }
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

    /// Whether the cell holds the number of a slot's nodes in use.
    pub(super) fn is_count(&self, cell: &Cell) -> bool {
        matches!(cell.region, Region::Node { thread, index: 0 }
            if cell.address == layout::slot_nodes(thread + 1) + headers::NODE.count)
    }

    /// Checks the pieces of a lock word that has a tail.
    pub(super) fn check_range(&self, cell: &Cell, value: u64) -> Result<(), Stop> {
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

    /// Whether the word of one of the locks has a tail.
    pub(super) fn is_queued(&self, state: &State<N>) -> bool {
        let tail = u64::from(headers::WORD.tail);
        self.has_tail_word()
            && self
                .cells
                .cells
                .iter()
                .any(|cell| match (cell.region, cell.place) {
                    (Region::Lock(lock), Place::Shared { number }) => {
                        let shift = 8 * (cell.address - layout::lock(lock)) as u32;
                        let value = state.newest(usize::from(number));
                        tail & value.checked_shl(shift).unwrap_or(0) != 0
                    }
                    _ => false,
                })
    }

    pub(super) fn acquired(
        &self,
        state: &mut State<N>,
        thread: usize,
        lock: usize,
        as_reader: bool,
    ) -> Result<(), Stop> {
        let mut holders = (0..state.threads.len()).filter(|other| {
            let attributes = self.local(state.threads[*other].local).attributes;
            let reading = if as_reader { 0 } else { attributes.reading };
            *other != thread && (attributes.holding | reading) & 1 << lock != 0
        });
        let tokens = self.config.tokens.max(1);
        if let Some(holder) = holders.nth(usize::from(tokens) - 1) {
            if locks::kind(self.subject.lock()) == Kind::Semaphore {
                return Err(Violation::Tokens { thread, tokens }.into());
            }
            return Err(Violation::MutualExclusion {
                holder,
                other: thread,
            }
            .into());
        }
        let Some(bound) = self.config.bypass.filter(|_| lock == 0) else {
            return Ok(());
        };
        state.threads[thread].later = 0;
        state.threads[thread].bypassed = 0;
        for (other, waiter) in state.threads.iter_mut().enumerate() {
            if waiter.later & 1 << thread == 0 {
                continue;
            }
            waiter.later &= !(1 << thread);
            waiter.bypassed += 1;
            if waiter.bypassed > bound {
                return Err(Violation::Bypassed {
                    thread: other,
                    times: waiter.bypassed,
                }
                .into());
            }
        }
        Ok(())
    }

    /// Notes, if `thread` begins an acquisition, that it arrives later than all present waiters.
    pub(super) fn note_begin(&self, state: &mut State<N>, thread: usize) {
        let now = self.local(state.threads[thread].local).attributes;
        if self.config.bypass.is_none() || !now.fresh || now.wanted & 1 == 0 {
            return;
        }
        for other in (0..state.threads.len()).filter(|t| *t != thread) {
            let attributes = self.local(state.threads[other].local).attributes;
            let protected =
                self.config.priority.is_empty() || self.config.priority.contains(&other);
            let waits = self
                .request(state, other)
                .is_some_and(|r| r.site.kind.waits() || r.site.kind == OperationKind::Park);
            if protected && waits && attributes.wanted & 1 != 0 {
                state.threads[other].later |= 1 << thread;
            }
        }
    }

    /// Whether a sleep of a thread at this operation ends by time.
    pub(super) fn ends_by_time(&self, local: LocalId) -> bool {
        self.local(local)
            .request
            .is_some_and(|r| r.site.kind == OperationKind::Park && r.b != 0)
    }

    /// The state of a thread's queue node, if the thread sleeps there as the head of the first lock's queue.
    fn head_asleep(&self, state: &State<N>, thread: usize) -> Option<u64> {
        let local = state.threads[thread].local;
        // Such a thread acquires no other lock.
        if !state.threads[thread].parked || self.local(local).attributes.wanted != 1 {
            return None;
        }
        let request = self.local(local).request?;
        self.newest(state, request.address, request.site.size.into())
            .map(|state| state & NODE_STATE)
            .filter(|state| [HEAD, PARKED_HEAD].contains(state))
    }

    /// Whether a bound on idleness is checked, and a thread is a queue head that another thread is about to
    /// wake. Then no time passes until it is woken.
    pub(super) fn is_idle_until_woken(&self, state: &State<N>, thread: usize) -> bool {
        self.config.idle.is_some() && self.head_asleep(state, thread) == Some(HEAD)
    }

    /// The queue head, if the first lock is free and its queue head asleep. Where a release may miss a head
    /// that is in the table of parked heads, that sleep ends by time, and does not count.
    pub(super) fn idle_head(&self, state: &State<N>) -> Option<usize> {
        let word = self.newest(state, layout::lock(0), 1).unwrap_or(0);
        if word & u64::from(headers::WORD.locked_mask) != 0 {
            return None;
        }
        (0..state.threads.len()).find(|thread| match self.head_asleep(state, *thread) {
            Some(PARKED_HEAD) => !self.ends_by_time(state.threads[*thread].local),
            asleep => asleep.is_some(),
        })
    }

    /// Whether a step counts as an operation that is done while the lock is idle: one in which threads
    /// notice each other, and that reads the newest value.
    pub(super) fn counts_as_idle(&self, state: &State<N>, thread: usize, choice: Choice) -> bool {
        let (Choice::Operate { newest: true, .. } | Choice::Late { newest: true, .. }) = choice
        else {
            return false;
        };
        let request = self.operation(self.chosen(state, thread, choice));
        let kind = self.kind(&request.expect("a choice was made"));
        let only_writes = matches!(
            kind,
            OperationKind::Store
                | OperationKind::Fence
                | OperationKind::PlainRead
                | OperationKind::PlainWrite
        );
        !only_writes && !self.is_local_step(state, thread) && self.idle_head(state).is_some()
    }

    /// Counts an operation that was done while the lock was idle, if it `counts` and the lock still is.
    pub(super) fn note_idle(
        &self,
        state: &mut State<N>,
        counts: bool,
        bound: u8,
    ) -> Result<(), Stop> {
        let Some(thread) = self.idle_head(state) else {
            state.idle = 0;
            return Ok(());
        };
        state.idle += u8::from(counts);
        match state.idle > bound {
            true => Err(Violation::Idle {
                thread,
                operations: Some(state.idle),
            }
            .into()),
            false => Ok(()),
        }
    }

    /// Whether a thread waits for itself, or two threads wait for each other, and a resilient lock can
    /// tell: all threads have slots, and with them tables of held locks.
    pub(super) fn has_detectable_deadlock(&self, state: &State<N>) -> bool {
        let attributes = |thread: usize| self.local(state.threads[thread].local).attributes;
        let threads = || 0..state.threads.len();
        let waits_for = |one: usize, other: usize| {
            one != other && attributes(one).wanted & attributes(other).holding != 0
        };
        let waits_for_itself = |one: usize| attributes(one).again != 0;
        let waits_for_waiter =
            |one| threads().any(|other| waits_for(one, other) && waits_for(other, one));
        threads().all(|one| self.config.has_slot(one))
            && threads().any(|one| waits_for_itself(one) || waits_for_waiter(one))
    }

    /// Checks, when all threads have ended, that everything is as it was at the start.
    pub(super) fn check_nothing_is_left(&self, state: &State<N>) -> Result<(), Violation> {
        let service = match self.subject.lock().has_mutex_word() {
            true if self.is_forked(state) => !headers::WORD.locked_mask | headers::WORD.left,
            _ if self.is_forked(state) => !headers::WORD.locked_mask,
            true => headers::WORD.left,
            false => headers::WORD.service,
        };
        let forked = self.is_forked(state);
        for cell in &self.cells.cells {
            let value = match cell.place {
                Place::Private { number, .. } => state.private[usize::from(number)],
                Place::Shared { number } => state.newest(usize::from(number)),
            };
            // In the child of a fork a lock that nobody has acquired since may still name dead threads.
            match cell.region {
                Region::Queue { .. } if forked => continue,
                Region::Node { thread, .. } if self.is_dead(state, thread) => continue,
                _ => {}
            }
            let what = match cell.region {
                Region::Lock(i) if cell.address >= layout::lock(i) + LOCKREF_COUNT => {
                    match self.subject {
                        Subject::Lock(lock)
                            if locks::is_rwlock(lock) && value & headers::READERS != 0 =>
                        {
                            "a reader or writer is left"
                        }
                        Subject::Lockref(_) if (value as i32) > 0 => "a reference was not put",
                        _ => continue,
                    }
                }
                Region::Lock(_) if self.has_tail_word() => "the lock is not free",
                Region::Node { .. } if self.is_count(cell) => "a queue node is still in use",
                Region::Wanted { .. } => "a slot still waits for a lock",
                Region::Reads { .. } if is_announcement(cell) => "a slot still reads a lock",
                Region::Held { .. } => "a table of held locks is not empty",
                Region::Queue { .. } if is_waiters(cell) => {
                    "the queue of a NUMA node is still in use"
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

    /// The result of each thread of a litmus test, and behind these the final values of its variables if
    /// it has initial values.
    pub(super) fn final_results(&self, state: &State<N>) -> Vec<u64> {
        let of_threads = state.threads.iter();
        let mut results: Vec<u64> = of_threads
            .map(|t| self.local(t.local).attributes.result)
            .collect();
        let threads = results.len();
        results.extend(self.variables);
        for cell in &self.cells.cells {
            if let (Some(_), Place::Shared { number }) =
                (initial_value(self.variables, cell), cell.place)
            {
                let variable = (cell.address - layout::variables()) / WORD;
                results[threads + variable] = state.newest(usize::from(number));
            }
        }
        results
    }
}
