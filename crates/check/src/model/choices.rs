//! The choices of a thread in a state, and the choices that need not be explored.

use lockworks_explore::{Barrier, Histories, LocalId, State, View, merged};
use lockworks_litmus::Memory;

use crate::automaton::Next;
use crate::cells::{CellId, PARTS, Parts, Place};
use crate::config::Time;
use crate::layout::Region;
use crate::machine::Answer;
use crate::mutation::Change;
use crate::site::{OperationKind, Order, Request};

use super::{Choice, Model, Picks, Stop, is_plain};

/// An access to memory that a thread is about to make.
pub(super) struct PendingAccess<'a> {
    thread: usize,
    request: &'a Request,
    /// The memory that is accessed.
    parts: Parts,
    /// The kind of the operation, which a mutant may have changed.
    kind: OperationKind,
}

/// The writes of a cell that an access may pick.
#[derive(Clone, Default)]
pub(super) struct Candidates {
    range: std::ops::Range<u8>,
    /// Those of the range that it may not, one bit each.
    but: u16,
}

impl Candidates {
    /// The picks, the newest first.
    fn picks(&self) -> impl Iterator<Item = u8> + use<> {
        let but = self.but;
        let picks = self.range.clone().rev();
        picks.filter(move |pick| but.checked_shr(u32::from(*pick)).unwrap_or(0) & 1 == 0)
    }
}

impl<'a> PendingAccess<'a> {
    pub(super) fn new(
        thread: usize,
        request: &'a Request,
        parts: Parts,
        kind: OperationKind,
    ) -> Self {
        Self {
            thread,
            request,
            parts,
            kind,
        }
    }

    pub(super) fn kind(&self) -> OperationKind {
        self.kind
    }
}

