//! States with merged histories, each of which stands for many states.
//!
//! Most states of a search differ in old values only: which of them each thread may still read, and the order
//! in which they were written. A merged state has no such order. The older writes of a cell are a set of
//! *names*. Writes have one name if their value is the same, and a read-modify-write follows either all of
//! them or none. A view has a bit for each name. The bit is set if the name is *past*: all writes of
//! that name come before the write that was seen, so the thread can no longer read them. An older write
//! carries a view too. In the entry of its own cell, the names are past that come before the write itself.
//!
//! Two states that differ in nothing but old values are united. In the united state, a name is past if it is
//! past in both. So the united state can do all that either can, and more. If it cannot do something, none
//! of the states can for which it stands. The newest values stay exact, because deadlocks and livelocks are
//! about reads of them.
//!
//! These do more than in ordered histories, never less:
//! - a write that comes before the newest comes anywhere where it is not excluded: right after one that
//!   a read-modify-write reads, or somewhere after what its thread has seen. It may be read by whoever has
//!   not seen the last write that is not attached to the one before;
//! - a read of a value that was written more than once acquires what all of these writes carried;
//! - the write that a read-modify-write before the newest has read may be followed by another one.

use std::rc::Rc;

use super::{Bytes, Histories, Message, Sibling, State, Thread, View, WORD, live_threads, number};

/// The bit of a view's entry that says that its thread has seen the last write which is not attached to
/// the one before. Then it can no longer write before the newest. The other bits are for older writes.
const GAP: u8 = 0x80;

/// The most older writes of a cell.
const MOST_OLD: usize = GAP.trailing_zeros() as usize;

/// The number of bytes before a state's bytes, which hold the length of its key.
const LENGTH: usize = size_of::<u16>();

/// The entry of a view that has seen the newest write of a cell, with so many older ones.
#[inline]
pub(super) fn newest(old: usize) -> u8 {
    match old {
        0 => 0,
        _ => below(old) | GAP,
    }
}

/// Whether one who has seen `seen` may read the write at `position`.
#[inline]
pub(super) fn may_read(seen: u8, position: usize) -> bool {
    u16::from(seen & !GAP) & 1 << position == 0
}

/// The writes that one who has seen `seen` may not read.
#[inline]
pub fn unreadable(seen: u8) -> u8 {
    seen & !GAP
}

/// The bits of the first older writes.
#[inline]
fn below(at: usize) -> u8 {
    (1 << at) - 1
}

/// This entry with a new bit at `at`, which is 0.
fn opened(entry: u8, at: usize) -> u8 {
    let (low, high) = (entry & below(at), entry & !below(at) & !GAP);
    low | high << 1 | entry & GAP
}

/// This entry without the bit at `at`.
fn closed(entry: u8, at: usize) -> u8 {
    let (low, high) = (entry & below(at), (entry & !GAP) >> 1 & !below(at));
    low | high | entry & GAP
}

/// The part of a state's bytes that is its key: all but what is known of older writes.
pub fn key(bytes: &[u8]) -> &[u8] {
    let (length, rest) = bytes.split_first_chunk().expect("whole states are encoded");
    &rest[..u16::from_be_bytes(*length).into()]
}

impl<const N: usize> State<N> {
    /// The older writes of a cell, those with lower values first.
    fn old(&self, cell: usize) -> &[Message<N>] {
        self.messages(cell)
            .split_last()
            .expect("a cell has a value")
            .1
    }

    /// The threads' views, with `f` applied to the entry of a cell in each, and in what the cell's word knows.
    fn entries(&mut self, cell: usize, f: impl Fn(u8) -> u8) {
        for view in self.views() {
            view.0[cell] = f(view.0[cell]);
        }
        self.floors(cell, |floor| *floor = f(*floor));
    }

