//! Threads that behave alike, and the renamings of threads that leave a check the same.

use std::rc::Rc;

use lockworks::LockType;

use crate::headers;
use crate::layout::{self, Region};
use crate::site::Request;

/// The most swaps, so that there are at most 120 renamings.
const MOST_SWAPS: usize = 4;

/// A renaming: each thread gets the name of another, or keeps its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Renaming {
    to: Box<[u8]>,
    from: Box<[u8]>,
}

impl Renaming {
    fn new(to: Box<[u8]>) -> Self {
        let mut from = to.clone();
        for (old, new) in to.iter().enumerate() {
            from[usize::from(*new)] = old as u8;
        }
        Self { to, from }
    }

    pub(crate) fn identity(threads: usize) -> Self {
        Self::new((0..threads as u8).collect())
    }

    fn swap(threads: usize, one: usize, other: usize) -> Self {
        let mut to = Self::identity(threads).to;
        to.swap(one, other);
        Self::new(to)
    }

    /// This renaming followed by another.
    pub(crate) fn then(&self, next: &Self) -> Self {
        Self::new(self.to.iter().map(|t| next.to[usize::from(*t)]).collect())
    }

    pub(crate) fn inverse(&self) -> Self {
        Self {
            to: self.from.clone(),
            from: self.to.clone(),
        }
    }

    /// The new name of a thread.
    pub(crate) fn thread(&self, old: usize) -> usize {
        self.to[old].into()
    }

    /// The old name of a thread.
    pub(crate) fn old(&self, new: usize) -> usize {
        self.from[new].into()
    }

    /// The new names of a set of threads, one bit each.
    pub(crate) fn set(&self, old: u64) -> u64 {
        let threads = self.to.iter().enumerate();
        threads.fold(0, |set, (old_name, new)| set | (old >> old_name & 1) << new)
    }

    pub(crate) fn address(&self, old: usize) -> usize {
        layout::renamed(old, &self.to)
    }

    /// The value after the renaming, where values name threads in the way of `names`.
    pub(crate) fn value(&self, names: Names, old: u64) -> u64 {
        match names {
            Names::None => old,
            Names::Address => self.address(old as usize) as u64,
            Names::TailAndOwner { shift } => {
                let renamed = self.value(Names::Tail { shift }, old);
                let owner_shift = shift - TAIL + headers::WORD.owner_shift;
                let name = (old >> owner_shift) as u32 & OWNER;
                match headers::slot_of_name(name).and_then(|slot| self.to.get(slot - 1)) {
                    Some(new) => {
                        let new_name = headers::name_of_slot(usize::from(*new) + 1);
                        renamed ^ u64::from(name ^ new_name) << owner_shift
                    }
                    None => renamed,
                }
            }
            Names::Tail { shift } => {
                let tail = usize::from((old >> shift) as u16);
                let (slot, node) = headers::slot_and_node(tail);
                match slot.checked_sub(1).and_then(|thread| self.to.get(thread)) {
                    Some(new) => {
                        let renamed = (usize::from(*new) + 1) * layout::NODES + node;
                        old ^ ((tail ^ renamed) as u64) << shift
                    }
                    None => old,
                }
            }
        }
    }

    pub(crate) fn request(&self, names: Names, old: Request) -> Request {
        Request {
            site: old.site,
            address: self.address(old.address),
            a: self.value(names, old.a),
            b: self.value(names, old.b),
        }
    }
}

/// The way in which the values of a piece of memory name threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    None,
    /// By the address of a queue node.
    Address,
    /// By the tail of a lock's word, in the bits from `shift` on.
    Tail {
        shift: u32,
    },
    /// The same, and by the name of the last holder.
    TailAndOwner {
        shift: u32,
    },
}

/// The place of the tail in a lock's word.
const TAIL: u32 = headers::WORD.tail_shift;

/// The name of the last holder, moved to bit 0.
const OWNER: u32 = headers::WORD.owner >> headers::WORD.owner_shift;

/// What the word of a lock names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockWord {
    Other,
    Tail,
    TailAndOwner,
}

impl LockWord {
    pub(crate) fn of(lock: &LockType) -> Self {
        match (lock.has_tail_word(), lock.has_owner_word()) {
            (true, true) => Self::TailAndOwner,
            (true, false) => Self::Tail,
            _ => Self::Other,
        }
    }
}

impl Names {
    /// The names in `size` bytes at an address.
    pub(crate) fn at(address: usize, size: usize, threads: usize, word: LockWord) -> Self {
        let Some((region, offset)) = layout::resolve(address, threads) else {
            return Self::None;
        };
        match region {
            Region::Lock(_) if word != LockWord::Other => match TAIL.checked_sub(8 * offset as u32)
            {
                Some(shift) if word == LockWord::TailAndOwner && offset <= 1 => {
                    Self::TailAndOwner { shift }
                }
                Some(shift) => Self::Tail { shift },
                None => Self::None,
            },
            Region::Queue { .. } if offset % headers::NODE.size == headers::NODE.waiters => {
                Self::Tail { shift: 0 }
            }
            Region::Data(_) | Region::Variables | Region::Reads { .. } | Region::Held { .. } => {
                Self::None
            }
            _ if size == size_of::<u64>() => Self::Address,
            Region::Node { .. } | Region::Lent { .. } | Region::Queue { .. }
                if size == size_of::<u32>() =>
            {
                Self::Tail { shift: TAIL }
            }
            _ => Self::None,
        }
    }
}

