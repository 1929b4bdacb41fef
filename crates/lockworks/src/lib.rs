//! Scalable NUMA-aware locks for many threads.
//!
//! The locks are written in C, each once; this crate compiles them and gives one interface to
//! all of them. It is that of a raw lock, so to unlock is `unsafe`:
//!
//! ```
//! use lockworks::{Node, RawLock, find};
//!
//! let cna = find("cna").expect("the CNA lock");
//! let lock = RawLock::new(cna);
//! let mut node = Node::new(cna);
//! lock.lock(&mut node);
//! assert!(!lock.try_lock(&mut Node::new(cna)));
//! // SAFETY: locked above, by this thread and with this node.
//! unsafe { lock.unlock(&mut node) };
//! ```
//!
//! **Most of these locks spin.** With more runnable threads than CPUs, each hand-off of
//! a FIFO lock may wait for a time slice, and throughput falls by a factor of
//! hundreds; see [`LockType::spins`] and [`LockType::is_fifo`]. Use `pv` or `unfair` there, whose
//! waiters sleep, and may give up: [`RawLock::lock_until`].

mod fairness;
mod lock_type;
mod lockref;
mod lockref_type;
mod raw_lock;
mod settings;
mod statistics;
mod thread;
pub mod topology;
pub mod tunables;
mod waiting;

pub use fairness::fairness;
#[doc(hidden)]
pub use lock_type::table;
pub use lock_type::{LockFn, LockType, TryLockFn, UnlockFn, find, lock_types};
pub use lockref::{Lockref, LockrefGuard};
pub use lockref_type::{LockrefType, find_lockref, lockref_types};
pub use raw_lock::{Node, RawLock};
pub use settings::{Setting, SettingError, Settings, Tunable};
pub use statistics::{Statistics, restart_maxima, statistics};
pub use thread::{ThreadPriority, thread_attach, thread_set_priority};
pub use waiting::{Cancel, GivenUp};
