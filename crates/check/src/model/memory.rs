//! The effect of operations on memory: the values read, and the writes that become visible to other
//! threads.

use lockworks_explore::{Barrier, LocalId, Message, State, Thread, View};
use lockworks_litmus::Memory;

use crate::cells::{Cell, CellId, PARTS, Parts, Place, Recorded};
use crate::config::{Time, queue_of_tail};
use crate::headers;
use crate::layout::{self, Region};
use crate::mutation::Change;
use crate::names::Names;
use crate::site::{OperationKind, Order, Request};
use crate::violation::Violation;

use super::{EARLY, LATE, Model, Picks, Stop, bytes, has_owner, is_waiters, poison, woken};

impl<const N: usize> Model<'_, N> {
    /// The value that a compare-and-swap expects, even in a mutant that does not compare.
    pub(super) fn expected(&self, local: LocalId) -> u64 {
        self.local(local).request.expect("it has not ended").a
    }

    /// Performs an operation and returns its result; None if the thread parks in it.
    pub(super) fn operate(
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
        if self.change(request) == Some(Change::Wmb) {
            self.barrier_for_stores(state, thread);
        }
        match kind {
            OperationKind::Fence => {
                if self.config.memory.is_kernel() && !self.findings.acquire_fences {
                    self.findings.acquire_fences = true;
                    return Err(Stop::Restart);
                }
                if self.weak() {
                    self.fence(state, thread, order);
                }
                Ok(Some(0))
            }
            OperationKind::Pause => Ok(Some(0)),
            OperationKind::Clock => Ok(Some(self.clock(request, picks))),
            OperationKind::Choose => Ok(Some(picks[0].into())),
            OperationKind::PlainRead | OperationKind::PlainWrite => {
                self.plain(state, thread, kind, &parts, request.a).map(Some)
            }
            OperationKind::Unpark => {
                if let Place::Shared { number } = self.cell(parts.cells()[0]).place
                    && self.weak()
                {
                    let cell = usize::from(number);
                    let seen = state.threads[thread].seen.0[cell];
                    state.sc.0[cell] = state.histories.later(state.sc.0[cell], seen);
                }
                if let Some(woken) = woken(picks) {
                    state.threads[woken].parked = false;
                    let result = self.end_of_sleep(state.threads[woken].local, false);
                    self.go_on(state, woken, result)?;
                    return Ok(Some(1));
                }
                Ok(Some(0))
            }
            OperationKind::Store => {
                self.check_nodes(state, thread, &parts, kind)?;
                self.note_use(state, thread, &parts);
                self.note_race(state, thread, request, &parts)?;
                self.write(state, thread, &parts, picks, request.a, order, kind)?;
                Ok(Some(0))
            }
            _ => {
                self.check_nodes(state, thread, &parts, kind)?;
                self.note_use(state, thread, &parts);
                self.note_race(state, thread, request, &parts)?;
                let old = self.value(state, &parts, picks);
                if self.is_uninitialised(state, &parts, picks) {
                    return Err(Violation::Uninitialised { thread }.into());
                }
                let new = kind.written(old, request.a, request.b);
                let failed = kind == OperationKind::CompareExchange && new.is_none();
                let read_order = match kind {
                    OperationKind::Park => Order::Relaxed,
                    _ if failed => self.failure_order(request),
                    _ => order,
                };
                self.read(state, thread, &parts, picks, read_order);
                if let Some(new) = new {
                    let mut positions = *picks;
                    positions.iter_mut().for_each(|p| *p += 1);
                    self.write(state, thread, &parts, &positions, new, order, kind)?;
                    // An atomic operation of RISC-V is one event, but for a compare-and-swap, which may be two.
                    let is_one = self.config.memory == Memory::Riscv
                        && kind != OperationKind::CompareExchange;
                    let is_full = self.config.memory == Memory::Arm && order.releases();
                    if order.acquires() && (is_full || is_one) {
                        // What it writes, and earlier operations, come before later ones.
                        let now = state.snapshot();
                        state.threads[thread].seen.join(&now, state.histories);
                    }
                }
                if kind == OperationKind::Park && old == request.a {
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

    /// The time that a clock shows.
    pub(super) fn clock(&self, request: &Request, picks: &Picks) -> u64 {
        match self.config.time {
            _ if picks[0] == 0 => EARLY,
            // A time that one operation stored is long past for every other operation.
            Time::Late => LATE + ((request.site.number() as u64) << 44),
            _ => LATE,
        }
    }

    /// Makes the full barrier before or after a read-modify-write of the kernel.
    pub(super) fn barrier(&mut self, state: &mut State<N>, thread: usize) -> Result<(), Stop> {
        if !self.findings.acquire_fences {
            self.findings.acquire_fences = true;
            return Err(Stop::Restart);
        }
        self.fence(state, thread, Order::SeqCst);
        let barrier = &mut state.threads[thread].barrier;
        *barrier = match *barrier {
            Barrier::None => Barrier::Begun,
            Barrier::Begun | Barrier::Owed => Barrier::None,
        };
        Ok(())
    }

    /// Lets later stores of a thread carry those that it has made to its own queue nodes.
    fn barrier_for_stores(&self, state: &mut State<N>, thread: usize) {
        let histories = state.histories;
        let Thread { seen, fenced, .. } = &mut state.threads[thread];
        for cell in &self.cells.cells {
            let is_own = cell.region.node().is_some_and(|(owner, _)| owner == thread);
            if let (true, Place::Shared { number }) = (is_own, cell.place) {
                let number = usize::from(number);
                fenced.0[number] = histories.later(fenced.0[number], seen.0[number]);
            }
        }
    }

    /// Whether an operation is a store with a full barrier after it in the kernel.
    pub(super) fn is_store_with_barrier(&self, request: &Request) -> bool {
        self.config.memory.is_kernel()
            && self.kind(request) == OperationKind::Store
            && self.order(request) == Order::SeqCst
    }

    pub(super) fn fence(&self, state: &mut State<N>, thread: usize, order: Order) {
        let is_full = match self.config.memory {
            Memory::Arm => order != Order::Acquire,
            Memory::Riscv => order == Order::SeqCst,
            _ => false,
        };
        if is_full {
            // Later loads come after all that is done now.
            let now = state.snapshot();
            state.threads[thread].seen.join(&now, state.histories);
            return;
        }
        let State {
            threads,
            sc,
            histories,
            ..
        } = state;
        let histories = *histories;
        let thread = &mut threads[thread];
        if order.acquires() {
            thread.seen.join(&thread.read, histories);
        }
        if order == Order::SeqCst {
            thread.seen.join(sc, histories);
            sc.join(&thread.seen, histories);
        }
        if order.releases() {
            thread.fenced = thread.seen;
        }
        if self.findings.acquire_fences {
            thread.read.join(&thread.seen, histories);
        }
    }

    pub(super) fn read(
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
        state.threads[thread].seen = self.seen_after(state, thread, parts, picks, order);
        for (id, pick) in parts.cells().iter().zip(picks) {
            let Place::Shared { number } = self.cell(*id).place else {
                continue;
            };
            let cell = usize::from(number);
            let view = state.messages(cell)[usize::from(*pick)].view;
            let place = state.place(cell, usize::from(*pick));
            let thread = &mut state.threads[thread];
            if self.findings.acquire_fences {
                thread.read.join(&view, state.histories);
                thread.read.0[cell] = state.histories.later(thread.read.0[cell], place);
            }
        }
    }

    /// The writes that a thread has seen after it has read the picked ones.
    pub(super) fn seen_after(
        &self,
        state: &State<N>,
        thread: usize,
        parts: &Parts,
        picks: &Picks,
        order: Order,
    ) -> View<N> {
        let before = &state.threads[thread];
        let mut seen = before.seen;
        let delays = self.config.memory.delays();
        if delays && order == Order::SeqCst {
            // In ARM's terms, a load that acquires comes after earlier stores that release.
            seen.join(&before.fenced, state.histories);
        }
        if self.config.memory == Memory::Riscv && order == Order::SeqCst {
            // A full fence comes before it.
            seen.join(&state.snapshot(), state.histories);
        }
        let acquires = order.acquires() && !(delays && order == Order::Dependency);
        for (id, pick) in parts.cells().iter().zip(picks) {
            let cell = self.cell(*id);
            let Place::Shared { number } = cell.place else {
                continue;
            };
            let number = usize::from(number);
            let message = &state.messages(number)[usize::from(*pick)];
            let place = state.place(number, usize::from(*pick));
            seen.0[number] = state.histories.later(seen.0[number], place);
            if message.is_by(thread) {
                // The kernel's model orders nothing behind a read of what the thread itself wrote.
            } else if acquires {
                seen.join(&message.view, state.histories);
            } else if delays && let Some(region) = self.named(cell, message.value) {
                // An address that was read comes before accesses there.
                self.join_region(&mut seen, &message.view, region);
            }
        }
        seen
    }

    fn join_region(&self, seen: &mut View<N>, view: &View<N>, region: Region) {
        for cell in self.cells.cells.iter().filter(|cell| cell.region == region) {
            if let Place::Shared { number } = cell.place {
                let number = usize::from(number);
                seen.0[number] = seen.0[number].max(view.0[number]);
            }
        }
    }

    /// The queue node, or other piece of memory, whose address a value is or names.
    fn named(&self, cell: &Cell, value: u64) -> Option<Region> {
        let threads = self.config.threads;
        let word = self.subject.lock().has_tail_word();
        let tail = match Names::at(cell.address, cell.size, threads, word) {
            Names::None => return None,
            Names::Address => return layout::resolve(value as usize, threads).map(|(r, _)| r),
            Names::Tail { shift } => value >> shift & 0xffff,
        };
        if let Some(node) = queue_of_tail(tail as u32) {
            return Some(Region::Queue { node });
        }
        let (slot, index) = headers::slot_and_node(tail as usize);
        let thread = slot.checked_sub(1).filter(|thread| *thread < threads)?;
        Some(Region::Node { thread, index })
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn write(
        &mut self,
        state: &mut State<N>,
        thread: usize,
        parts: &Parts,
        positions: &Picks,
        value: u64,
        order: Order,
        kind: OperationKind,
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
            count += 1;
            if !self.weak() {
                state.set(number, value);
                continue;
            }
            let message = Message {
                attached: kind.is_read_modify_write(),
                ..Message::new(value)
            };
            let by = (thread, order.releases());
            let Some(position) = state.insert(number, usize::from(*position), message, by) else {
                return Err(Stop::TooLarge("more writes than a view can count"));
            };
            written[count - 1] = (number, position);
            let place = state.place(number, position);
            let later = |entry: &mut u8| *entry = state.histories.later(*entry, place);
            later(&mut state.threads[thread].seen.0[number]);
            if self.findings.acquire_fences {
                later(&mut state.threads[thread].read.0[number]);
            }
            if order == Order::SeqCst && self.config.memory == Memory::C11 {
                later(&mut state.sc.0[number]);
            }
        }
        if count > 0 {
            self.note_exposure(state, thread, parts);
        }
        if self.weak() {
            self.publish(state, thread, &written[..count], order, kind);
            if let Some(bound) = self.config.staleness {
                let live = self.live(state);
                for (cell, _) in &written[..count] {
                    self.cut |= state.forget_older(*cell, bound, live);
                }
            }
        }
        Ok(())
    }

    /// Gives the parts of a write, listed by cell and position, the view that they carry.
    pub(super) fn publish(
        &self,
        state: &mut State<N>,
        thread: usize,
        written: &[(usize, usize)],
        order: Order,
        kind: OperationKind,
    ) {
        let attached = kind.is_read_modify_write();
        let mut carried = match self.config.memory {
            Memory::Arm | Memory::Riscv => state.snapshot(),
            Memory::Lkmm62 if attached && order.acquires() => {
                // The barriers before and after a read-modify-write do not order what it reads before
                // what it writes. But what came before any full barrier has reached all threads.
                let thread = &state.threads[thread];
                let mut carried = thread.seen.common(&state.sc);
                carried.join(&thread.fenced, state.histories);
                carried
            }
            _ if order.releases() => state.threads[thread].seen,
            _ => state.threads[thread].fenced,
        };
        if self.config.memory == Memory::Arm && order.releases() && self.findings.sc_loads {
            state.threads[thread].fenced.join(&carried, state.histories);
        }
        // A read-modify-write passes on the views of all writes that it read.
        let passes_on = attached && self.config.memory != Memory::Lkmm62;
        for (cell, position) in written.iter().filter(|_| passes_on) {
            carried.join(state.passed_on(*cell, *position), state.histories);
        }
        for (cell, position) in written {
            let place = state.place(*cell, *position);
            carried.0[*cell] = state.histories.later(carried.0[*cell], place);
        }
        // Where the value depends on what was read, so does a later read of it by the thread.
        let depends = !matches!(
            kind,
            OperationKind::Exchange | OperationKind::CompareExchange
        );
        let is_internal = passes_on && !depends && self.config.memory == Memory::Lkmm;
        let author = is_internal.then_some(thread as u8);
        for (cell, position) in written {
            let mut view = carried;
            // A reader of the write knows the write's own place.
            view.0[*cell] = 0;
            state.carry(*cell, *position, view, author);
        }
        state.join_floors(written, &carried);
    }

    /// Notes that other threads may know of the thread's nodes after a write outside of them.
    pub(super) fn note_exposure(&self, state: &mut State<N>, thread: usize, parts: &Parts) {
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

    /// The number of a cell of plain data among shared cells.
    fn shared_number(&self, id: CellId) -> usize {
        match self.cell(id).place {
            Place::Shared { number } => number.into(),
            Place::Private { .. } => unreachable!("plain data is shared from the start"),
        }
    }

    /// The value of the plain data that a local state's operation accesses.
    pub(super) fn plain_value(&self, state: &State<N>, local: LocalId) -> u64 {
        state.newest(self.shared_number(self.parts(local).cells()[0]))
    }

    pub(super) fn plain(
        &self,
        state: &mut State<N>,
        thread: usize,
        kind: OperationKind,
        parts: &Parts,
        value: u64,
    ) -> Result<u64, Stop> {
        let cell = |i: usize| self.shared_number(parts.cells()[i]);
        let old = state.newest(cell(0));
        if !self.weak() {
            if kind == OperationKind::PlainWrite {
                state.set(cell(0), value);
            }
            return Ok(old);
        }
        if !state.knows(thread, cell(0)) {
            return Err(Violation::DataRace { thread }.into());
        }
        if kind == OperationKind::PlainRead {
            state.event(cell(1), thread, 0);
            return Ok(old);
        }
        self.grow(state);
        for reads in self.cells.reads_of(parts.cells()[0]) {
            let reads = self.shared_number(reads);
            if !state.knows(thread, reads) {
                return Err(Violation::DataRace { thread }.into());
            }
            state.reset(reads, 0);
        }
        state.event(cell(0), thread, value);
        Ok(old)
    }

    pub(super) fn is_uninitialised(&self, state: &State<N>, parts: &Parts, picks: &Picks) -> bool {
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

    /// Notes that a thread uses memory that ends.
    fn note_use(&self, state: &mut State<N>, thread: usize, parts: &Parts) {
        let region = self.cell(parts.cells()[0]).region;
        if let Some(cell) = self.cells.use_of(region, thread) {
            state.event(self.shared_number(cell), thread, 0);
        }
    }

    /// Checks that an access is ordered after those with which it would be a race: one of the two is not
    /// atomic, and one writes. Then records it.
    fn note_race(
        &self,
        state: &mut State<N>,
        thread: usize,
        request: &Request,
        parts: &Parts,
    ) -> Result<(), Stop> {
        if !self.cells.has_records() {
            return Ok(());
        }
        self.grow(state);
        let site = request.site;
        let kind = Recorded::of(site);
        for id in parts.cells() {
            for record in self.cells.records_of(*id) {
                let number = self.shared_number(record.cell);
                if kind.conflicts(record.kind) && !state.knows(thread, number) {
                    return Err(Violation::Race { thread, site }.into());
                }
                if kind == Recorded::PlainWrite {
                    // Whoever has seen this write has seen what came before it.
                    state.reset(number, 0);
                }
            }
            if let Some(own) = self.cells.record_of(*id, kind, thread) {
                state.event(self.shared_number(own), thread, 0);
            }
        }
        Ok(())
    }

    /// Ends the use of memory. All accesses by other threads must come before that.
    pub(super) fn end_uses(
        &self,
        state: &mut State<N>,
        thread: usize,
        region: Region,
    ) -> Result<(), Stop> {
        for cell in self.cells.uses_of(region) {
            let number = self.shared_number(cell);
            if !state.knows(thread, number) {
                return Err(Violation::MemoryReused { thread }.into());
            }
            state.reset(number, 0);
        }
        Ok(())
    }

    /// Resets a node whose owner no longer uses it: the next use may be for another lock.
    pub(super) fn free_node(
        &self,
        state: &mut State<N>,
        thread: usize,
        node: usize,
    ) -> Result<(), Stop> {
        if let Some(index) = node.checked_sub(layout::NODES) {
            self.end_uses(state, thread, Region::Lent { thread, index })?;
        }
        state.threads[thread].exposed &= !(1 << node);
        for cell in &self.cells.cells {
            if let (Some(owned), Place::Shared { number }) = (cell.region.node(), cell.place)
                && owned == (thread, node)
                && (has_owner(cell) || cell.is_record())
            {
                let number = usize::from(number);
                if cell.is_record() {
                    state.reset(number, 0);
                    continue;
                }
                match self.weak() {
                    true => state.reset(number, poison(cell.size)),
                    false => state.set(number, poison(cell.size)),
                }
            }
        }
        Ok(())
    }

    /// Resets the queue of a NUMA node whose lock no longer uses it. The reset is one more store, and
    /// the next users of the queue must have seen it.
    pub(super) fn free_queue(
        &self,
        state: &mut State<N>,
        thread: usize,
        region: Region,
    ) -> Result<(), Stop> {
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
            let message = Message::new(poison(cell.size));
            let Some(last) = state.insert(number, last, message, (thread, false)) else {
                return Err(Stop::TooLarge("more writes than a view can count"));
            };
            state.forget_floor(number, last);
            state.threads[thread].seen.0[number] = state.place(number, last);
        }
        Ok(())
    }
}
