//! The values of a plan's keys: one or several, each with its place in the file.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use lockworks_machine::description::Fault;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

/// A value, or a list of values.
#[derive(Debug)]
pub enum Values<T> {
    /// One value.
    One(T),
    /// A list.
    Several(Vec<Spanned<T>>),
}

/// A value and the bytes of the plan that it is in.
pub type Placed<T> = (Range<usize>, T);

/// A key of a table that may be left out.
pub type Key<T> = Option<Spanned<Values<T>>>;

impl<T: Clone> Values<T> {
    /// All values with their places. The key's value is at `span` of the plan.
    ///
    /// # Errors
    ///
    /// If the list is empty.
    pub fn placed(&self, span: Range<usize>) -> Result<Vec<Placed<T>>, Fault> {
        match self {
            Self::One(value) => Ok(vec![(span, value.clone())]),
            Self::Several(list) if list.is_empty() => Err(Fault {
                span,
                message: "the list is empty; give a value, or remove the key".to_owned(),
            }),
            Self::Several(list) => {
                let placed = list.iter().map(|v| (v.span(), v.get_ref().clone()));
                Ok(placed.collect())
            }
        }
    }
}

/// All values of a key with their places.
///
/// # Errors
///
/// If the list is empty.
pub fn given<T: Clone>(values: &Spanned<Values<T>>) -> Result<Vec<Placed<T>>, Fault> {
    values.get_ref().placed(values.span())
}

/// All values of a key with their places, or `default` if the plan does not have the key. The place
/// of a default is `table`, that of the whole table.
///
/// # Errors
///
/// If the list is empty.
pub fn all<T: Clone>(
    key: &Key<T>,
    table: &Range<usize>,
    default: T,
) -> Result<Vec<Placed<T>>, Fault> {
    match key {
        None => Ok(vec![(table.clone(), default)]),
        Some(values) => given(values),
    }
}

/// All values of a key, or `default` if the plan does not have the key.
///
/// # Errors
///
/// If the list is empty.
pub fn values<T: Clone>(key: &Key<T>, default: T) -> Result<Vec<T>, Fault> {
    Ok(options(key)?
        .into_iter()
        .map(|value| value.unwrap_or_else(|| default.clone()))
        .collect())
}

/// All values of a key. None is the only one if the plan does not have the key.
///
/// # Errors
///
/// If the list is empty.
pub fn options<T: Clone>(key: &Key<T>) -> Result<Vec<Option<T>>, Fault> {
    match key {
        None => Ok(vec![None]),
        Some(values) => Ok(given(values)?.into_iter().map(|(_, v)| Some(v)).collect()),
    }
}

/// All whole numbers of a key with their places. None is the only one if the plan does not have the
/// key.
///
/// # Errors
///
/// If the list is empty.
pub fn numbers(key: &Key<Whole>) -> Result<Vec<Option<Placed<u64>>>, Fault> {
    let Some(values) = key else {
        return Ok(vec![None]);
    };
    let ranges = given(values)?.into_iter();
    Ok(ranges
        .flat_map(|(span, Whole(range))| range.into_iter().map(move |n| Some((span.clone(), n))))
        .collect())
}

/// Implements the methods of a visitor that pass scalars on to the type `T`.
macro_rules! scalars {
    ($error:ident, $($method:ident: $type:ty),*) => {
        $(fn $method<$error: de::Error>(self, value: $type) -> Result<Self::Value, $error> {
            T::deserialize(value.into_deserializer()).map(Self::Value::One)
        })*
    };
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Values<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrSeveral<T> {
            type Value = Values<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value or a list of values")
            }

            scalars!(E, visit_bool: bool, visit_i64: i64, visit_f64: f64, visit_str: &str);

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Values<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Values::Several)
            }
        }

        deserializer.deserialize_any(OneOrSeveral(PhantomData))
    }
}

/// The most numbers of a range.
const MOST_OF_RANGE: usize = 1_000_000;

/// A whole number, or a range of them: `4`, `"1..8"`, `"8..64:8"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole(pub Vec<u64>);

impl FromStr for Whole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = || {
            let (range, step) = text.split_once(':').unwrap_or((text, "1"));
            let (low, high) = range.split_once("..").unwrap_or((range, range));
            let number = |text: &str| text.trim().parse::<u64>().ok();
            Some((number(low)?, number(high)?, number(step)?))
        };
        match numbers() {
            Some((low, high, step @ 1..)) if low <= high => {
                if (high - low) / step >= MOST_OF_RANGE as u64 {
                    return Err(format!("'{text}' has more than {MOST_OF_RANGE} numbers"));
                }
                Ok(Self((low..=high).step_by(step as usize).collect()))
            }
            _ => Err(format!(
                "'{text}' is no number or range; give 8, \"1..8\" or \"8..64:8\""
            )),
        }
    }
}

