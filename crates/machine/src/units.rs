//! The nested units of a machine, and which CPUs are in each.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};

/// The most CPUs of a machine, which bounds the table of CPU pairs.
const MAX_CPUS: usize = 8192;

/// One level of the nested topology.
#[derive(Debug, Clone, PartialEq, Eq, DeriveDeserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The name of a unit of this level.
    pub name: String,
    /// How many there are in each enclosing unit.
    pub count: Count,
}

/// The number of units of a level in each unit around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Count {
    /// The same number in each.
    Same(NonZeroUsize),
    /// A number for each unit around them, in order. A list that is shorter repeats.
    Each(Vec<NonZeroUsize>),
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
        struct CountVisitor;

        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a whole number above 0, or a list of such numbers")
            }

            fn visit_i64<E: Error>(self, given: i64) -> Result<Count, E> {
                usize::try_from(given)
                    .ok()
                    .and_then(NonZeroUsize::new)
                    .map(Count::Same)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(given), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = list.next_element()? {
                    counts.push(count);
                }
                if counts.is_empty() {
                    return Err(A::Error::invalid_value(
                        Unexpected::Other("an empty list"),
                        &self,
                    ));
                }
                Ok(Count::Each(counts))
            }
        }

        deserializer.deserialize_any(CountVisitor)
    }
}

/// Equal counts in a row are written once: `(8 x 1, 4 x 4)`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Same(count) => count.fmt(f),
            Count::Each(counts) => {
                let runs = counts.chunk_by(|a, b| a == b);
                let runs: Vec<_> = runs.map(|r| format!("{} x {}", r.len(), r[0])).collect();
                write!(f, "({})", runs.join(", "))
            }
        }
    }
}

/// The units of each level, and which one each CPU is in. CPUs are numbered in nested order, so that
/// those of a unit follow each other. A level is an index, or `None` for the machine, which is one
/// unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Units {
    cpus: usize,
    /// For each level the first CPU of each of its units.
    first: Vec<Vec<usize>>,
    /// For each level the unit of each CPU.
    of: Vec<Vec<u16>>,
}

impl Units {
    /// Counts the units of all levels. An error is a message about the levels.
    pub(crate) fn new(levels: &[Level]) -> Result<Units, String> {
        let too_many = || format!("more than {MAX_CPUS} CPUs; lower a count");
        // The number of units inside each unit of a level, from the outermost level on.
        let mut inside: Vec<Vec<usize>> = Vec::new();
        let mut around = 1;
        for level in levels {
            let counts: Vec<usize> = match &level.count {
                Count::Same(count) => vec![count.get(); around],
                Count::Each(counts) if around.is_multiple_of(counts.len()) => {
                    let counts = counts.iter().map(|count| count.get());
                    counts.cycle().take(around).collect()
                }
                Count::Each(counts) => {
                    return Err(format!(
                        "`count` of `{}` has {} numbers for {around} units around it; give one \
                         for each, or fewer that repeat",
                        level.name,
                        counts.len()
                    ));
                }
            };
            around = counts
                .iter()
                .try_fold(0usize, |sum, count| sum.checked_add(*count))
                .filter(|sum| *sum <= MAX_CPUS)
                .ok_or_else(too_many)?;
            inside.push(counts);
        }
        // The CPUs are the units of the innermost level.
        let cpus = around;
        let mut first = vec![Vec::new(); levels.len()];
        let mut firsts_inside: Vec<usize> = (0..cpus).collect();
        for (level, counts) in inside.iter().enumerate().rev() {
            let mut unit = 0;
            let outer = counts.iter().map(|count| {
                let cpu = firsts_inside[unit];
                unit += count;
                cpu
            });
            let outer = outer.collect();
            first[level] = std::mem::replace(&mut firsts_inside, outer);
        }
        let unit_of_each = |first: &Vec<usize>| {
            let unit = |cpu| first.partition_point(|first| *first <= cpu) - 1;
            (0..cpus).map(|cpu| unit(cpu) as u16).collect()
        };
        let of = first.iter().map(unit_of_each).collect();
        Ok(Units { cpus, first, of })
    }

    /// The number of CPUs.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus
    }

    /// The number of units of a level in the machine.
    pub(crate) fn count(&self, level: Option<usize>) -> usize {
        level.map_or(1, |level| self.first[level].len())
    }

    /// The unit of a level that `cpu` is in, counted through the machine.
    pub(crate) fn of(&self, level: Option<usize>, cpu: usize) -> usize {
        level.map_or(0, |level| self.of[level][cpu].into())
    }

    /// The CPUs of a unit.
    pub(crate) fn cpus_of(&self, level: Option<usize>, unit: usize) -> Range<usize> {
        let Some(level) = level else {
            return 0..self.cpus;
        };
        let first = &self.first[level];
        first[unit]..first.get(unit + 1).copied().unwrap_or(self.cpus)
    }

    /// The units of `inner` that are in a unit of `outer`.
    pub(crate) fn inside(&self, outer: Option<usize>, unit: usize, inner: usize) -> Range<usize> {
        let cpus = self.cpus_of(outer, unit);
        self.of(Some(inner), cpus.start)..self.of(Some(inner), cpus.end - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, counts: &[usize]) -> Level {
        let counts: Vec<_> = counts
            .iter()
            .map(|n| NonZeroUsize::new(*n).unwrap())
            .collect();
        let count = match counts.as_slice() {
            [count] => Count::Same(*count),
            _ => Count::Each(counts),
        };
        let name = name.to_owned();
        Level { name, count }
    }

    #[test]
    fn counts_may_differ_from_unit_to_unit() {
        // Two cores of two threads, and a cluster of three cores of one thread, twice.
        let levels = [
            level("socket", &[2]),
            level("cluster", &[3]),
            level("core", &[1, 1, 3]),
            level("thread", &[2, 2, 1, 1, 1]),
        ];
        let units = Units::new(&levels).unwrap();
        assert_eq!(units.cpus(), 14);
        let counts: Vec<_> = (0..4).map(|level| units.count(Some(level))).collect();
        assert_eq!(counts, [2, 6, 10, 14]);
        let clusters: Vec<_> = (0..14).map(|cpu| units.of(Some(1), cpu)).collect();
        assert_eq!(clusters, [0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 5]);
        assert_eq!(units.cpus_of(Some(1), 5), 11..14);
        assert_eq!(units.cpus_of(None, 0), 0..14);
        assert_eq!(units.inside(Some(0), 1, 2), 5..10);
        assert_eq!(levels[3].count.to_string(), "(2 x 2, 3 x 1)");
    }

    #[test]
    fn a_list_of_counts_that_does_not_fit_is_refused() {
        let levels = [level("socket", &[3]), level("core", &[4, 2])];
        assert_eq!(
            Units::new(&levels).unwrap_err(),
            "`count` of `core` has 2 numbers for 3 units around it; give one for each, or fewer \
             that repeat"
        );
        let levels = [level("socket", &[2]), level("core", &[8192, usize::MAX])];
        let error = Units::new(&levels).unwrap_err();
        assert_eq!(error, "more than 8192 CPUs; lower a count");
        let levels = [level("socket", &[usize::MAX]), level("core", &[2])];
        assert!(Units::new(&levels).is_err());
    }
}
