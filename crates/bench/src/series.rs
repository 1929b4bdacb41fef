//! Series of figures: their medians and ratios, and the order in which locks are measured.

use serde::Serialize;

/// The figures of one lock: one for each round.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<f64>);

/// Median, least and greatest of a series.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Range {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

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
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        Range {
            median: if sorted.len() % 2 == 1 {
                sorted[middle]
            } else {
                (sorted[middle - 1] + sorted[middle]) / 2.0
            },
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        }
    }
}

impl FromIterator<f64> for Series {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// The order in which a round measures `count` locks. Each round begins with a different lock, and
/// every second round goes backwards.
pub fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.rotate_left(round * 5 % count);
    if round % 2 == 1 {
        order.reverse();
    }
    order
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
