//! Mutants: locks with one deliberate mistake each. A list says which configuration catches the
//! mistake, or why none can.
//!
//! The lists are the files in `crates/check/mutants`, whose README says what the keys mean.

use std::collections::BTreeMap;
use std::fmt;

use include_dir::{Dir, include_dir};
use lockworks::LockType;
use lockworks_explore::Limits;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::config::Config;
use crate::locks::{is_loaded, kind, lock_types};
use crate::mutation::{Change, Mutation, Target};
use crate::results::{Broken, End};
use crate::site::{OperationKind, Order, Site};
use crate::source::{
    Kind, loaded_has_one_writer, loaded_has_trylock, loaded_options, loaded_summary,
};
use crate::violation::Violation;

mod problem;
mod sizes;
mod trials;

use problem::Problem;
use trials::{Configurations, Trial};

pub use sizes::{SizeShows, Sizes, kept, measure, shows};
pub use trials::RandomTrial;

/// The directory of the lists, relative to the root of the repository.
pub const DIRECTORY: &str = "crates/check/mutants";
static LISTS: Dir = include_dir!("$CARGO_MANIFEST_DIR/mutants");
const CONFIGURATIONS: &str = include_str!("../configurations.toml");

/// The most states of the search for one mistake in one configuration.
const MOST_STATES: usize = 8_000_000;
/// The most states of a search that is expected to find nothing.
pub const FEW_STATES: usize = 80_000;

/// A list of mutants is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ListError {
    file: String,
    problem: Problem,
}

/// No mutants can be made of a lock without a list.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DeriveError {
    #[error(transparent)]
    List(#[from] ListError),
    #[error(
        "lock '{lock}' breaks a promise without a mistake: {violation}; see `lockworks check {option}`",
        option = option(lock)
    )]
    Broken { lock: String, violation: Violation },
}

/// The option that has a lock checked.
fn option(lock: &str) -> String {
    let loaded = lock_types().find(|known| known.name() == lock && is_loaded(known));
    match loaded.and_then(|_| loaded_options()) {
        Some(options) => options,
        None => format!("--lock {lock}"),
    }
}

/// A lock with a mistake in it.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The lock's name.
    pub lock: String,
    /// The operation that is changed, as in the list.
    pub at: Option<String>,
    /// The mistake, and where it is.
    pub mutation: Mutation,
    /// The reason why no check can observe the change, if none can.
    pub equivalent: Option<String>,
    /// The random runs in which to look for a broken promise first, if there are any.
    pub random: Option<RandomTrial>,
    /// The configurations in which to search for a broken promise, the likeliest first.
    pub configurations: Vec<Config>,
}

/// The result of a search for the mistake in a mutant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The mutant breaks a promise.
    Caught {
        /// The configuration in which it does.
        configuration: String,
        /// The name of the violation.
        violation: String,
        /// The number of operations and interruptions up to the violation.
        steps: usize,
        /// The reason why the list says that the mutant cannot be caught, if it does.
        against: Option<String>,
    },
    /// The mutant was not caught, as the list says.
    Equivalent {
        /// The reason why no check can observe the change.
        reason: String,
    },
    /// The mutant was not caught, and the list gives no reason.
    Survived {
        /// No configuration reached the operation.
        unreached: bool,
    },
}

impl Verdict {
    /// Whether the list says otherwise.
    pub fn is_unexpected(&self) -> bool {
        match self {
            Self::Caught { against, .. } => against.is_some(),
            Self::Equivalent { .. } => false,
            Self::Survived { .. } => true,
        }
    }
}

/// All mutants, and the configurations that are to catch them.
#[derive(Debug, Default)]
pub struct Mutants {
    /// In the order of the files' names; those of `parts` come last.
    pub mutants: Vec<Mutant>,
    /// The configurations of each lock, in the order in which they are tried.
    pub configurations: BTreeMap<String, Vec<Config>>,
}

/// The configurations of a lock that has no file: a few usual ones, by what the lock can do.
fn usual(lock: &str) -> String {
    let loaded = lock_types().find(|known| known.name() == lock && is_loaded(known));
    let has_readers = loaded.is_some_and(LockType::has_readers);
    // Interruptions do not use these.
    let is_alone = matches!(loaded.map(kind), Some(Kind::Cond | Kind::Seqlock));
    let has_trylock = !is_alone && (loaded.is_none() || loaded_has_trylock());
    let names = [
        (has_readers, "one reader"),
        (true, "2x2"),
        (has_trylock, "trylock"),
        (!is_alone, "nesting"),
        (has_readers, "two readers 3x1"),
        (true, "3x1"),
    ];
    let names = names.iter().filter(|(has, _)| *has);
    let names: Vec<_> = names.map(|(_, name)| name).collect();
    format!("configurations = {names:?}")
}

