//! A table of a plan, and the points that it describes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, absolute};

use clap::Command;
use itertools::Itertools;
use lockworks_machine::description::Fault;
use lockworks_machine::{Library, MACHINES, Machine};
use lockworks_names::{nearest, unknown};
use lockworks_sim::WORKLOADS;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::plan::{MOST_POINTS, fault};
use crate::point::{Kind, Point, names};
use lockworks_check::command_line::subjects;
use lockworks_sim::comparison::doubled;

/// Keys that have another name than their option. The option `--locks` of a check is a number.
const KEYS: [(&str, &str); 6] = [
    ("machines", "machine"),
    ("workloads", "workload"),
    ("lock_count", "locks"),
    ("locks", "lock"),
    ("placements", "placement"),
    ("seeds", "seed"),
];

/// The options that set a value by its name, and are tables in a plan.
const NAMED: [&str; 2] = ["tune", "set"];

/// The virtual time of simulations that give none, in milliseconds: that of most reproduced tables.
const DEFAULT_MS: f64 = 5.0;

/// A table of a plan. Its points are the product of the values of its options.
pub struct Table {
    kind: Kind,
    span: Range<usize>,
    options: Vec<Choices>,
}

/// An option with all its values, each with its place in the plan.
struct Choices {
    option: String,
    values: Vec<(Range<usize>, Value)>,
}

/// One of these values.
#[derive(Clone, Copy)]
struct Given<'a> {
    option: &'a str,
    span: &'a Range<usize>,
    value: &'a Value,
}

impl Choices {
    fn each(&self) -> impl Iterator<Item = Given<'_>> + Clone {
        self.values.iter().map(|(span, value)| Given {
            option: &self.option,
            span,
            value,
        })
    }
}

impl Table {
    /// Reads the table at `span` of the plan. Paths are relative to `directory`.
    pub fn read(
        span: Range<usize>,
        mut table: DeTable,
        directory: &Path,
        lockworks: &Command,
    ) -> Result<Self, Fault> {
        let kind = match table.remove("kind") {
            None => Kind::Sim,
            Some(kind) => {
                let at = kind.span();
                let wrong = |_| fault(&at, "the kind must be \"sim\" or \"check\"");
                Kind::deserialize(ValueDeserializer::from(kind)).map_err(wrong)?
            }
        };
        let mut read = Self {
            kind,
            span,
            options: Vec::new(),
        };
        for (key, value) in table {
            let option = read.option(&key, lockworks)?;
            read.add(option, value, directory)?;
        }
        // The table has them in the order of their names, the file in that of their places.
        let index = |choices: &Choices| choices.values.first().map(|(span, _)| span.start);
        read.options.sort_by_key(index);
        read.add_defaults();
        Ok(read)
    }

    /// The option of a key.
    fn option(
        &self,
        key: &Spanned<std::borrow::Cow<str>>,
        lockworks: &Command,
    ) -> Result<String, Fault> {
        let given = key.get_ref().as_ref();
        let renamed = KEYS.iter().find(|(known, _)| *known == given);
        let option = renamed.map_or_else(|| given.replace('_', "-"), |(_, o)| (*o).to_owned());
        if self.kind.options().any(|known| known == option) {
            return Ok(option);
        }
        let command = self.kind.name();
        let mut all = lockworks.find_subcommand(command).into_iter();
        if all.any(|all| names(all).any(|known| known == option)) {
            let message = format!(
                "`{given}` does not say what a point is; remove it, and give --{option} to `lockworks {command}`"
            );
            return Err(Fault::at(key, message));
        }
        let keys: Vec<String> = self.kind.options().map(key_of).collect();
        let meant = nearest(given, keys.iter().map(String::as_str));
        let allowed = || format!("the keys here are {}", keys.join(", "));
        Err(Fault::at(key, unknown("key", given, '`', meant, allowed)))
    }

