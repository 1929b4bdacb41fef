//! Mistakes in lists of mutants.

use crate::config::ConfigError;
use crate::mutation::UnknownChange;
use crate::site::UnknownSite;

/// The mistake in a list of mutants.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("a configuration has no key '{0}'; `lockworks check --json` prints the keys")]
    UnknownKey(String),
    #[error("no configuration is called '{0}'; add it to crates/check/configurations.toml")]
    UnknownConfiguration(String),
    #[error("configuration '{0}' is one of random runs, which only `caught_by` may name")]
    RandomSearch(String),
    #[error("lock '{0}' has no file in crates/check/mutants")]
    NoFile(String),
    #[error("`locks` is for files in parts/; mutants in this file are of this lock")]
    Locks,
    #[error("mutants in parts/ need `locks`")]
    NoLocks,
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    #[error(transparent)]
    Change(#[from] UnknownChange),
    #[error(transparent)]
    Site(#[from] UnknownSite),
    #[error("no function with operations is called '{0}'")]
    NoFunction(String),
    #[error("{0} is listed twice")]
    Twice(String),
}