/// The configurations of a lock's file, the cheapest first, or a few usual ones if it has no file.
///
/// # Errors
/// See [`ListError`].
pub fn configurations(lock: &str) -> Result<Vec<Config>, ListError> {
    let known = known_configurations(CONFIGURATIONS)?;
    let name = format!("{lock}.toml");
    let text = LISTS
        .get_file(&name)
        .map(|file| file.contents_utf8().expect("a list is UTF-8"));
    let mut all = Mutants::default();
    let loaded = lock_types().find(|known| known.name() == lock && is_loaded(known));
    // A lock of somebody else's may have the name of one of ours.
    let text = text.filter(|_| loaded_summary().is_none());
    let text = text.map_or_else(|| usual(lock), str::to_owned);
    let read = all.read_lock(&known, lock, &text);
    within(&format!("{DIRECTORY}/{name}"), read)?;
    let mut found = all.configurations.remove(lock).expect("read just now");
    if loaded.is_some() && loaded_has_one_writer() {
        found.retain(|config| config.threads - config.readers == 1);
    }
    Ok(found)
}

fn known_configurations(text: &str) -> Result<Configurations, ListError> {
    within(
        "crates/check/configurations.toml",
        toml::from_str(text).map_err(Problem::from),
    )
}

/// A file of `crates/check/mutants`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    configurations: Vec<String>,
    #[serde(default)]
    functions: Vec<Functions>,
    #[serde(default)]
    mutant: Vec<Entry>,
}

/// Functions whose operations all have the mutants of [`mistakes`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Functions {
    locks: Option<Vec<String>>,
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    locks: Option<Vec<String>>,
    at: Option<Places>,
    change: String,
    equivalent: Option<String>,
    on: Option<Target>,
    caught_by: Option<String>,
}

/// The operations that an entry changes, one at a time.
#[derive(Deserialize)]
#[serde(untagged)]
enum Places {
    One(String),
    Several(Vec<String>),
}

