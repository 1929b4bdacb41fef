//! The format of workload files. `docs/guides/workloads.md` explains it by example.

use std::collections::BTreeMap;
use std::fmt;

use lockworks_machine::Value;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer, MapAccess, Visitor};
use toml::Spanned;

use super::amount::Amount;

/// A workload file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a workload file")]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) title: String,
    /// Where threads run unless the user says otherwise.
    pub(super) placement: Spanned<String>,
    /// The size of the groups that placement `gather` makes.
    pub(super) gather: Option<Spanned<Amount>>,
    /// The number of operations in the whole job, where the workload is one that ends.
    pub(super) job_operations: Option<Spanned<Amount>>,
    /// Delays that are too rare to sample, as their mean for each operation.
    pub(super) rare_delay_ns: Option<Spanned<Amount>>,
    /// The time that a waiter takes to ask for sleep, or a thread to wake it.
    pub(super) sleep_call_ns: Option<Spanned<Amount>>,
    /// How many times as long computing takes while the core's other hardware thread works.
    pub(super) shared_core_slowdown: Option<Spanned<Amount>>,
    #[serde(default)]
    pub(super) constants: BTreeMap<String, Value>,
    /// Values computed from constants.
    #[serde(default)]
    pub(super) values: BTreeMap<String, Spanned<Amount>>,
    #[serde(default)]
    pub(super) memory: Vec<Spanned<Memory>>,
    pub(super) thread: Thread,
}

/// The steps of each thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the steps of a thread")]
pub(super) struct Thread {
    /// Once, at first.
    #[serde(default)]
    pub(super) start: Vec<Spanned<Step>>,
    /// Again and again until the end of the run.
    #[serde(rename = "loop")]
    pub(super) body: Spanned<Vec<Spanned<Step>>>,
}

/// A piece of shared memory, or several alike.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table that describes shared memory"
)]
pub(super) struct Memory {
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: Kind,
    /// The number of such pieces, each on cache lines of its own.
    pub(super) count: Option<Spanned<Amount>>,
    pub(super) bytes: Option<Spanned<Amount>>,
    /// Where data begins behind a lock, unless the lock is larger.
    pub(super) data_at: Option<Spanned<Amount>>,
    /// The count of a lockref at first.
    pub(super) references: Option<Spanned<Amount>>,
    /// The time of a system call to wait or to wake, for a mutex that blocks.
    pub(super) syscall_ns: Option<Spanned<Amount>>,
    /// The time with the lock of the futex bucket held.
    pub(super) bucket_critical_ns: Option<Spanned<Amount>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    #[default]
    Data,
    /// A lock under test.
    Lock,
    /// A blocking mutex; the lock under test is the spinlock of its futex bucket.
    FutexMutex,
    /// A lock under test and a count of references.
    Lockref,
}

/// A step: a word, or a table with one action.
#[derive(Debug)]
pub(super) enum Step {
    Word(Word),
    Action(Box<Action>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// One operation of the workload is complete.
    Operation,
    /// A place where timer ticks are taken.
    Ticks,
}

/// A step as written: one action, and what the action needs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with one action")]
pub(super) struct Action {
    pub(super) compute: Option<Spanned<Duration>>,
    pub(super) sleep: Option<Spanned<Duration>>,
    pub(super) lock: Option<Spanned<String>>,
    pub(super) load: Option<Spanned<String>>,
    pub(super) read: Option<Spanned<String>>,
    pub(super) write: Option<Spanned<String>>,
    pub(super) increment: Option<Spanned<String>>,
    pub(super) atomic_add: Option<Spanned<String>>,
    pub(super) get: Option<Spanned<String>>,
    pub(super) put: Option<Spanned<String>>,
    pub(super) repeat: Option<Spanned<Amount>>,
    pub(super) one_in: Option<Spanned<Amount>>,
    pub(super) each: Option<Spanned<String>>,
    pub(super) branch: Option<Spanned<Vec<Branch>>>,
    pub(super) system_call: Option<Vec<Spanned<Step>>>,
    pub(super) steps: Option<Vec<Spanned<Step>>>,
    pub(super) which: Option<Spanned<Which>>,
    pub(super) at: Option<Spanned<Amount>>,
    pub(super) bytes: Option<Spanned<Amount>>,
    pub(super) value: Option<Spanned<Amount>>,
}

impl Action {
    /// The keys that are given: those of actions, and the others.
    pub(super) fn keys(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let given = |keys: &[(&'static str, bool)]| {
            let given = keys.iter().filter(|(_, given)| *given);
            given.map(|(key, _)| *key).collect()
        };
        let actions = [
            ("compute", self.compute.is_some()),
            ("sleep", self.sleep.is_some()),
            ("lock", self.lock.is_some()),
            ("load", self.load.is_some()),
            ("read", self.read.is_some()),
            ("write", self.write.is_some()),
            ("increment", self.increment.is_some()),
            ("atomic_add", self.atomic_add.is_some()),
            ("get", self.get.is_some()),
            ("put", self.put.is_some()),
            ("repeat", self.repeat.is_some()),
            ("one_in", self.one_in.is_some()),
            ("each", self.each.is_some()),
            ("branch", self.branch.is_some()),
            ("system_call", self.system_call.is_some()),
        ];
        let others = [
            ("steps", self.steps.is_some()),
            ("which", self.which.is_some()),
            ("at", self.at.is_some()),
            ("bytes", self.bytes.is_some()),
            ("value", self.value.is_some()),
        ];
        (given(&actions), given(&others))
    }
}

/// One of several ways to go on, taken in proportion to its weight.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `weight` and `steps`")]
pub(super) struct Branch {
    pub(super) weight: Spanned<Amount>,
    pub(super) steps: Vec<Spanned<Step>>,
}

/// A time in nanoseconds: an amount, or a distribution.
#[derive(Clone, Debug)]
pub(super) enum Duration {
    Constant(Amount),
    Distribution(Distribution),
}

#[derive(Clone, Debug)]
pub(super) enum Distribution {
    /// Whole nanoseconds from the first amount up to the second.
    Uniform([Amount; 2]),
    /// 1,024 equally likely times from 0 to twice the mean.
    Around(Amount),
    /// Exponential with this mean.
    Exponential(Amount),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DistributionTable {
    uniform: Option<[Amount; 2]>,
    around: Option<Amount>,
    exponential: Option<Amount>,
}

impl TryFrom<DistributionTable> for Duration {
    type Error = &'static str;

