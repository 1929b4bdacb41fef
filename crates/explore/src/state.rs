//! A state of a check: the local state of each thread, and the memory as each thread may read it.
//!
//! Memory is that of a promise-free view machine. Each cell has its writes in modification
//! order; a thread's view holds, for each cell, the oldest write that it may still read.
//! A write carries the view that reading it with acquire adds to the reader's.

use std::ops::Range;
use std::rc::Rc;

use crate::symmetry::{Naming, Renaming};

pub mod merged;

/// The number of a local state of a thread.
pub type LocalId = u32;

/// The size of the largest word in bytes.
pub const WORD: usize = 8;

/// A cell of the same word as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// The cell's number among the shared cells.
    pub number: u16,
    /// The cell's offset in the word.
    pub offset: u8,
}

/// For each cell, by its number, the number of the cell that it becomes when threads are renamed.
#[derive(Debug)]
pub struct RenamedCells {
    /// Of shared cells.
    pub shared: Vec<u16>,
    /// The inverse of `shared`.
    pub shared_before: Vec<u16>,
    /// Of private cells.
    pub private: Vec<u16>,
}

/// For each cell, by its number, the way in which its value names threads.
#[derive(Debug)]
pub struct CellNames<T> {
    /// Of shared cells.
    pub shared: Vec<T>,
    /// Of private cells.
    pub private: Vec<T>,
}

/// How a state keeps the writes of a cell that came before its newest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Histories {
    /// In modification order. A view holds the place of the oldest write that may still be read.
    Ordered,
    /// Without an order, and those of one value as one. A view holds a bit for each that may no
    /// longer be read. Such a state stands for many, see [`merged`]. Only in C11's memory.
    Merged,
}

impl Histories {
    /// The entry of a view that has seen what two have.
    #[inline]
    pub fn later(self, one: u8, other: u8) -> u8 {
        match self {
            Self::Ordered => one.max(other),
            Self::Merged => one | other,
        }
    }
}

/// For each shared cell, the place of a write in its modification order. N is the number of cells
/// that fit; 0 where memory is sequentially consistent and there are no views.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(16))]
pub struct View<const N: usize>(pub [u8; N]);

impl<const N: usize> View<N> {
    /// The view of a thread that has seen nothing.
    pub const NONE: Self = Self([0; N]);

    /// Adds what `other` has seen.
    #[inline]
    pub fn join(&mut self, other: &Self, histories: Histories) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = histories.later(*a, *b);
        }
    }

    /// The writes that both views have seen.
    pub fn common(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|cell| self.0[cell].min(other.0[cell])))
    }

    fn is_none(&self) -> bool {
        self.0.iter().fold(0, |any, place| any | place) == 0
    }

    /// This view after cells were renumbered: `numbers` holds the new number of each cell.
    fn renumbered(&self, numbers: &[u16]) -> Self {
        let mut new = Self::NONE;
        if !self.is_none() {
            for (number, place) in numbers.iter().zip(&self.0) {
                new.0[usize::from(*number)] = *place;
            }
        }
        new
    }

    /// Whether `other` has seen everything that this view has.
    pub fn is_within(&self, other: &Self, histories: Histories) -> bool {
        let mut entries = self.0.iter().zip(&other.0);
        entries.all(|(a, b)| histories.later(*a, *b) == *b)
    }
}

/// A write to a cell.
#[derive(Clone, Copy, Debug)]
pub struct Message<const N: usize> {
    /// The view that a read with acquire adds to that of its thread.
    pub view: View<N>,
    /// The value that was written.
    pub value: u64,
    /// The write is part of a read-modify-write: no write comes between it and the one before. In merged
    /// histories only the one before tells.
    pub attached: bool,
    /// In merged histories: a read-modify-write follows, so no other write comes right after this one.
    pub sealed: bool,
    /// For each other cell of the word, by its place in the word: the last write there that belongs to
    /// this write or to an earlier one of this cell, or that one of these has released. A read of
    /// the whole word that sees this write sees no older one there.
    pub floor: [u8; WORD],
    /// In the kernel's model, the thread that wrote it: it learns nothing from its own writes, not even
    /// from one that passes on what others have released. None where the view has nothing that it has
    /// not seen, and where the value depends on the one before, so that it learns from that.
    pub author: Option<u8>,
}

