//! Threads that behave alike, and the renamings of threads that leave a check the same.

use std::rc::Rc;

/// The most swaps, so that there are at most 120 renamings.
const MOST_SWAPS: usize = 4;

/// A renaming: each thread gets the name of another, or keeps its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Renaming {
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

    /// The renaming that changes nothing.
    pub fn identity(threads: usize) -> Self {
        Self::new((0..threads as u8).collect())
    }

    fn swap(threads: usize, one: usize, other: usize) -> Self {
        let mut to = Self::identity(threads).to;
        to.swap(one, other);
        Self::new(to)
    }

    /// This renaming followed by another.
    pub fn then(&self, next: &Self) -> Self {
        Self::new(self.to.iter().map(|t| next.to[usize::from(*t)]).collect())
    }

    /// The renaming that undoes this one.
    pub fn inverse(&self) -> Self {
        Self {
            to: self.from.clone(),
            from: self.to.clone(),
        }
    }

    /// The new name of a thread.
    #[inline]
    pub fn thread(&self, old: usize) -> usize {
        self.to[old].into()
    }

    /// The old name of a thread.
    #[inline]
    pub fn old(&self, new: usize) -> usize {
        self.from[new].into()
    }

    /// The new names of a set of threads, one bit each.
    #[inline]
    pub fn set(&self, old: u64) -> u64 {
        let threads = self.to.iter().enumerate();
        threads.fold(0, |set, (old_name, new)| set | (old >> old_name & 1) << new)
    }

    /// The new name of each thread.
    #[inline]
    pub fn to(&self) -> &[u8] {
        &self.to
    }
}

/// The way in which values name threads.
pub trait Naming: Copy {
    /// The value after threads were renamed.
    fn renamed(self, renaming: &Renaming, value: u64) -> u64;
}

/// A renaming, and the swaps that it consists of.
#[derive(Debug)]
pub struct Composed {
    /// The renaming.
    pub renaming: Renaming,
    /// The numbers of its swaps.
    pub swaps: Box<[usize]>,
}

/// The renamings under which a check stays the same.
#[derive(Debug)]
pub struct Symmetry {
    swapped: Vec<(usize, usize)>,
    /// The swaps of two threads that are alike.
    pub swaps: Vec<Renaming>,
    /// All renamings, each once. The first changes nothing.
    pub renamings: Vec<Composed>,
}

impl Symmetry {
    /// The symmetry in which any two threads that are `alike` may change places.
    pub fn new(threads: usize, alike: impl Fn(usize, usize) -> bool) -> Rc<Self> {
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
    pub fn none(threads: usize) -> Rc<Self> {
        Self::new(threads, |_, _| false)
    }

    /// The numbers of the renamings that sort the threads by their keys.
    pub fn sorting<K: Ord>(&self, keys: &[K]) -> impl Iterator<Item = usize> {
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
