//! Reports of trouble in a guest.

use std::fmt;

use serde::Serialize;

/// A kind of trouble.
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
    /// The kernel dropped lines of its log.
    Lost,
    Bug,
    Warning,
    /// The guest was silent for too long.
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
            Self::DataRace => "KCSAN found a data race",
            Self::Lockdep => "lockdep reports a problem",
            Self::SelfTest => "a self-test failed",
            Self::Violation => "mutual exclusion is broken, or the test did not end successfully",
            Self::Lost => "the kernel dropped lines of its log",
            Self::Bug => "the kernel found a bug",
            Self::Warning => "the kernel printed a warning",
            Self::Hang => "the guest hangs",
            Self::Ended => "the guest ended early",
            Self::Task => "the task failed",
        })
    }
}

/// A report of trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// The kind of trouble.
    pub kind: ComplaintKind,
    /// The lines that report it.
    pub lines: Vec<String>,
}
