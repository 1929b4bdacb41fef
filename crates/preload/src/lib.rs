//! Programs that run with a library of Lockworks loaded into them, and their comparison under several
//! locks.

pub mod compare;
mod library;
pub mod plan;
mod program;

pub use library::{DEFAULT, LIBRARY, LOCK, Library, preloadable, preloadables};
pub use program::{OtherLocks, Program, Refusal};
