use std::ffi::{c_char, c_int};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::constants::{LW_NUMA_THRESHOLD_DEFAULT_MS, LW_TUNABLE_COUNT};
use crate::lock_type::text;

/// `struct lw_tunable_description` of the C library.
#[repr(C)]
struct Description {
    name: *const c_char,
    default: u64,
    kernel_default: u64,
    maximum: u64,
    meaning: *const c_char,
}

include!(concat!(env!("OUT_DIR"), "/layout_Description.rs"));

unsafe extern "C" {
    static lw_tunables: [Description; LW_TUNABLE_COUNT];
    safe fn lw_set_tunable(id: c_int, value: u64) -> c_int;
    safe fn lw_tunable_value(id: c_int) -> u64;
}

/// A value of one lock that a process may set, such as a spin count.
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
    /// The tunable's name, which begins with the name of its lock: `mutex_spin`, for one.
    pub name: &'static str,
    /// The tunable's value in a process that does not set it.
    pub default: u64,
    /// The tunable's value in a kernel that does not set it. Simulations and checks also begin with it.
    pub kernel_default: u64,
    /// The highest value that the tunable can have. The lowest value is 0.
    pub maximum: u64,
    /// A sentence that says what the tunable sets, with the unit.
    pub meaning: &'static str,
}

impl Tunable {
    /// All tunables of single locks.
    ///
    /// ```
    /// assert!(lockworks::Tunable::all().iter().all(|tunable| tunable.default <= tunable.maximum));
    /// ```
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Tunable>> = LazyLock::new(|| {
            // SAFETY: a constant table; the C compiler said how many entries it has.
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

    /// Finds a tunable by its name.
    ///
    /// # Errors
    ///
    /// [`SettingError::Unknown`] if no tunable has this name.
    ///
    /// ```
    /// let tunable = lockworks::Tunable::find("hqlock_fairness_threshold").unwrap();
    /// assert_eq!(tunable.default, 1000);
    /// ```
    pub fn find(name: &str) -> Result<&'static Self, SettingError> {
        let found = Self::all().iter().find(|tunable| tunable.name == name);
        found.ok_or_else(|| SettingError::Unknown(name.to_owned()))
    }

    /// The tunable's value in this process.
    ///
    /// ```
    /// let tunable = lockworks::Tunable::find("hqlock_fairness_threshold").unwrap();
    /// assert_eq!(tunable.get(), tunable.default);
    /// ```
    pub fn get(&self) -> u64 {
        lw_tunable_value(self.number as c_int)
    }

    /// Sets the tunable in this process. The caller ensures that `value` is at most the maximum.
    fn set(&self, value: u64) {
        let refused = lw_set_tunable(self.number as c_int, value);
        debug_assert_eq!(refused, 0);
    }
}

/// A tunable and a value that it may have.
///
/// As text it is `NAME=VALUE`.
///
/// ```
/// use lockworks::{Setting, Tunable};
///
/// let setting: Setting = "hqlock_fairness_threshold=10".parse().unwrap();
/// setting.apply();
/// assert_eq!(Tunable::find("hqlock_fairness_threshold").unwrap().get(), 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    tunable: &'static Tunable,
    value: u64,
}

/// Why a text or a value is not a [`Setting`].
///
/// ```
/// use lockworks::{Setting, SettingError};
///
/// assert_eq!("hqlock_fairness_threshold".parse::<Setting>(), Err(SettingError::Malformed));
/// println!("{}", "no_such_tunable=1".parse::<Setting>().unwrap_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The text has no `=`.
    Malformed,
    /// No tunable has this name.
    Unknown(String),
    /// The value is not one that the tunable may have.
    OutOfRange {
        /// The tunable.
        tunable: &'static Tunable,
        /// The value, as it was given.
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
    /// Makes a setting of a tunable and a value.
    ///
    /// # Errors
    ///
    /// [`SettingError::OutOfRange`] if the value is above the tunable's maximum.
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

    /// The tunable that is set.
    ///
    /// ```
    /// let setting: lockworks::Setting = "mutex_spin=1000".parse().unwrap();
    /// assert_eq!(setting.tunable().name, "mutex_spin");
    /// ```
    pub fn tunable(&self) -> &'static Tunable {
        self.tunable
    }

    /// Sets the tunable for the locks of this process. They may be in use meanwhile.
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

    /// The name and value of the environment variable that makes this setting in a new process.
    pub fn variable(&self) -> (String, String) {
        let name = format!("LOCKWORKS_{}", self.tunable.name.to_uppercase());
        (name, self.value.to_string())
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or(SettingError::Malformed)?;
        let tunable = Tunable::find(name)?;
        let out_of_range = |_| SettingError::OutOfRange {
            tunable,
            value: value.to_owned(),
        };
        Self::new(tunable, value.parse().map_err(out_of_range)?)
    }
}

/// The values of all tunables for one simulation or one check.
///
/// This is `struct lw_tunables` of `locks/registry/tunables.h`. The locks of this process do not read
/// it; [`Setting::apply`] sets theirs.
///
/// ```
/// use lockworks::{Settings, Tunable};
///
/// let settings = Settings::kernel().with(&["hqlock_fairness_threshold=10".parse().unwrap()]);
/// assert_eq!(settings.get(Tunable::find("hqlock_fairness_threshold").unwrap()), 10);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Settings {
    /// Whether CNA and HQ prefer waiters on the holder's NUMA node.
    pub numa_aware: bool,
    /// How many milliseconds CNA may pass over waiters on other NUMA nodes.
    pub numa_threshold_ms: u32,
    /// Whether CNA, while no waiter is passed over, reorders the queue at only one hand-off in 128.
    pub shuffle_reduction: bool,
    /// Whether CNA never passes over priority waiters.
    pub priority_waiters: bool,
    /// The tunables of single locks, in the order of [`Tunable::all`].
    #[cfg_attr(feature = "serde", serde(with = "by_name"))]
    pub by_name: [u64; LW_TUNABLE_COUNT],
}

include!(concat!(env!("OUT_DIR"), "/layout_Settings.rs"));

/// The tunables of single locks: by their names in formats that people read, else as an array. A
/// tunable without a value has its default in a kernel.
#[cfg(feature = "serde")]
mod by_name {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{LW_TUNABLE_COUNT, Setting, Settings, Tunable};

    pub fn serialize<S: Serializer>(
        values: &[u64; LW_TUNABLE_COUNT],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return values.serialize(serializer);
        }
        serializer.collect_map(Tunable::all().iter().map(|t| t.name).zip(values))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u64; LW_TUNABLE_COUNT], D::Error> {
        let settings: Result<Vec<_>, _> = if deserializer.is_human_readable() {
            BTreeMap::<String, u64>::deserialize(deserializer)?
                .into_iter()
                .map(|(name, value)| Setting::new(Tunable::find(&name)?, value))
                .collect()
        } else {
            let values = <[u64; LW_TUNABLE_COUNT]>::deserialize(deserializer)?;
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
    /// The settings of a process that sets nothing.
    fn default() -> Self {
        Self {
            numa_aware: true,
            numa_threshold_ms: LW_NUMA_THRESHOLD_DEFAULT_MS as u32,
            shuffle_reduction: true,
            priority_waiters: true,
            by_name: std::array::from_fn(|i| Tunable::all()[i].default),
        }
    }
}

impl Settings {
    /// The settings of a kernel that sets nothing.
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

    /// The same settings with some tunables changed. If a tunable is there twice, the last one counts.
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
