//! A point: a simulation or a check, by the options of its command. Its key is a hash of everything
//! that its result depends on, so equal points have equal keys, and equal results.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Command, FromArgMatches};
use lockworks_check::command_line::{Checked, find_subject, free_memory, refused};
use lockworks_check::{Check, Config, End, Limits, RandomRuns, Token};
use lockworks_machine::{Library, MACHINES, Machine};
use lockworks_sim::WORKLOADS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use lockworks_sim::command_line::SimOptions;
use lockworks_sim::comparison::simulate;
use lockworks_ui::usage::with_negative_numbers;

/// The version that results are stored under: that of the package, and a hash of the sources and
/// of the compilers that results depend on.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("LOCKWORKS_SOURCES"));

/// The command that runs a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `lockworks sim`
    Sim,
    /// `lockworks check`
    Check,
}

/// The options of a command, as a plan tells them apart.
struct Options {
    /// Those that a point may have.
    point: Command,
    /// Those of a point that can end it, but not change its result. They are not in its key.
    limits: Command,
}

impl Options {
    fn new<Described: Args>(name: &'static str, limits: Command) -> Self {
        let point = Described::augment_args(Command::new(name)).args(limits.get_arguments());
        Self {
            point: with_negative_numbers(point),
            limits,
        }
    }
}

/// The long names of options.
pub fn names(options: &Command) -> impl Iterator<Item = &str> {
    options.get_arguments().filter_map(clap::Arg::get_long)
}

impl Kind {
    /// The name of the command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Check => "check",
        }
    }

    fn parts(self) -> &'static Options {
        static SIM: LazyLock<Options> =
            LazyLock::new(|| Options::new::<SimOptions>("sim", Command::new("limits")));
        static CHECK: LazyLock<Options> = LazyLock::new(|| {
            let limits = Limits::augment_args(Command::new("limits"));
            Options::new::<Checked>("check", limits)
        });
        match self {
            Self::Sim => &SIM,
            Self::Check => &CHECK,
        }
    }

    /// The names of the options that a point may have.
    pub fn options(self) -> impl Iterator<Item = &'static str> {
        names(&self.parts().point)
    }

    /// Whether an option can end a point, but not change its result.
    pub fn is_limit(self, option: &str) -> bool {
        names(&self.parts().limits).any(|name| name == option)
    }

    /// The default of an option, if it has one.
    pub fn default(self, option: &str) -> Option<Value> {
        let arguments = &mut self.parts().point.get_arguments();
        let argument = arguments.find(|argument| argument.get_long() == Some(option))?;
        if !argument.get_action().takes_values() {
            return Some(false.into());
        }
        let text = argument.get_default_values().first()?.to_str()?;
        Some(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
    }
}

/// A simulation or check. Options that have their default are left out, so that equal points have
/// equal options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The command.
    pub kind: Kind,
    /// The options. A tunable is `tune.NAME`, a value of the scenario `set.KEY`.
    pub options: BTreeMap<String, Value>,
}

/// A result, and why it counts as a failure if it does.
pub type Judged = (Map<String, Value>, Option<String>);

impl Point {
    /// The point of these options.
    pub fn new(kind: Kind, mut options: BTreeMap<String, Value>) -> Self {
        for (option, value) in &mut options {
            // `--numa on` is `numa = true` in a plan.
            let default = kind.default(option);
            if let (Value::Bool(on), Some(Value::String(_)) | None) = (&*value, default) {
                *value = if *on { "on" } else { "off" }.into();
            }
        }
        options.retain(|option, value| kind.default(option).as_ref() != Some(value));
        Self { kind, options }
    }