/// A renaming, and the swaps that it consists of.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) renaming: Renaming,
    pub(crate) swaps: Box<[usize]>,
}

/// The renamings under which a check stays the same.
#[derive(Debug)]
pub(crate) struct Symmetry {
    swapped: Vec<(usize, usize)>,
    pub(crate) swaps: Vec<Renaming>,
    /// All renamings, each once. The first changes nothing.
    pub(crate) renamings: Vec<Composed>,
}

impl Symmetry {
    /// The symmetry in which any two threads that are `alike` may change places.
    pub(crate) fn new(threads: usize, alike: impl Fn(usize, usize) -> bool) -> Rc<Self> {
        let next = |one| (one + 1..threads).find(|other| alike(one, *other));
        let swapped: Vec<_> = (0..threads)
            .filter_map(|one| Some((one, next(one)?)))
            .take(MOST_SWAPS)
            .collect();
        let swaps: Vec<Renaming> = swapped
            .iter()
            .map(|(one, other)| Renaming::swap(threads, *one, *other))
            .collect();
        let mut renamings = vec![Composed {
            renaming: Renaming::identity(threads),
            swaps: Box::default(),
        }];
        let mut done = 0;
        while done < renamings.len() {
            for (number, swap) in swaps.iter().enumerate() {
                let before = &renamings[done];
                let renaming = before.renaming.then(swap);
                if renamings.iter().all(|known| known.renaming != renaming) {
                    let swaps = before.swaps.iter().copied().chain([number]).collect();
                    renamings.push(Composed { renaming, swaps });
                }
            }
            done += 1;
        }
        Rc::new(Self {
            swapped,
            swaps,
            renamings,
        })
    }

    /// The symmetry of threads that are all different.
    pub(crate) fn none(threads: usize) -> Rc<Self> {
        Self::new(threads, |_, _| false)
    }

    /// The numbers of the renamings that sort the threads by their keys.
    pub(crate) fn sorting<K: Ord>(&self, keys: &[K]) -> impl Iterator<Item = usize> {
        self.renamings
            .iter()
            .enumerate()
            .filter(|(_, composed)| {
                let key = |thread| &keys[composed.renaming.old(thread)];
                let ordered = |(one, other): &(usize, usize)| key(*one) <= key(*other);
                self.swapped.iter().all(ordered)
            })
            .map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_threads_are_found_in_values() {
        let swap = Renaming::swap(3, 0, 2);
        let node = |thread: usize| (layout::slot_nodes(thread + 1) + 8) as u64;
        let lent = |thread| layout::lent(thread, 1) as u64;
        let tail = |slot: u64, shift: u32| (slot << 2 | 3) << shift | 1 << 63;
        let word = Names::Tail { shift: 16 };
        for (names, old, new) in [
            (Names::Address, node(0), node(2)),
            (Names::Address, node(1), node(1)),
            (Names::Address, node(3), node(3)),
            (Names::Address, lent(2), lent(0)),
            (Names::Address, 0, 0),
            (Names::None, node(0), node(0)),
            (word, tail(1, 16) | 5, tail(3, 16) | 5),
            (word, tail(2, 16), tail(2, 16)),
            (word, tail(0, 16), tail(0, 16)),
            (word, tail(4, 16), tail(4, 16)),
            (Names::Tail { shift: 0 }, tail(3, 0), tail(1, 0)),
        ] {
            assert_eq!(swap.value(names, old), new, "{names:?} {old:#x}");
            assert_eq!(swap.value(names, new), old, "{names:?} {new:#x}");
        }
        assert_eq!(swap.set(0b011), 0b110);
    }

    #[test]
    fn renamings_sort_threads_that_are_alike() {
        let symmetry = Symmetry::new(4, |one, other| one % 2 == other % 2);
        assert_eq!(symmetry.renamings.len(), 4);
        let sorted = |keys: [u8; 4]| -> Vec<Vec<u8>> {
            symmetry
                .sorting(&keys)
                .map(|i| &symmetry.renamings[i].renaming)
                .map(|renaming| (0..4).map(|new| keys[renaming.old(new)]).collect())
                .collect()
        };
        assert_eq!(sorted([7, 9, 5, 1]), [[5, 1, 7, 9]]);
        assert_eq!(sorted([5, 1, 5, 9]), [[5, 1, 5, 9]; 2]);
        for (threads, renamings) in [(1, 1), (2, 2), (3, 6), (4, 24), (5, 120), (8, 120)] {
            let all = Symmetry::new(threads, |_, _| true);
            assert_eq!(all.renamings.len(), renamings);
            for composed in &all.renamings {
                let swaps = composed.swaps.iter().map(|swap| &all.swaps[*swap]);
                let identity = Renaming::identity(threads);
                let made = swaps.fold(identity, |made, swap| made.then(swap));
                assert_eq!(made, composed.renaming);
                let back = made.then(&made.inverse());
                assert_eq!(back, Renaming::identity(threads));
            }
        }
    }
}
