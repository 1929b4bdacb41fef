//! Planted mistakes: what catches each, or why nothing can. They are listed in
//! tests/check/mutants.toml.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};
use crate::mutation::{Change, Mutation, Target, UnknownChange};
use crate::search::{Check, End, Limits};
use crate::site::{Kind, Order, Site};

const LIST: &str = include_str!("../../../tests/check/mutants.toml");

/// States that the search for one mistake in one configuration may take.
const MOST_STATES: usize = 8_000_000;
/// The same for a mistake of which nothing is expected.
const FEW_STATES: usize = 80_000;

/// Why a list of mutants is none.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ListError {
    #[error("the list of mutants cannot be read")]
    Toml(#[from] toml::de::Error),
    #[error("a configuration has no '{0}'")]
    UnknownOption(String),
    #[error("no configuration is called '{0}'")]
    UnknownConfiguration(String),
    #[error("the list says of no configuration for lock '{0}'")]
    NoConfigurations(String),
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    #[error(transparent)]
    Change(#[from] UnknownChange),
    #[error("no operation is '{0}'")]
    NoSite(String),
    #[error("{count} operations are '{at}'; add #1 to #{count}")]
    Ambiguous { at: String, count: usize },
    #[error("{0} is listed twice")]
    Twice(String),
}

/// A lock with a mistake in it.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The lock's name.
    pub lock: String,
    /// The operation that is changed, as in the list.
    pub at: Option<String>,
    /// What becomes of it, and where.
    pub mutation: Mutation,
    /// Why no promise can tell the difference, if none can.
    pub equivalent: Option<String>,
    /// What a run that breaks a promise would take, if that is more than can be searched.
    pub beyond: Option<String>,
    /// Where to look for a broken promise, the likeliest place first.
    pub configurations: Vec<Config>,
}

/// What came of a mutant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// A promise is broken.
    Caught {
        /// In which configuration.
        configuration: String,
        /// What was broken.
        violation: String,
        /// Operations and interruptions until then.
        steps: usize,
        /// It was listed as one that cannot be caught, for this reason.
        against: Option<String>,
    },
    /// It was not caught, and is not expected to be.
    Equivalent {
        /// Why no promise can tell the difference.
        reason: String,
    },
    /// It was not caught, since all configurations are too small for it.
    Beyond {
        /// What it would take.
        needs: String,
    },
    /// It was not caught.
    Survived {
        /// No configuration even came to the operation.
        unreached: bool,
    },
}

impl Verdict {
    /// The list of mutants says otherwise.
    pub fn is_unexpected(&self) -> bool {
        match self {
            Self::Caught { against, .. } => against.is_some(),
            Self::Equivalent { .. } | Self::Beyond { .. } => false,
            Self::Survived { .. } => true,
        }
    }
}

/// The mutants and the configurations that are to catch them.
#[derive(Debug)]
pub struct Mutants {
    /// In the order of the list.
    pub mutants: Vec<Mutant>,
    /// Of each lock, in the order in which they are tried.
    pub configurations: BTreeMap<String, Vec<Config>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    configurations: BTreeMap<String, toml::Table>,
    locks: BTreeMap<String, Vec<String>>,
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    locks: Vec<String>,
    at: Option<String>,
    change: String,
    equivalent: Option<String>,
    beyond: Option<String>,
    on: Option<Target>,
    caught_by: Option<String>,
}

impl Mutants {
    /// All that there are.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn all() -> Result<Self, ListError> {
        LIST.parse()
    }
}

impl FromStr for Mutants {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        let list: List = toml::from_str(text)?;
        let config = |lock: &str, name: &String| {
            let options = list
                .configurations
                .get(name)
                .ok_or_else(|| ListError::UnknownConfiguration(name.clone()))?;
            configuration(lock, options)
        };
        let mut configurations = BTreeMap::new();
        for (lock, names) in &list.locks {
            let of_lock: Result<Vec<_>, _> = names.iter().map(|name| config(lock, name)).collect();
            configurations.insert(lock.clone(), of_lock?);
        }
        let mut mutants: Vec<Mutant> = Vec::new();
        for entry in &list.mutant {
            let mutation = Mutation {
                site: entry.at.as_deref().map(site).transpose()?.map(Site::number),
                target: entry.on,
                change: entry.change.parse()?,
            };
            for lock in &entry.locks {
                let mut tried = configurations
                    .get(lock)
                    .ok_or_else(|| ListError::NoConfigurations(lock.clone()))?
                    .clone();
                if let Some(name) = &entry.caught_by {
                    let first = config(lock, name)?;
                    tried.retain(|other| *other != first);
                    tried.insert(0, first);
                }
                let mutant = Mutant {
                    lock: lock.clone(),
                    at: entry.at.clone(),
                    mutation,
                    equivalent: entry.equivalent.clone(),
                    beyond: entry.beyond.clone(),
                    configurations: tried,
                };
                let is_same = |m: &&Mutant| m.lock == *lock && m.mutation == mutation;
                if mutants.iter().any(|m| is_same(&m)) {
                    return Err(ListError::Twice(format!("{lock}, {mutant}")));
                }
                mutants.push(mutant);
            }
        }
        Ok(Self {
            mutants,
            configurations,
        })
    }
}

