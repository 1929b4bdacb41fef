//! Unmodified programs with a load, under a lock of ours or under glibc.
//!
//! A program must give the same [`LoadOutcome::results`] under every lock, which tests compare.
//! Benchmarks compare [`LoadOutcome::per_second`].

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

/// The size of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A second or two, to test that the program works.
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

/// What a load came to.
#[derive(Debug)]
pub struct LoadOutcome {
    /// What was done and the state that it left. It is the same under every lock.
    pub results: String,
    /// Operations a second.
    pub per_second: f64,
}

/// A program that can be loaded.
pub trait Program: Sync {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// What counts as an operation.
    fn operation(&self) -> &'static str;

    /// The commands that it needs. Paths are of files that this tree builds.
    fn needs(&self) -> Vec<PathBuf>;

    /// The numbers of clients or threads to load it with, one after the other.
    fn clients(&self, size: Size) -> &'static [usize];

    /// Starts it, loads it and stops it. An error has the end of what the program printed.
    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome>;

    /// The commands that it needs and that are not installed.
    fn missing(&self) -> Vec<PathBuf> {
        let mut needs = self.needs();
        needs.retain(|command| which::which(command).is_err());
        needs
    }
}

/// The programs that can be measured.
pub const MEASURED: [&dyn Program; 5] = [&Memcached, &Leveldb, &Redis, &Mariadb, &StressNg];
