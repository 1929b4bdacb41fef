//! Whether two contestants that took turns differ beyond the noise.

use lockworks_measurements::{median, sorted};
use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The confidence in all statements of one table together.
const CONFIDENCE: f64 = 0.95;

/// The values of one contestant divided by those of another in the same rounds.
#[derive(Clone, Copy, Serialize)]
pub struct Ratio {
    /// The median of the rounds' ratios.
    pub median: f64,
    /// The interval that contains the true median. None: the rounds are too few.
    pub interval: Option<[f64; 2]>,
}

/// The meaning of a ratio of one contestant to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// The first contestant is better.
    Better,
    /// The first contestant is worse.
    Worse,
    /// They do not differ beyond the noise.
    Level,
    /// The rounds are too few to say.
    Unknown,
}

impl Ratio {
    /// The ratio of `values` to the values of another contestant, round by round. None: there are
    /// no rounds.
    ///
    /// `comparisons` is the number of ratios in the table: among more ratios, one is far off by chance
    /// more often, so the interval is wider.
    pub fn of(values: &[f64], to: &[f64], comparisons: usize) -> Option<Self> {
        let ratios = sorted(values.iter().zip(to).map(|(value, to)| value / to));
        let error = (1.0 - CONFIDENCE) / comparisons as f64;
        let ends = left_out(ratios.len(), error);
        Some(Self {
            median: median(&ratios)?,
            interval: ends.map(|ends| [ratios[ends], ratios[ratios.len() - 1 - ends]]),
        })
    }

    /// The meaning of the ratio.
    pub fn beside(self, lower_is_better: bool) -> Beside {
        match self.interval {
            None => Beside::Unknown,
            Some([low, high]) if low <= 1.0 && 1.0 <= high => Beside::Level,
            Some([_, high]) if (high < 1.0) == lower_is_better => Beside::Better,
            Some(_) => Beside::Worse,
        }
    }
}

/// How many of n sorted values may be left out at either end. None: even all n do not suffice.
///
/// The median of what they are drawn from is outside the others with a chance of `error` at most: each
/// value is below the median with a chance of one half, like a coin (sign test).
fn left_out(n: usize, error: f64) -> Option<usize> {
    let coins = Binomial::new(0.5, n as u64).expect("a chance is from 0 to 1");
    (0..n.div_ceil(2))
        .take_while(|&ends| 2.0 * coins.cdf(ends as u64) <= error)
        .last()
}

/// The least number of rounds that can show a difference in this number of comparisons.
pub fn rounds_needed(comparisons: usize) -> usize {
    let error = (1.0 - CONFIDENCE) / comparisons as f64;
    (1..)
        .find(|&n| left_out(n, error).is_some())
        .expect("more rounds tell more")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classic table of the sign test, two-sided at 5 %.
    #[test]
    fn ends_are_left_out_as_the_sign_test_has_it() {
        for (n, ends) in [
            (0, None),
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (12, Some(2)),
            (15, Some(3)),
            (20, Some(5)),
            (100, Some(39)),
        ] {
            assert_eq!(left_out(n, 0.05), ends, "{n}");
        }
        assert_eq!([1, 2, 3, 4].map(rounds_needed), [6, 7, 7, 8]);
    }

    #[test]
    fn only_what_is_beyond_the_noise_is_a_difference() {
        let rounds = |ratios: &[f64]| {
            let to = vec![2.0; ratios.len()];
            let values: Vec<f64> = ratios.iter().map(|ratio| 2.0 * ratio).collect();
            Ratio::of(&values, &to, 1).expect("there are rounds")
        };
        let fast = rounds(&[0.5, 0.6, 0.7, 0.8, 0.9, 0.8]);
        assert_eq!(fast.interval, Some([0.5, 0.9]));
        assert_eq!(fast.beside(true), Beside::Better);
        assert_eq!(fast.beside(false), Beside::Worse);
        let unsure = rounds(&[0.5, 0.6, 0.7, 0.8, 1.1, 0.8]);
        assert_eq!(unsure.beside(true), Beside::Level);
        let few = rounds(&[0.5, 0.5, 0.5, 0.5, 0.5]);
        assert_eq!(few.beside(true), Beside::Unknown);
        assert!(Ratio::of(&[], &[], 1).is_none());
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let ratio = Ratio::of(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0], 1);
        assert_eq!(ratio.expect("three rounds").median, 2.0);
    }
}