    /// Inserts a write of `thread`, see [`State::insert`].
    pub(super) fn insert_merged(
        &mut self,
        cell: usize,
        position: usize,
        message: Message<N>,
        (thread, releases): (usize, bool),
    ) -> Option<usize> {
        let count = self.old(cell).len();
        if position <= count {
            return self.insert_old(cell, position, message, (thread, releases));
        }
        if count == 0 {
            // All have seen what there was.
            self.entries(cell, |_| GAP);
        }
        let former = self.messages(cell)[count];
        let mut old = Message {
            sealed: message.attached,
            ..former
        };
        old.view.0[cell] = newest(count) | GAP;
        let at = self.add_old(cell, old)?;
        self.entries(cell, |seen| seen & !(1 << at));
        if !message.attached {
            self.entries(cell, |seen| seen & !GAP);
        }
        let count = self.old(cell).len();
        // Until it gets its own view, it has the one that it passes on, see `State::passed_on`.
        *self.message_mut(cell, count) = Message {
            view: match message.attached {
                true => former.view,
                false => View::NONE,
            },
            floor: former.floor,
            attached: false,
            ..message
        };
        Some(count)
    }

    /// Inserts a write before the newest one: behind the one before `position` if it is attached to that.
    fn insert_old(
        &mut self,
        cell: usize,
        position: usize,
        message: Message<N>,
        (thread, releases): (usize, bool),
    ) -> Option<usize> {
        let author = &self.threads[thread];
        let mut view = if releases { author.seen } else { author.fenced };
        let mut floor = [0; WORD];
        let seen = author.seen.0[cell];
        if message.attached {
            let read = &self.messages(cell)[position - 1];
            view.join(&read.view, Histories::Merged);
            floor = read.floor;
        }
        for sibling in &self.siblings[cell] {
            floor[usize::from(sibling.offset)] |= view.0[usize::from(sibling.number)];
        }
        view.0[cell] = seen & !GAP;
        let is_new = self.find(cell, &message).is_err();
        let at = self.add_old(
            cell,
            Message {
                view,
                floor,
                attached: false,
                ..message
            },
        )?;
        // A thread has seen this write if it has seen the last write that is not attached, or one that came
        // after the write to which this one is attached.
        let mut after = GAP;
        if message.attached {
            let read = position - 1;
            after |= 1 << (read + usize::from(is_new && at <= read));
        }
        self.entries(cell, |seen| match seen & after {
            0 => seen & !(1 << at),
            _ => seen | u8::from(is_new) << at,
        });
        Some(at)
    }

    /// Adds an older write, or lets the one of its value stand for it too. Returns its place; None: there
    /// are too many.
    fn add_old(&mut self, cell: usize, mut write: Message<N>) -> Option<usize> {
        match self.find(cell, &write) {
            Ok(at) => {
                write.view.0[cell] &= !(1 << at);
                self.message_mut(cell, at).unite(&write);
                Some(at)
            }
            Err(_) if self.old(cell).len() == MOST_OLD => None,
            Err(at) => {
                self.entries(cell, |seen| opened(seen, at));
                write.view.0[cell] = opened(write.view.0[cell], at);
                self.insert_message(cell, at, write);
                Some(at)
            }
        }
    }

    /// The place of an older write among those of its cell, or the one where it is to be inserted.
    fn find(&self, cell: usize, write: &Message<N>) -> Result<usize, usize> {
        self.old(cell)
            .binary_search_by_key(&write.name(), Message::name)
    }

    pub(super) fn join_floors_merged(
        &mut self,
        siblings: &[Vec<Sibling>],
        written: &[(usize, usize)],
        carried: &View<N>,
    ) {
        for (cell, position) in written {
            if position + 1 < self.messages(*cell).len() {
                continue;
            }
            let floor = &mut self.message_mut(*cell, *position).floor;
            for sibling in &siblings[*cell] {
                floor[usize::from(sibling.offset)] |= carried.0[usize::from(sibling.number)];
            }
        }
    }

    /// Whether one who has seen `seen` of a cell may write before its newest write.
    pub fn may_write_before_newest(&self, cell: usize, seen: u8) -> bool {
        !self.old(cell).is_empty() && seen & GAP == 0
    }

    /// Whether one who has seen `view` may write right after the write at `position`.
    pub fn may_follow(&self, view: &View<N>, cell: usize, position: usize) -> bool {
        self.histories == Histories::Ordered
            || position + 1 == self.messages(cell).len()
            || (self.messages(cell)[position].view.0[cell] | view.0[cell]) & GAP == 0
    }