impl Mutants {
    /// The mutants of every lock.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn all() -> Result<Self, ListError> {
        let texts = |directory: &Dir<'static>| -> Vec<(String, &'static str)> {
            let mut files: Vec<_> = directory
                .files()
                .filter(|file| file.path().extension().is_some_and(|e| e == "toml"))
                .map(|file| {
                    let stem = file.path().file_stem().expect("a file has a name");
                    let text = file.contents_utf8().expect("a list is UTF-8");
                    (stem.to_string_lossy().into_owned(), text)
                })
                .collect();
            files.sort();
            files
        };
        let parts = LISTS.get_dir("parts").expect("a directory of the tree");
        Self::parse(CONFIGURATIONS, &texts(&LISTS), &texts(parts))
    }

    /// The mutants of a lock that has no file: the [`mistakes`] of each operation that its
    /// configurations reach, without a claim that any is caught.
    ///
    /// # Errors
    /// See [`DeriveError`].
    pub fn derived(lock: &str) -> Result<Self, DeriveError> {
        let configurations = configurations(lock)?;
        let limits = Limits {
            states: Some(FEW_STATES),
            ..Limits::NONE
        };
        let mut covered = vec![false; Site::all().len()];
        for config in &configurations {
            let checked = Check::new(config, None).map_err(|error| ListError {
                file: format!("{DIRECTORY}/{lock}.toml"),
                problem: error.into(),
            })?;
            let outcome = checked.run(&limits, &mut |_| {});
            if let End::Broken(broken) = outcome.end {
                return Err(DeriveError::Broken {
                    lock: lock.to_owned(),
                    violation: broken.violation,
                });
            }
            covered
                .iter_mut()
                .zip(outcome.covered)
                .for_each(|(all, now)| *all |= now);
        }
        let mut all = Self::default();
        all.configurations.insert(lock.to_owned(), configurations);
        let reached = Site::all().iter().filter(|site| covered[site.number()]);
        for site in reached.filter(|site| !site.file().ends_with("client.c")) {
            for change in mistakes(site) {
                let mutation = Mutation::at(site, change);
                let mutant = all.mutant(lock, Some(site.name()), mutation);
                all.mutants.push(within(DIRECTORY, mutant)?);
            }
        }
        Ok(all)
    }

    /// Whether a lock has a list of mutants.
    pub fn are_listed(lock: &str) -> bool {
        LISTS.get_file(format!("{lock}.toml")).is_some()
    }

    /// Reads lists: `locks` are the files of locks, by the names of these, `parts` those of shared
    /// code.
    fn parse(
        configurations: &str,
        locks: &[(String, &str)],
        parts: &[(String, &str)],
    ) -> Result<Self, ListError> {
        let known = known_configurations(configurations)?;
        let mut all = Self::default();
        let mut lists = Vec::new();
        for (lock, text) in locks {
            let file = format!("{DIRECTORY}/{lock}.toml");
            let list = within(&file, all.read_lock(&known, lock, text))?;
            lists.push((file, Some(lock), list));
        }
        for (name, text) in parts {
            let file = format!("{DIRECTORY}/parts/{name}.toml");
            let list = within(&file, toml::from_str(text).map_err(Problem::from))?;
            lists.push((file, None, list));
        }
        for (file, lock, list) in &lists {
            let lock = lock.map(String::as_str);
            for entry in &list.mutant {
                within(file, all.add(&known, lock, entry))?;
            }
            for functions in &list.functions {
                within(file, all.add_mistakes(lock, functions))?;
            }
        }
        Ok(all)
    }

    /// Reads the file of a lock, and keeps the lock's configurations.
    fn read_lock(
        &mut self,
        known: &Configurations,
        lock: &str,
        text: &str,
    ) -> Result<List, Problem> {
        let list: List = toml::from_str(text)?;
        let configurations: Result<Vec<_>, _> = list
            .configurations
            .iter()
            .map(|name| trials::search(known, lock, name))
            .collect();
        self.configurations.insert(lock.to_owned(), configurations?);
        Ok(list)
    }

    /// Adds the mutants of an entry in the file of `lock`, or in one of `parts`.
    fn add(
        &mut self,
        known: &Configurations,
        lock: Option<&str>,
        entry: &Entry,
    ) -> Result<(), Problem> {
        let places: Vec<Option<&String>> = match &entry.at {
            None => vec![None],
            Some(Places::One(at)) => vec![Some(at)],
            Some(Places::Several(all)) => all.iter().map(Some).collect(),
        };
        let change = entry.change.parse()?;
        for at in places {
            let mutation = Mutation {
                site: at.map(|at| Site::named(at)).transpose()?.map(Site::number),
                target: entry.on,
                change,
            };
            for lock in locks(lock, &entry.locks)? {
                let mut mutant = self.mutant(lock, at.cloned(), mutation)?;
                if let Some(name) = &entry.caught_by {
                    match trials::trial(known, lock, name)? {
                        Trial::Random(random) => mutant.random = Some(random),
                        Trial::Search(first) => {
                            mutant.configurations.retain(|other| *other != first);
                            mutant.configurations.insert(0, first);
                        }
                    }
                }
                mutant.equivalent.clone_from(&entry.equivalent);
                if self.has(lock, mutation) {
                    return Err(Problem::Twice(format!("{lock}, {mutant}")));
                }
                self.mutants.push(mutant);
            }
        }
        Ok(())
    }

    /// Adds the mutants of each operation of functions, but for those that have an entry.
    fn add_mistakes(&mut self, lock: Option<&str>, functions: &Functions) -> Result<(), Problem> {
        let locks = locks(lock, &functions.locks)?;
        for name in &functions.names {
            let sites = || Site::all().iter().filter(|site| site.function() == name);
            if sites().next().is_none() {
                return Err(Problem::NoFunction(name.clone()));
            }
            let mutations = sites().flat_map(|site| {
                let changes = mistakes(site).into_iter();
                changes.map(move |change| (site, change))
            });
            for (site, change) in mutations {
                for lock in &locks {
                    if !self.has_mistake(lock, site, change) {
                        let mutation = Mutation::at(site, change);
                        let mutant = self.mutant(lock, Some(site.name()), mutation)?;
                        self.mutants.push(mutant);
                    }
                }
            }
        }
        Ok(())
    }

    /// A mutant that every configuration of the lock may catch.
    fn mutant(
        &self,
        lock: &str,
        at: Option<String>,
        mutation: Mutation,
    ) -> Result<Mutant, Problem> {
        let configurations = self.configurations.get(lock);
        Ok(Mutant {
            lock: lock.to_owned(),
            at,
            mutation,
            equivalent: None,
            random: None,
            configurations: configurations
                .ok_or_else(|| Problem::NoFile(lock.to_owned()))?
                .clone(),
        })
    }

    fn has(&self, lock: &str, mutation: Mutation) -> bool {
        let is_it = |m: &Mutant| m.lock == lock && m.mutation == mutation;
        self.mutants.iter().any(is_it)
    }

    /// Whether the list has this change of an operation, on any memory or on each.
    pub fn has_mistake(&self, lock: &str, site: &Site, change: Change) -> bool {
        let on = |target| Mutation {
            target,
            ..Mutation::at(site, change)
        };
        let has = |target| self.has(lock, on(target));
        has(None) || Target::ALL.iter().all(|target| has(Some(*target)))
    }
}

