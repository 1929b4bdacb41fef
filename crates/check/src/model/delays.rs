//! Operations that a thread does in another order than that of its program.
//!
//! A thread may delay an operation and do later ones first, as processors do and compilers may, unless
//! the later one must wait for it: by its memory order, a fence, the same memory, or a dependency.
//!
//! There is no list of dependencies. While a load is delayed, its result is open, and the thread is
//! followed for every result that the load has ever had. It goes on only as long as its operations
//! are the same for all of these. So an operation depends on a load if another result would have
//! changed it, or would have led elsewhere. If a load later has a result that it never had before,
//! the search starts again.
//!
//! So a thread with delayed loads may be in several local states. They follow from its window, whatever
//! the order in which results were found. Threads that behave alike can therefore change places: their
//! windows get the names that their other values get.

use std::ops::Range;

use lockworks_explore::{Barrier, Composed, LocalId, State, WINDOW, Window};
use lockworks_litmus::Memory;

use crate::automaton::Next;
use crate::cells::{CellId, Parts, Place};
use crate::machine::{Answer, Effect};
use crate::mutation::Change;
use crate::site::{OperationKind, Order};

use super::choices::PendingAccess;
use super::{Choice, Model, Stop};

/// The most local states that a thread with delayed loads is followed through.
const MOST_MEMBERS: usize = 64;

/// The local states that a thread may be in, one for each combination of results of its delayed loads.
type Members = Vec<LocalId>;

/// Whether an operation must wait for an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    No,
    /// A compare-and-swap that fails need not.
    UnlessItFails,
    Always,
}

fn overlap(one: &Parts, other: &Parts) -> bool {
    one.cells().iter().any(|cell| other.cells().contains(cell))
}

/// The local states after each of these answers in each of these local states.
fn follow(
    members: &[LocalId],
    answers: &[Answer],
    mut step: impl FnMut(LocalId, Answer) -> Option<LocalId>,
) -> Members {
    let mut next = Members::new();
    for at in members {
        for answer in answers {
            if let Some(local) = step(*at, *answer)
                && !next.contains(&local)
            {
                next.push(local);
            }
        }
    }
    next
}

