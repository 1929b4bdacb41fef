//! Sets of events and relations between events, as bits.
//!
//! The methods have the names that memory models are written with: `a.then(&b)` is `a ; b`,
//! `r.from(&s)` is `[s] ; r`, and `r.to(&s)` is `r ; [s]`.

use std::ops::{BitAnd, BitOr, Sub};

const BITS: usize = u64::BITS as usize;

/// The numbers of the bits that are set.
fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(i * BITS + bit)
        })
    })
}

/// A set of events.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Set {
    words: Vec<u64>,
}

impl Set {
    /// The events with a property.
    pub(crate) fn of(events: usize, mut has: impl FnMut(usize) -> bool) -> Self {
        let mut words = vec![0; events.div_ceil(BITS)];
        for event in (0..events).filter(|event| has(*event)) {
            words[event / BITS] |= 1 << (event % BITS);
        }
        Self { words }
    }

    pub(crate) fn contains(&self, event: usize) -> bool {
        self.words[event / BITS] >> (event % BITS) & 1 == 1
    }
}

impl BitOr for &Set {
    type Output = Set;

    fn bitor(self, other: &Set) -> Set {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a | b);
        Set {
            words: words.collect(),
        }
    }
}

impl BitAnd for &Set {
    type Output = Set;

    fn bitand(self, other: &Set) -> Set {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b);
        Set {
            words: words.collect(),
        }
    }
}

impl Sub for &Set {
    type Output = Set;

    fn sub(self, other: &Set) -> Set {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & !b);
        Set {
            words: words.collect(),
        }
    }
}

/// A relation between events: row `a` has the events that `a` is related to.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    events: usize,
    /// The number of words of a row.
    width: usize,
    words: Vec<u64>,
}

impl Relation {
    pub(crate) fn empty(events: usize) -> Self {
        let width = events.div_ceil(BITS);
        Self {
            events,
            width,
            words: vec![0; width * events],
        }
    }

    /// The pairs with a property.
    pub(crate) fn of(events: usize, mut has: impl FnMut(usize, usize) -> bool) -> Self {
        let mut relation = Self::empty(events);
        for a in 0..events {
            for b in (0..events).filter(|b| has(a, *b)) {
                relation.insert(a, b);
            }
        }
        relation
    }

    /// All pairs of an event of `from` and one of `to`.
    pub(crate) fn product(events: usize, from: &Set, to: &Set) -> Self {
        let mut relation = Self::empty(events);
        for a in ones(&from.words) {
            relation.row_mut(a).copy_from_slice(&to.words);
        }
        relation
    }

    /// Adds a pair.
    pub fn insert(&mut self, a: usize, b: usize) {
        self.words[a * self.width + b / BITS] |= 1 << (b % BITS);
    }

    /// Removes a pair.
    pub fn remove(&mut self, a: usize, b: usize) {
        self.words[a * self.width + b / BITS] &= !(1 << (b % BITS));
    }

    pub(crate) fn contains(&self, a: usize, b: usize) -> bool {
        self.words[a * self.width + b / BITS] >> (b % BITS) & 1 == 1
    }

    fn row(&self, a: usize) -> &[u64] {
        &self.words[a * self.width..(a + 1) * self.width]
    }

    fn row_mut(&mut self, a: usize) -> &mut [u64] {
        &mut self.words[a * self.width..(a + 1) * self.width]
    }

