//! Points of `kind = "check"`: their table in a plan, the points of the table, and their results.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, anyhow};
use itertools::iproduct;
use lockworks::LockType;
use lockworks_check::{Check, Config, Coverage, End, Limits, Memory, Mode, Time, Token};
use lockworks_machine::description::Fault;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::plan::{Tunables, add, fault, settings, tunings};
use super::point::{Judged, Point, PointRun, object};
use super::values::{Key, Placed, Whole, check_range, given, numbers, options, values};
use crate::check::{default_nodes, find_subject, memory_limit, refused, subjects, tunables};

/// A check with all its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckPoint {
    /// The lock, lockref or condition variable.
    pub lock: String,
    /// The number of threads.
    pub threads: usize,
    acquisitions: u32,
    locks: usize,
    memory: Memory,
    staleness: Option<u8>,
    slots: Option<usize>,
    nodes: usize,
    trylock: bool,
    spurious: u8,
    cancel: bool,
    split_release: bool,
    nesting: u8,
    priority: Vec<usize>,
    time: Time,
    overtaking: Option<u8>,
    numa: bool,
    shuffle_reduction: bool,
    mode: Mode,
    /// Tunables that do not have the small value of checks.
    tune: BTreeMap<String, u64>,
    /// Limits do not change the result of a check that ends before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_limit: Option<usize>,
}

/// The table of checks in a plan. Every key with several values multiplies the points.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckTable {
    locks: Key<String>,
    threads: Key<Whole>,
    acquisitions: Key<Whole>,
    lock_count: Key<Whole>,
    memory: Key<Memory>,
    staleness: Key<u8>,
    slots: Key<Whole>,
    nodes: Key<Whole>,
    trylock: Key<bool>,
    spurious: Key<u8>,
    cancel: Key<bool>,
    split_release: Key<bool>,
    nesting: Key<u8>,
    #[serde(default)]
    priority: Vec<usize>,
    time: Key<Time>,
    overtaking: Key<u8>,
    numa: Key<bool>,
    shuffle_reduction: Key<bool>,
    mode: Key<Mode>,
    #[serde(default)]
    tune: Tunables,
    seconds: Option<Spanned<f64>>,
    memory_limit: Option<Spanned<usize>>,
}

/// The whole numbers of a key. None is the only one if the plan does not have the key.
fn sizes(key: &Key<Whole>) -> Result<Vec<Option<usize>>, Fault> {
    let numbers = numbers(key)?.into_iter();
    Ok(numbers.map(|n| n.map(|(_, n)| n as usize)).collect())
}

/// The whole numbers of a key, or `default` if the plan does not have the key.
fn sizes_or(key: &Key<Whole>, default: usize) -> Result<Vec<usize>, Fault> {
    let sizes = sizes(key)?.into_iter();
    Ok(sizes.map(|size| size.unwrap_or(default)).collect())
}

impl CheckTable {
    /// The locks, each with its place in the plan.
    fn locks(
        &self,
        span: &Range<usize>,
    ) -> Result<Vec<Placed<(&'static str, &'static LockType)>>, Fault> {
        match &self.locks {
            None => Ok(subjects()
                .filter(|(_, lock)| !lock.is_broken())
                .map(|subject| (span.clone(), subject))
                .collect()),
            Some(names) => given(names)?
                .into_iter()
                .map(|(span, name)| match find_subject(&name) {
                    Ok(subject) => Ok((span, subject)),
                    Err(error) => Err(fault(&span, &error)),
                })
                .collect(),
        }
    }

