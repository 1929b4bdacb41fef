//! The `lockworks` command from outside. One program has all of these tests, so that two of them run at
//! any time until the last.

mod attach;
mod callers;
mod checked;
mod command;
mod compare;
mod new;
mod plan;
mod profile;
mod profile_robust;
mod record;
mod registration;
mod regret;
mod replay;
mod report;
mod run;
mod simulated;
mod slow;
mod support;
mod sweep;
mod terminal;
mod validate;
mod workloads;

/// The command that these tests start.
const COMMAND: &str = env!("CARGO_BIN_EXE_lockworks");