    /// Whether no write can come right after one, because a read-modify-write does.
    pub fn is_sealed(&self, cell: usize, position: usize) -> bool {
        let messages = self.messages(cell);
        match self.histories {
            Histories::Ordered => messages
                .get(position + 1)
                .is_some_and(|after| after.attached),
            Histories::Merged => messages[position].sealed,
        }
    }

    pub(super) fn normalise_merged(&mut self, live: u64) {
        for cell in 0..self.cells() {
            let unreadable = live_threads(&self.threads, live)
                .fold(u8::MAX, |seen, (_, thread)| seen & thread.seen.0[cell]);
            for at in (0..self.old(cell).len()).rev() {
                if unreadable & 1 << at != 0 {
                    self.entries(cell, |seen| closed(seen, at));
                    self.remove_message(cell, at);
                }
            }
            if self.old(cell).is_empty() {
                self.entries(cell, |_| 0);
            }
        }
        self.carry_known(live, |message| message.sealed);
    }

    fn remove_message(&mut self, cell: usize, at: usize) {
        let place = self.range(cell).start + at;
        self.messages.remove(place);
        for start in &mut self.starts[cell + 1..] {
            *start -= 1;
        }
    }

    /// Adds to the views of some writes what each possible reader has seen already, so that nothing is lost
    /// by uniting them. Views that a read-modify-write may pass on must stay as they are.
    fn carry_known(&mut self, live: u64, some: impl Fn(&Message<N>) -> bool) {
        for cell in 0..self.cells() {
            let range = self.range(cell);
            for (at, message) in self.messages[range].iter_mut().enumerate() {
                if !some(message) {
                    continue;
                }
                let mut known = View([u8::MAX; N]);
                for (_, thread) in live_threads(&self.threads, live) {
                    if thread.seen.0[cell] & 1 << at == 0 {
                        known.meet(&thread.seen);
                    }
                }
                message.view.join(&known, Histories::Merged);
            }
        }
    }

    /// Sorts the older writes of each cell, whose values were renamed.
    pub(super) fn sort_merged(&mut self) {
        for cell in 0..self.cells() {
            let old = self.old(cell);
            if old.is_sorted_by_key(Message::name) {
                continue;
            }
            let mut order: Vec<usize> = (0..old.len()).collect();
            order.sort_unstable_by_key(|at| old[*at].name());
            let sorted: Vec<Message<N>> = order.iter().map(|at| old[*at]).collect();
            let start = self.range(cell).start;
            self.messages[start..][..sorted.len()].copy_from_slice(&sorted);
            self.entries(cell, |seen| {
                let bits = order.iter().enumerate();
                bits.fold(seen & GAP, |new, (to, from)| new | (seen >> from & 1) << to)
            });
        }
    }

    /// Unites this state with another one of the same key; false if a cell has too many older writes.
    pub fn unite(&mut self, other: &mut Self) -> bool {
        for cell in 0..self.cells() {
            let mut at = 0;
            loop {
                let (ours, theirs) = (self.old(cell), other.old(cell));
                let missing = match (ours.get(at), theirs.get(at)) {
                    (None, None) => break,
                    (Some(one), Some(two)) if one.name() == two.name() => {
                        at += 1;
                        continue;
                    }
                    (Some(one), two) if two.is_none_or(|two| one.name() < two.name()) => {
                        other.add_unreadable(cell, at, *one)
                    }
                    (_, two) => self.add_unreadable(cell, at, *two.expect("one is there")),
                };
                if !missing {
                    return false;
                }
                at += 1;
            }
        }
        for (one, two) in self.threads.iter_mut().zip(&other.threads) {
            one.seen.meet(&two.seen);
            one.read.meet(&two.read);
            one.fenced.meet(&two.fenced);
        }
        self.sc.meet(&other.sc);
        for (one, two) in self.messages.iter_mut().zip(&other.messages) {
            one.unite(two);
        }
        true
    }

