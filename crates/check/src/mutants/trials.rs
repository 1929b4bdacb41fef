//! Trials: the configurations of `configurations.toml`, each for a search or for random runs.

use std::collections::BTreeMap;
use std::fmt;

use crate::check::Check;
use crate::config::Config;
use crate::mutation::Mutation;
use crate::random::{RandomOutcome, RandomRuns};

use super::problem::Problem;

/// The key of a configuration that asks for random runs, and says how many.
const RANDOM: &str = "random";
/// The seed of all random runs, so that they are the same each time.
const SEED: u64 = 1;

/// The configurations that files refer to by name, as they are written.
pub(super) type Configurations = BTreeMap<String, toml::Table>;

/// Random runs of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomTrial {
    /// The configuration.
    pub config: Config,
    /// The most runs.
    pub runs: u64,
}

impl RandomTrial {
    /// Makes the runs of the lock with a mistake in it, or without, until one breaks a promise.
    pub fn run(&self, mutation: Option<Mutation>) -> RandomOutcome {
        let check = Check::new(&self.config, mutation).expect("validated before");
        check.random_alone(&RandomRuns {
            runs: self.runs,
            seed: SEED,
            time: None,
        })
    }
}

impl fmt::Display for RandomTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} random runs", self.config, self.runs)
    }
}

/// A way to look for a mistake.
pub(super) enum Trial {
    Search(Config),
    Random(RandomTrial),
}

/// The trial of a lock that has this name.
pub(super) fn trial(known: &Configurations, lock: &str, name: &str) -> Result<Trial, Problem> {
    let mut options = known
        .get(name)
        .ok_or_else(|| Problem::UnknownConfiguration(name.to_owned()))?
        .clone();
    let runs = options.remove(RANDOM);
    let table = |config: &Config| toml::Table::try_from(config).expect("a config is a table");
    let mut merged = table(&Config::new(lock));
    merge(&mut merged, &options);
    let config: Config = merged.try_into()?;
    let keys = table(&config);
    if let Some(unknown) = options.keys().find(|key| !keys.contains_key(*key)) {
        return Err(Problem::UnknownKey(unknown.clone()));
    }
    config.validate()?;
    Ok(match runs {
        None => Trial::Search(config),
        Some(runs) => Trial::Random(RandomTrial {
            config,
            runs: runs.try_into()?,
        }),
    })
}

/// The configuration of a lock that has this name, for a search.
pub(super) fn search(known: &Configurations, lock: &str, name: &str) -> Result<Config, Problem> {
    match trial(known, lock, name)? {
        Trial::Search(config) => Ok(config),
        Trial::Random(_) => Err(Problem::RandomSearch(name.to_owned())),
    }
}

/// Puts `options` into a table; a table within it is merged, not replaced.
fn merge(table: &mut toml::Table, options: &toml::Table) {
    for (key, value) in options {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(options)) => {
                merge(inner, options);
            }
            _ => _ = table.insert(key.clone(), value.clone()),
        }
    }
}
