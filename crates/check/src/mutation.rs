//! Changes that make a lock another one, while it runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::site::Order;

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It has another memory order.
    Order(Order),
    /// It is not done; one that waits or reads looks once instead.
    Drop,
    /// A store is done after the thread's next operation.
    Defer,
    /// Of all threads: those without priority have it, and the other way round.
    InvertPriority,
    /// No clock ever says that a threshold is reached.
    NeverLate,
}

/// There is no such change.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no change; give an order, drop, defer, invert_priority or never_late")]
pub struct UnknownChange(String);

impl FromStr for Change {
    type Err = UnknownChange;

    fn from_str(text: &str) -> Result<Self, UnknownChange> {
        let order = [
            Order::Relaxed,
            Order::Dependency,
            Order::Acquire,
            Order::Release,
            Order::AcqRel,
            Order::SeqCst,
        ]
        .into_iter()
        .find(|order| order.name() == text);
        match (order, text) {
            (Some(order), _) => Ok(Self::Order(order)),
            (None, "drop") => Ok(Self::Drop),
            (None, "defer") => Ok(Self::Defer),
            (None, "invert_priority") => Ok(Self::InvertPriority),
            (None, "never_late") => Ok(Self::NeverLate),
            _ => Err(UnknownChange(text.to_owned())),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order(order) => order.name(),
            Self::Drop => "drop",
            Self::Defer => "defer",
            Self::InvertPriority => "invert_priority",
            Self::NeverLate => "never_late",
        })
    }
}

/// A change and the number of the site where it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutation {
    /// Number of the site in [`crate::Site::all`]; None if it is no operation.
    pub site: Option<usize>,
    /// What becomes of it.
    pub change: Change,
}
