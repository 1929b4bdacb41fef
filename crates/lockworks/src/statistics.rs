use std::ffi::{c_char, c_uint};
use std::sync::LazyLock;

use crate::constants::LW_EVENT_COUNT;
use crate::lock_type::text;

unsafe extern "C" {
    fn lw_statistics(counts: *mut u64);
    safe fn lw_event_name(event: c_uint) -> *const c_char;
    safe fn lw_event_meaning(event: c_uint) -> *const c_char;
    safe fn lw_event_is_maximum(event: c_uint) -> bool;
    safe fn lw_statistics_restart_maxima();
}

/// The name and meaning of every event, in the order of the counts.
fn events() -> &'static [(&'static str, &'static str)] {
    static EVENTS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        (0..LW_EVENT_COUNT as c_uint)
            // SAFETY: every event below the count has a name and a meaning, which are constants.
            .map(|event| unsafe { (text(lw_event_name(event)), text(lw_event_meaning(event))) })
            .collect()
    });
    &EVENTS
}

/// How often each event has happened in the slow paths of the locks. Fast paths count nothing.
///
/// ```
/// let before = lockworks::statistics();
/// // ... run the code to examine ...
/// for (name, meaning, count) in lockworks::statistics().since(&before).iter() {
///     println!("{count} {name}: {meaning}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    counts: Vec<u64>,
}

/// Reads the counts of all threads since the program started. They are exact while no lock is in use.
///
/// ```
/// assert_eq!(lockworks::statistics().get("queued_acquisitions"), Some(0));
/// ```
pub fn statistics() -> Statistics {
    let mut counts = vec![0; events().len()];
    // SAFETY: there is room for one count of each event.
    unsafe { lw_statistics(counts.as_mut_ptr()) };
    Statistics { counts }
}

/// Sets the highest values, such as that of `longest_local_run`, back to 0. Call it while no lock is in
/// use.
///
/// ```
/// lockworks::restart_maxima();
/// assert_eq!(lockworks::statistics().get("longest_local_run"), Some(0));
/// ```
pub fn restart_maxima() {
    lw_statistics_restart_maxima();
}

impl Statistics {
    /// The count of the event with this name, or `None` if there is no such event.
    ///
    /// ```
    /// let statistics = lockworks::statistics();
    /// assert!(statistics.get("local_handoffs").is_some());
    /// assert!(statistics.get("no such event").is_none());
    /// ```
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter()
            .find(|event| event.0 == name)
            .map(|event| event.2)
    }

    /// The name, meaning and count of every event.
    ///
    /// ```
    /// let statistics = lockworks::statistics();
    /// let contended: u64 = statistics.iter().map(|(_, _, count)| count).sum();
    /// assert_eq!(contended, 0); // nothing has been locked
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        events()
            .iter()
            .zip(&self.counts)
            .map(|(&(name, meaning), &count)| (name, meaning, count))
    }

    /// The events counted since `earlier`. Highest values are not subtracted: they are those since the
    /// start of the program or since [`restart_maxima`].
    ///
    /// ```
    /// let before = lockworks::statistics();
    /// assert_eq!(before.since(&before).get("queued_acquisitions"), Some(0));
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, u64::wrapping_sub, |now, _| now)
    }

    /// The events of two periods together: sums of counts, and the higher one of two highest values.
    ///
    /// ```
    /// let (one, other) = (lockworks::statistics(), lockworks::statistics());
    /// assert_eq!(one.with(&other), other.with(&one));
    /// ```
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        self.combined(other, u64::wrapping_add, u64::max)
    }

    fn combined(
        &self,
        other: &Self,
        of_counts: impl Fn(u64, u64) -> u64,
        of_maxima: impl Fn(u64, u64) -> u64,
    ) -> Self {
        let pairs = (0..).zip(self.counts.iter().zip(&other.counts));
        let counts = pairs.map(|(event, (&ours, &others))| {
            if lw_event_is_maximum(event) {
                of_maxima(ours, others)
            } else {
                of_counts(ours, others)
            }
        });
        Self {
            counts: counts.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Statistics, events};

    /// Statistics with `count` of each event.
    fn made_up(count: u64) -> Statistics {
        Statistics {
            counts: vec![count; events().len()],
        }
    }

    #[test]
    fn counts_add_up_except_maxima() {
        let (less, more) = (made_up(3), made_up(5));
        let mut maxima = Vec::new();
        for ((name, _, sum), (.., difference)) in
            less.with(&more).iter().zip(more.since(&less).iter())
        {
            match (sum, difference) {
                (8, 2) => {}
                (5, 5) => maxima.push(name),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(maxima, ["longest_local_run"]);
        assert_eq!(less.with(&more), more.with(&less));
    }
}
