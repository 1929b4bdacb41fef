//! The reasons why a random run is ended.

use std::fmt;

use crate::violation::Violation;

/// The reason why a run was ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    Violation(Violation),
    /// The conformance client has seen violations.
    Seen {
        thread: usize,
        times: u32,
    },
    /// The run did not end after this many steps.
    Endless(usize),
}

impl Fault {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Violation(violation) => violation.name(),
            Self::Seen { .. } => "conformance",
            Self::Endless(_) => Violation::Livelock.name(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => violation.fmt(f),
            Self::Seen { thread, times } => {
                let noun = if *times == 1 { "time" } else { "times" };
                write!(
                    f,
                    "conformance: thread {thread} found protected data wrong, or a held lock free, {times} {noun}"
                )
            }
            Self::Endless(steps) => write!(f, "livelock: no end after {steps} steps"),
        }
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}
