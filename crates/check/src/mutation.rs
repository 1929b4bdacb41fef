//! Mutations: changes to the operations of a lock while it runs.

use std::fmt;
use std::str::FromStr;

use lockworks::{Setting, Settings, Tunable};
use serde::{Deserialize, Serialize};

use crate::layout::{self, Region};
use crate::site::{OperationKind, Order, Request, Site};

/// A change to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The operation has another memory order.
    Order(Order),
    /// The operation is relaxed, and comes after a barrier for stores, `smp_wmb()`.
    Wmb,
    /// The operation is not done. One that waits, or reads and writes, becomes a single load.
    Drop,
    /// A store takes effect after the thread's next operation.
    Defer,
    /// A compare-and-swap writes without comparing.
    Blind,
    /// These bits of the written value are 0.
    Clear(u64),
    /// One value is written instead of another.
    Instead {
        /// The value that should be written.
        of: u64,
        /// The value that is written.
        by: u64,
    },
    /// The threads with priority lose it, and all others get it.
    InvertPriority,
    /// All locks are taken for one where locks share the queues of NUMA nodes.
    ConflateLocks,
    /// No threshold of time or of local hand-offs in a row is ever reached.
    NeverLate,
    /// A read-modify-write leaves these bits as they are.
    Keep(u64),
}

/// The text names no change.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{0}' is no change; give an order, wmb, drop, defer, blind, clear BITS, keep BITS, \
     VALUE instead of VALUE, invert_priority, conflate_locks or never_late"
)]
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
        let unknown = || UnknownChange(text.to_owned());
        let number = |digits: &str| {
            let parsed = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            parsed.map_err(|_| unknown())
        };
        let words: Vec<&str> = text.split(' ').collect();
        match (order, words.as_slice()) {
            (Some(order), _) => Ok(Self::Order(order)),
            (None, ["wmb"]) => Ok(Self::Wmb),
            (None, ["drop"]) => Ok(Self::Drop),
            (None, ["defer"]) => Ok(Self::Defer),
            (None, ["blind"]) => Ok(Self::Blind),
            (None, ["clear", bits]) => Ok(Self::Clear(number(bits)?)),
            (None, ["keep", bits]) => Ok(Self::Keep(number(bits)?)),
            (None, [by, "instead", "of", of]) => Ok(Self::Instead {
                of: number(of)?,
                by: number(by)?,
            }),
            (None, ["invert_priority"]) => Ok(Self::InvertPriority),
            (None, ["conflate_locks"]) => Ok(Self::ConflateLocks),
            (None, ["never_late"]) => Ok(Self::NeverLate),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order(order) => order.name(),
            Self::Wmb => "wmb",
            Self::Drop => "drop",
            Self::Defer => "defer",
            Self::Blind => "blind",
            Self::Clear(bits) => return write!(f, "clear {bits:#x}"),
            Self::Keep(bits) => return write!(f, "keep {bits:#x}"),
            Self::Instead { of, by } => return write!(f, "{by} instead of {of}"),
            Self::InvertPriority => "invert_priority",
            Self::ConflateLocks => "conflate_locks",
            Self::NeverLate => "never_late",
        })
    }
}

/// The memory on which an operation is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// The queue nodes of threads.
    Node,
    /// The queues of NUMA nodes.
    Queue,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 2] = [Self::Node, Self::Queue];
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Queue => "queue",
        })
    }
}

/// A change, and the operation that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutation {
    /// The number of the operation in [`crate::Site::all`]; None if no single operation is changed.
    pub site: Option<usize>,
    /// The memory on which the operation is changed; None: any.
    pub target: Option<Target>,
    /// The change.
    pub change: Change,
}

impl Mutation {
    /// Changes the operation `site` on any memory.
    pub fn at(site: &Site, change: Change) -> Self {
        Self {
            site: Some(site.number()),
            target: None,
            change,
        }
    }

    /// The change to this operation, if it is changed.
    pub(crate) fn change_of(&self, request: &Request) -> Option<Change> {
        let hits_target = |target| {
            let place = layout::resolve(request.address, layout::THREADS);
            matches!(
                (target, place),
                (Target::Node, Some((Region::Node { .. }, _)))
                    | (Target::Queue, Some((Region::Queue { .. }, _)))
            )
        };
        (self.site == Some(request.site.number()) && self.target.is_none_or(hits_target))
            .then_some(self.change)
    }

    /// The operation with its changed values.
    pub(crate) fn apply(&self, mut request: Request) -> Request {
        let change = self.change_of(&request);
        let expected = request.a;
        let (written, unchanged) = match request.site.kind {
            OperationKind::CompareExchange => (&mut request.b, expected),
            OperationKind::And => (&mut request.a, u64::MAX),
            _ => (&mut request.a, 0),
        };
        match change {
            Some(Change::Keep(bits)) => *written = *written & !bits | unchanged & bits,
            Some(Change::Clear(bits)) => *written &= !bits,
            Some(Change::Instead { of, by }) if *written == of => *written = by,
            Some(Change::Blind) => request.a = request.b,
            _ => {}
        }
        request
    }
}

/// The kind of an operation after a change; None: the operation is not done.
pub(crate) fn kind(change: Option<Change>, kind: OperationKind) -> Option<OperationKind> {
    match change {
        Some(Change::Drop) => {
            (kind.waits() || kind.is_read_modify_write()).then_some(OperationKind::Load)
        }
        Some(Change::Blind) => Some(OperationKind::Exchange),
        _ => Some(kind),
    }
}

/// The number that stands for a lock's address where locks share the queues of NUMA nodes.
pub(crate) fn identity(mutation: Option<Mutation>, address: usize) -> u64 {
    layout::identity(match mutation {
        Some(m) if m.change == Change::ConflateLocks => layout::lock(0),
        _ => address,
    })
}

/// The settings of the locks after a mutation.
pub(crate) fn tunables(mutation: Option<Mutation>, settings: Settings) -> Settings {
    let never = mutation.is_some_and(|m| m.change == Change::NeverLate);
    let threshold = Tunable::find("hqlock_fairness_threshold").expect("a tunable");
    let unlimited = never.then(|| Setting::new(threshold, threshold.maximum));
    match unlimited {
        Some(Ok(unlimited)) => settings.with(&[unlimited]),
        _ => settings,
    }
}