impl<const N: usize> Message<N> {
    /// A write that carries no view.
    pub fn new(value: u64) -> Self {
        Self {
            view: View::NONE,
            value,
            attached: false,
            sealed: false,
            floor: [0; WORD],
            author: None,
        }
    }

    /// Whether it is a read-modify-write of the one before, which has the same value and carries the same.
    fn repeats(&self, before: &Self) -> bool {
        self.attached
            && (self.value, self.floor, self.author) == (before.value, before.floor, before.author)
            && self.view == before.view
    }

    /// Whether this thread wrote it, and learns nothing from it.
    pub fn is_by(&self, thread: usize) -> bool {
        self.author.map(usize::from) == Some(thread)
    }
}

/// The most operations between the first that a thread has delayed and its next one.
pub const WINDOW: usize = 6;

/// The operations of a thread from the first that it has delayed up to its next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The local state of the first of these operations.
    pub first: LocalId,
    /// Their number. 0: the thread has delayed none.
    pub len: u8,
    /// Those that have not been done, one bit each.
    delayed: u8,
    /// The results of those that have.
    results: [u64; WINDOW],
}

impl Window {
    /// Whether an operation is still to be done.
    #[inline]
    pub fn is_delayed(&self, entry: usize) -> bool {
        self.delayed & 1 << entry != 0
    }

    /// The result of an operation; None: it is still to be done.
    #[inline]
    pub fn result(&self, entry: usize) -> Option<u64> {
        (!self.is_delayed(entry)).then_some(self.results[entry])
    }

    /// Whether all operations have been done.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is no room for another operation.
    #[inline]
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == WINDOW
    }

    /// Appends an operation of the local state `at`; None: it is delayed.
    #[inline]
    pub fn push(&mut self, at: LocalId, result: Option<u64>) {
        if self.len == 0 {
            self.first = at;
        }
        let entry = usize::from(self.len);
        self.len += 1;
        self.results[entry] = result.unwrap_or(0);
        self.delayed |= u8::from(result.is_none()) << entry;
    }

    /// Notes the result of a delayed operation.
    pub fn set(&mut self, entry: usize, result: u64) {
        self.delayed &= !(1 << entry);
        self.results[entry] = result;
    }

    /// Takes the first operation off, if it has been done. `next`: the local state after it.
    #[inline]
    pub fn pop(&mut self, next: LocalId) {
        self.first = next;
        self.len -= 1;
        self.delayed >>= 1;
        self.results.copy_within(1.., 0);
        self.results[WINDOW - 1] = 0;
        if self.len == 0 {
            *self = Self::default();
        }
    }

    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.len);
        if self.len > 0 {
            number(bytes, self.first.into());
            bytes.push(self.delayed);
            for entry in 0..usize::from(self.len) {
                number(bytes, self.results[entry]);
            }
        }
    }
}

/// How far a thread is with an operation that is a full barrier in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Barrier {
    /// Its next operation is none, or it has not begun.
    #[default]
    None,
    /// The barrier before the operation is done.
    Begun,
    /// The operation is done, and the barrier after it is not.
    Owed,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread<const N: usize> {
    /// The local state at the thread's next operation. If the thread has delayed operations, one of those
    /// that it may be in, as the window says.
    pub local: LocalId,
    /// The operations from the first that it has delayed.
    pub window: Window,
    /// How far it is with a full barrier.
    pub barrier: Barrier,
    /// It sleeps until another thread wakes it.
    pub parked: bool,
    /// The thread's nodes that other threads may know of, one bit each.
    pub exposed: u16,
    /// The local state whose store a mutant has deferred, and whether the store is due.
    pub deferred: Option<(LocalId, bool)>,
    /// The threads that began to acquire after this one began to wait, one bit each.
    pub later: u64,
    /// How often threads that arrived later acquired the lock before this one.
    pub bypassed: u8,
    /// The writes that the thread has seen.
    pub seen: View<N>,
    /// The writes that the thread would have seen if all its reads were acquires. Only kept if
    /// there are acquire fences.
    pub read: View<N>,
    /// The writes that the thread had seen at its last release fence.
    pub fenced: View<N>,
}

impl<const N: usize> Thread<N> {
    /// A thread that has seen nothing.
    pub fn new(local: LocalId) -> Self {
        Self {
            local,
            window: Window::default(),
            barrier: Barrier::None,
            parked: false,
            exposed: 0,
            deferred: None,
            later: 0,
            bypassed: 0,
            seen: View::NONE,
            read: View::NONE,
            fenced: View::NONE,
        }
    }
}

