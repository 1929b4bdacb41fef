//! The format of workload files. `docs/guides/workloads.md` explains it by example.

use std::collections::BTreeMap;
use std::fmt;

use lockworks_machine::Value;
use lockworks_machine::description::table;
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
    /// Why absolute rates mean nothing, and only ratios of locks do.
    pub(super) ratios_only: Option<String>,
    /// The placement of the threads that applies unless the user chooses another one.
    pub(super) placement: Spanned<String>,
    /// The number of threads in a group, for the placement `gather`.
    pub(super) gather: Option<Spanned<Amount>>,
    /// The number of operations in the whole job, if the workload has an end.
    pub(super) job_operations: Option<Spanned<Amount>>,
    /// The mean delay of an operation by events that are too rare to sample.
    pub(super) rare_delay_ns: Option<Spanned<Amount>>,
    /// The time of the system call that puts a waiter to sleep.
    pub(super) wait_call_ns: Option<Spanned<Amount>>,
    /// The time of the system call that wakes a waiter.
    pub(super) wake_call_ns: Option<Spanned<Amount>>,
    /// The factor by which computing takes longer while the core's other hardware thread works.
    pub(super) shared_core_slowdown: Option<Spanned<Amount>>,
    #[serde(default)]
    pub(super) constants: BTreeMap<String, Value>,
    /// Named values that are computed from constants.
    #[serde(default)]
    pub(super) values: BTreeMap<String, Spanned<Amount>>,
    #[serde(default)]
    pub(super) memory: Vec<Spanned<Memory>>,
    #[serde(deserialize_with = "table")]
    pub(super) thread: Thread,
}

/// The steps of each thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the steps of a thread")]
pub(super) struct Thread {
    /// The steps that the thread takes once, at its beginning.
    #[serde(default)]
    pub(super) start: Vec<Spanned<Step>>,
    /// The steps that the thread repeats until the end of the run.
    #[serde(rename = "loop")]
    pub(super) body: Spanned<Vec<Spanned<Step>>>,
}

/// A description of one or more equal pieces of shared memory.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table that describes shared memory"
)]
pub(super) struct Memory {
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: MemoryKind,
    /// The number of pieces. Each is on cache lines of its own.
    pub(super) count: Option<Spanned<Amount>>,
    pub(super) bytes: Option<Spanned<Amount>>,
    /// The offset of the data behind a lock, in bytes from the lock's beginning. If the lock is
    /// larger, the data begins at its end.
    pub(super) data_at: Option<Spanned<Amount>>,
    /// The time of a system call to wait or to wake, for a blocking mutex.
    pub(super) syscall_ns: Option<Spanned<Amount>>,
    /// The time for which a system call holds the lock of the futex bucket, besides its accesses to
    /// shared memory.
    pub(super) bucket_critical_ns: Option<Spanned<Amount>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MemoryKind {
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
    /// The thread has completed an operation of the workload.
    Operation,
    /// The thread takes a timer tick if one is due.
    Ticks,
}

/// A step as written: one action, and what the action needs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with one action")]
pub(super) struct Action {
    pub(super) compute: Option<Spanned<Duration>>,
    pub(super) sleep: Option<Spanned<Duration>>,
    pub(super) lock: Option<Spanned<String>>,
    pub(super) read_lock: Option<Spanned<String>>,
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
    /// Returns the keys that the step has: those of actions, and the others.
    pub(super) fn keys(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let given = |keys: &[(&'static str, bool)]| {
            let given = keys.iter().filter(|(_, given)| *given);
            given.map(|(key, _)| *key).collect()
        };
        let actions = [
            ("compute", self.compute.is_some()),
            ("sleep", self.sleep.is_some()),
            ("lock", self.lock.is_some()),
            ("read_lock", self.read_lock.is_some()),
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

/// One branch of several. The thread takes each with a probability in proportion to its weight.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `weight` and `steps`")]
pub(super) struct Branch {
    pub(super) weight: Spanned<Amount>,
    pub(super) steps: Vec<Spanned<Step>>,
}

/// A time in nanoseconds: a constant amount, or a distribution.
#[derive(Clone, Debug)]
pub(super) enum Duration {
    Constant(Amount),
    Distribution(Distribution),
}

#[derive(Clone, Debug)]
pub(super) enum Distribution {
    /// Whole nanoseconds from the first amount to below the second.
    Uniform([Amount; 2]),
    /// One of 1,024 equally likely times between 0 and twice this mean.
    Around(Amount),
    /// Exponentially distributed times with this mean.
    Exponential(Amount),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DistributionTable {
    uniform: Option<Vec<Amount>>,
    around: Option<Amount>,
    exponential: Option<Amount>,
}

impl TryFrom<DistributionTable> for Duration {
    type Error = String;

    fn try_from(table: DistributionTable) -> Result<Self, Self::Error> {
        Ok(Self::Distribution(match table {
            DistributionTable {
                uniform: Some(bounds),
                around: None,
                exponential: None,
            } => Distribution::Uniform(bounds.try_into().map_err(|bounds: Vec<Amount>| {
                format!(
                    "uniform = [low, high] takes two times, not {}",
                    bounds.len()
                )
            })?),
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
                let message =
                    "give one of uniform = [low, high], around = mean, exponential = mean";
                return Err(message.to_owned());
            }
        }))
    }
}

/// The choice of a step among several pieces of memory.
#[derive(Clone, Debug)]
pub(super) enum Which {
    /// A random piece. All are equally likely.
    Random,
    /// The piece whose index is the thread's number modulo the count.
    Own,
    /// A random piece by Zipf's law with this exponent. The first piece is the most likely.
    Zipf(Amount),
    /// A random piece. Each is chosen with a probability in proportion to its weight.
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

/// Implements reading of a type whose value is written as a word, a number or a table.
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
    "a step: \"operation\", \"ticks\", or a table with one action like { compute = 100 }",
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
    "a time in nanoseconds, or a distribution like { uniform = [0, 100] }",
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