impl<const N: usize> Model<'_, N> {
    /// Whether `thread` may take its step before all others without a difference to them or to
    /// anything that is checked. Such a step commutes with all steps of others.
    pub(super) fn is_local_step(&self, state: &State<N>, thread: usize) -> bool {
        let Some(local) = self.current(state, thread) else {
            return false;
        };
        let request = self.operation(local).expect("it has not ended");
        let order = self.order(&request);
        let kind = self.kind(&request);
        let now = self.local(state.threads[thread].local).attributes;
        if now.alone {
            return true;
        }
        let delays = self.config.memory.delays();
        if delays
            && (!state.threads[thread].window.is_empty()
                || state.threads[thread].barrier != Barrier::None
                || self.is_full_barrier(local)
                || self.is_store_with_barrier(&request))
        {
            return false;
        }
        if self.config.bypass.is_some() && now.fresh && now.wanted & 1 != 0 {
            // Waiters see the moment at which an acquisition begins.
            return false;
        }
        if self.is_dropped(&request)
            || matches!(
                kind,
                OperationKind::Pause | OperationKind::Clock | OperationKind::Choose
            )
        {
            return true;
        }
        if is_plain(kind) {
            // It may be delayed.
            return !self.config.memory.is_multi_copy_atomic();
        }
        if kind == OperationKind::Fence {
            return match self.config.memory {
                // Without delayed stores there is nothing to order.
                Memory::Sc | Memory::Tso => true,
                Memory::Arm => order == Order::Acquire,
                Memory::Riscv => matches!(order, Order::Acquire | Order::Release),
                _ => order != Order::SeqCst,
            };
        }
        if kind.waits()
            || matches!(kind, OperationKind::Park | OperationKind::Unpark)
            || (order == Order::SeqCst && self.weak())
        {
            return false;
        }
        // The child of another thread's fork finds in memory what this one has written.
        if self.may_still_fork(now) && self.is_seen_after_fork(kind, self.parts(local).cells()) {
            return false;
        }
        // In a view machine a write takes no value away from readers. A write to the node of
        // another thread is not local, since that thread may stop using the node.
        let foreign = |id: &CellId| {
            self.cell(*id)
                .region
                .node()
                .is_some_and(|(owner, _)| owner != thread)
        };
        if kind == OperationKind::Store
            && self.weak()
            && !self.config.memory.is_multi_copy_atomic()
            && !self.parts(local).cells().iter().any(foreign)
        {
            return true;
        }
        // Only the slot's thread writes to its table of held locks.
        let own_table = |id: &CellId| {
            kind == OperationKind::Load && self.cell(*id).region == (Region::Held { thread })
        };
        // It may be delayed.
        let is_machine = self.config.memory.is_multi_copy_atomic();
        let may_be_late = |id: &CellId| is_machine && self.is_shared_store(kind, *id);
        let own =
            |id: &CellId| (self.is_own(state, thread, *id) && !may_be_late(id)) || own_table(id);
        self.parts(local).cells().iter().all(own)
    }

    /// The choices of `thread`, the newest values first; none if the thread waits or has ended.
    pub(super) fn find_choices(
        &mut self,
        state: &State<N>,
        thread: usize,
        choices: &mut Vec<Choice>,
    ) -> Result<(), Stop> {
        choices.clear();
        if !self.is_live(state, thread) {
            return Ok(());
        }
        if self.config.memory.delays() && !state.threads[thread].parked {
            self.reordered(state, thread, choices)?;
            if !state.threads[thread].window.is_empty()
                || state.threads[thread].barrier != Barrier::None
            {
                return Ok(());
            }
        }
        let Some(local) = self.current(state, thread) else {
            return Ok(());
        };
        if state.threads[thread].parked {
            if self.ends_by_time(local) {
                if !self.is_idle_until_woken(state, thread) {
                    choices.push(Choice::TimeOut);
                }
            } else if state.spurious < self.config.spurious {
                choices.push(Choice::Wake);
            }
        } else if !self.config.memory.delays() {
            self.operations(state, thread, local, choices)?;
        }
        let attributes = self.local(local).attributes;
        if attributes.level < self.config.nesting
            && attributes.interrupted & 1 << attributes.level == 0
            && state.threads[thread].deferred.is_none()
            // An interruption of a parked thread is the same as one just before it parks.
            && !state.threads[thread].parked
        {
            choices.push(Choice::Interruption);
        }
        if self.may_fork(state, thread, local) {
            choices.push(Choice::Fork);
        }
        Ok(())
    }

    pub(super) fn operations(
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
            OperationKind::Fence
            | OperationKind::Pause
            | OperationKind::PlainRead
            | OperationKind::PlainWrite => one(0),
            OperationKind::Clock => {
                let time = match self.mutation {
                    Some(m) if m.change == Change::NeverLate => Time::Early,
                    _ if self.subject.lock().is_resilient()
                        && self.has_detectable_deadlock(state) =>
                    {
                        Time::Early
                    }
                    _ => self.config.time,
                };
                if time != Time::Late {
                    one(0);
                }
                if time != Time::Early {
                    one(1);
                }
            }
            OperationKind::Choose => {
                for value in self.distinct(thread, local, request.a)? {
                    one(value);
                }
            }
            OperationKind::Unpark => {
                let mut parked = self.parked_at(state, request.address).peekable();
                if parked.peek().is_none() {
                    one(0);
                }
                parked.for_each(|thread| one(thread as u8 + 1));
            }
            kind => {
                let access = PendingAccess {
                    thread,
                    request: &request,
                    parts: self.parts(local),
                    kind,
                };
                self.accesses(state, &access, choices);
                let reads = !kind.is_read_modify_write() && kind != OperationKind::Store;
                if self.weak()
                    && state.threads[thread].window.is_empty()
                    && (reads || kind == OperationKind::CompareExchange)
                    && choices.len() > 1
                {
                    self.drop_dominated(state, &access, choices);
                }
            }
        }
        Ok(())
    }

    /// Keeps, of reads after which the thread continues in the same way, those with the least view.
    ///
    /// All that can happen after another of these reads can also happen after one that is kept. A
    /// thread that has seen less may still see more and may write wherever the other may. It knows
    /// no more accesses to plain data. Deadlocks are defined by reads of the newest values, which do
    /// not depend on what the thread has seen.
    pub(super) fn drop_dominated(
        &mut self,
        state: &State<N>,
        access: &PendingAccess,
        choices: &mut Vec<Choice>,
    ) {
        let PendingAccess {
            thread,
            request,
            parts,
            kind,
        } = access;
        let mut kept: Vec<(Option<Next>, View<N>, Choice)> = Vec::new();
        for choice in choices.drain(..) {
            let Choice::Operate { picks, newest } = choice else {
                unreachable!("only operations have been found so far");
            };
            let value = self.value(state, parts, &picks);
            let changes = matches!(kind, OperationKind::CompareExchange | OperationKind::Park)
                && value == request.a;
            let next = if changes || self.is_uninitialised(state, parts, &picks) {
                None
            } else {
                let at = state.threads[*thread].local;
                Some(self.automata.step(*thread, at, Answer::Value(value)))
            };
            // The writes that the thread may come to see by a fence count too.
            let order = match (self.findings.acquire_fences, kind) {
                (true, _) => Order::Acquire,
                (false, OperationKind::CompareExchange) => self.failure_order(request),
                _ => self.order(request),
            };
            let seen = self.seen_after(state, *thread, parts, &picks, order);
            let alike = |other: &Option<Next>| next.is_some() && *other == next;
            if let Some((_, _, dominant)) = kept
                .iter_mut()
                .find(|(other, less, _)| alike(other) && less.is_within(&seen, state.histories))
            {
                if let Choice::Operate { newest: n, .. } = dominant {
                    *n |= newest;
                }
                continue;
            }
            let mut newest = newest;
            kept.retain(|(other, more, dominated)| {
                let keep = !(alike(other) && seen.is_within(more, state.histories));
                newest |= !keep && matches!(dominated, Choice::Operate { newest: true, .. });
                keep
            });
            kept.push((next, seen, Choice::Operate { picks, newest }));
        }
        choices.extend(kept.into_iter().map(|(_, _, choice)| choice));
    }

    /// The values from 0 to n - 1 that lead to different states.
    pub(super) fn distinct(
        &mut self,
        thread: usize,
        local: LocalId,
        n: u64,
    ) -> Result<Vec<u8>, Stop> {
        if let Some(values) = self.distinct.get(&local) {
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
        self.distinct.insert(local, values.clone());
        Ok(values)
    }

    /// The threads that are parked at an address.
    pub(super) fn parked_at(
        &self,
        state: &State<N>,
        address: usize,
    ) -> impl Iterator<Item = usize> {
        (0..state.threads.len()).filter(move |t| {
            state.threads[*t].parked
                && self
                    .request(state, *t)
                    .is_some_and(|r| r.address == address)
        })
    }

    /// The ways in which an operation on memory may read and write it.
    pub(super) fn accesses(
        &self,
        state: &State<N>,
        access: &PendingAccess,
        choices: &mut Vec<Choice>,
    ) {
        let kind = access.kind;
        let order = self.order(access.request);
        let mut candidates: [Candidates; PARTS] = Default::default();
        for (candidates, id) in candidates.iter_mut().zip(access.parts.cells()) {
            let range = &mut candidates.range;
            let Place::Shared { number } = self.cell(*id).place else {
                *range = 0..1;
                continue;
            };
            let cell = usize::from(number);
            let count = state.messages(cell).len() as u8;
            if !self.weak() {
                *range = match kind {
                    OperationKind::Store => 1..2,
                    _ => 0..1,
                };
                continue;
            }
            let mut oldest = state.threads[access.thread].seen.0[cell];
            // A compare-and-exchange that fails is relaxed.
            let is_sc = self.config.memory == Memory::C11 || kind == OperationKind::Park;
            if is_sc && order == Order::SeqCst && kind != OperationKind::CompareExchange {
                oldest = state.histories.later(oldest, state.sc.0[cell]);
            }
            if state.histories == Histories::Merged {
                *candidates = match kind {
                    OperationKind::Store => Candidates {
                        range: 0..count + 1,
                        but: (1 << count)
                            - 1
                            - u16::from(state.may_write_before_newest(cell, oldest)),
                    },
                    _ => Candidates {
                        range: 0..count,
                        but: merged::unreadable(oldest).into(),
                    },
                };
                continue;
            }
            if self.config.memory == Memory::Arm
                && order == Order::SeqCst
                && kind != OperationKind::CompareExchange
            {
                oldest = oldest.max(state.threads[access.thread].fenced.0[cell]);
            }
            if self.config.memory == Memory::Riscv
                && order == Order::SeqCst
                && kind != OperationKind::CompareExchange
            {
                // It comes after a full fence, which no thread is behind.
                oldest = count - 1;
            }
            *range = match kind {
                // The writes of all threads are in one order, the one in which they are done.
                OperationKind::Store if self.config.memory.is_multi_copy_atomic() => {
                    count..count + 1
                }
                OperationKind::Store => oldest + 1..count + 1,
                _ => oldest..count,
            };
        }
        let mut picks = Picks::default();
        self.combine(state, access, &candidates, &mut picks, 0, choices);
    }

    pub(super) fn combine(
        &self,
        state: &State<N>,
        access: &PendingAccess,
        candidates: &[Candidates; PARTS],
        picks: &mut Picks,
        part: usize,
        choices: &mut Vec<Choice>,
    ) {
        if part == access.parts.cells().len() {
            let newest = candidates
                .each_ref()
                .map(|candidates| candidates.range.end.saturating_sub(1));
            if self.is_possible(state, access, picks) {
                choices.push(Choice::Operate {
                    picks: *picks,
                    newest: part == 0 || picks[..part] == newest[..part],
                });
            }
            return;
        }
        // The newest first, so that short traces come first.
        for pick in candidates[part].picks() {
            picks[part] = pick;
            if !self.fits(state, access, picks, part) {
                continue;
            }
            self.combine(state, access, candidates, picks, part + 1, choices);
        }
    }

    /// Whether the write that is picked of a part fits those of the parts before it. Two writes to a word
    /// have the same order in all of its parts. A read sees each of them whole or not at all.
    fn fits(&self, state: &State<N>, access: &PendingAccess, picks: &Picks, part: usize) -> bool {
        let before = u8::from(access.kind == OperationKind::Store);
        let place = |part: usize| match self.cell(access.parts.cells()[part]).place {
            Place::Shared { number } => {
                // In merged histories a store before the newest has no place.
                let pick = picks[part].checked_sub(before)?;
                Some((usize::from(number), usize::from(pick)))
            }
            Place::Private { .. } => None,
        };
        let Some(own) = place(part) else {
            return true;
        };
        (0..part)
            .filter_map(place)
            .all(|other| state.fit(own, other) && state.fit(other, own))
    }

    /// Whether an operation on memory can read and write in the picked way, whose parts fit.
    pub(super) fn is_possible(
        &self,
        state: &State<N>,
        access: &PendingAccess,
        picks: &Picks,
    ) -> bool {
        let PendingAccess {
            request,
            parts,
            kind,
            ..
        } = access;
        let kind = *kind;
        let shared =
            || {
                parts.cells().iter().zip(picks).filter_map(|(id, pick)| {
                    match self.cell(*id).place {
                        Place::Shared { number } => Some((usize::from(number), usize::from(*pick))),
                        Place::Private { .. } => None,
                    }
                })
            };
        if kind == OperationKind::Store {
            // No write comes between a read-modify-write and the write that it read.
            return shared()
                .all(|(cell, position)| position == 0 || !state.is_sealed(cell, position - 1));
        }
        let value = self.value(state, parts, picks);
        match kind {
            OperationKind::AwaitEqual => value & request.a == request.b,
            OperationKind::AwaitNotEqual => value & request.a != request.b,
            OperationKind::CompareExchange if value != request.a => true,
            OperationKind::CompareExchange
                if self.config.memory == Memory::C11
                    && self.order(request) == Order::SeqCst
                    && shared().any(|(cell, pick)| !state.is_readable(&state.sc, cell, pick)) =>
            {
                false
            }
            _ if kind.is_read_modify_write() && self.config.memory.is_multi_copy_atomic() => {
                shared().all(|(cell, pick)| pick + 1 == state.messages(cell).len())
            }
            _ if kind.is_read_modify_write() => {
                let seen = &state.threads[access.thread].seen;
                shared().all(|(cell, pick)| {
                    !state.is_sealed(cell, pick) && state.may_follow(seen, cell, pick)
                })
            }
            _ => true,
        }
    }

    /// The value that a read of the picked writes returns.
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
}