/// The most writes of a cell. The place after them must fit into a view too.
const MOST_WRITES: usize = u8::MAX as usize - 1;

/// The state of all threads and of the memory.
#[derive(Debug)]
pub struct State<const N: usize> {
    /// The threads.
    pub threads: Vec<Thread<N>>,
    /// The number of spurious wake-ups so far.
    pub spurious: u8,
    /// With a bound on idleness: the operations done since the lock is idle.
    pub idle: u8,
    /// The view that sequentially consistent fences and writes share.
    pub sc: View<N>,
    /// The values of cells that only one thread uses.
    pub private: Vec<u64>,
    /// Writes of all shared cells, those of one after those of another; `starts` says where those
    /// of each begin, and where the last ones end.
    messages: Vec<Message<N>>,
    starts: Vec<u16>,
    /// For each shared cell, the others of its word.
    siblings: Rc<[Vec<Sibling>]>,
    /// How the state keeps older writes.
    pub histories: Histories,
}

impl<const N: usize> Clone for State<N> {
    fn clone(&self) -> Self {
        Self {
            threads: self.threads.clone(),
            private: self.private.clone(),
            messages: self.messages.clone(),
            starts: self.starts.clone(),
            siblings: Rc::clone(&self.siblings),
            ..*self
        }
    }

    /// Makes no new allocations where there is room.
    fn clone_from(&mut self, other: &Self) {
        self.threads.clone_from(&other.threads);
        self.spurious = other.spurious;
        self.idle = other.idle;
        self.sc = other.sc;
        self.private.clone_from(&other.private);
        self.messages.clone_from(&other.messages);
        self.starts.clone_from(&other.starts);
        self.siblings.clone_from(&other.siblings);
        self.histories = other.histories;
    }
}

impl<const N: usize> State<N> {
    /// The state of threads at these local states, without memory.
    pub fn new(locals: impl Iterator<Item = LocalId>, siblings: Rc<[Vec<Sibling>]>) -> Self {
        Self {
            threads: locals.map(Thread::new).collect(),
            spurious: 0,
            idle: 0,
            sc: View::NONE,
            private: Vec::new(),
            messages: Vec::new(),
            starts: vec![0],
            siblings,
            histories: Histories::Ordered,
        }
    }

    /// A state of no threads and no memory.
    pub fn empty() -> Self {
        Self::new(std::iter::empty(), Rc::new([]))
    }

    /// Makes room for cells found since the state was made, or decoded.
    pub fn grow(&mut self, shared: &[u64], private: &[u64], siblings: &Rc<[Vec<Sibling>]>) {
        for value in &shared[self.cells()..] {
            self.messages.push(Message::new(*value));
            self.starts.push(self.messages.len() as u16);
        }
        self.siblings = Rc::clone(siblings);
        self.private.extend(&private[self.private.len()..]);
    }