fn configuration(lock: &str, options: &toml::Table) -> Result<Config, ListError> {
    let table = |config: &Config| toml::Table::try_from(config).expect("a config is a table");
    let mut merged = table(&Config::new(lock));
    merge(&mut merged, options);
    let config: Config = merged.try_into()?;
    let known = table(&config);
    if let Some(unknown) = options.keys().find(|key| !known.contains_key(*key)) {
        return Err(ListError::UnknownOption(unknown.clone()));
    }
    config.validate()?;
    Ok(config)
}

/// Puts `options` into a table, those of a table within it one by one.
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

/// The operation that `at` names: "function: kind operand", with #n if there are several.
fn site(at: &str) -> Result<&'static Site, ListError> {
    let (name, number) = match at.rsplit_once(" #") {
        Some((name, number)) => (name, number.parse::<usize>().ok()),
        None => (at, None),
    };
    let mut found: Vec<&Site> = Site::all()
        .iter()
        .filter(|site| format!("{}: {site}", site.function()) == name)
        .collect();
    found.sort_by_key(|site| site.line);
    match (number, found.as_slice()) {
        (None, [site]) => Ok(site),
        (None, [_, _, ..]) => Err(ListError::Ambiguous {
            at: at.to_owned(),
            count: found.len(),
        }),
        (Some(number), [_, _, ..]) if (1..=found.len()).contains(&number) => Ok(found[number - 1]),
        _ => Err(ListError::NoSite(at.to_owned())),
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}")?;
            if let Some(target) = self.mutation.target {
                write!(f, " of a {target}")?;
            }
            write!(f, " -> ")?;
        }
        write!(f, "{}", self.mutation.change)
    }
}

impl Mutant {
    /// Looks for a promise that it breaks.
    pub fn run(&self) -> Verdict {
        let claim = self.equivalent.as_ref().or(self.beyond.as_ref());
        let states = match claim {
            Some(_) => FEW_STATES,
            None => MOST_STATES,
        };
        let limits = Limits {
            states: Some(states),
            ..Limits::NONE
        };
        let mut reached = self.mutation.site.is_none();
        for config in &self.configurations {
            let check = Check::new(config, Some(self.mutation)).expect("validated before");
            let outcome = check.run(&limits, &mut |_| {});
            if let End::Broken(broken) = outcome.end {
                return Verdict::Caught {
                    configuration: config.to_string(),
                    violation: broken.violation.name().to_owned(),
                    steps: broken.steps(),
                    against: claim.cloned(),
                };
            }
            reached |= self.mutation.site.is_some_and(|site| outcome.covered[site]);
        }
        match (&self.equivalent, &self.beyond) {
            (Some(reason), _) if reached => Verdict::Equivalent {
                reason: reason.clone(),
            },
            (_, Some(needs)) => Verdict::Beyond {
                needs: needs.clone(),
            },
            _ => Verdict::Survived {
                unreached: !reached,
            },
        }
    }
}

/// Runs mutants, several at once. `done` is told of each.
pub fn run(mutants: &[&Mutant], done: &(dyn Fn(&Mutant, &Verdict) + Sync)) -> Vec<Verdict> {
    mutants
        .par_iter()
        .with_max_len(1)
        .map(|mutant| {
            let verdict = mutant.run();
            done(mutant, &verdict);
            verdict
        })
        .collect()
}

/// What must be listed of an operation: each order one step weaker, if a lock chose it; what writes,
/// waits or wakes, dropped.
pub fn mistakes(site: &Site) -> Vec<Change> {
    let weaker: &[Order] = match site.order {
        _ if matches!(site.kind, Kind::Park | Kind::Unpark) => &[],
        Order::Relaxed => &[],
        Order::Dependency | Order::Acquire | Order::Release => &[Order::Relaxed],
        Order::AcqRel => &[Order::Acquire, Order::Release],
        Order::SeqCst => &[Order::AcqRel],
    };
    let drops = matches!(site.kind, Kind::Store | Kind::Unpark)
        || site.kind.is_read_modify_write()
        || site.kind.waits();
    let dropped = drops.then_some(Change::Drop);
    weaker
        .iter()
        .copied()
        .map(Change::Order)
        .chain(dropped)
        .collect()
}