/// The locks of mutants in the file of `lock`, or in one of `parts`, where `listed` names them.
fn locks<'a>(
    lock: Option<&'a str>,
    listed: &'a Option<Vec<String>>,
) -> Result<Vec<&'a str>, Problem> {
    match (lock, listed) {
        (Some(lock), None) => Ok(vec![lock]),
        (None, Some(locks)) => Ok(locks.iter().map(String::as_str).collect()),
        (Some(_), Some(_)) => Err(Problem::Locks),
        (None, None) => Err(Problem::NoLocks),
    }
}

/// Says in which file a problem is.
fn within<T>(file: &str, result: Result<T, Problem>) -> Result<T, ListError> {
    result.map_err(|problem| ListError {
        file: file.to_owned(),
        problem,
    })
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
    fn caught_in(&self, configuration: &dyn fmt::Display, broken: &Broken) -> Verdict {
        Verdict::Caught {
            configuration: configuration.to_string(),
            violation: broken.violation.name().to_owned(),
            steps: broken.steps(),
            against: self.equivalent.clone(),
        }
    }

    /// Looks in the mutant's random runs and configurations for a promise that it breaks.
    pub fn run(&self) -> Verdict {
        let states = match self.equivalent {
            Some(_) => FEW_STATES,
            None => MOST_STATES,
        };
        let mut reached = self.mutation.site.is_none();
        if let Some(random) = &self.random {
            let outcome = random.run(Some(self.mutation));
            if let Some(broken) = outcome.broken {
                return self.caught_in(random, &broken);
            }
            reached |= self.mutation.site.is_some_and(|site| outcome.covered[site]);
        }
        let searches = self.configurations.iter().map(|config| (config, states));
        // Until one reaches the operation, nothing is known about it.
        let deeper = self
            .configurations
            .first()
            .map(|config| (config, MOST_STATES));
        for (number, (config, states)) in searches.chain(deeper).enumerate() {
            if number == self.configurations.len() && reached {
                break;
            }
            let limits = Limits {
                states: Some(states),
                ..Limits::NONE
            };
            let check = Check::new(config, Some(self.mutation)).expect("validated before");
            let outcome = check.run(&limits, &mut |_| {});
            if let End::Broken(broken) = outcome.end {
                return self.caught_in(config, &broken);
            }
            reached |= self.mutation.site.is_some_and(|site| outcome.covered[site]);
        }
        match &self.equivalent {
            Some(reason) if reached => Verdict::Equivalent {
                reason: reason.clone(),
            },
            _ => Verdict::Survived {
                unreached: !reached,
            },
        }
    }
}

/// Runs mutants, several at once, and calls `done` for each that has run.
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

