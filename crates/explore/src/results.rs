//! The results of a search.

use serde::Serialize;

/// A step: which thread, and which of its choices.
pub type Step = (u8, u16);

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End<V> {
    /// All states were explored, and no promise is broken in any.
    Kept,
    /// A promise was broken.
    Broken(Broken<V>),
    /// Not all states were explored, for this reason: a limit, or a state that cannot be encoded.
    Unfinished(&'static str),
}

/// A broken promise, and the run that breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken<V> {
    /// The promise.
    pub violation: V,
    /// The run.
    pub run: Vec<Step>,
    /// No shorter run breaks a promise.
    pub shortest: bool,
}

impl<V> Broken<V> {
    /// The number of operations and interruptions up to the violation.
    pub fn steps(&self) -> usize {
        self.run.len()
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
    /// The size of the search's data on disk, in bytes.
    #[serde(rename = "disk_bytes")]
    pub disk: u64,
    /// The number of local states of threads.
    pub local_states: usize,
    /// The staleness bound may have left out reads.
    pub cut: bool,
    /// The bound on operations that a thread delays may have left out runs.
    pub delays_cut: bool,
    /// The states have merged histories: each stands for many, and may stand for some that no run reaches.
    pub merged: bool,
}
