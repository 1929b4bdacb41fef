//! The locks, workloads, values and times of simulations, as the command line names them.

use std::ops::RangeInclusive;

use crate::{Scenario, ScenarioValue, SetError};
use anyhow::Result;
use lockworks::LockType;
use lockworks_machine::Mark;

use lockworks_names::command_line::unknown;

/// The machine of simulations that name none.
pub const DEFAULT_MACHINE: &str = "oracle-x5-4";
/// The workload of simulations that name none.
pub const DEFAULT_WORKLOAD: &str = "locktorture-old";
/// CNA's threshold of simulations that give none, in milliseconds.
pub const DEFAULT_THRESHOLD: u32 = 10;

/// The virtual times that a run may have, in milliseconds.
pub const MILLISECONDS: RangeInclusive<f64> = 0.01..=60_000.0;
/// The thresholds that CNA may have, in milliseconds.
pub const THRESHOLDS: RangeInclusive<u32> = 1..=100;

/// Virtual time in milliseconds.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ms) if MILLISECONDS.contains(&ms) => Ok(ms),
        _ => Err("give a number from 0.01 to 60000".to_owned()),
    }
}

/// `KEY=VALUE`.
pub fn setting(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    let value: f64 = value
        .parse()
        .map_err(|_| format!("'{value}' is not a number"))?;
    if !value.is_finite() || value < 0.0 {
        return Err("give a value that is not negative".to_owned());
    }
    Ok((key.to_owned(), value))
}

/// Names of glibc's mutex, which the lock futex is.
const GLIBC: [&str; 2] = ["glibc", "pthread_mutex"];

/// A lock of the simulated world.
pub fn find_lock(name: &str) -> Result<&'static LockType> {
    let name = if GLIBC.contains(&name) { "futex" } else { name };
    crate::lock_types()
        .find(|lock| lock.name() == name)
        .ok_or_else(|| unknown("lock", name, crate::lock_types().map(LockType::name)))
}

/// Changes a value of the scenario.
pub fn set(scenario: &mut Scenario, key: &str, value: f64) -> Result<()> {
    scenario
        .set(key, value, "set by hand")
        .map_err(|error| match error {
            SetError::Unknown => {
                let values = scenario.values();
                unknown("value", key, values.iter().map(|v| v.key.as_str()))
            }
            out_of_range => anyhow::anyhow!("{key} {out_of_range}, not {value}"),
        })
}

/// A sentence that lists the values that are inferred, fitted or set by hand.
pub fn inferred(values: &[ScenarioValue]) -> String {
    let keys: Vec<&str> = values
        .iter()
        .filter(|v| v.mark == Mark::I)
        .map(|v| v.key.as_str())
        .collect();
    if keys.is_empty() {
        "All values are from the literature.".to_owned()
    } else {
        format!("Inferred, fitted or set by hand (I): {}.", keys.join(", "))
    }
}