    fn cells(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    fn range(&self, cell: usize) -> Range<usize> {
        self.starts[cell].into()..self.starts[cell + 1].into()
    }

    /// A cell's writes in modification order.
    #[inline]
    pub fn messages(&self, cell: usize) -> &[Message<N>] {
        &self.messages[self.range(cell)]
    }

    fn message_mut(&mut self, cell: usize, position: usize) -> &mut Message<N> {
        let range = self.range(cell);
        &mut self.messages[range][position]
    }

    /// The newest value of a cell.
    pub fn newest(&self, cell: usize) -> u64 {
        self.messages(cell)
            .last()
            .expect("a cell has a value")
            .value
    }

    /// Whether a thread has seen the newest write of a cell.
    pub fn knows(&self, thread: usize, cell: usize) -> bool {
        self.threads[thread].seen.0[cell] == self.place(cell, self.messages(cell).len() - 1)
    }

    /// The entry of a view that has seen a cell's write at `position`.
    #[inline]
    pub fn place(&self, cell: usize, position: usize) -> u8 {
        match self.histories {
            Histories::Ordered => position as u8,
            Histories::Merged if position + 1 == self.range(cell).len() => merged::newest(position),
            Histories::Merged => self.messages(cell)[position].view.0[cell],
        }
    }

    /// Whether one who has seen `view` may read a cell's write at `position`.
    pub fn is_readable(&self, view: &View<N>, cell: usize, position: usize) -> bool {
        let seen = view.0[cell];
        match self.histories {
            Histories::Ordered => position >= usize::from(seen),
            Histories::Merged => merged::may_read(seen, position),
        }
    }

    /// The view that a read-modify-write at `position` passes on of the write that it has read.
    pub fn passed_on(&self, cell: usize, position: usize) -> &View<N> {
        match self.histories {
            Histories::Ordered => &self.messages(cell)[position - 1].view,
            Histories::Merged => &self.messages(cell)[position].view,
        }
    }

    /// Lets a read of the word that sees a write see any write to its other cells.
    pub fn forget_floor(&mut self, cell: usize, position: usize) {
        self.message_mut(cell, position).floor = [0; WORD];
    }

    /// Sets the view that a write carries.
    pub fn carry(&mut self, cell: usize, position: usize, view: View<N>, author: Option<u8>) {
        match self.histories {
            Histories::Ordered => {
                let message = self.message_mut(cell, position);
                message.view = view;
                message.author = author;
            }
            Histories::Merged if position + 1 == self.messages(cell).len() => {
                self.message_mut(cell, position).view = view;
            }
            // An older write got its view when it was inserted.
            Histories::Merged => {}
        }
    }

    /// The newest writes of all cells.
    pub fn snapshot(&self) -> View<N> {
        let mut now = View::NONE;
        for cell in 0..self.cells() {
            now.0[cell] = self.place(cell, self.range(cell).len() - 1);
        }
        now
    }

    fn views(&mut self) -> impl Iterator<Item = &mut View<N>> {
        self.threads
            .iter_mut()
            .flat_map(|t| [&mut t.seen, &mut t.read, &mut t.fenced])
            .chain(std::iter::once(&mut self.sc))
            .chain(self.messages.iter_mut().map(|m| &mut m.view))
    }

    /// The floors of a cell in the writes to the other cells of its word.
    fn floors(&mut self, cell: usize, mut f: impl FnMut(&mut u8)) {
        let siblings = Rc::clone(&self.siblings);
        for sibling in &siblings[cell] {
            let number = usize::from(sibling.number);
            let back = siblings[number]
                .iter()
                .find(|s| usize::from(s.number) == cell)
                .expect("siblings know each other");
            let range = self.range(number);
            for message in &mut self.messages[range] {
                f(&mut message.floor[usize::from(back.offset)]);
            }
        }
    }

    /// Inserts a write at `position` in a cell's modification order, and returns the position that it
    /// has then; None if the cell is full. `by`: the thread, and whether it releases.
    pub fn insert(
        &mut self,
        cell: usize,
        position: usize,
        message: Message<N>,
        by: (usize, bool),
    ) -> Option<usize> {
        if self.histories == Histories::Merged {
            return self.insert_merged(cell, position, message, by);
        }
        let Range { start, end } = self.range(cell);
        if end - start == MOST_WRITES {
            return None;
        }
        if start + position < end {
            for view in self.views() {
                let place = &mut view.0[cell];
                *place += u8::from(usize::from(*place) >= position);
            }
            self.floors(cell, |floor| {
                *floor += u8::from(usize::from(*floor) >= position);
            });
        }
        self.insert_message(cell, position, message);
        Some(position)
    }

    fn insert_message(&mut self, cell: usize, position: usize, message: Message<N>) {
        let start = self.range(cell).start;
        self.messages.insert(start + position, message);
        for start in &mut self.starts[cell + 1..] {
            *start += 1;
        }
    }

    /// Overwrites the only value of a cell, in a memory without views.
    pub fn set(&mut self, cell: usize, value: u64) {
        self.message_mut(cell, 0).value = value;
    }

    /// Makes `value` the only value of a cell, and lets every thread have seen it.
    pub fn reset(&mut self, cell: usize, value: u64) {
        let Range { start, end } = self.range(cell);
        self.messages.drain(start + 1..end);
        let gone = (end - start - 1) as u16;
        for next in &mut self.starts[cell + 1..] {
            *next -= gone;
        }
        self.messages[start] = Message::new(value);
        for view in self.views() {
            view.0[cell] = 0;
        }
        self.floors(cell, |floor| *floor = 0);
    }

    /// Notes that the writes at `written`, cells and positions in one word, are one write, and that
    /// it comes after all writes to the word that are in `carried`.
    pub fn join_floors(&mut self, written: &[(usize, usize)], carried: &View<N>) {
        let siblings = Rc::clone(&self.siblings);
        if self.histories == Histories::Merged {
            self.join_floors_merged(&siblings, written, carried);
            return;
        }
        for (cell, position) in written {
            let here = self.range(*cell);
            let mut floor = self.messages[here.start + position - 1].floor;
            for sibling in &siblings[*cell] {
                let known = &mut floor[usize::from(sibling.offset)];
                *known = (*known).max(carried.0[usize::from(sibling.number)]);
            }
            for message in &mut self.messages[here][*position..] {
                for (a, b) in message.floor.iter_mut().zip(&floor) {
                    *a = (*a).max(*b);
                }
            }
        }
    }

    /// Whether a read of a word can see the writes at these places in two of its cells.
    pub fn fit(&self, (cell, place): (usize, usize), (other, other_place): (usize, usize)) -> bool {
        let siblings = &self.siblings[cell];
        siblings
            .iter()
            .find(|s| usize::from(s.number) == other)
            .is_none_or(|sibling| {
                let floor = self.messages(cell)[place].floor[usize::from(sibling.offset)];
                match self.histories {
                    Histories::Ordered => usize::from(floor) <= other_place,
                    Histories::Merged => merged::may_read(floor, other_place),
                }
            })
    }

    /// Records an access to plain data, which only `thread` has seen.
    pub fn event(&mut self, cell: usize, thread: usize, value: u64) {
        self.reset(cell, value);
        let message = self.messages(cell)[0];
        self.insert(cell, 1, message, (thread, false));
        let place = self.place(cell, 1);
        self.threads[thread].seen.0[cell] = place;
        self.threads[thread].read.0[cell] = place;
    }

    /// Forgets everything that no longer affects a later step, so that equivalent states are equal.
    /// `live`: the threads that have not ended, one bit each.
    pub fn normalise(&mut self, live: u64) {
        for (i, thread) in self.threads.iter_mut().enumerate() {
            if live & 1 << i == 0 {
                thread.seen = View::NONE;
                thread.read = View::NONE;
                thread.fenced = View::NONE;
            }
        }
        if self.histories == Histories::Merged {
            self.normalise_merged(live);
            return;
        }
        self.drop_unreadable(live);
        self.drop_repeated();
        self.drop_known(live);
    }

    /// Prevents reads of writes that are more than `bound` behind a cell's newest; true if a thread
    /// could have read one.
    pub fn forget_older(&mut self, cell: usize, bound: u8, live: u64) -> bool {
        let newest = self.range(cell).len() - 1;
        let oldest = newest.saturating_sub(bound.into()) as u8;
        let mut forgot = false;
        for (i, thread) in self.threads.iter_mut().enumerate() {
            let seen = &mut thread.seen.0[cell];
            if live & 1 << i != 0 && *seen < oldest {
                *seen = oldest;
                forgot = true;
            }
        }
        forgot
    }

    /// Whether cells have many writes, so that it is time to forget some.
    pub fn is_crowded(&self) -> bool {
        let cells = self.cells();
        self.messages.len() > 2 * cells + 64
            || (0..cells).any(|cell| self.range(cell).len() == MOST_WRITES)
    }

    /// Prevents reads of the older half of the writes of cells that have no room for more.
    pub fn forget_half_of_full_cells(&mut self, live: u64) {
        for cell in 0..self.cells() {
            if self.range(cell).len() == MOST_WRITES {
                self.forget_older(cell, (MOST_WRITES / 2) as u8, live);
            }
        }
    }

    /// Forgets the writes that are older than all that any thread may still read.
    fn drop_unreadable(&mut self, live: u64) {
        let mut oldest = View([u8::MAX; N]);
        for (_, thread) in live_threads(&self.threads, live) {
            for (a, b) in oldest.0.iter_mut().zip(&thread.seen.0) {
                *a = (*a).min(*b);
            }
        }
        let mut kept = 0;
        let mut dropped = false;
        for cell in 0..self.cells() {
            let Range { start, end } = self.range(cell);
            let unreadable = usize::from(oldest.0[cell]).min(end - start - 1);
            oldest.0[cell] = unreadable as u8;
            dropped |= unreadable > 0;
            self.starts[cell] = kept as u16;
            if dropped {
                self.messages.copy_within(start + unreadable..end, kept);
            }
            self.messages[kept].attached = false;
            kept += end - start - unreadable;
        }
        if !dropped {
            return;
        }
        self.messages.truncate(kept);
        let cells = self.cells();
        self.starts[cells] = kept as u16;
        oldest.0[cells..].fill(0);
        for view in self.views() {
            for (a, b) in view.0.iter_mut().zip(&oldest.0) {
                *a = a.saturating_sub(*b);
            }
        }
        for cell in 0..cells {
            let gone = oldest.0[cell];
            if gone > 0 {
                self.floors(cell, |floor| *floor = floor.saturating_sub(gone));
            }
        }
    }

    /// Forgets read-modify-writes that have written what they read, and carry what that carried: a thread that
    /// has seen such a write may do just what one may that has seen the write before it. Else the history
    /// grows without end where threads spin by exchanges. Only in long histories.
    fn drop_repeated(&mut self) {
        const LONG: usize = 4;
        for cell in 0..self.cells() {
            while let range = self.range(cell)
                && range.len() > LONG
                && let Some(first) = self.messages[range.clone()]
                    .windows(2)
                    .position(|pair| pair[1].repeats(&pair[0]))
            {
                self.messages.remove(range.start + first + 1);
                for start in &mut self.starts[cell + 1..] {
                    *start -= 1;
                }
                let moved = |place: &mut u8| *place -= u8::from(usize::from(*place) > first);
                for view in self.views() {
                    moved(&mut view.0[cell]);
                }
                self.floors(cell, moved);
            }
        }
    }

    /// Forgets the part of a write's view that every possible reader has seen already, and the write's
    /// author where that makes no difference.
    fn drop_known(&mut self, live: u64) {
        for cell in 0..self.cells() {
            let range = self.range(cell);
            for (k, message) in self.messages[range].iter_mut().enumerate() {
                if message.view.is_none() {
                    message.author = None;
                    continue;
                }
                let mut known = View([u8::MAX; N]);
                for (number, thread) in live_threads(&self.threads, live) {
                    if usize::from(thread.seen.0[cell]) <= k && !message.is_by(number) {
                        for (a, b) in known.0.iter_mut().zip(&thread.seen.0) {
                            *a = (*a).min(*b);
                        }
                    }
                }
                for (a, b) in message.view.0.iter_mut().zip(&known.0) {
                    *a = if *a <= *b { 0 } else { *a };
                }
                message.author = message.author.filter(|author| {
                    let seen = &self.threads[usize::from(*author)].seen;
                    let reads_it = live & 1 << author != 0 && usize::from(seen.0[cell]) <= k;
                    reads_it && !message.view.is_within(seen, Histories::Ordered)
                });
            }
        }
    }

    /// Copies `other` with its threads renamed. `image` gives the new local state of a thread, `windows` the
    /// new window of each thread by its old name.
    pub fn rename_from<T: Naming>(
        &mut self,
        other: &Self,
        renaming: &Renaming,
        cells: &RenamedCells,
        names: &CellNames<T>,
        image: impl Fn(LocalId) -> LocalId,
        windows: &[Window],
    ) {
        self.threads.resize(other.threads.len(), Thread::new(0));
        for (new, thread) in self.threads.iter_mut().enumerate() {
            let old = &other.threads[renaming.old(new)];
            *thread = Thread {
                local: image(old.local),
                window: windows[renaming.old(new)],
                deferred: old.deferred.map(|(local, due)| (image(local), due)),
                later: renaming.set(old.later),
                seen: old.seen.renumbered(&cells.shared),
                read: old.read.renumbered(&cells.shared),
                fenced: old.fenced.renumbered(&cells.shared),
                ..*old
            };
        }
        self.spurious = other.spurious;
        self.idle = other.idle;
        self.sc = other.sc.renumbered(&cells.shared);
        self.private.resize(other.private.len(), 0);
        for ((value, number), names) in other.private.iter().zip(&cells.private).zip(&names.private)
        {
            self.private[usize::from(*number)] = names.renamed(renaming, *value);
        }
        self.messages.clear();
        self.starts.clear();
        self.starts.push(0);
        for old in cells.shared_before.iter().map(|old| usize::from(*old)) {
            let names = names.shared[old];
            let renamed = other.messages(old).iter().map(|message| Message {
                view: message.view.renumbered(&cells.shared),
                value: names.renamed(renaming, message.value),
                author: message.author.map(|old| renaming.thread(old.into()) as u8),
                ..*message
            });
            self.messages.extend(renamed);
            self.starts.push(self.messages.len() as u16);
        }
        self.siblings.clone_from(&other.siblings);
        self.histories = other.histories;
        if self.histories == Histories::Merged {
            self.sort_merged();
        }
    }

    /// Encodes the state; equivalent states get the same bytes.
    pub fn encode(&self, initial: &[u64], bytes: &mut Vec<u8>) {
        bytes.clear();
        if self.histories == Histories::Merged {
            self.encode_merged(initial, bytes);
            return;
        }
        self.encode_threads(bytes);
        for thread in &self.threads {
            for view in [&thread.seen, &thread.read, &thread.fenced] {
                self.encode_view(view, bytes);
            }
        }
        self.encode_view(&self.sc, bytes);
        self.encode_private(bytes);
        for (cell, initial) in initial[..self.cells()].iter().enumerate() {
            let messages = self.messages(cell);
            let plain = |m: &Message<N>| m.view.is_none() && m.floor == [0; WORD];
            match messages {
                [one] if plain(one) && one.value == *initial => {}
                [one] if plain(one) => {
                    number(bytes, cell as u64 + 1);
                    bytes.push(0);
                    number(bytes, one.value);
                }
                _ => {
                    number(bytes, cell as u64 + 1);
                    bytes.push(messages.len() as u8);
                    for message in messages {
                        self.encode_message(message, bytes);
                    }
                }
            }
        }
        bytes.push(0);
    }

    /// Appends all of the threads but what they have seen.
    fn encode_threads(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.spurious);
        bytes.push(self.idle);
        for thread in &self.threads {
            thread.window.encode(bytes);
            if thread.window.is_empty() {
                number(bytes, thread.local.into());
            }
            number(
                bytes,
                u64::from(thread.exposed) << 1 | u64::from(thread.parked),
            );
            let deferred = thread.deferred.map_or(0, |(local, due)| {
                (u64::from(local) + 1) << 1 | u64::from(due)
            });
            number(bytes, deferred);
            number(bytes, thread.later);
            bytes.push(thread.bypassed);
            bytes.push(thread.barrier as u8);
        }
    }

