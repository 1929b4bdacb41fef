//! The times of a record, as nanoseconds.

use anyhow::Result;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// A point in time, by two clocks.
#[derive(Clone, Copy)]
pub struct Now {
    /// By `CLOCK_MONOTONIC`, in nanoseconds.
    pub ns: u64,
    /// By the time stamp counter; 0 on processors without.
    pub counter: u64,
}

impl Now {
    /// The present. Of several readings of both clocks, it is the one that took least: between the two, the thread
    /// may have been preempted.
    pub fn get() -> Result<Self> {
        let reading = || -> Result<_> {
            let counter = counter();
            let ns = clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds() as u64;
            Ok((self::counter().wrapping_sub(counter), Self { ns, counter }))
        };
        let mut best = reading()?;
        for _ in 1..READINGS {
            let other = reading()?;
            if other.0 < best.0 {
                best = other;
            }
        }
        Ok(best.1)
    }
}

/// How often the clocks are read for one point in time.
const READINGS: usize = 4;

/// The time stamp counter; 0 on processors without.
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the counter of a processor of this kind can always be read.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// The clock of a record.
#[derive(Clone, Copy, Default)]
pub struct Clock {
    /// A time of the record, and the same time in nanoseconds.
    begin: (u64, u64),
    /// The length of a unit of the record, in nanoseconds.
    unit: f64,
}

impl Clock {
    /// The clock by which a record began at this time, which was `ns`.
    pub fn new(has_tsc: bool, time: u64, ns: u64, now: Now) -> Self {
        let counted = now.counter.saturating_sub(time).max(1);
        let unit = match has_tsc {
            true => now.ns.saturating_sub(ns) as f64 / counted as f64,
            false => 1.0,
        };
        Self {
            begin: (time, ns),
            unit,
        }
    }

    /// A time span in nanoseconds.
    pub fn span(&self, span: u64) -> u64 {
        (span as f64 * self.unit) as u64
    }

    /// A time in nanoseconds. None: it is 0, which stands for none.
    pub fn at(&self, time: u64) -> Option<u64> {
        let (begin, ns) = self.begin;
        (time != 0).then(|| ns.saturating_add(self.span(time.saturating_sub(begin))))
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Now};

    #[test]
    fn times_are_those_of_the_pairs_of_times() {
        let now = Now {
            ns: 3_000,
            counter: 14_000,
        };
        let counter = Clock::new(true, 10_000, 1_000, now);
        assert_eq!(counter.span(200), 100);
        assert_eq!(counter.at(10_200), Some(1_100));
        assert_eq!(counter.at(0), None);
        let nanoseconds = Clock::new(false, 1_000, 1_001, now);
        assert_eq!(nanoseconds.span(200), 200);
        assert_eq!(nanoseconds.at(1_200), Some(1_201));
    }
}
