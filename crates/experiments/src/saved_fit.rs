//! Fits, as `experiments/fits/` saves them.

use serde::{Deserialize, Serialize};

/// Values that bring the simulation closest to some rows of published tables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFit {
    /// The tables that the fit was made on, all of one workload.
    pub tables: Vec<String>,
    /// The thread or node counts of the rows that it was made on.
    pub points: Vec<usize>,
    /// The fitted values.
    #[serde(rename = "value")]
    pub values: Vec<FittedValue>,
}

/// One fitted value.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FittedValue {
    /// Its name, as in `lockworks sim --json`.
    pub key: String,
    /// The value that the fit found.
    pub value: f64,
    /// The least value that the fit could choose.
    pub low: f64,
    /// The greatest value that the fit could choose.
    pub high: f64,
}

impl SavedFit {
    /// Whether the fit was made on this point of this table. Such a point says nothing about how
    /// good the fit is.
    pub fn has_seen(&self, table: &str, point: usize) -> bool {
        self.tables.iter().any(|name| name == table) && self.points.contains(&point)
    }

    /// The fitted values, by name.
    pub(crate) fn settings(&self) -> Vec<(String, f64)> {
        let setting = |value: &FittedValue| (value.key.clone(), value.value);
        self.values.iter().map(setting).collect()
    }
}