    /// Appends the values of private cells.
    fn encode_private(&self, bytes: &mut Vec<u8>) {
        // Cells at the end that have their first value are left out: they may be new.
        let used = self
            .private
            .iter()
            .rposition(|v| *v != 0)
            .map_or(0, |i| i + 1);
        number(bytes, used as u64);
        for value in &self.private[..used] {
            number(bytes, *value);
        }
    }

    fn encode_message(&self, message: &Message<N>, bytes: &mut Vec<u8>) {
        number(bytes, message.value);
        let has_floor = message.floor != [0; WORD];
        let author = message.author.map_or(0, |author| u64::from(author) + 1);
        number(
            bytes,
            u64::from(message.attached)
                | u64::from(has_floor) << 1
                | u64::from(message.sealed) << 2
                | author << 3,
        );
        if has_floor {
            bytes.extend_from_slice(&message.floor);
        }
        self.encode_view(&message.view, bytes);
    }

    /// Appends a view without the zeros at its end, eight entries at a time.
    fn encode_view(&self, view: &View<N>, bytes: &mut Vec<u8>) {
        let (chunks, _) = view.0.as_chunks::<CHUNK>();
        let used = chunks.iter().rposition(|chunk| *chunk != [0; CHUNK]);
        let used = used.map_or(0, |last| last + 1);
        bytes.push(used as u8);
        bytes.extend_from_slice(chunks[..used].as_flattened());
    }