    /// Adds an older write that none can read, of which nothing is known; false if there are too many.
    fn add_unreadable(&mut self, cell: usize, at: usize, write: Message<N>) -> bool {
        match self.old(cell).len() {
            0 => self.entries(cell, |_| newest(1)),
            MOST_OLD => return false,
            _ => self.entries(cell, |seen| opened(seen, at) | 1 << at),
        }
        let message = Message {
            view: View([u8::MAX; N]),
            floor: [u8::MAX; WORD],
            ..write
        };
        self.insert_message(cell, at, message);
        true
    }

    pub(super) fn encode_merged(&self, initial: &[u64], bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&[0; LENGTH]);
        self.encode_newest(initial, bytes);
        self.encode_known(bytes);
        let length = u16::try_from(bytes.len() - LENGTH).expect("states are small");
        bytes[..LENGTH].copy_from_slice(&length.to_be_bytes());
        for thread in &self.threads {
            for view in [&thread.seen, &thread.read, &thread.fenced] {
                self.encode_view(view, bytes);
            }
        }
        self.encode_view(&self.sc, bytes);
        for cell in 0..self.cells() {
            let messages = self.messages(cell);
            if let [one] = messages
                && one.view.is_none()
                && one.floor == [0; WORD]
            {
                continue;
            }
            number(bytes, cell as u64 + 1);
            bytes.push(messages.len() as u8);
            for message in messages {
                self.encode_message(message, bytes);
            }
        }
        bytes.push(0);
    }

    /// Appends all but what is known of older writes.
    fn encode_newest(&self, initial: &[u64], bytes: &mut Vec<u8>) {
        self.encode_threads(bytes);
        self.encode_private(bytes);
        for (cell, initial) in initial[..self.cells()].iter().enumerate() {
            let newest = self.newest(cell);
            if newest != *initial {
                number(bytes, cell as u64 + 1);
                number(bytes, newest);
            }
        }
        bytes.push(0);
    }

    /// Appends who has seen the newest writes. The pieces of a word are left out: there, what each write
    /// says of the other pieces is enough.
    fn encode_known(&self, bytes: &mut Vec<u8>) {
        for cell in 0..self.cells() {
            let count = self.old(cell).len();
            if count > 0 && self.siblings[cell].is_empty() {
                let views = self
                    .threads
                    .iter()
                    .map(|thread| &thread.seen)
                    .chain([&self.sc]);
                let known = views.fold(0, |known, view| {
                    known << 1 | u64::from(view.0[cell] == newest(count))
                });
                number(bytes, cell as u64 + 1);
                number(bytes, known);
            }
        }
        bytes.push(0);
    }

    /// Decodes the bytes of a state with merged histories.
    pub fn decode_merged(
        &mut self,
        threads: usize,
        initial: &[u64],
        siblings: &Rc<[Vec<Sibling>]>,
        bytes: &[u8],
    ) {
        let mut bytes = Bytes(&bytes[LENGTH..]);
        self.threads.resize(threads, Thread::new(0));
        self.siblings.clone_from(siblings);
        self.histories = Histories::Merged;
        self.decode_threads(&mut bytes);
        self.decode_private(&mut bytes);
        let mut newest = initial.to_vec();
        loop {
            let cell = bytes.number() as usize;
            if cell == 0 {
                break;
            }
            newest[cell - 1] = bytes.number();
        }
        while bytes.number() != 0 {
            bytes.number();
        }
        for thread in &mut self.threads {
            thread.seen = bytes.view();
            thread.read = bytes.view();
            thread.fenced = bytes.view();
        }
        self.sc = bytes.view();
        self.messages.clear();
        self.starts.truncate(1);
        let mut next = bytes.number();
        for (cell, value) in newest.iter().enumerate() {
            if next == cell as u64 + 1 {
                for _ in 0..bytes.byte() {
                    self.messages.push(bytes.message());
                }
                next = bytes.number();
            } else {
                self.messages.push(Message::new(*value));
            }
            self.starts.push(self.messages.len() as u16);
        }
    }
}