    /// The events that an event is related to.
    pub(crate) fn after(&self, a: usize) -> impl Iterator<Item = usize> + '_ {
        ones(self.row(a))
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.events).flat_map(|a| self.after(a).map(move |b| (a, b)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// `[set] ; self`.
    pub(crate) fn from(&self, set: &Set) -> Self {
        let mut relation = self.clone();
        for a in (0..self.events).filter(|a| !set.contains(*a)) {
            relation.row_mut(a).fill(0);
        }
        relation
    }

    /// `self ; [set]`.
    pub(crate) fn to(&self, set: &Set) -> Self {
        let mut relation = self.clone();
        for a in 0..self.events {
            for (word, kept) in relation.row_mut(a).iter_mut().zip(&set.words) {
                *word &= kept;
            }
        }
        relation
    }

    /// `[set] ; self ; [set]`.
    pub(crate) fn within(&self, set: &Set) -> Self {
        self.from(set).to(set)
    }

    /// `self ; other`.
    pub(crate) fn then(&self, other: &Self) -> Self {
        let mut relation = Self::empty(self.events);
        for a in 0..self.events {
            for b in ones(self.row(a)) {
                let row = relation.row_mut(a);
                for (word, more) in row.iter_mut().zip(other.row(b)) {
                    *word |= more;
                }
            }
        }
        relation
    }

    /// The pairs the other way round.
    pub(crate) fn inverse(&self) -> Self {
        let mut relation = Self::empty(self.events);
        for (a, b) in self.pairs() {
            relation.insert(b, a);
        }
        relation
    }

    /// With every event related to itself.
    pub(crate) fn optional(&self) -> Self {
        let mut relation = self.clone();
        for a in 0..self.events {
            relation.insert(a, a);
        }
        relation
    }

    /// The transitive closure.
    pub(crate) fn plus(&self) -> Self {
        let mut relation = self.clone();
        let mut through = vec![0; self.width];
        for b in 0..self.events {
            through.copy_from_slice(relation.row(b));
            for a in 0..self.events {
                if relation.contains(a, b) {
                    for (word, more) in relation.row_mut(a).iter_mut().zip(&through) {
                        *word |= more;
                    }
                }
            }
        }
        relation
    }

    /// The reflexive and transitive closure.
    pub(crate) fn star(&self) -> Self {
        self.plus().optional()
    }

    /// Without the pairs of an event and itself.
    pub(crate) fn irreflexive(&self) -> Self {
        let mut relation = self.clone();
        for a in 0..self.events {
            relation.remove(a, a);
        }
        relation
    }

    /// A cycle with as few events as possible, if there is any.
    pub(crate) fn cycle(&self) -> Option<Vec<usize>> {
        let closed = self.plus();
        let on_cycle = (0..self.events).filter(|a| closed.contains(*a, *a));
        on_cycle
            .filter_map(|a| self.path(a, a))
            .min_by_key(Vec::len)
    }

    /// The events of a shortest path of at least one step, without its end.
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut before: Vec<Option<usize>> = vec![None; self.events];
        let mut found = vec![from];
        let mut next = 0;
        while next < found.len() {
            let a = found[next];
            next += 1;
            for b in ones(self.row(a)) {
                if b == to {
                    let mut path = vec![a];
                    while *path.last()? != from {
                        path.push(before[*path.last()?]?);
                    }
                    path.reverse();
                    return Some(path);
                }
                if b != from && before[b].is_none() {
                    before[b] = Some(a);
                    found.push(b);
                }
            }
        }
        None
    }
}

impl BitOr for &Relation {
    type Output = Relation;

    fn bitor(self, other: &Relation) -> Relation {
        self.clone() | other
    }
}

impl BitOr<&Relation> for Relation {
    type Output = Relation;

    fn bitor(mut self, other: &Relation) -> Relation {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
        self
    }
}

impl BitOr for Relation {
    type Output = Relation;

    fn bitor(self, other: Relation) -> Relation {
        self | &other
    }
}

impl BitAnd for &Relation {
    type Output = Relation;

    fn bitand(self, other: &Relation) -> Relation {
        self.clone() & other
    }
}

impl BitAnd<&Relation> for Relation {
    type Output = Relation;

    fn bitand(mut self, other: &Relation) -> Relation {
        for (word, kept) in self.words.iter_mut().zip(&other.words) {
            *word &= kept;
        }
        self
    }
}

impl Sub for &Relation {
    type Output = Relation;

    fn sub(self, other: &Relation) -> Relation {
        self.clone() - other
    }
}

impl Sub<&Relation> for Relation {
    type Output = Relation;

    fn sub(mut self, other: &Relation) -> Relation {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More events than a word has bits.
    const EVENTS: usize = 70;

    fn chain() -> Relation {
        Relation::of(EVENTS, |a, b| b == a + 1)
    }

    #[test]
    fn closures_reach_all_that_follows() {
        let before = Relation::of(EVENTS, |a, b| a < b);
        assert_eq!(chain().plus(), before);
        assert_eq!(chain().star(), Relation::of(EVENTS, |a, b| a <= b));
        assert_eq!(before.inverse(), Relation::of(EVENTS, |a, b| a > b));
        assert_eq!(
            chain().then(&chain()),
            Relation::of(EVENTS, |a, b| b == a + 2)
        );
    }

    #[test]
    fn sets_restrict_both_ends() {
        let even = Set::of(EVENTS, |event| event % 2 == 0);
        let all = Relation::of(EVENTS, |_, _| true);
        assert_eq!(all.from(&even), Relation::of(EVENTS, |a, _| a % 2 == 0));
        assert_eq!(all.to(&even), Relation::of(EVENTS, |_, b| b % 2 == 0));
        assert!(chain().within(&even).is_empty());
        assert_eq!(Relation::product(EVENTS, &even, &even), all.within(&even));
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        assert_eq!(chain().cycle(), None);
        let mut relation = chain();
        relation.insert(EVENTS - 1, 0);
        relation.insert(68, 66);
        assert_eq!(relation.cycle(), Some(vec![66, 67, 68]));
        relation.insert(5, 5);
        assert_eq!(relation.cycle(), Some(vec![5]));
    }
}