    fn try_from(table: DistributionTable) -> Result<Self, Self::Error> {
        Ok(Self::Distribution(match table {
            DistributionTable {
                uniform: Some(bounds),
                around: None,
                exponential: None,
            } => Distribution::Uniform(bounds),
            DistributionTable {
                uniform: None,
                around: Some(mean),
                exponential: None,
            } => Distribution::Around(mean),
            DistributionTable {
                uniform: None,
                around: None,
                exponential: Some(mean),
            } => Distribution::Exponential(mean),
            _ => {
                return Err("give one of uniform = [low, high], around = mean, exponential = mean");
            }
        }))
    }
}

/// Which of several pieces of memory a step uses.
#[derive(Clone, Debug)]
pub(super) enum Which {
    /// One at random, all alike.
    Random,
    /// The thread's own: its number modulo the count.
    Own,
    /// One at random, the first most often.
    Zipf(Amount),
    /// One at random, by weight.
    Weights(Vec<Amount>),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WhichWord {
    Random,
    Own,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichTable {
    zipf: Option<Amount>,
    weights: Option<Vec<Amount>>,
}

impl TryFrom<WhichTable> for Which {
    type Error = &'static str;

    fn try_from(table: WhichTable) -> Result<Self, Self::Error> {
        match (table.zipf, table.weights) {
            (Some(exponent), None) => Ok(Self::Zipf(exponent)),
            (None, Some(weights)) => Ok(Self::Weights(weights)),
            _ => Err("give one of zipf = 1, weights = [1, 2]"),
        }
    }
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Self::Action(Box::new(action))
    }
}

/// Reads a value that is either a word or number, or a table that is turned into the value.
macro_rules! deserialize_word_or_table {
    ($type:ty, $table:ty, $expecting:literal, $($word:item)*) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct WordOrTable;

                impl<'de> Visitor<'de> for WordOrTable {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    $($word)*

                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        let table = <$table>::deserialize(MapAccessDeserializer::new(map))?;
                        table.try_into().map_err(de::Error::custom)
                    }
                }

                deserializer.deserialize_any(WordOrTable)
            }
        }
    };
}

deserialize_word_or_table! {
    Step,
    Action,
    "a step: \"operation\", \"ticks\", or a table with one action as { compute = 100 }",
    fn visit_str<E: de::Error>(self, word: &str) -> Result<Step, E> {
        Word::deserialize(word.into_deserializer()).map(Step::Word)
    }
}

deserialize_word_or_table! {
    Which,
    WhichTable,
    "\"random\", \"own\", { zipf = 1 } or { weights = [1, 2] }",
    fn visit_str<E: de::Error>(self, word: &str) -> Result<Which, E> {
        Ok(match WhichWord::deserialize(word.into_deserializer())? {
            WhichWord::Random => Which::Random,
            WhichWord::Own => Which::Own,
        })
    }
}

deserialize_word_or_table! {
    Duration,
    DistributionTable,
    "a time in nanoseconds, or a distribution as { uniform = [0, 100] }",
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
        Amount::deserialize(number.into_deserializer()).map(Duration::Constant)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Duration, E> {
        Amount::deserialize(number.into_deserializer()).map(Duration::Constant)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        Amount::deserialize(text.into_deserializer()).map(Duration::Constant)
    }
}
