use std::ffi::{c_char, c_int};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::lock_type::text;

/// `LW_HQLOCK_TUNABLE_COUNT` of the C library, counted by build.rs.
const HQLOCK_TUNABLES: usize = match usize::from_str_radix(env!("HQLOCK_TUNABLES"), 10) {
    Ok(count) => count,
    Err(_) => panic!("a number"),
};

/// `struct lw_hqlock_tunable_description` of the C library.
#[repr(C)]
struct Description {
    name: *const c_char,
    default: u64,
    maximum: u64,
    meaning: *const c_char,
}

unsafe extern "C" {
    static lw_hqlock_tunables: [Description; HQLOCK_TUNABLES];
    safe fn lw_set_hqlock(tunable: c_int, value: u64) -> c_int;
    safe fn lw_hqlock(tunable: c_int) -> u64;
}

/// One of the tunables of the HQ-spinlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HqlockTunable {
    number: usize,
    /// Its name, that of the published series without `hqlock_`.
    pub name: &'static str,
    /// Its value unless it is set.
    pub default: u64,
    /// Its highest value; the least is 0.
    pub maximum: u64,
    /// What it says.
    pub meaning: &'static str,
}

impl HqlockTunable {
    /// All of them.
    pub fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<HqlockTunable>> = LazyLock::new(|| {
            // SAFETY: a constant table of that many.
            let described = unsafe { &lw_hqlock_tunables };
            let tunable = |(number, d): (usize, &Description)| HqlockTunable {
                number,
                // SAFETY: a constant string.
                name: unsafe { text(d.name) },
                default: d.default,
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
    pub fn find(name: &str) -> Result<&'static Self, HqlockSettingError> {
        let found = Self::all().iter().find(|tunable| tunable.name == name);
        found.ok_or_else(|| HqlockSettingError::Unknown(name.to_owned()))
    }

    /// Its value in this process.
    pub fn get(&self) -> u64 {
        lw_hqlock(self.number as c_int)
    }

    /// Sets it in this process. The caller has seen that the value is not above the maximum.
    fn set(&self, value: u64) {
        let refused = lw_set_hqlock(self.number as c_int, value);
        debug_assert_eq!(refused, 0);
    }
}

/// A tunable of the HQ-spinlock and a value that it may have; `name=value` as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HqlockSetting {
    tunable: &'static HqlockTunable,
    value: u64,
}

/// Why a text is no [`HqlockSetting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HqlockSettingError {
    /// It has no `=`.
    Malformed,
    /// There is no such tunable.
    Unknown(String),
    /// The value is not one that the tunable may have.
    OutOfRange {
        /// The tunable.
        tunable: &'static HqlockTunable,
        /// What was given.
        value: String,
    },
}

impl fmt::Display for HqlockSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("it must be NAME=VALUE"),
            Self::Unknown(name) => {
                let names: Vec<_> = HqlockTunable::all().iter().map(|t| t.name).collect();
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

impl std::error::Error for HqlockSettingError {}

impl HqlockSetting {
    /// That tunable with that value.
    ///
    /// # Errors
    /// The value is above the tunable's maximum.
    pub fn new(tunable: &'static HqlockTunable, value: u64) -> Result<Self, HqlockSettingError> {
        if value > tunable.maximum {
            return Err(HqlockSettingError::OutOfRange {
                tunable,
                value: value.to_string(),
            });
        }
        Ok(Self { tunable, value })
    }

    /// Sets it for this process's locks, also while they are in use.
    pub fn apply(&self) {
        self.tunable.set(self.value);
    }
}

impl FromStr for HqlockSetting {
    type Err = HqlockSettingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or(HqlockSettingError::Malformed)?;
        let name = name.strip_prefix("hqlock_").unwrap_or(name);
        let tunable = HqlockTunable::find(name)?;
        let out_of_range = |_| HqlockSettingError::OutOfRange {
            tunable,
            value: value.to_owned(),
        };
        Self::new(tunable, value.parse().map_err(out_of_range)?)
    }
}

/// `struct lw_tunables` of `locks/tunables.h`: what locks are told where they are not
/// compiled for this process but for a simulation or a check.
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
    /// HQ: in the order of [`HqlockTunable::all`].
    #[cfg_attr(feature = "serde", serde(with = "by_name"))]
    pub hqlock: [u64; HQLOCK_TUNABLES],
}

/// The tunables of the HQ-spinlock, by their names where people read it. Those that are not named
/// have their defaults.
#[cfg(feature = "serde")]
mod by_name {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{HQLOCK_TUNABLES, HqlockSetting, HqlockTunable, Settings};

    pub fn serialize<S: Serializer>(
        values: &[u64; HQLOCK_TUNABLES],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return values.serialize(serializer);
        }
        serializer.collect_map(HqlockTunable::all().iter().map(|t| t.name).zip(values))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u64; HQLOCK_TUNABLES], D::Error> {
        let settings: Result<Vec<_>, _> = if deserializer.is_human_readable() {
            BTreeMap::<String, u64>::deserialize(deserializer)?
                .into_iter()
                .map(|(name, value)| HqlockSetting::new(HqlockTunable::find(&name)?, value))
                .collect()
        } else {
            let values = <[u64; HQLOCK_TUNABLES]>::deserialize(deserializer)?;
            let pairs = HqlockTunable::all().iter().zip(values);
            pairs
                .map(|(tunable, value)| HqlockSetting::new(tunable, value))
                .collect()
        };
        let settings = settings.map_err(D::Error::custom)?;
        Ok(Settings::default().with(&settings).hqlock)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            numa_aware: true,
            numa_threshold_ms: 10,
            shuffle_reduction: true,
            priority_waiters: true,
            hqlock: std::array::from_fn(|i| HqlockTunable::all()[i].default),
        }
    }
}

impl Settings {
    /// The value of a tunable of the HQ-spinlock.
    pub fn get(&self, tunable: &HqlockTunable) -> u64 {
        self.hqlock[tunable.number]
    }

    /// With these tunables of the HQ-spinlock set; of two that are the same, the last counts.
    #[must_use]
    pub fn with(mut self, settings: &[HqlockSetting]) -> Self {
        for setting in settings {
            self.hqlock[setting.tunable.number] = setting.value;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_as_many_tunables() {
        let set = |tunable: usize| lw_set_hqlock(tunable as c_int, 0);
        assert_ne!(set(HQLOCK_TUNABLES), 0);
        assert_eq!(set(HQLOCK_TUNABLES - 1), 0);
    }
}
