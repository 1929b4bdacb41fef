//! Changes that make a lock another one, while it runs.

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
}

/// A change and the number of the site where it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutation {
    /// Number of the site in [`crate::Site::all`]; None if it is no operation.
    pub site: Option<usize>,
    /// What becomes of it.
    pub change: Change,
}
