//! A NUMA machine simulator that runs the real lock code in virtual time.
//!
//! The locks of `locks/` are compiled against the operation set of `worlds/sim/`, which calls into
//! the engine of this crate. The engine has a coroutine for each simulated CPU, a directory of
//! cache lines, and one event queue. The same description of a run gives the same outcome, to the
//! bit.

pub mod command_line;
pub mod comparison;
pub mod doubt;
mod engine;
mod event_queue;
mod hooks;
mod lock;
mod model;
mod parameters;
mod placement;
mod program;
mod run;
mod scenario;
pub mod sequences;
#[cfg(test)]
mod tests;
mod thread;
mod workload;

pub use engine::{EngineCounts, SharingCounts};
pub use hooks::lock_types;
pub use lock::Handoffs;
pub use lockworks::Settings;
pub use parameters::{Parameter, Parameters};
pub use placement::Placement;
pub use run::{Run, RunError, Sharing, SimulationOutcome};
pub use scenario::{Scenario, ScenarioValue, SetError};
pub use workload::{WORKLOADS, Workload};