impl<const N: usize> State<N> {
    /// A state of ordered histories with merged ones, by their definition. `open`: the writes before
    /// read-modify-writes that count as if another write could follow, one bit each.
    pub fn merged(&self, live: u64, open: u64) -> Self {
        let mut merged = self.clone();
        merged.histories = Histories::Merged;
        // The names of older writes, of all of them and each once.
        let mut sealed = 0;
        let all_names: Vec<Vec<(u64, bool)>> = (0..self.cells())
            .map(|cell| {
                let pairs = self.messages(cell).windows(2);
                let named = pairs.map(|pair| {
                    let is_open = !pair[1].attached || open & 1 << sealed != 0;
                    sealed += u32::from(pair[1].attached);
                    (pair[0].value, !is_open)
                });
                named.collect()
            })
            .collect();
        let mut names = all_names.clone();
        for names in &mut names {
            names.sort_unstable();
            names.dedup();
        }
        // A view that has seen a place in the order: all instances of a name that come before, and the gap.
        let entry = |cell: usize, place: u8| {
            let place = usize::from(place);
            let mut past = 0;
            for (at, name) in names[cell].iter().enumerate() {
                let mut later = all_names[cell].iter().skip(place);
                past |= u8::from(later.all(|other| other != name)) << at;
            }
            let mut after = self.messages(cell).iter().skip(place + 1);
            match after.any(|write| !write.attached) || names[cell].is_empty() {
                true => past,
                false => past | GAP,
            }
        };
        for view in merged.views() {
            for cell in 0..self.cells() {
                view.0[cell] = entry(cell, view.0[cell]);
            }
        }
        merged.messages.clear();
        merged.starts.truncate(1);
        for cell in 0..self.cells() {
            let converted = |at: usize| {
                let mut write = self.messages(cell)[at];
                write.attached = false;
                for other in 0..self.cells() {
                    write.view.0[other] = entry(other, write.view.0[other]);
                }
                write.view.0[cell] = entry(cell, at as u8);
                for sibling in &self.siblings[cell] {
                    let floor = &mut write.floor[usize::from(sibling.offset)];
                    *floor = entry(usize::from(sibling.number), *floor);
                }
                write
            };
            for name in &names[cell] {
                let instances = all_names[cell].iter().enumerate();
                let united = instances
                    .filter(|(_, other)| *other == name)
                    .map(|(at, _)| converted(at))
                    .reduce(|mut one, other| {
                        one.unite(&other);
                        one
                    });
                merged.messages.push(Message {
                    sealed: name.1,
                    ..united.expect("the name is of one")
                });
            }
            let mut newest = converted(all_names[cell].len());
            newest.view.0[cell] = 0;
            merged.messages.push(newest);
            merged.starts.push(merged.messages.len() as u16);
        }
        merged.normalise_merged(live);
        // Ordered histories have forgotten this of all writes.
        if live != 0 {
            merged.carry_known(live, |_| true);
        }
        for cell in 0..self.cells() {
            let newest = merged.old(cell).len();
            merged.message_mut(cell, newest).view.0[cell] = 0;
        }
        merged
    }

    /// The number of writes before read-modify-writes.
    pub fn sealed(&self) -> u32 {
        let cells = (0..self.cells()).map(|cell| &self.messages(cell)[1..]);
        cells.flatten().map(|write| u32::from(write.attached)).sum()
    }

    /// The bytes of a state's key without what says who has seen the newest writes.
    pub fn newest_bytes(&self, initial: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_newest(initial, &mut bytes);
        bytes
    }
}

impl<const N: usize> Message<N> {
    /// Makes this write stand for another one of the same value too.
    fn unite(&mut self, other: &Self) {
        self.view.meet(&other.view);
        for (one, two) in self.floor.iter_mut().zip(&other.floor) {
            *one &= two;
        }
    }

    /// The properties by which the older writes of a cell differ.
    fn name(&self) -> (u64, bool) {
        (self.value, self.sealed)
    }
}

impl<const N: usize> View<N> {
    /// The writes that two views of merged histories have both seen.
    fn meet(&mut self, other: &Self) {
        for (one, two) in self.0.iter_mut().zip(&other.0) {
            *one &= two;
        }
    }
}