    /// The words of the options on the command line.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (option, value) in &self.options {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match (option.split_once('.'), value) {
                (Some((name, key)), _) => {
                    words.extend([format!("--{name}"), format!("{key}={text}")])
                }
                (None, Value::Bool(true)) => words.push(format!("--{option}")),
                (None, _) => words.extend([format!("--{option}"), text]),
            }
        }
        words
    }

    /// The command that repeats the point.
    pub fn command(&self) -> String {
        let mut words = vec!["lockworks".to_owned(), self.kind.name().to_owned()];
        words.extend(self.words());
        if self.kind == Kind::Sim {
            words.extend(["--seeds", "1"].map(str::to_owned));
        }
        shlex::try_join(words.iter().map(String::as_str)).expect("arguments have no NUL")
    }

    fn parse<T: FromArgMatches>(&self) -> Result<T> {
        let command = self.kind.parts().point.clone().no_binary_name(true);
        let matches = command.try_get_matches_from(self.words());
        let parsed = matches.and_then(|matches| T::from_arg_matches(&matches));
        parsed.map_err(|error| anyhow::Error::msg(lockworks_ui::usage::in_one_line(&error)))
    }

    /// The value of an option as text: what was given, or the default.
    pub fn text(&self, option: &str) -> String {
        match self
            .options
            .get(option)
            .cloned()
            .or_else(|| self.kind.default(option))
        {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// Fails if the point cannot be run.
    pub fn validate(&self) -> Result<()> {
        match self.kind {
            Kind::Sim => self.parse::<SimOptions>()?.plan(1).map(drop),
            Kind::Check => {
                let checked: Checked = self.parse()?;
                checked.lock.iter().try_for_each(|lock| {
                    let config = checked.config(find_subject(lock)?);
                    config.validate().map_err(refused)
                })
            }
        }
    }

    /// The hash of the version and of all that can change the result. Files count by their content.
    pub fn key(&self) -> Result<String> {
        let mut identity = self.clone();
        identity
            .options
            .retain(|option, _| !self.kind.is_limit(option));
        let file = |library: Library, name: &Value| -> Result<Option<String>> {
            let name = name.as_str().unwrap_or_default();
            let (text, origin) = library.open(name, Path::new(""))?;
            Ok(match text {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) if library.kind == MACHINES.kind => {
                    // It may inherit from other files.
                    Some(Machine::parse(&text, &origin)?.to_toml())
                }
                Cow::Owned(text) => Some(text),
            })
        };
        for library in [MACHINES, WORKLOADS] {
            if let Some(name) = identity.options.get_mut(library.kind)
                && let Some(content) = file(library, name)?
            {
                *name = content.into();
            }
        }
        let json = serde_json::to_string(&(VERSION, identity))?;
        Ok(format!("{:032x}", xxh3_128(json.as_bytes())))
    }

    /// Runs the point, one of `jobs` that run at the same time and share the memory. A check that sets
    /// no limit may use `memory` bytes, or its share of the memory.
    pub fn run(&self, jobs: usize, memory: Option<usize>) -> Result<Judged> {
        match self.kind {
            Kind::Sim => self.simulate(),
            Kind::Check => self.check(jobs, memory),
        }
    }

    fn simulate(&self) -> Result<Judged> {
        let plan = self.parse::<SimOptions>()?.plan(1)?;
        let ([lock], [threads]) = (plan.locks.as_slice(), plan.threads.as_slice()) else {
            bail!("a point has one lock and one number of threads");
        };
        let row = simulate(&plan, lock, *threads)?;
        let mut result = object(&row);
        // Arguments, and comparisons with other runs.
        for key in [
            "lock",
            "threads",
            "operations_per_second_by_seed",
            "reference_ratio",
        ] {
            result.shift_remove(key);
        }
        if let Some(Value::Object(events)) = result.get_mut("events") {
            events.retain(|_, count| *count != 0);
        }
        let failure = (row.violations > 0).then(|| {
            format!(
                "VIOLATION: the lock failed to exclude {} times",
                row.violations
            )
        });
        Ok((result, failure))
    }

    /// The run of the point, as a text that differs if a run does.
    #[cfg(test)]
    pub fn planned(&self) -> Result<String> {
        Ok(match self.kind {
            Kind::Sim => {
                let plan = self.parse::<SimOptions>()?.plan(1)?;
                let (scenario, host) = (&plan.scenario, &plan.host);
                let workload = (&scenario.workload.name, plan.seed, plan.ms);
                let doubt = plan.doubt.is_some();
                let machine = (
                    &scenario.machine.name,
                    scenario.values(),
                    doubt,
                    &plan.placement,
                );
                let host = (host.cpus, host.guests, host.pinned);
                let lock = (plan.locks[0].name(), plan.tunables, plan.odd_priority);
                format!("{:?}", (workload, machine, host, lock, plan.threads))
            }
            Kind::Check => format!("{:?}", self.planned_check()?),
        })
    }

    /// What is checked, in random runs if there are any, and its limits.
    fn planned_check(&self) -> Result<(Config, Option<RandomRuns>, Limits)> {
        let (checked, limits): (Checked, Limits) = (self.parse()?, self.parse()?);
        let [lock] = checked.lock.as_slice() else {
            bail!("a point has one lock");
        };
        let config = checked.config(find_subject(lock)?);
        Ok((config, checked.random(limits.time), limits))
    }

    fn check(&self, jobs: usize, memory: Option<usize>) -> Result<Judged> {
        let (config, random, limits) = self.planned_check()?;
        let check = Check::new(&config, None).map_err(refused)?;
        let limits = Limits {
            memory: limits.memory.or(memory).or_else(|| free_memory(jobs)),
            // The points of a sweep run beside each other: without a limit of its own, none goes to disk.
            disk: Some(limits.disk.unwrap_or(0)),
            ..limits
        };
        let (mut result, complete, broken) = match random {
            None => {
                let outcome = check.run(&limits, &mut |_| {});
                let broken = match outcome.end {
                    End::Kept => None,
                    End::Broken(broken) => Some(broken),
                    End::Unfinished(why) => bail!("not complete: {why}"),
                };
                (object(&outcome.coverage), broken.is_none(), broken)
            }
            Some(plan) => {
                let outcome = check.random_alone(&plan);
                let is_whole = outcome.broken.is_some() || outcome.runs == plan.runs;
                ensure!(is_whole, "not complete: the time limit is reached");
                (object(&outcome), false, outcome.broken)
            }
        };
        result.insert("complete".to_owned(), complete.into());
        let Some(broken) = broken else {
            return Ok((result, None));
        };
        let token = Token::new(&check, &broken).to_string();
        result.insert("violation".to_owned(), broken.violation.name().into());
        result.insert("token".to_owned(), token.into());
        Ok((result, Some(format!("VIOLATION: {}", broken.violation))))
    }
}

