//! Why a litmus test cannot be judged.

/// The text that was not understood, and its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) line: usize,
    pub(super) what: String,
}

impl Refusal {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }
}

/// A litmus test that is refused: `FILE:LINE: what`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct LitmusError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The text that was not understood, or cannot be judged.
    pub what: String,
}