/// A number of threads: a whole number or a range, or a number that depends on the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Threads {
    /// These numbers.
    Numbers(Whole),
    /// This many times the CPUs of the machine: `"all"`, `"4*all"`.
    All(u64),
    /// 1, 2, 4 and so on, up to the CPUs of the machine: `"doubled"`.
    Doubled,
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('*').unwrap_or(("1", text)) {
            ("1", "doubled") => Ok(Self::Doubled),
            (times, "all") => match times.trim().parse() {
                Ok(times @ 1..=4096) => Ok(Self::All(times)),
                _ => Err(format!(
                    "'{text}' is no multiple of all CPUs; give \"4*all\""
                )),
            },
            _ => text.parse().map(Self::Numbers).map_err(|_| {
                format!(
                    "'{text}' is no number of threads; give 8, \"1..8\", \"8..64:8\", \"all\", \
                     \"4*all\" or \"doubled\""
                )
            }),
        }
    }
}

impl Threads {
    /// The numbers of threads on a machine with this many CPUs.
    pub fn on(&self, cpus: usize) -> Vec<usize> {
        match self {
            Self::Numbers(Whole(numbers)) => numbers.iter().map(|&n| n as usize).collect(),
            Self::All(times) => vec![*times as usize * cpus],
            Self::Doubled => crate::simulation::doubled(cpus),
        }
    }
}

/// Implements reading of a type that is written as a whole number or a text.
macro_rules! deserialize_number_or_text {
    ($type:ty, $expecting:literal, $of_number:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct NumberOrText;

                impl Visitor<'_> for NumberOrText {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        let of_number: fn(u64) -> $type = $of_number;
                        u64::try_from(number).map(of_number).map_err(|_| {
                            let given = de::Unexpected::Signed(number);
                            E::invalid_value(given, &"a whole number that is not negative")
                        })
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(NumberOrText)
            }
        }
    };
}

deserialize_number_or_text!(
    Whole,
    "a whole number, or a range like \"1..8\"",
    |number| Whole(vec![number])
);
deserialize_number_or_text!(
    Threads,
    "a number of threads, a range like \"1..8\", \"all\" or \"doubled\"",
    |number| Threads::Numbers(Whole(vec![number]))
);

/// The values of keys with dots in their names, such as `machine.rmw_cycles`. In the file, such a key
/// may stand in quotes, or be a path of tables.
#[derive(Debug, Default)]
pub struct Tree(Vec<(String, Spanned<Branch>)>);

#[derive(Debug)]
enum Branch {
    Numbers(Values<f64>),
    Tree(Tree),
}

impl Tree {
    /// Each key with its place and all its values.
    ///
    /// # Errors
    ///
    /// If a list is empty.
    pub fn keys(&self) -> Result<Vec<Setting>, Fault> {
        let mut keys = Vec::new();
        self.collect("", &mut keys)?;
        Ok(keys)
    }

    fn collect(&self, path: &str, keys: &mut Vec<Setting>) -> Result<(), Fault> {
        for (name, branch) in &self.0 {
            let key = match path {
                "" => name.clone(),
                _ => format!("{path}.{name}"),
            };
            match branch.get_ref() {
                Branch::Tree(tree) => tree.collect(&key, keys)?,
                Branch::Numbers(values) => keys.push((key, values.placed(branch.span())?)),
            }
        }
        Ok(())
    }
}

/// A key and its values.
pub type Setting = (String, Vec<Placed<f64>>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::<String, Spanned<Branch>>::deserialize(deserializer)?;
        Ok(Self(keys.into_iter().collect()))
    }
}

impl<'de> Deserialize<'de> for Branch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumbersOrTree;

        impl<'de> Visitor<'de> for NumbersOrTree {
            type Value = Branch;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or a list of numbers")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Branch, E> {
                self.visit_f64(number as f64)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Branch, E> {
                Ok(Branch::Numbers(Values::One(number)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Branch, A::Error> {
                let list = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(Branch::Numbers(Values::Several(list)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Branch, A::Error> {
                Tree::deserialize(MapAccessDeserializer::new(map)).map(Branch::Tree)
            }
        }

        deserializer.deserialize_any(NumbersOrTree)
    }
}

/// Refuses a number that is not in the range.
pub fn check_range<T: PartialOrd + fmt::Display + Copy>(
    key: &str,
    (span, value): &Placed<T>,
    range: &RangeInclusive<T>,
) -> Result<(), Fault> {
    if range.contains(value) {
        return Ok(());
    }
    let (low, high) = (range.start(), range.end());
    Err(Fault {
        span: span.clone(),
        message: format!("{key} cannot be {value}; give a value from {low} to {high}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inclusive_and_have_steps() {
        let numbers = |text: &str| text.parse::<Whole>().map(|whole| whole.0);
        assert_eq!(numbers("3"), Ok(vec![3]));
        assert_eq!(numbers("1..4"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(numbers("8..30:8"), Ok(vec![8, 16, 24]));
        for bad in ["", "x", "4..1", "1..8:0", "-1", "1..", "0..1000000"] {
            assert!(numbers(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_of_threads_depend_on_the_machine() {
        let on = |text: &str| text.parse::<Threads>().map(|threads| threads.on(12));
        assert_eq!(on("all"), Ok(vec![12]));
        assert_eq!(on("4*all"), Ok(vec![48]));
        assert_eq!(on("doubled"), Ok(vec![1, 2, 4, 8, 12]));
        assert_eq!(on("2..3"), Ok(vec![2, 3]));
        for bad in ["al", "0*all", "2*doubled", "x*all"] {
            assert!(on(bad).is_err(), "{bad}");
        }
    }
}