    /// Adds an option. A table is one of options that have this name and a dot before their own.
    fn add(
        &mut self,
        option: String,
        value: Spanned<DeValue>,
        directory: &Path,
    ) -> Result<(), Fault> {
        let span = value.span();
        let is_named = NAMED
            .iter()
            .any(|name| option.split('.').next() == Some(name));
        let values = match value.into_inner() {
            DeValue::Table(table) if is_named => {
                for (key, value) in table {
                    self.add(format!("{option}.{}", key.get_ref()), value, directory)?;
                }
                return Ok(());
            }
            DeValue::Array(list) if list.is_empty() => {
                return Err(fault(
                    &span,
                    "the list is empty; give a value, or remove the key",
                ));
            }
            DeValue::Array(list) => list,
            one => [Spanned::new(span.clone(), one)].into_iter().collect(),
        };
        if is_named && !option.contains('.') {
            return Err(fault(&span, format!("give {option}.NAME = VALUE")));
        }
        if self.options.iter().any(|known| known.option == option) {
            return Err(fault(&span, format!("--{option} is given twice; keep one")));
        }
        let mut all = Vec::new();
        for value in values {
            let span = value.span();
            for value in scalars(value)? {
                let value = match value.as_str() {
                    Some(name) => located(&option, name, directory).into(),
                    None => value,
                };
                all.push((span.clone(), value));
            }
        }
        if let [_, (second, _), ..] = all.as_slice()
            && self.kind.is_limit(&option)
        {
            let message =
                format!("--{option} is a limit, which makes no other point; give one value");
            return Err(fault(second, message));
        }
        self.options.push(Choices {
            option,
            values: all,
        });
        Ok(())
    }

    /// Adds the options that a sweep has and the plan does not give.
    fn add_defaults(&mut self) {
        let locks: Vec<&str> = match self.kind {
            Kind::Sim => lockworks_sim::lock_types()
                .filter(|lock| !lock.is_broken())
                .map(|lock| lock.name())
                .collect(),
            Kind::Check => subjects()
                .filter(|(_, lock)| !lock.is_broken())
                .map(|(name, _)| name)
                .collect(),
        };
        let mut defaults = vec![("lock", locks.into_iter().map(Value::from).collect())];
        let has = |option: &str| self.options.iter().any(|known| known.option == option);
        if self.kind == Kind::Sim {
            defaults.push(("ms", vec![DEFAULT_MS.into()]));
            if !has("vcpus") {
                defaults.push(("threads", vec!["doubled".into()]));
            }
        }
        defaults.retain(|(option, _)| !has(option));
        for (option, values) in defaults {
            let values = values
                .into_iter()
                .map(|value| (self.span.clone(), whole(value)));
            self.options.push(Choices {
                option: option.to_owned(),
                values: values.collect(),
            });
        }
    }

    /// Adds the points of the table.
    pub fn expand(&self, points: &mut Vec<Point>) -> Result<(), Fault> {
        let too_many = || {
            let message = format!("the plan has more than {MOST_POINTS} points; give fewer values");
            fault(&self.span, message)
        };
        let count = self.options.iter().map(|choices| choices.values.len());
        let count = count.fold(1, usize::saturating_mul);
        if points.len().saturating_add(count) > MOST_POINTS {
            return Err(too_many());
        }
        self.validate()?;
        let mut cpus = HashMap::new();
        let values = self.options.iter().map(Choices::each);
        for values in values.multi_cartesian_product() {
            points.extend(self.points(&values, &mut cpus)?);
            if points.len() > MOST_POINTS {
                return Err(too_many());
            }
        }
        Ok(())
    }

    /// The points that have these values, one of each option: several if the numbers of threads
    /// depend on the machine. `cpus` keeps the number of CPUs of each machine.
    fn points(
        &self,
        values: &[Given],
        cpus: &mut HashMap<String, usize>,
    ) -> Result<Vec<Point>, Fault> {
        let options = values
            .iter()
            .map(|given| (given.option.to_owned(), given.value.clone()));
        let options: BTreeMap<String, Value> = options.collect();
        for option in ["threads", "vcpus"] {
            let Some(Value::String(text)) = options.get(option) else {
                continue;
            };
            let machine = Point::new(self.kind, options.clone()).text("machine");
            let all = match (options.get("cpus"), cpus.get(&machine)) {
                (Some(given), _) => given.as_u64().unwrap_or(1) as usize,
                (None, Some(known)) => *known,
                (None, None) => {
                    let found = Machine::find(&machine);
                    let all = found.map_err(|error| fault(&self.span, error))?.cpus();
                    cpus.insert(machine, all);
                    all
                }
            };
            if let Some(numbers) = threads(text, all) {
                let point = |number: usize| {
                    let mut options = options.clone();
                    options.insert(option.to_owned(), number.into());
                    Point::new(self.kind, options)
                };
                return Ok(numbers.into_iter().map(point).collect());
            }
        }
        Ok(vec![Point::new(self.kind, options)])
    }