    /// Decodes the bytes of [`encode`](Self::encode), but not the local states of threads with windows.
    pub fn decode(
        &mut self,
        threads: usize,
        initial: &[u64],
        siblings: &Rc<[Vec<Sibling>]>,
        bytes: &[u8],
    ) {
        let mut bytes = Bytes(bytes);
        self.threads.resize(threads, Thread::new(0));
        self.messages.clear();
        self.starts.truncate(1);
        self.siblings.clone_from(siblings);
        self.histories = Histories::Ordered;
        self.decode_threads(&mut bytes);
        for thread in &mut self.threads {
            thread.seen = bytes.view();
            thread.read = bytes.view();
            thread.fenced = bytes.view();
        }
        self.sc = bytes.view();
        self.decode_private(&mut bytes);
        let mut next = bytes.number();
        for (cell, value) in initial.iter().enumerate() {
            if next != cell as u64 + 1 {
                self.messages.push(Message::new(*value));
            } else {
                let count = bytes.byte();
                if count == 0 {
                    self.messages.push(Message::new(bytes.number()));
                }
                for _ in 0..count {
                    self.messages.push(bytes.message());
                }
                next = bytes.number();
            }
            self.starts.push(self.messages.len() as u16);
        }
    }

    fn decode_threads(&mut self, bytes: &mut Bytes) {
        self.spurious = bytes.byte();
        self.idle = bytes.byte();
        for thread in &mut self.threads {
            thread.window = bytes.window();
            if thread.window.is_empty() {
                thread.local = bytes.number() as LocalId;
            }
            let flags = bytes.number();
            thread.parked = flags & 1 != 0;
            thread.exposed = (flags >> 1) as u16;
            let deferred = bytes.number();
            let due = deferred & 1 != 0;
            thread.deferred = (deferred >> 1)
                .checked_sub(1)
                .map(|local| (local as LocalId, due));
            thread.later = bytes.number();
            thread.bypassed = bytes.byte();
            thread.barrier = match bytes.byte() {
                0 => Barrier::None,
                1 => Barrier::Begun,
                _ => Barrier::Owed,
            };
        }
    }