    /// Adds the points of the table, which is at `span` of the plan.
    pub fn expand(&self, span: &Range<usize>, points: &mut Vec<Point>) -> Result<(), Fault> {
        if let Some(seconds) = &self.seconds {
            let seconds = (seconds.span(), *seconds.get_ref());
            check_range("seconds", &seconds, &(0.001..=1e9))?;
        }
        let tunings = tunings(&self.tune)?;
        for (at, (name, lock)) in self.locks(span)? {
            let where_threads_run = iproduct!(
                sizes_or(&self.threads, 2)?,
                sizes_or(&self.acquisitions, 2)?,
                sizes_or(&self.lock_count, 1)?,
                sizes_or(&self.nodes, default_nodes(lock))?,
                sizes(&self.slots)?,
                values(&self.memory, Memory::Weak)?,
                options(&self.staleness)?
            );
            for (threads, acquisitions, locks, nodes, slots, memory, staleness) in where_threads_run
            {
                let what_threads_do = iproduct!(
                    values(&self.trylock, false)?,
                    values(&self.spurious, 1)?,
                    values(&self.cancel, false)?,
                    values(&self.split_release, false)?,
                    values(&self.nesting, 0)?,
                    values(&self.time, Time::Any)?,
                    options(&self.overtaking)?
                );
                for (trylock, spurious, cancel, split_release, nesting, time, overtaking) in
                    what_threads_do
                {
                    for (numa, shuffle_reduction, mode, tune) in iproduct!(
                        values(&self.numa, true)?,
                        values(&self.shuffle_reduction, true)?,
                        values(&self.mode, Mode::Numa)?,
                        &tunings
                    ) {
                        let point = CheckPoint {
                            lock: name.to_owned(),
                            threads,
                            acquisitions: u32::try_from(acquisitions).unwrap_or(u32::MAX),
                            locks,
                            memory,
                            staleness,
                            slots,
                            nodes,
                            trylock,
                            spurious,
                            cancel,
                            split_release,
                            nesting,
                            priority: self.priority.clone(),
                            time,
                            overtaking,
                            numa,
                            shuffle_reduction,
                            mode,
                            tune: tune.clone(),
                            seconds: self.seconds.as_ref().map(|s| *s.get_ref()),
                            memory_limit: self.memory_limit.as_ref().map(|m| *m.get_ref()),
                        };
                        let config = point.config().map_err(|error| fault(&at, &error))?;
                        config.validate().map_err(|e| fault(&at, &refused(e)))?;
                        add(points, PointRun::Check(point), span)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The result of a check.
#[derive(Serialize)]
struct CheckResult {
    complete: bool,
    #[serde(flatten)]
    coverage: Coverage,
    violation: Option<&'static str>,
    token: Option<String>,
}

impl CheckPoint {
    /// The arguments that can change the result.
    #[must_use]
    pub fn identity(&self) -> Self {
        Self {
            seconds: None,
            memory_limit: None,
            ..self.clone()
        }
    }

    fn config(&self) -> Result<Config> {
        let tune = settings(&self.tune)?;
        Ok(Config {
            lock: self.lock.clone(),
            threads: self.threads,
            acquisitions: self.acquisitions,
            locks: self.locks,
            memory: self.memory,
            staleness: self.staleness,
            slots: self.slots,
            nodes: self.nodes,
            trylock: self.trylock,
            spurious: self.spurious,
            cancel: self.cancel,
            split_release: self.split_release,
            nesting: self.nesting,
            priority: self.priority.clone(),
            time: self.time,
            overtaking: self.overtaking,
            tunables: tunables(self.numa, self.shuffle_reduction, &tune),
            mode: self.mode,
        })
    }

    /// The words of the command that repeats the check.
    pub fn command(&self) -> Vec<String> {
        let mut words = vec!["lockworks".to_owned(), "check".to_owned()];
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.push(format!("--{name}"));
                words.push(value);
            }
        };
        let unless = |value: usize, default: usize| (value != default).then(|| value.to_string());
        option("lock", Some(self.lock.clone()));
        option("threads", Some(self.threads.to_string()));
        option("acquisitions", Some(self.acquisitions.to_string()));
        option("locks", unless(self.locks, 1));
        option(
            "memory",
            (self.memory == Memory::Sc).then(|| "sc".to_owned()),
        );
        option("staleness", self.staleness.map(|n| n.to_string()));
        option("slots", self.slots.map(|n| n.to_string()));
        option("nodes", Some(self.nodes.to_string()));
        option("spurious", unless(self.spurious.into(), 1));
        option("nesting", unless(self.nesting.into(), 0));
        option(
            "time",
            match self.time {
                Time::Any => None,
                Time::Early => Some("early".to_owned()),
                Time::Late => Some("late".to_owned()),
            },
        );
        option("overtaking", self.overtaking.map(|n| n.to_string()));
        option("numa", (!self.numa).then(|| "off".to_owned()));
        option(
            "mode",
            (self.mode == Mode::Plain).then(|| "plain".to_owned()),
        );
        for thread in &self.priority {
            option("priority", Some(thread.to_string()));
        }
        for (name, value) in &self.tune {
            option("tune", Some(format!("{name}={value}")));
        }
        option("seconds", self.seconds.map(|s| s.to_string()));
        option("memory-limit", self.memory_limit.map(|m| m.to_string()));
        let flags = [
            ("--trylock", self.trylock),
            ("--cancel", self.cancel),
            ("--split-release", self.split_release),
            ("--no-shuffle-reduction", !self.shuffle_reduction),
        ];
        let flags = flags.iter().filter(|(_, given)| *given);
        words.extend(flags.map(|(flag, _)| (*flag).to_owned()));
        words
    }

    /// Checks the point. `jobs` points run at the same time, and share the memory.
    pub fn result(&self, jobs: usize) -> Result<Judged> {
        let config = self.config()?;
        let check = Check::new(&config, None).map_err(refused)?;
        let limits = Limits {
            time: self.seconds.map(Duration::from_secs_f64),
            memory: memory_limit(self.memory_limit, jobs),
            states: None,
        };
        let outcome = check.run(&limits, &mut |_| {});
        let (violation, failure) = match &outcome.end {
            End::Kept => (None, None),
            End::Unfinished(why) => return Err(anyhow!("not complete: {why}")),
            End::Broken(broken) => (
                Some((
                    broken.violation.name(),
                    Token::new(&check, broken).to_string(),
                )),
                Some(format!("VIOLATION: {}", broken.violation)),
            ),
        };
        let (violation, token) = violation.unzip();
        let result = CheckResult {
            complete: outcome.end == End::Kept,
            coverage: outcome.coverage,
            violation,
            token,
        };
        Ok((Some(object(&result)), failure))
    }
}