/// The mistakes that the list must have for each operation: each memory order one step weaker, and
/// the operation dropped if it writes, waits or wakes. Parking has no order that a lock chose.
pub fn mistakes(site: &Site) -> Vec<Change> {
    let weaker: &[Order] = match site.order {
        _ if matches!(site.kind, OperationKind::Park | OperationKind::Unpark) => &[],
        Order::Plain | Order::Relaxed => &[],
        Order::Dependency | Order::Acquire | Order::Release => &[Order::Relaxed],
        Order::AcqRel => &[Order::Acquire, Order::Release],
        Order::SeqCst => &[Order::AcqRel],
    };
    let drops = matches!(site.kind, OperationKind::Store | OperationKind::Unpark)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(locks: &str, parts: &str) -> Result<usize, String> {
        let named = |name: &str, text| vec![(name.to_owned(), text)];
        let configurations = "a = {}\nr = { random = 7 }";
        Mutants::parse(
            configurations,
            &named("tas", locks),
            &named("shared", parts),
        )
        .map(|all| all.mutants.len())
        .map_err(|error| error.to_string())
    }

    fn entry(at: &str, change: &str) -> String {
        format!("[[mutant]]\nat = \"{at}\"\nchange = \"{change}\"\n")
    }

    fn of_tas(mutants: &str) -> Result<usize, String> {
        parse(&format!("configurations = [\"a\"]\n{mutants}"), "")
    }

    #[track_caller]
    fn assert_refused(result: Result<usize, String>, words: &str) {
        let message = result.expect_err("a wrong list");
        assert!(message.contains(words), "no {words:?} in {message:?}");
    }

    #[test]
    fn a_wrong_list_is_refused() {
        let good = entry("lw_tas_unlock: store lock->locked", "drop");
        assert_eq!(of_tas(&good), Ok(1));
        assert_refused(of_tas(&format!("{good}{good}")), "twice");
        assert_refused(
            of_tas(&entry("lw_tas_unlock: store x", "drop")),
            "crates/check/mutants/tas.toml: no operation",
        );
        let twice = "lw_cna_try_take_last: cmpxchg word->val";
        let both = format!("[\"{twice} #1\", \"{twice} #2\"]");
        let both = entry("", "drop").replace("\"\"", &both);
        assert_eq!(of_tas(&both), Ok(2));
        assert_refused(of_tas(&entry(twice, "drop")), "#1 to #2");
        assert!(of_tas(&entry(&format!("{twice} #3"), "drop")).is_err());
        assert_refused(of_tas(&good.replace("drop", "weak")), "no change");
        assert_refused(of_tas(&format!("{good}how = 1\n")), "unknown field");
    }

    #[test]
    fn each_operation_of_a_function_has_its_mistakes() {
        let functions = |name: &str| format!("[[functions]]\nnames = [\"{name}\"]\n");
        let unlock = functions("lw_tas_unlock");
        assert_eq!(of_tas(&unlock), Ok(2));
        // An entry says more about one of them.
        let entry = entry("lw_tas_unlock: store lock->locked", "drop");
        assert_eq!(of_tas(&format!("{unlock}{entry}")), Ok(2));
        assert_refused(of_tas(&functions("lw_tas")), "no function");
    }

    #[test]
    fn only_a_mutant_asks_for_random_runs() {
        let good = entry("lw_tas_unlock: store lock->locked", "drop");
        let list = format!("configurations = [\"a\"]\n{good}caught_by = \"r\"\n");
        let file = [("tas".to_owned(), list.as_str())];
        let all =
            |random: &str| Mutants::parse(&format!("a = {{}}\nr = {{ {random} }}"), &file, &[]);
        let mutant = all("random = 7").unwrap().mutants.remove(0);
        assert_eq!(mutant.configurations, [Config::new("tas")]);
        let runs = mutant.random.expect("the list asks for them");
        assert_eq!((runs.runs, runs.config), (7, Config::new("tas")));
        assert!(all("random = true").is_err());
        assert_refused(
            parse("configurations = [\"a\", \"r\"]", ""),
            "'r' is one of random runs",
        );
    }

    #[test]
    fn only_parts_name_their_locks() {
        let good = entry("lw_tas_unlock: store lock->locked", "drop");
        let shared = |locks: &str| format!("{good}locks = {locks}\n");
        let lock = "configurations = [\"a\"]";
        assert_eq!(parse(lock, &shared("[\"tas\"]")), Ok(1));
        assert_refused(
            parse(lock, &good),
            "parts/shared.toml: mutants in parts/ need",
        );
        assert_refused(of_tas(&shared("[\"tas\"]")), "are of this lock");
        assert_refused(parse(lock, &shared("[\"mcs\"]")), "lock 'mcs' has no file");
        assert_refused(
            parse("configurations = [\"b\"]", ""),
            "configuration is called 'b'",
        );
    }
}
