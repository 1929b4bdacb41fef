//! Distributions of wait times, and their percentiles.

pub use hdrhistogram::Histogram;
use serde::Serialize;

/// An empty histogram of waits from 1 ns to 100 s, to two digits.
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 100_000_000_000, 2).expect("bounds that it takes")
}

/// Percentiles of the wait time, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half of the waits were shorter. Over several rounds, each percentile is the median of
    /// theirs.
    pub p50: u64,
    /// 1 % of the waits were longer.
    pub p99: u64,
    /// 0.1 % of the waits were longer.
    pub p999: u64,
    /// The longest wait of all rounds.
    pub max: u64,
}

impl Latency {
    /// The percentiles of a histogram. None: it is empty.
    pub fn of(waits: &Histogram<u64>) -> Option<Self> {
        (!waits.is_empty()).then(|| Self {
            p50: waits.value_at_quantile(0.5),
            p99: waits.value_at_quantile(0.99),
            p999: waits.value_at_quantile(0.999),
            max: waits.max(),
        })
    }
}
