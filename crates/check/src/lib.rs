//! A model checker that runs the real lock code.
//!
//! The locks' C files, compiled against `worlds/check`, run as coroutines; every operation on
//! shared memory asks the engine, which explores all answers that C11's memory model, without
//! load buffering, allows. See docs/reference/checker.md for what that proves and what it does not.

mod automaton;
mod cells;
mod check;
pub mod command_line;
mod config;
mod headers;
mod hooks;
mod image;
mod layout;
mod litmus;
mod litmus_files;
mod liveness;
mod locks;
mod lost;
mod machine;
mod model;
pub mod mutants;
mod mutation;
mod names;
mod optimize;
mod random;
#[cfg(test)]
mod recorded;
mod results;
mod site;
mod source;
mod token;
mod trace;
mod variants;
mod violation;

pub use lockworks_explore::{Coverage, KeptError, LIMIT_OF_STATES, Limits, WINDOW};
pub use lockworks_litmus::{Allowed, LitmusError, LitmusFile, Memory, Verdict, WitnessRow};

pub use check::Check;
pub use config::{COND, Config, ConfigError, Mode, Time, small_settings};
pub use litmus::{Litmus, LitmusResult, litmus_tests};
pub use litmus_files::{CompiledFiles, Searched};
pub use locks::{lock_in_cond, lock_types, lockref_types};
pub use mutation::{Change, Mutation, Target, UnknownChange};
pub use optimize::{OptimizeError, Optimized, Weaker, optimize, remedies};
pub use random::{RandomOutcome, RandomRuns};
pub use results::{Broken, CheckOutcome, End, Event};
pub use site::{OperationKind, Order, Site};
pub use source::{
    Kind, Named, Role, SourceError, load_source, loaded_has_one_writer, loaded_has_tokens,
    loaded_has_trylock, loaded_hint, loaded_kind, loaded_makes, loaded_options, loaded_source,
    loaded_summary,
};
pub use token::{Token, TokenError};
pub use trace::TraceStep;
pub use variants::{UnknownVariant, Variant};
pub use violation::Violation;
