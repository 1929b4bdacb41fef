//! Series of figures: their medians and ratios, and the order in which locks are measured.

use lockworks_measurements::{Range, turns};

/// The figures of one lock: one for each round.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<f64>);

impl Series {
    /// Appends the figure of the next round.
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The number of rounds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The ratio to another series within each round, so that changes between rounds cancel out.
    pub fn ratio(&self, to: &Self) -> Self {
        Self(self.0.iter().zip(&to.0).map(|(a, b)| a / b).collect())
    }

    /// The median, least and greatest figure.
    ///
    /// # Panics
    /// If the series is empty.
    pub fn range(&self) -> Range {
        Range::of(self.0.iter().copied()).expect("a figure for each round")
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// The places by which the order is rotated in each round. Odd, so that every second round goes
/// backwards; more than one, so that few rounds begin in different parts of a long list.
const STRIDE: usize = 5;

/// The order in which a round measures `count` locks.
pub fn order(count: usize, round: usize) -> Vec<usize> {
    turns(count, STRIDE * round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let a = Series::from_iter([1.0, 20.0, 300.0]);
        let b = Series::from_iter([2.0, 20.0, 100.0]);
        let range = a.ratio(&b).range();
        assert_eq!((range.min, range.median, range.max), (0.5, 1.0, 3.0));
        assert_eq!(Series::from_iter([1.0, 2.0]).range().median, 1.5);
    }

    #[test]
    fn every_round_measures_every_lock() {
        for round in 0..9 {
            let mut order = order(7, round);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
        }
        assert_ne!(order(7, 0)[0], order(7, 2)[0]);
    }
}
