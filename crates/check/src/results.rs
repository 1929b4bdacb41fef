//! The results of a search.

use std::time::Duration;

use serde::Serialize;

use crate::locks;
use crate::violation::Violation;

/// A step: which thread, and which of its choices.
pub(crate) type Step = (u8, u16);

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// All states were explored, and no promise is broken in any.
    Kept,
    /// A promise was broken.
    Broken(Broken),
    /// Not all states were explored, for this reason: a limit, or a state that cannot be encoded.
    Unfinished(&'static str),
}

/// A broken promise, and the run that breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The promise.
    pub violation: Violation,
    pub(crate) steps: Vec<Step>,
    /// No shorter run breaks a promise.
    pub shortest: bool,
}

impl Broken {
    /// The number of operations and interruptions up to the violation.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// The number of different states.
    pub states: usize,
    /// The number of transitions between states.
    pub transitions: usize,
    /// The number of states found but not explored.
    pub waiting: usize,
    /// The greatest distance of a state from the start, in states.
    pub depth: usize,
    /// The most memory that the search used, in bytes, by its own count.
    #[serde(rename = "memory_bytes")]
    pub memory: usize,
    /// What the search has on disk, in bytes.
    #[serde(rename = "disk_bytes")]
    pub disk: u64,
    /// The number of local states of threads.
    pub local_states: usize,
    /// The staleness bound may have left out reads.
    pub cut: bool,
    /// The states have merged histories: each stands for many, and may stand for some that no run reaches.
    pub merged: bool,
}

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
        !matches!(self.end, End::Unfinished(_)) && !self.coverage.cut
    }
}
