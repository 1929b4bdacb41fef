//! Programs of others, unmodified, with a load: under a lock of ours, or as they are under glibc.
//!
//! What a program must give whatever lock it runs under is the text of [`Outcome::results`]. Tests
//! compare it, benchmarks [`Outcome::per_second`].

mod leveldb;
mod mariadb;
mod memcached;
mod process;
mod python;
mod redis;
mod runner;
mod stress_ng;

use std::path::PathBuf;

use anyhow::Result;

pub use leveldb::Leveldb;
pub use mariadb::Mariadb;
pub use memcached::Memcached;
pub use python::Python;
pub use redis::Redis;
pub use runner::Runner;
pub use stress_ng::StressNg;

/// How much a program has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A second or two, to see that it works.
    Small,
    /// Enough to measure.
    Real,
}

impl Size {
    fn of<T>(self, small: T, real: T) -> T {
        match self {
            Self::Small => small,
            Self::Real => real,
        }
    }
}

/// What came of a program and its load.
#[derive(Debug)]
pub struct Outcome {
    /// What was done, and the state that it left: the same under every lock.
    pub results: String,
    /// Operations a second.
    pub per_second: f64,
}

/// A program that can be loaded.
pub trait Program: Sync {
    /// Its name, as tables have it.
    fn name(&self) -> &'static str;

    /// What an operation is.
    fn operation(&self) -> &'static str;

    /// Commands that must be there; paths are those of this tree.
    fn needs(&self) -> Vec<PathBuf>;

    /// By how many clients or threads it is loaded, one after the other.
    fn clients(&self, size: Size) -> &'static [usize];

    /// Starts it, loads it, stops it. An error says what failed, with the end of what was printed.
    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<Outcome>;

    /// The commands that are not there.
    fn missing(&self) -> Vec<PathBuf> {
        let mut needs = self.needs();
        needs.retain(|command| which::which(command).is_err());
        needs
    }
}

/// Those that can be measured.
pub const MEASURED: [&dyn Program; 5] = [&Memcached, &Leveldb, &Redis, &Mariadb, &StressNg];
