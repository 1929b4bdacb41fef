//! Random choices of a thread: times, and choices by weight.

use crate::thread::random;

/// The distribution of a time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Draw {
    Constant(f64),
    /// `low`, and from 0 to `span` - 1 whole nanoseconds more.
    Uniform {
        low: f64,
        span: u32,
    },
    /// One of 1,024 equally likely times between 0 and twice the mean.
    Around {
        mean: f64,
    },
    Exponential {
        mean: f64,
    },
}

/// The shortest time that the simulator counts, in nanoseconds.
const LEAST_NS: f64 = 1e-3;

impl Draw {
    /// Whether the time can be above 0.
    pub(super) fn takes_time(self) -> bool {
        match self {
            Self::Constant(time)
            | Self::Around { mean: time }
            | Self::Exponential { mean: time } => time >= LEAST_NS,
            Self::Uniform { low, span } => low >= LEAST_NS || span > 1,
        }
    }

    pub(super) fn nanoseconds(self, thread: usize) -> f64 {
        match self {
            Self::Constant(nanoseconds) => nanoseconds,
            Self::Uniform { low, span } => low + f64::from(random(thread, span)),
            Self::Around { mean } => 2.0 * mean * f64::from(random(thread, 1024)) / 1023.0,
            Self::Exponential { mean } => -mean * (1.0 - fraction(thread)).ln(),
        }
    }
}

/// Returns a random number that is at least 0 and below 1.
fn fraction(thread: usize) -> f64 {
    f64::from(random(thread, u32::MAX)) / f64::from(u32::MAX)
}

/// A random choice. The probability of each possibility is in proportion to its weight.
#[derive(Clone, Debug)]
pub(super) struct Weighted {
    /// For each possibility, the sum of its weight and of those before it.
    sums: Vec<f64>,
}

impl Weighted {
    /// Makes a choice from the weights. `None` if all weights are 0, or their sum is not finite.
    pub(super) fn new(weights: impl IntoIterator<Item = f64>) -> Option<Self> {
        let sums: Vec<f64> = weights
            .into_iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let total = sums.last().copied().unwrap_or(0.0);
        (total > 0.0 && total.is_finite()).then_some(Self { sums })
    }

    /// Whether the possibility at this place is ever chosen.
    pub(super) fn can_choose(&self, at: usize) -> bool {
        self.sums[at] > if at == 0 { 0.0 } else { self.sums[at - 1] }
    }

    pub(super) fn choose(&self, thread: usize) -> usize {
        let total = self.sums[self.sums.len() - 1];
        let at = fraction(thread) * total;
        self.sums.partition_point(|sum| *sum <= at)
    }
}
