//! The arguments of commands that check locks.

use std::time::Duration;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use lockworks::{LockType, Setting, Settings};
use lockworks_names::command_line::{setting, unknown};

use crate::{
    COND, Config, ConfigError, RandomRuns, lock_in_cond, lock_types, lockref_types, small_settings,
};

/// What is checked: these locks, each with a configuration.
#[derive(Args)]
pub struct Checked {
    /// Locks to check, lockrefs and cond, the condition variable, included [default: all]
    ///
    /// All are those that are not broken and have what the options ask for.
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    pub lock: Vec<String>,

    /// The options that are part of a configuration as they are.
    #[command(flatten)]
    pub config: Config,

    /// Number of threads that acquire the lock as readers [default: all but one, if the lock has
    /// readers]
    #[arg(long, value_name = "N", hide_short_help = true)]
    readers: Option<usize>,

    /// Number of NUMA nodes, 1 to 8; threads are spread over them in turn [default: 2 for a
    /// NUMA-aware lock, else 1]
    #[arg(long, value_name = "N", hide_short_help = true)]
    nodes: Option<usize>,

    /// Let CNA search for waiters to pass over at every hand-off [default: at 1 in 128]
    #[arg(long, hide_short_help = true)]
    no_shuffle_reduction: bool,

    /// Whether CNA and HQ prefer waiters of one NUMA node
    #[arg(long, value_name = "MODE", default_value = "on", value_parser = numa(), action = ArgAction::Set, hide_short_help = true)]
    numa: bool,

    /// Set a tunable, such as hqlock_fairness_threshold=0 [default: small values; --json prints
    /// them]
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting, hide_short_help = true)]
    tune: Vec<Setting>,

    /// Make this number of random runs instead of exploring all; this finds mistakes that need many
    /// threads, and proves nothing
    #[arg(long, value_name = "N", conflicts_with_all = ["memory_limit", "disk_limit"],
          value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    random: Option<u64>,

    /// Seed of all random choices of --random; the same seed makes the same runs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "random",
        hide_short_help = true
    )]
    seed: u64,
}

fn numa() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|name| name == "on")
}

impl Checked {
    /// Whether the number of readers is given.
    pub fn gives_readers(&self) -> bool {
        self.readers.is_some()
    }

    /// The configuration of the check of this lock, lockref or condition variable.
    pub fn config(&self, (name, lock): (&str, &LockType)) -> Config {
        let default_readers = match lock.has_readers() {
            true => self.config.threads.saturating_sub(1),
            false => 0,
        };
        let default_nodes = 1 + usize::from(lock.is_numa_aware());
        let tunables = Settings {
            numa_aware: self.numa,
            shuffle_reduction: !self.no_shuffle_reduction,
            ..small_settings()
        };
        Config {
            lock: name.to_owned(),
            readers: self.readers.unwrap_or(default_readers),
            nodes: self.nodes.unwrap_or(default_nodes),
            // Those that are not set are small.
            tunables: tunables.with(&self.tune),
            ..self.config.clone()
        }
    }

    /// The random runs that take the place of a search, if they are asked for. None begins after this
    /// time.
    pub fn random(&self, time: Option<Duration>) -> Option<RandomRuns> {
        let (runs, seed) = (self.random?, self.seed);
        Some(RandomRuns { runs, seed, time })
    }
}

/// Everything that can be checked: its name, and the lock that it is or contains.
pub fn subjects() -> impl Iterator<Item = (&'static str, &'static LockType)> {
    let lockrefs = lockref_types().map(|lockref| (lockref.name(), lockref.lock()));
    lock_types()
        .map(|lock| (lock.name(), lock))
        .chain(lockrefs)
        .chain([(COND, lock_in_cond())])
}

/// The error for a configuration that cannot be checked; an unknown lock comes with the nearest
/// name.
pub fn refused(error: ConfigError) -> anyhow::Error {
    match error {
        ConfigError::UnknownLock(name) => unknown("lock", &name, subjects().map(|(name, _)| name)),
        other => other.into(),
    }
}

/// The lock, lockref or condition variable of this name, and the lock that it is or contains.
pub fn find_subject(name: &str) -> Result<(&'static str, &'static LockType)> {
    subjects()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| refused(ConfigError::UnknownLock(name.to_owned())))
}

/// The memory that each of `checks` checks at the same time may use if no limit says so, in bytes: its
/// share of half of the available memory.
pub fn free_memory(checks: usize) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024 / 2 / checks.max(1))
}