impl<const N: usize> Model<'_, N> {
    /// The choices of a thread that may delay operations.
    pub(super) fn reordered(
        &mut self,
        state: &State<N>,
        thread: usize,
        choices: &mut Vec<Choice>,
    ) -> Result<(), Stop> {
        let now = &state.threads[thread];
        if now.barrier == Barrier::Owed {
            choices.push(Choice::Barrier);
            return Ok(());
        }
        let window = now.window;
        let members = self.places(thread, &window, now.local)?;
        let delayed = self.delayed(&window);
        for (i, (entry, local)) in delayed.iter().enumerate() {
            let earlier = &delayed[..i];
            if earlier
                .iter()
                .all(|(before, of)| self.wait_in(&window, *before..*entry, *local, *of) == Wait::No)
            {
                self.late(state, thread, *entry, *local, choices);
            }
        }
        let Some(local) = self.current(state, thread) else {
            return Ok(());
        };
        self.cut_by_window |= members.len() > MOST_MEMBERS;
        if !self.agree(&members) {
            return Ok(());
        }
        let forwarded = delayed
            .iter()
            .rev()
            .find(|(_, store)| self.forwards(*store, local));
        let others = delayed
            .iter()
            .filter(|(entry, _)| forwarded.is_none_or(|(store, _)| store != entry));
        let wait = others
            .map(|(entry, earlier)| {
                self.wait_in(&window, *entry..usize::from(window.len), local, *earlier)
            })
            .max()
            .unwrap_or(Wait::No);
        let could_delay = forwarded.is_none()
            && wait != Wait::UnlessItFails
            && now.barrier == Barrier::None
            && self.may_delay(state, thread, local);
        if window.is_full() {
            let goes_on = wait != Wait::Always || could_delay;
            self.cut_by_window |= goes_on && !self.recurs(&window);
            return Ok(());
        }
        let begin = choices.len();
        if wait == Wait::Always {
            // It may be delayed, as below.
        } else if let Some((entry, _)) = forwarded {
            choices.push(Choice::Forward {
                entry: *entry as u8,
            });
        } else {
            self.operations(state, thread, local, choices)?;
            let begins_with_barrier = self.is_full_barrier(local) && now.barrier == Barrier::None;
            if wait == Wait::UnlessItFails || begins_with_barrier {
                self.keep_failures(state, local, choices, begin);
            }
            if wait == Wait::No && begins_with_barrier {
                choices.push(Choice::Barrier);
            }
        }
        if !window.is_empty() {
            let waiting: Vec<LocalId> = delayed.iter().map(|(_, local)| *local).collect();
            let mut kept = begin;
            for i in begin..choices.len() {
                let answer = self.answer(state, thread, local, choices[i]);
                if self.is_same_ahead(thread, &waiting, &members, &[answer]) {
                    choices[kept] = choices[i];
                    kept += 1;
                }
            }
            choices.truncate(kept);
        }
        if could_delay && self.is_worth_delaying(state, thread, local, &members)? {
            if usize::from(window.len) + 2 > WINDOW {
                self.cut_by_window |= !self.recurs(&window);
                return Ok(());
            }
            // From here on, since what other choices teach may be news for the delayed operation.
            for at in &members {
                self.automata.rely_on(*at);
            }
            choices.push(Choice::Delay);
        }
        Ok(())
    }

    /// Whether a thread is where it was before the last operations of its window, which are loads that
    /// were done. It had seen less there, and could go on as it can now.
    fn recurs(&self, window: &Window) -> bool {
        let len = usize::from(window.len);
        let step = |at, answer| self.automata.known(at, answer).map(|next| next.local);
        let returns = |entry: usize, at: LocalId| {
            let end = (entry..len).try_fold(at, |at, entry| {
                step(at, Answer::Value(window.result(entry)?))
            });
            end == Some(at)
        };
        let mut members = vec![window.first];
        let mut from = None;
        for entry in 0..len {
            let request = self.operation(self.chief(&members));
            let kind = self.kind(&request.expect("it was done or delayed"));
            if window.is_delayed(entry)
                || !matches!(kind, OperationKind::Load | OperationKind::Pause)
            {
                from = None;
            } else if members.iter().all(|at| returns(entry, *at)) {
                // Each of the local states comes back to itself.
                from = Some(entry);
            }
            let results = self.results_in(window, entry, &members);
            members = follow(&members, &results, step);
        }
        from.is_some()
    }

    /// Keeps, of the choices from `begin` on, those in which a compare-and-swap fails, which orders
    /// nothing.
    fn keep_failures(
        &self,
        state: &State<N>,
        local: LocalId,
        choices: &mut Vec<Choice>,
        begin: usize,
    ) {
        let request = self.operation(local).expect("it has not ended");
        let parts = self.parts(local);
        let mut kept = begin;
        for i in begin..choices.len() {
            if let Choice::Operate { picks, .. } = choices[i]
                && self.kind(&request) == OperationKind::CompareExchange
                && self.value(state, &parts, &picks) != request.a
            {
                choices[kept] = choices[i];
                kept += 1;
            }
        }
        choices.truncate(kept);
    }

    /// The ways in which a delayed operation may be done now.
    fn late(
        &self,
        state: &State<N>,
        thread: usize,
        entry: usize,
        local: LocalId,
        choices: &mut Vec<Choice>,
    ) {
        let request = self.operation(local).expect("it was delayed");
        let access = PendingAccess::new(thread, &request, self.parts(local), self.kind(&request));
        let begin = choices.len();
        if super::is_plain(access.kind()) {
            let picks = super::Picks::default();
            choices.push(Choice::Operate {
                picks,
                newest: true,
            });
        } else {
            self.accesses(state, &access, choices);
        }
        for choice in &mut choices[begin..] {
            if let Choice::Operate { picks, newest } = *choice {
                let entry = entry as u8;
                *choice = Choice::Late {
                    entry,
                    picks,
                    newest,
                };
            }
        }
    }

    /// The answer that a choice at the next operation gives.
    fn answer(&self, state: &State<N>, thread: usize, local: LocalId, choice: Choice) -> Answer {
        let request = self.operation(local).expect("it has not ended");
        let kind = self.kind(&request);
        match choice {
            Choice::Forward { entry } => self.forwarded(state, thread, entry.into()),
            Choice::Operate { picks, .. }
                if kind.is_access()
                    && !matches!(kind, OperationKind::Store)
                    && !super::is_plain(kind) =>
            {
                Answer::Value(self.value(state, &self.parts(local), &picks))
            }
            Choice::Operate { .. } if kind == OperationKind::PlainRead => {
                Answer::Value(self.plain_value(state, local))
            }
            Choice::Operate { picks, .. } if kind == OperationKind::Clock => {
                Answer::Value(self.clock(&request, &picks))
            }
            Choice::Operate { picks, .. } if kind == OperationKind::Choose => {
                Answer::Value(picks[0].into())
            }
            _ => Answer::Value(0),
        }
    }

    /// The result of a load that reads the thread's own delayed store.
    pub(super) fn forwarded(&self, state: &State<N>, thread: usize, entry: usize) -> Answer {
        let window = &state.threads[thread].window;
        let store = self.walk(window).nth(entry).expect("it was delayed");
        Answer::Value(self.operation(store).expect("it was delayed").a)
    }

    /// The local states at the operations of a window, and after the last: of all that the thread may be in,
    /// the one that stands for these.
    pub(super) fn walk<'w>(&'w self, window: &'w Window) -> impl Iterator<Item = LocalId> + 'w {
        let mut members = vec![window.first];
        (0..=usize::from(window.len)).map(move |entry| {
            let here = self.chief(&members);
            if entry < usize::from(window.len) {
                let results = self.results_in(window, entry, &members);
                let known = |at, answer| self.automata.known(at, answer).map(|next| next.local);
                members = follow(&members, &results, known);
            }
            here
        })
    }

    /// The local state that stands for all that a thread may be in. When threads change places, the one
    /// that stands for the renamed states differs from it in names only.
    fn chief(&self, members: &[LocalId]) -> LocalId {
        let rank = |at: &&LocalId| (self.local(**at).representative, **at);
        *members.iter().min_by_key(rank).expect("it is somewhere")
    }

    /// The local state that stands for all that a thread may be in after the operations of a window.
    pub(super) fn standing(&self, window: &Window) -> LocalId {
        let last = self.walk(window).last();
        last.expect("it is somewhere")
    }

    /// A window after threads were renamed by these swaps.
    pub(super) fn renamed_window(&self, window: &Window, composed: &Composed) -> Window {
        if window.is_empty() {
            return *window;
        }
        let mut renamed = *window;
        renamed.first = self.automata.image(window.first, &composed.swaps);
        for (entry, local) in (0..window.len.into()).zip(self.walk(window)) {
            if let Some(result) = window.result(entry) {
                let result = self
                    .automata
                    .renamed_result(&composed.renaming, local, result);
                renamed.set(entry, result);
            }
        }
        renamed
    }

    /// The delayed operations of a window: the number of each, and its local state.
    fn delayed(&self, window: &Window) -> Vec<(usize, LocalId)> {
        let entries = self.walk(window).enumerate();
        entries
            .filter(|(entry, _)| window.is_delayed(*entry))
            .collect()
    }

    /// The results that a delayed operation may have: those that it ever had.
    fn results_at(&self, local: LocalId) -> impl Iterator<Item = u64> {
        let request = self.operation(local).expect("it was delayed");
        let kind = self.kind(&request);
        let is_store = matches!(kind, OperationKind::Store | OperationKind::PlainWrite);
        is_store.then_some(0).into_iter().chain(
            (!is_store)
                .then(|| self.automata.results(local))
                .into_iter()
                .flatten(),
        )
    }

    /// The results of an operation of a window at these local states.
    fn results_in(&self, window: &Window, entry: usize, members: &[LocalId]) -> Vec<Answer> {
        match window.result(entry) {
            Some(result) => vec![Answer::Value(result)],
            None => self.results_of(members),
        }
    }

    /// The local states that a thread may be in; without a window, the one that it is in.
    fn places(&mut self, thread: usize, window: &Window, local: LocalId) -> Result<Members, Stop> {
        match window.is_empty() {
            true => Ok(vec![local]),
            false => self.members(thread, window),
        }
    }

    /// The local states after the operations of a window, for all results of its delayed loads.
    pub(super) fn members(&mut self, thread: usize, window: &Window) -> Result<Members, Stop> {
        let mut members = vec![window.first];
        for entry in 0..usize::from(window.len) {
            if !self.same_operation(&members) {
                // An operation was done ahead although it depends on a result found since.
                return Err(Stop::Restart);
            }
            let results = self.results_in(window, entry, &members);
            members = self.follow(thread, &members, &results);
        }
        Ok(members)
    }

    fn results_of(&self, members: &[LocalId]) -> Vec<Answer> {
        let mut results = Vec::new();
        for result in members.iter().flat_map(|at| self.results_at(*at)) {
            if !results.contains(&Answer::Value(result)) {
                results.push(Answer::Value(result));
            }
        }
        results
    }

    fn follow(&mut self, thread: usize, members: &[LocalId], answers: &[Answer]) -> Members {
        follow(members, answers, |at, answer| {
            Some(self.automata.step(thread, at, answer).local)
        })
    }

    /// Whether the next operation is the same in all these local states.
    fn same_operation(&self, members: &[LocalId]) -> bool {
        let first = self.operation(members[0]);
        members[1..].iter().all(|at| self.operation(*at) == first)
    }

    /// Whether a thread that may be in any of these local states can go on.
    fn agree(&self, members: &[LocalId]) -> bool {
        let attributes = |at: LocalId| self.local(at).attributes.without_result();
        let first = attributes(members[0]);
        members.len() <= MOST_MEMBERS
            && self.same_operation(members)
            && members[1..].iter().all(|at| attributes(*at) == first)
    }

    /// Whether a thread that may be in any of these local states does the same up to its next
    /// operation, while the `delayed` ones are still to be done.
    fn is_same_ahead(
        &mut self,
        thread: usize,
        delayed: &[LocalId],
        members: &[LocalId],
        answers: &[Answer],
    ) -> bool {
        let mut first: Option<Next> = None;
        for at in members {
            for answer in answers {
                let next = self.automata.step(thread, *at, *answer);
                match &first {
                    None if self.frees_a_node_of(thread, delayed, &next) => return false,
                    None => first = Some(next),
                    Some(known) => {
                        if known.effects != next.effects || known.events != next.events {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    /// Whether a step returns a queue node that a delayed operation accesses.
    fn frees_a_node_of(&self, thread: usize, delayed: &[LocalId], next: &Next) -> bool {
        next.effects.iter().any(|effect| match effect {
            Effect::NodeFreed(node) => delayed.iter().any(|local| {
                let parts = self.parts(*local);
                let mut cells = parts.cells().iter();
                cells.any(|id| self.cell(*id).region.node() == Some((thread, *node)))
            }),
            _ => false,
        })
    }

    /// Whether an operation may be delayed, and others may see that.
    fn may_delay(&self, state: &State<N>, thread: usize, local: LocalId) -> bool {
        let request = self.operation(local).expect("it has not ended");
        let order = self.order(&request);
        let kind = self.kind(&request);
        let is_machine = self.config.memory.is_multi_copy_atomic();
        let may = match kind {
            // A buffer has stores only, and a sequentially consistent one empties it.
            _ if self.config.memory == Memory::Tso => {
                kind == OperationKind::Store && order != Order::SeqCst
            }
            OperationKind::Load => matches!(order, Order::Relaxed | Order::Dependency),
            OperationKind::Store | OperationKind::PlainRead | OperationKind::PlainWrite => {
                is_machine
            }
            _ if kind.is_read_modify_write() => matches!(order, Order::Relaxed | Order::Release),
            _ => false,
        };
        may && !self.is_dropped(&request)
            && self.change(&request) != Some(Change::Defer)
            && !self
                .parts(local)
                .cells()
                .iter()
                .all(|id| self.is_own(state, thread, *id) && !self.is_shared_store(kind, *id))
    }

    /// Whether a thread can go on after it has delayed its next operation.
    fn is_worth_delaying(
        &mut self,
        state: &State<N>,
        thread: usize,
        local: LocalId,
        members: &[LocalId],
    ) -> Result<bool, Stop> {
        let request = self.operation(local).expect("it has not ended");
        let parts = self.parts(local);
        let kind = self.kind(&request);
        if kind == OperationKind::PlainRead {
            let value = Answer::Value(self.plain_value(state, local));
            for at in members {
                self.automata.step(thread, *at, value);
            }
        } else if kind != OperationKind::Store && kind != OperationKind::PlainWrite {
            // The values that it may read now belong to the results that it may have.
            let access = PendingAccess::new(thread, &request, parts, kind);
            let mut reads = Vec::new();
            self.accesses(state, &access, &mut reads);
            for read in reads {
                if let Choice::Operate { picks, .. } = read
                    && !self.is_uninitialised(state, &parts, &picks)
                {
                    let value = Answer::Value(self.value(state, &parts, &picks));
                    for at in members {
                        self.automata.step(thread, *at, value);
                    }
                }
            }
        }
        let results = self.results_of(members);
        if results.is_empty() || !self.is_same_ahead(thread, &[local], members, &results) {
            return Ok(false);
        }
        let next = self.follow(thread, members, &results);
        if !self.agree(&next) || self.operation(next[0]).is_none() {
            return Ok(false);
        }
        self.find_cells(thread, next[0])?;
        // An operation that waits may itself be delayed, if later ones need not wait.
        Ok(self.wait(next[0], local) != Wait::Always
            || self.forwards(local, next[0])
            || self.may_delay(state, thread, next[0]))
    }

    /// Whether an operation must wait for one that is delayed in a window, where others come between them.
    fn wait_in(
        &self,
        window: &Window,
        between: Range<usize>,
        local: LocalId,
        earlier: LocalId,
    ) -> Wait {
        let wait = self.wait(local, earlier);
        if self.config.memory != Memory::Riscv || wait == Wait::Always {
            return wait;
        }
        let kind = |at| self.kind(&self.operation(at).expect("it has not ended"));
        let writes = matches!(
            kind(local),
            OperationKind::Store | OperationKind::PlainWrite
        ) || kind(local).is_read_modify_write();
        let mut inner = self.walk(window).take(between.end).skip(between.start + 1);
        // FENCE RW,W, which is also a part of a store that releases, and FENCE.TSO.
        let is_fenced = inner.any(|at| {
            let order = self.order(&self.operation(at).expect("it was done or delayed"));
            matches!(kind(at), OperationKind::Fence | OperationKind::Store) && order.releases()
        });
        match is_fenced && writes {
            true => Wait::Always,
            false => wait,
        }
    }

    /// Whether an operation must wait until an earlier one of the same thread is done.
    fn wait(&self, local: LocalId, earlier: LocalId) -> Wait {
        let request = self.operation(local).expect("it has not ended");
        let before = self.operation(earlier).expect("it was delayed");
        let (kind, order) = (self.kind(&request), self.order(&request));
        let was_store = self.kind(&before) == OperationKind::Store;
        match kind {
            OperationKind::Pause | OperationKind::Clock | OperationKind::Choose => {
                return Wait::No;
            }
            OperationKind::Park | OperationKind::Unpark => return Wait::Always,
            // Earlier stores are in the buffer, from which only they leave it.
            _ if self.config.memory == Memory::Tso => return self.wait_for_buffer(local, earlier),
            // What it orders waits for what comes before it.
            OperationKind::Fence
                if self.config.memory == Memory::Riscv
                    && (order == Order::Release || was_store && order == Order::AcqRel) =>
            {
                return Wait::No;
            }
            // A fence that only acquires orders earlier loads, not stores.
            OperationKind::Fence if was_store && order == Order::Acquire => return Wait::No,
            OperationKind::Fence => return Wait::Always,
            _ => {}
        }
        let writes = kind == OperationKind::Store || kind.is_read_modify_write();
        let is_ordered = (writes && order.releases())
            // A full fence comes before a load that is sequentially consistent.
            || (self.config.memory == Memory::Riscv && order == Order::SeqCst)
            || (was_store && self.change(&request) == Some(Change::Wmb))
            || self.is_full_barrier(local)
            // A load that is sequentially consistent waits for earlier stores that release.
            || (order == Order::SeqCst && was_store && self.order(&before).releases());
        if overlap(&self.parts(local), &self.parts(earlier)) {
            Wait::Always
        } else if !is_ordered {
            Wait::No
        } else if kind == OperationKind::CompareExchange {
            Wait::UnlessItFails
        } else {
            Wait::Always
        }
    }

    /// Whether an operation must wait until an earlier store has left the buffer of its thread.
    fn wait_for_buffer(&self, local: LocalId, store: LocalId) -> Wait {
        let request = self.operation(local).expect("it has not ended");
        let parts = self.parts(local);
        let is_private = |id: &CellId| matches!(self.cell(*id).place, Place::Private { .. });
        let waits = match self.kind(&request) {
            OperationKind::Fence => self.order(&request) == Order::SeqCst,
            OperationKind::Store => !parts.cells().iter().all(is_private),
            kind if kind.is_read_modify_write() => true,
            _ => overlap(&parts, &self.parts(store)),
        };
        if waits { Wait::Always } else { Wait::No }
    }

    /// Whether a load reads the whole of what an earlier delayed store of the same thread writes.
    fn forwards(&self, store: LocalId, load: LocalId) -> bool {
        let kind = |at| self.kind(&self.operation(at).expect("it has not ended"));
        let order = self.order(&self.operation(load).expect("it has not ended"));
        kind(store) == OperationKind::Store
            && kind(load) == OperationKind::Load
            && (order != Order::SeqCst || self.config.memory == Memory::Tso)
            && self.parts(store).cells() == self.parts(load).cells()
    }

    /// Whether only `thread` can know of a cell.
    pub(super) fn is_own(&self, state: &State<N>, thread: usize, id: CellId) -> bool {
        let cell = self.cell(id);
        match cell.place {
            Place::Private { .. } => true,
            Place::Shared { .. } => cell.region.node().is_some_and(|(owner, node)| {
                owner == thread && state.threads[thread].exposed & 1 << node == 0
            }),
        }
    }

    /// Whether an operation is a store in memory that other threads may come to know.
    pub(super) fn is_shared_store(&self, kind: OperationKind, id: CellId) -> bool {
        kind == OperationKind::Store && matches!(self.cell(id).place, Place::Shared { .. })
    }

    /// Whether an operation is a full barrier in the kernel: a read-modify-write whose name has no
    /// suffix.
    pub(super) fn is_full_barrier(&self, local: LocalId) -> bool {
        let Some(request) = self.operation(local) else {
            return false;
        };
        self.kind(&request).is_read_modify_write()
            && matches!(self.order(&request), Order::AcqRel | Order::SeqCst)
            && self.config.memory.is_kernel()
    }

    /// Delays a thread's next operation.
    pub(super) fn delay(&mut self, state: &mut State<N>, thread: usize) -> Result<(), Stop> {
        let local = state.threads[thread].local;
        let before = state.threads[thread].window;
        let members = self.places(thread, &before, local)?;
        let results = self.results_of(&members);
        let next = self.automata.step(thread, members[0], results[0]);
        self.note_begin(state, thread);
        state.threads[thread].window.push(local, None);
        self.arrive(state, thread, next)
    }

    /// Gives a delayed operation its result.
    pub(super) fn done_late(
        &mut self,
        state: &mut State<N>,
        thread: usize,
        entry: usize,
        result: u64,
    ) -> Result<(), Stop> {
        let mut window = state.threads[thread].window;
        window.set(entry, result);
        while let Some(result) = (!window.is_empty()).then(|| window.result(0)).flatten() {
            let next = self
                .automata
                .step(thread, window.first, Answer::Value(result));
            window.pop(next.local);
            if window.is_empty() {
                state.threads[thread].local = next.local;
            }
        }
        state.threads[thread].window = window;
        // After a result that is new, loads that are still delayed may have no results yet.
        if self.automata.is_surprised() {
            return Err(Stop::Restart);
        }
        if window.is_empty() {
            self.find_cells(thread, state.threads[thread].local)?;
        } else {
            // The result may have led to other local states at operations that are still delayed.
            self.members(thread, &window)?;
            if self.automata.is_surprised() {
                return Err(Stop::Restart);
            }
            for local in self.walk(&window).collect::<Vec<_>>() {
                self.find_cells(thread, local)?;
            }
            state.threads[thread].local = self.standing(&window);
        }
        self.grow(state);
        Ok(())
    }
}
