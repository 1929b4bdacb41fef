//! Scalable NUMA-aware locks for many threads.
//!
//! The locks are written in C, each once; this crate compiles them. Each is a module with a
//! `Mutex` that protects a value, a [`lock_api`] mutex around the lock. That of most programs is
//! [`Mutex`], around the lock [`mutex`]:
//!
//! ```
//! use lockworks::{Mutex, cna};
//!
//! static NAMES: Mutex<Vec<&str>> = Mutex::new(Vec::new());
//! static COUNT: cna::Mutex<usize> = cna::Mutex::new(0);
//!
//! NAMES.lock().push("Ada");
//! *COUNT.lock() += 1;
//! assert_eq!(NAMES.lock().len(), *COUNT.lock());
//! ```
//!
//! And one interface to all of them is for programs that choose at run time. It is that of a raw
//! lock, so to unlock is `unsafe`:
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
//! hundreds; see [`LockType::spins`] and [`LockType::is_fifo`]. Use [`mutex`], [`pv`] or
//! [`unfair`] there, whose waiters sleep, and may give up: `try_lock_for` of their `Mutex`,
//! [`RawLock::lock_until`].
//!
//! # Features
//!
//! `std`, on by default. Without it the crate is `no_std`, and has the modules of the locks and
//! what needs no memory of its own; the C code still stands on the C library.
//! `serde`: settings and statistics that can be written and read.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
mod fairness;
mod lock_type;
#[cfg(feature = "std")]
mod lockref;
#[cfg(feature = "std")]
mod lockref_type;
mod locks;
#[cfg(feature = "std")]
mod raw_lock;
#[cfg(feature = "std")]
mod settings;
#[cfg(feature = "std")]
mod statistics;
mod thread;
pub mod topology;
pub mod tunables;
#[cfg(feature = "std")]
mod waiting;

pub use lock_api;

#[cfg(feature = "std")]
pub use fairness::fairness;
#[doc(hidden)]
pub use lock_type::table;
pub use lock_type::{LockFn, LockPatientFn, LockType, TryLockFn, UnlockFn, find, lock_types};
#[cfg(feature = "std")]
pub use lockref::{Lockref, LockrefGuard};
#[cfg(feature = "std")]
pub use lockref_type::{LockrefType, find_lockref, lockref_types};
pub use locks::*;
pub use mutex::{Mutex, MutexGuard, RawMutex};
#[cfg(feature = "std")]
pub use raw_lock::{Node, RawLock};
#[cfg(feature = "std")]
pub use settings::{Setting, SettingError, Settings, Tunable};
#[cfg(feature = "std")]
pub use statistics::{Statistics, restart_maxima, statistics};
pub use thread::{ThreadPriority, thread_attach, thread_set_priority};
#[cfg(feature = "std")]
pub use waiting::{Cancel, GivenUp};