    fn decode_private(&mut self, bytes: &mut Bytes) {
        self.private.clear();
        for _ in 0..bytes.number() {
            self.private.push(bytes.number());
        }
    }
}

#[inline]
fn live_threads<const N: usize>(
    threads: &[Thread<N>],
    live: u64,
) -> impl Iterator<Item = (usize, &Thread<N>)> {
    threads
        .iter()
        .enumerate()
        .filter(move |(i, _)| live & 1 << i != 0)
}

/// The entries of a view are encoded so many at a time.
const CHUNK: usize = 8;

/// Appends a number, seven bits in each byte.
#[inline]
fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const COUNT: usize>(&mut self) -> &'a [u8; COUNT] {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .expect("whole states are encoded");
        self.0 = rest;
        first
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().expect("whole states are encoded");
        self.0 = rest;
        *first
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    #[inline]
    fn window(&mut self) -> Window {
        let mut window = Window {
            len: self.byte(),
            ..Window::default()
        };
        if window.len > 0 {
            window.first = self.number() as LocalId;
            window.delayed = self.byte();
            for entry in 0..usize::from(window.len) {
                window.results[entry] = self.number();
            }
        }
        window
    }

    fn message<const N: usize>(&mut self) -> Message<N> {
        let value = self.number();
        let flags = self.number();
        let floor = match flags & 2 {
            0 => [0; WORD],
            _ => *self.take(),
        };
        Message {
            view: self.view(),
            value,
            attached: flags & 1 != 0,
            sealed: flags & 4 != 0,
            floor,
            author: (flags >> 3).checked_sub(1).map(|author| author as u8),
        }
    }

    fn view<const N: usize>(&mut self) -> View<N> {
        let mut view = View::NONE;
        let used = usize::from(self.byte());
        let (chunks, _) = view.0.as_chunks_mut::<CHUNK>();
        for chunk in &mut chunks[..used] {
            *chunk = *self.take();
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symmetry::Symmetry;

    /// Values that name no thread.
    #[derive(Clone, Copy)]
    struct Unnamed;

    impl Naming for Unnamed {
        fn renamed(self, _: &Renaming, value: u64) -> u64 {
            value
        }
    }

    /// The windows and the authors of writes change their names as well as their places.
    #[test]
    fn all_that_belongs_to_a_thread_changes_its_name() {
        let swap = &Symmetry::new(2, |_, _| true).swaps[0];
        let siblings: Rc<[Vec<Sibling>]> = Rc::new([Vec::new()]);
        let mut state = State::<32>::new([0, 1].into_iter(), Rc::clone(&siblings));
        state.grow(&[7], &[], &siblings);
        state.message_mut(0, 0).author = Some(1);
        let mut windows = [Window::default(); 2];
        windows[1].push(5, Some(3));
        let cells = RenamedCells {
            shared: vec![0],
            shared_before: vec![0],
            private: Vec::new(),
        };
        let names = CellNames {
            shared: vec![Unnamed],
            private: Vec::new(),
        };
        let mut renamed = State::empty();
        renamed.rename_from(&state, swap, &cells, &names, |local| 1 - local, &windows);
        assert_eq!(renamed.messages(0)[0].author, Some(0));
        assert_eq!(renamed.threads[0].window, windows[1]);
        assert!(renamed.threads[1].window.is_empty());
    }
}
