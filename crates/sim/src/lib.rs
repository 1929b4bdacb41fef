//! A NUMA machine simulator that runs the real lock code in virtual time.
//!
//! The locks of `locks/` are compiled against the operation set of `worlds/sim/`, which calls into
//! the engine here: one coroutine for each simulated CPU, a directory of cache lines, one event
//! queue. A run is determined by its description and repeats to the bit.

mod engine;
mod event_queue;
mod hooks;
mod model;
mod placement;
mod run;
mod scenario;
#[cfg(test)]
mod tests;
pub mod workload;

pub use engine::{EngineCounts, SharingCounts};
pub use hooks::lock_types;
pub use lockworks::Settings;
pub use model::{Parameter, Parameters};
pub use placement::Placement;
pub use run::{Handoffs, Outcome, Run, RunError, Sharing};
pub use scenario::{Scenario, ScenarioValue, SetError};
pub use workload::Workload;
