//! The subject of a search: a model of threads that share memory.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::results::Step;
use crate::symmetry::Renaming;

/// The reason why a step was not completed.
#[derive(Debug)]
pub enum Stop<V> {
    /// A promise was broken.
    Violation(V),
    /// An assumption of the model failed: the search must start again with what it has found.
    Restart,
    /// The state encoding has no room for the step's result.
    TooLarge(&'static str),
}

impl<V> From<V> for Stop<V> {
    fn from(violation: V) -> Self {
        Self::Violation(violation)
    }
}

/// The result of something that may end a run.
pub type Stops<T, M> = Result<T, Stop<<M as Model>::Violation>>;

/// Threads and their memory: what each thread may do next in each state, and what is promised.
///
/// A model may learn while it is explored, and may rely on assumptions until they fail.
pub trait Model {
    /// The state of all threads and of the memory.
    type State: Clone;
    /// One of the things that a thread may do next.
    type Choice: Copy + PartialEq + Send;
    /// A promise that was broken.
    type Violation: Send;
    /// The findings of a model, for another model of the same check.
    type Seen: Send + Serialize + DeserializeOwned;
    /// The parts from which another OS thread makes a model of the same check.
    type Seed: Send;

    /// The number of threads.
    fn threads(&self) -> usize;

    /// The state in which all threads are about to begin.
    fn start(&mut self) -> Stops<Self::State, Self>;

    /// A state of no threads and no memory.
    fn empty() -> Self::State;

    /// The choices of `thread`, the newest values first; none if the thread waits or has ended.
    fn choices(
        &mut self,
        state: &Self::State,
        thread: usize,
        choices: &mut Vec<Self::Choice>,
    ) -> Stops<(), Self>;

    /// Whether a choice needs neither old values nor interruptions nor spurious wake-ups. A thread that
    /// waits for anything else may wait for ever.
    fn is_progress(choice: Self::Choice) -> bool;

    /// Whether `thread` may take its step before all others without a difference to them or to anything
    /// that is checked.
    fn is_local(&self, state: &Self::State, thread: usize) -> bool;

    /// Takes a step: `thread` makes `choice`.
    fn apply(
        &mut self,
        state: &mut Self::State,
        thread: usize,
        choice: Self::Choice,
    ) -> Stops<(), Self>;

    /// Takes a step of a run. The state stays small, however long the run is.
    fn step(
        &mut self,
        state: &mut Self::State,
        thread: usize,
        choice: Self::Choice,
    ) -> Stops<(), Self>;

    /// The choice that a step of a run makes, one of `choices`. None: there is no such choice.
    fn choice(
        &mut self,
        state: &Self::State,
        (thread, number): Step,
        choices: &mut Vec<Self::Choice>,
    ) -> Stops<Option<Self::Choice>, Self> {
        let thread = usize::from(thread);
        if thread >= self.threads() {
            return Ok(None);
        }
        self.choices(state, thread, choices)?;
        Ok(choices.get(usize::from(number)).copied())
    }

    /// Whether all threads have ended.
    fn is_over(&self, state: &Self::State) -> bool;

    /// Checks, when all threads have ended, that everything is as it was at the start.
    fn check_end(&self, state: &Self::State) -> Result<(), Self::Violation>;

    /// The results of threads that have ended.
    fn results(&self, state: &Self::State) -> Vec<u64>;

    /// The violation when no thread can go on.
    fn deadlock(&self, state: &Self::State) -> Self::Violation;

    /// The violation when threads can go on, but never to the end.
    fn livelock() -> Self::Violation;

    /// A violation that was found in the last state of a run, in which threads may have other names.
    fn in_run(&self, found: Self::Violation, last: &Self::State) -> Self::Violation;

    /// Whether a thread can reach a local state twice. If not, every run ends.
    fn has_cycle(&self) -> bool;

    /// Encodes a state, normalised, under the renaming of threads that gives the least bytes, and returns
    /// that renaming's number. States that differ by a renaming only get the same bytes.
    fn encode(&mut self, state: &mut Self::State, bytes: &mut Vec<u8>) -> usize;

    /// Decodes `bytes` into `state`.
    fn decode(&self, bytes: &[u8], state: &mut Self::State);

    /// Forgets everything that no longer affects a later step.
    fn normalise(&self, state: &mut Self::State);

    /// The renaming of this number.
    fn renaming(&self, number: usize) -> &Renaming;

    /// The choice that a thread's choice becomes when threads are renamed.
    fn renamed_choice(
        &self,
        state: &Self::State,
        thread: usize,
        choice: Self::Choice,
        renaming: &Renaming,
    ) -> Self::Choice;

    /// Learns what other models of the same check have learned.
    fn catch_up(&mut self) -> Stops<(), Self>;

    /// The parts from which another OS thread makes a model of the same check.
    fn seed(&self) -> Self::Seed;

    /// The findings of the model.
    fn seen(&self) -> Self::Seen;

    /// Adds what another model of the check has seen.
    fn add_seen(&mut self, seen: Self::Seen);

    /// The number of local states of threads.
    fn local_states(&self) -> usize;

    /// Whether a bound may have left out reads.
    fn is_cut(&self) -> bool;

    /// Whether the length of windows may have left out runs.
    fn is_cut_by_window(&self) -> bool;

    /// Whether a proof by states with merged histories can be tried.
    fn can_merge(&self) -> bool;

    /// Gives states merged histories from now on.
    fn merge_histories(&mut self);

    /// Gives states ordered histories again after a proof. `before`: what had been seen before it. States
    /// of a proof stand for more than runs reach: of what they do, only what none does is sure.
    fn end_proof(&mut self, before: Self::Seen, is_proven: bool);

    /// The part of a state with merged histories that is the same in all states that it is united with.
    fn key(bytes: &[u8]) -> &[u8];

    /// Unites two states of one key, and encodes the result. Returns false if there are too many older
    /// writes.
    fn unite(&self, one: &mut Self::State, other: &mut Self::State, united: &mut Vec<u8>) -> bool;
}
