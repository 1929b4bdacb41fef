use std::ffi::{c_char, c_int};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::lock_type::text;

/// `LW_TUNABLE_COUNT` of the C library, counted by build.rs.
const TUNABLES: usize = match usize::from_str_radix(env!("TUNABLES"), 10) {
    Ok(count) => count,
    Err(_) => panic!("a number"),
};

/// `struct lw_tunable_description` of the C library.
#[repr(C)]
struct Description {
    name: *const c_char,
    default: u64,
    kernel_default: u64,
    maximum: u64,
    meaning: *const c_char,
}

unsafe extern "C" {
    static lw_tunables: [Description; TUNABLES];
    safe fn lw_set_tunable(id: c_int, value: u64) -> c_int;
    safe fn lw_tunable_value(id: c_int) -> u64;
}

/// One of the tunables of single locks.
///
/// ```
/// use lockworks::Tunable;
///
/// for tunable in Tunable::all() {
///     println!("{} = {}: {}", tunable.name, tunable.get(), tunable.meaning);
/// }
/// assert!(Tunable::find("no such tunable").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    number: usize,
    /// Its name, which begins with its lock's: `hqlock_fairness_threshold`, for one.
    pub name: &'static str,
    /// Its value in a process unless it is set.
    pub default: u64,
    /// Its value in a kernel, and where one is simulated or checked, unless it is set.
    pub kernel_default: u64,
    /// Its highest value; the least is 0.
    pub maximum: u64,
    /// What it says.
    pub meaning: &'static str,
}

impl Tunable {
    /// All of them.
    ///
    /// ```
    /// assert!(lockworks::Tunable::all().iter().all(|tunable| tunable.default <= tunable.maximum));
    /// ```
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Tunable>> = LazyLock::new(|| {
            // SAFETY: a constant table of that many.
            let described = unsafe { &lw_tunables };
            let tunable = |(number, d): (usize, &Description)| Tunable {
                number,
                // SAFETY: a constant string.
                name: unsafe { text(d.name) },
                default: d.default,
                kernel_default: d.kernel_default,
                maximum: d.maximum,
                // SAFETY: as above.
                meaning: unsafe { text(d.meaning) },
            };
            described.iter().enumerate().map(tunable).collect()
        });
        &ALL
    }

    /// The tunable of that name.
    ///
    /// # Errors
    /// There is none.
    ///
    /// ```
    /// let tunable = lockworks::Tunable::find("hqlock_fairness_threshold").unwrap();
    /// assert_eq!(tunable.default, 1000);
    /// ```
    pub fn find(name: &str) -> Result<&'static Self, SettingError> {
        let found = Self::all().iter().find(|tunable| tunable.name == name);
        found.ok_or_else(|| SettingError::Unknown(name.to_owned()))
    }

    /// Its value in this process.
    ///
    /// ```
    /// let tunable = lockworks::Tunable::find("hqlock_fairness_threshold").unwrap();
    /// assert_eq!(tunable.get(), tunable.default);
    /// ```
    pub fn get(&self) -> u64 {
        lw_tunable_value(self.number as c_int)
    }

    /// Sets it in this process. The caller has seen that the value is not above the maximum.
    fn set(&self, value: u64) {
        let refused = lw_set_tunable(self.number as c_int, value);
        debug_assert_eq!(refused, 0);
    }
}

/// A tunable and a value that it may have; `name=value` as text, where `hqlock_` may be left out.
///
/// ```
/// use lockworks::{Setting, Tunable};
///
/// let setting: Setting = "fairness_threshold=10".parse().unwrap();
/// setting.apply();
/// assert_eq!(Tunable::find("hqlock_fairness_threshold").unwrap().get(), 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    tunable: &'static Tunable,
    value: u64,
}

/// Why a text is no [`Setting`].
///
/// ```
/// use lockworks::{Setting, SettingError};
///
/// assert_eq!("fairness_threshold".parse::<Setting>(), Err(SettingError::Malformed));
/// println!("{}", "no_such_tunable=1".parse::<Setting>().unwrap_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// It has no `=`.
    Malformed,
    /// There is no such tunable.
    Unknown(String),
    /// The value is not one that the tunable may have.
    OutOfRange {
        /// The tunable.
        tunable: &'static Tunable,
        /// What was given.
        value: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("it must be NAME=VALUE"),
            Self::Unknown(name) => {
                let names: Vec<_> = Tunable::all().iter().map(|t| t.name).collect();
                write!(f, "no tunable '{name}'; there are {}", names.join(", "))
            }
            Self::OutOfRange { tunable, value } => write!(
                f,
                "{} cannot be '{value}': it must be 0 to {}",
                tunable.name, tunable.maximum
            ),
        }
    }
}

impl std::error::Error for SettingError {}

impl Setting {
    /// That tunable with that value.
    ///
    /// # Errors
    /// The value is above the tunable's maximum.
    ///
    /// ```
    /// use lockworks::{Setting, Tunable};
    ///
    /// let tunable = &Tunable::all()[0];
    /// assert!(Setting::new(tunable, tunable.maximum).is_ok());
    /// assert!(tunable.maximum == u64::MAX || Setting::new(tunable, tunable.maximum + 1).is_err());
    /// ```
    pub fn new(tunable: &'static Tunable, value: u64) -> Result<Self, SettingError> {
        if value > tunable.maximum {
            return Err(SettingError::OutOfRange {
                tunable,
                value: value.to_string(),
            });
        }
        Ok(Self { tunable, value })
    }