/// A value as the JSON of an object.
fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("results are objects"),
    }
}

/// The figures that summaries are made of: those of a simulation, and the states of a check.
#[derive(Default, Deserialize)]
pub struct Figures {
    pub operations_per_second: Option<f64>,
    /// None if there was no operation.
    pub fairness: Option<f64>,
    pub states: Option<u64>,
}

/// The outcome of a point: a line of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The key of the point.
    pub key: String,
    /// The version that the point was run by.
    pub version: String,
    /// The point.
    #[serde(flatten)]
    pub point: Point,
    /// The result. None: the point failed before it had one.
    pub result: Option<Map<String, Value>>,
    /// Why the point failed, if it did. A violation is a failure with a result.
    pub error: Option<String>,
    /// The duration in seconds.
    pub seconds: f64,
}

impl Outcome {
    /// Runs a point. An error or a panic is an outcome too.
    pub fn of(key: &str, point: &Point, run: impl FnOnce(&Point) -> Result<Judged>) -> Self {
        let begin = std::time::Instant::now();
        let run = std::panic::AssertUnwindSafe(|| {
            let judged = run(point)?;
            let unchanged = point.key().is_ok_and(|now| now == key);
            ensure!(
                unchanged,
                "the machine or workload changed while the point ran"
            );
            Ok(judged)
        });
        let (result, error) = match std::panic::catch_unwind(run) {
            Ok(Ok((result, error))) => (Some(result), error),
            Ok(Err(error)) => (None, Some(format!("{error:#}"))),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                (
                    None,
                    Some(format!("panic: {}", text.unwrap_or("no message"))),
                )
            }
        };
        Self {
            key: key.to_owned(),
            version: VERSION.to_owned(),
            point: point.clone(),
            result,
            error,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }

    /// The figures of the result, as far as it has them.
    pub fn figures(&self) -> Figures {
        let figures = self.result.as_ref().map(Figures::deserialize);
        figures.and_then(Result::ok).unwrap_or_default()
    }

    /// The outcome in a line of a store.
    pub fn read(line: &str) -> Result<Self> {
        serde_json::from_str(line).context("this is no result of a sweep")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_outcome() {
        let point = Point::new(Kind::Check, BTreeMap::new());
        let key = point.key().expect("a key");
        let outcome = Outcome::of(&key, &point, |_| panic!("number {}", 7));
        assert_eq!(outcome.error.as_deref(), Some("panic: number 7"));
        assert_eq!((outcome.result, outcome.point), (None, point));
    }

    #[test]
    fn a_default_that_is_given_makes_no_other_point() {
        let options = [("numa", "on"), ("memory", "c11")].map(|(k, v)| (k.to_owned(), v.into()));
        let given = Point::new(Kind::Check, BTreeMap::from(options));
        assert_eq!(given, Point::new(Kind::Check, BTreeMap::new()));
    }
}