    /// Tries each value with the first values of the other options, so that a mistake is found at
    /// its place before anything runs; of a range, its ends. Other combinations that cannot run are failures of the sweep.
    fn validate(&self) -> Result<(), Fault> {
        let firsts = self
            .options
            .iter()
            .filter_map(|choices| choices.each().next());
        let firsts: Vec<Given> = firsts.collect();
        if let Err(message) = self.try_values(&firsts) {
            // The mistake is in the option without which there is none.
            let wrong = (0..firsts.len()).find(|index| {
                let mut others = firsts.clone();
                others.remove(*index);
                self.try_values(&others).is_ok()
            });
            let span = wrong.map_or(&self.span, |index| firsts[index].span);
            return Err(fault(span, message));
        }
        for (index, choices) in self.options.iter().enumerate() {
            let all: Vec<Given> = choices.each().collect();
            // Of a range, the ends.
            for range in all.chunk_by(|one, other| one.span == other.span) {
                for value in range.first().into_iter().chain(range.last()) {
                    let mut values = firsts.clone();
                    values[index] = *value;
                    let tried = self.try_values(&values);
                    tried.map_err(|message| fault(value.span, message))?;
                }
            }
        }
        Ok(())
    }

    /// Fails with a message if a point of these values cannot be run.
    fn try_values(&self, values: &[Given]) -> Result<(), String> {
        let points = self.points(values, &mut HashMap::new());
        for point in points.map_err(|fault| fault.message)? {
            point.validate().map_err(|error| format!("{error:#}"))?;
        }
        Ok(())
    }
}

/// The key of an option.
pub fn key_of(option: &str) -> String {
    let renamed = KEYS.iter().find(|(_, renamed)| *renamed == option);
    renamed.map_or_else(|| option.replace('-', "_"), |(key, _)| (*key).to_owned())
}

/// The values that one value of a plan stands for: itself, or the numbers of a range such as
/// `"1..8"` or `"8..64:8"`.
fn scalars(value: Spanned<DeValue>) -> Result<Vec<Value>, Fault> {
    let span = value.span();
    if matches!(
        value.get_ref(),
        DeValue::Array(_) | DeValue::Table(_) | DeValue::Datetime(_)
    ) {
        return Err(fault(&span, "give a number, a text, true or false here"));
    }
    let value = Value::deserialize(ValueDeserializer::from(value));
    let value = value.map_err(|error| fault(&span, error.message()))?;
    let Some(text) = value.as_str() else {
        return Ok(vec![whole(value)]);
    };
    let (range, step) = text.split_once(':').unwrap_or((text, "1"));
    let Some((low, high)) = range.split_once("..") else {
        return Ok(vec![value]);
    };
    match (
        low.parse::<u64>(),
        high.parse::<u64>(),
        step.parse::<usize>(),
    ) {
        (Ok(low), Ok(high), Ok(step @ 1..)) if low <= high => {
            if (high - low) / step as u64 >= MOST_POINTS as u64 {
                let message = format!("'{text}' has more than {MOST_POINTS} numbers");
                return Err(fault(&span, message));
            }
            Ok((low..=high).step_by(step).map(Value::from).collect())
        }
        (Ok(_), Ok(_), _) => Err(fault(
            &span,
            format!("'{text}' is no range; give one like \"1..8\" or \"8..64:8\""),
        )),
        // A path may have two dots too.
        _ => Ok(vec![value]),
    }
}

/// The value, as a whole number if it is one, so that 5.0 and 5 are the same.
pub fn whole(value: Value) -> Value {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => (number as i64).into(),
        _ => value,
    }
}

/// The value of an option. The path of a machine or workload is absolute.
pub fn located(option: &str, value: &str, directory: &Path) -> String {
    let is_known = |library: Library| {
        let known = library.all().unwrap_or_default();
        known.iter().any(|builtin| builtin.name == value)
    };
    let is_path = value.contains('/') || value.ends_with(".toml");
    let library = [MACHINES, WORKLOADS]
        .into_iter()
        .find(|library| library.kind == option);
    match library {
        Some(library) if is_path && !is_known(library) => {
            let path = directory.join(value);
            absolute(&path).unwrap_or(path).display().to_string()
        }
        _ => value.to_owned(),
    }
}

/// The numbers of threads that a word stands for on a machine with this many CPUs: `all`, `4*all`, or
/// `doubled`, which is 1, 2, 4 and so on.
fn threads(text: &str, cpus: usize) -> Option<Vec<usize>> {
    match text.split_once('*').unwrap_or(("1", text)) {
        ("1", "doubled") => Some(doubled(cpus)),
        (times, "all") => Some(vec![times.parse::<usize>().ok()?.saturating_mul(cpus)]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_depend_on_the_machine() {
        assert_eq!(threads("all", 12), Some(vec![12]));
        assert_eq!(threads("4*all", 12), Some(vec![48]));
        assert_eq!(threads("doubled", 12), Some(vec![1, 2, 4, 8, 12]));
        for bad in ["al", "2*doubled", "x*all", "8"] {
            assert_eq!(threads(bad, 12), None, "{bad}");
        }
    }
}
