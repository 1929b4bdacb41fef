//! The results of a check.

use std::time::Duration;

use lockworks_explore::Coverage;
use serde::Serialize;

use crate::locks;
use crate::violation::Violation;

/// How a search ended.
pub type End = lockworks_explore::End<Violation>;

/// A broken promise, and the run that breaks it.
pub type Broken = lockworks_explore::Broken<Violation>;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    /// How the search ended.
    pub end: End,
    /// The extent of the search.
    pub coverage: Coverage,
    /// The duration of the search.
    pub time: Duration,
    /// For each operation, by the number of its site: whether any run performed it.
    pub covered: Vec<bool>,
    /// The events that the lock counted.
    pub events: Vec<Event>,
}

/// An event that a lock counted; `locks/registry/events_list.h` lists all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Event {
    /// The event's name.
    pub name: &'static str,
    /// The event was counted while the lock word had a tail.
    pub queued: bool,
    /// The event was counted while the lock word had no tail.
    pub empty: bool,
}

impl Event {
    pub(crate) fn of([empty, queued]: [u64; 2]) -> Vec<Self> {
        locks::event_names()
            .enumerate()
            .map(|(i, name)| Self {
                name,
                queued: queued & 1 << i != 0,
                empty: empty & 1 << i != 0,
            })
            .filter(|event| event.queued || event.empty)
            .collect()
    }
}

impl CheckOutcome {
    /// Whether all runs were explored, or a promise is broken.
    pub fn is_complete(&self) -> bool {
        let is_bounded = self.coverage.cut || self.coverage.delays_cut;
        !matches!(self.end, End::Unfinished(_)) && !is_bounded
    }
}
