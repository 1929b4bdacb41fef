//! Child processes, and unmodified programs under load, with a lock of Lockworks or of glibc in their
//! mutexes.
//!
//! A program must give the same [`LoadOutcome::results`] under every lock, which tests compare.
//! Benchmarks compare [`LoadOutcome::per_second`].

pub mod children;
mod leveldb;
mod mariadb;
mod memcached;
mod process;
mod python;
mod redis;
mod rocksdb;
mod runner;
mod stress_ng;
mod unbound;

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use leveldb::Leveldb;
pub use mariadb::Mariadb;
pub use memcached::Memcached;
pub use python::Python;
pub use redis::Redis;
pub use rocksdb::RocksDb;
pub use runner::Runner;
pub use stress_ng::StressNg;
pub use unbound::Unbound;

/// The checkout in which this command was built, from `.cargo/config.toml`. What is for other machines does not
/// have it, so that nothing there names a directory of this one.
pub fn checkout() -> Option<&'static Path> {
    option_env!("LOCKWORKS_CHECKOUT")
        .filter(|checkout| !checkout.is_empty())
        .map(Path::new)
}

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

/// The outcome of a load.
#[derive(Debug)]
pub struct LoadOutcome {
    /// The work done and the state that it left, as text. It is the same under every lock.
    pub results: String,
    /// Operations a second.
    pub per_second: f64,
}

/// A program that can be loaded.
pub trait Program: Sync {
    /// The name of the program in tables.
    fn name(&self) -> &'static str;

    /// The work that counts as one operation.
    fn operation(&self) -> &'static str;

    /// The commands that the program and its load need. A path names a file that this tree builds.
    fn needs(&self) -> Vec<PathBuf>;

    /// The numbers of clients or threads to load the program with, one after the other.
    fn clients(&self, size: Size) -> &'static [usize];

    /// Starts the program, loads it and stops it. An error includes the end of the program's
    /// output.
    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome>;

    /// The commands of [`Program::needs`] that are not installed.
    fn missing(&self) -> Vec<PathBuf> {
        let mut needs = self.needs();
        needs.retain(|command| which::which(command).is_err());
        needs
    }
}

/// The programs that can be measured.
pub const MEASURED: [&dyn Program; 7] = [
    &Memcached, &Leveldb, &RocksDb, &Redis, &Mariadb, &Unbound, &StressNg,
];
