//! Reports of trouble in a guest.

use std::fmt;

use serde::Serialize;

/// What kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ComplaintKind {
    Panic,
    Oops,
    Lockup,
    RcuStall,
    HungTask,
    DataRace,
    Lockdep,
    SelfTest,
    Violation,
    /// Lines of the console are lost.
    Lost,
    Bug,
    Warning,
    /// Nothing was heard of the guest for too long.
    Hang,
    /// The guest ended before its task did.
    Ended,
    /// The task itself failed.
    Task,
}

impl fmt::Display for ComplaintKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "the kernel panicked",
            Self::Oops => "the kernel hit a fault",
            Self::Lockup => "a CPU is locked up",
            Self::RcuStall => "RCU is stalled",
            Self::HungTask => "a task is blocked",
            Self::DataRace => "a data race",
            Self::Lockdep => "lockdep objects",
            Self::SelfTest => "a self-test failed",
            Self::Violation => "mutual exclusion is broken, or the test did not end well",
            Self::Lost => "the console lost some of what the kernel said",
            Self::Bug => "the kernel found a bug",
            Self::Warning => "the kernel warns",
            Self::Hang => "the guest hangs",
            Self::Ended => "the guest ended early",
            Self::Task => "the task failed",
        })
    }
}

/// A report of trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// What kind of trouble.
    pub kind: ComplaintKind,
    /// The lines that say so.
    pub lines: Vec<String>,
}