    /// Sets it for this process's locks, also while they are in use.
    ///
    /// ```
    /// use lockworks::{Setting, Tunable};
    ///
    /// let tunable = &Tunable::all()[0];
    /// Setting::new(tunable, tunable.maximum).unwrap().apply();
    /// assert_eq!(tunable.get(), tunable.maximum);
    /// ```
    pub fn apply(&self) {
        self.tunable.set(self.value);
    }

    /// Name and value of the environment variable that sets it for a process to be started.
    pub fn variable(&self) -> (String, String) {
        let name = format!("LOCKWORKS_{}", self.tunable.name.to_uppercase());
        (name, self.value.to_string())
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or(SettingError::Malformed)?;
        let tunable = Tunable::find(name)
            .or_else(|unknown| Tunable::find(&format!("hqlock_{name}")).map_err(|_| unknown))?;
        let out_of_range = |_| SettingError::OutOfRange {
            tunable,
            value: value.to_owned(),
        };
        Self::new(tunable, value.parse().map_err(out_of_range)?)
    }
}

/// `struct lw_tunables` of `locks/registry/tunables.h`: what locks are told where they are not
/// compiled for this process but for a simulation or a check.
///
/// ```
/// use lockworks::{Settings, Tunable};
///
/// let settings = Settings::kernel().with(&["fairness_threshold=10".parse().unwrap()]);
/// assert_eq!(settings.get(Tunable::find("hqlock_fairness_threshold").unwrap()), 10);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Settings {
    /// CNA, HQ: keep waiters of one node together.
    pub numa_aware: bool,
    /// CNA: longest time that waiters of other nodes are passed over, milliseconds.
    pub numa_threshold_ms: u32,
    /// CNA: while nobody is passed over, look at the queue at one hand-off in 128 only.
    pub shuffle_reduction: bool,
    /// CNA: never pass over priority waiters.
    pub priority_waiters: bool,
    /// Of single locks: in the order of [`Tunable::all`].
    #[cfg_attr(feature = "serde", serde(with = "by_name"))]
    pub by_name: [u64; TUNABLES],
}

/// The tunables of single locks, by their names where people read it. Those that are not named
/// have their defaults in a kernel.
#[cfg(feature = "serde")]
mod by_name {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Setting, Settings, TUNABLES, Tunable};

    pub fn serialize<S: Serializer>(
        values: &[u64; TUNABLES],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return values.serialize(serializer);
        }
        serializer.collect_map(Tunable::all().iter().map(|t| t.name).zip(values))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u64; TUNABLES], D::Error> {
        let settings: Result<Vec<_>, _> = if deserializer.is_human_readable() {
            BTreeMap::<String, u64>::deserialize(deserializer)?
                .into_iter()
                .map(|(name, value)| Setting::new(Tunable::find(&name)?, value))
                .collect()
        } else {
            let values = <[u64; TUNABLES]>::deserialize(deserializer)?;
            let pairs = Tunable::all().iter().zip(values);
            pairs
                .map(|(tunable, value)| Setting::new(tunable, value))
                .collect()
        };
        let settings = settings.map_err(D::Error::custom)?;
        Ok(Settings::kernel().with(&settings).by_name)
    }
}

impl Default for Settings {
    /// As in a process in which nothing is set.
    fn default() -> Self {
        Self {
            numa_aware: true,
            numa_threshold_ms: 10,
            shuffle_reduction: true,
            priority_waiters: true,
            by_name: std::array::from_fn(|i| Tunable::all()[i].default),
        }
    }
}

impl Settings {
    /// As in a kernel in which nothing is set.
    ///
    /// ```
    /// use lockworks::{Settings, Tunable};
    ///
    /// let tunable = &Tunable::all()[0];
    /// assert_eq!(Settings::kernel().get(tunable), tunable.kernel_default);
    /// ```
    pub fn kernel() -> Self {
        Self {
            by_name: std::array::from_fn(|i| Tunable::all()[i].kernel_default),
            ..Self::default()
        }
    }

    /// The value of a tunable.
    ///
    /// ```
    /// use lockworks::{Settings, Tunable};
    ///
    /// let tunable = &Tunable::all()[0];
    /// assert_eq!(Settings::default().get(tunable), tunable.default);
    /// ```
    pub fn get(&self, tunable: &Tunable) -> u64 {
        self.by_name[tunable.number]
    }

    /// With these tunables set; of two that are the same, the last counts.
    ///
    /// ```
    /// use lockworks::{Setting, Settings, Tunable};
    ///
    /// let tunable = &Tunable::all()[0];
    /// let settings = Settings::default().with(&[Setting::new(tunable, 1).unwrap()]);
    /// assert_eq!(settings.get(tunable), 1);
    /// ```
    #[must_use]
    pub fn with(mut self, settings: &[Setting]) -> Self {
        for setting in settings {
            self.by_name[setting.tunable.number] = setting.value;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_as_many_tunables() {
        let set = |id: usize| lw_set_tunable(id as c_int, 0);
        assert_ne!(set(TUNABLES), 0);
        assert_eq!(set(TUNABLES - 1), 0);
    }
}
