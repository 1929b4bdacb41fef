//! A number with its source, and how far to trust it.

use serde::{Deserialize, Serialize};

/// How far a value can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Mark {
    /// Measured on that exact part.
    E,
    /// Measured on a sibling part.
    S,
    /// Inferred or fitted.
    I,
    /// Recalled: check it again before citing.
    R,
}

impl Mark {
    /// All marks, the most trusted first.
    pub const ALL: [Mark; 4] = [Mark::E, Mark::S, Mark::I, Mark::R];

    /// The meaning of the mark.
    pub fn meaning(self) -> &'static str {
        match self {
            Mark::E => "measured on that part",
            Mark::S => "measured on a sibling part",
            Mark::I => "inferred or fitted",
            Mark::R => "recalled",
        }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// A number with its range, its mark and its source. The unit is in the key that holds it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Unchecked")]
pub struct Value {
    /// The number.
    pub value: f64,
    /// The lowest figure seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The highest figure seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// How far to trust it.
    pub mark: Mark,
    /// The table, paper or part it comes from.
    pub source: String,
    /// Anything else a reader should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A [`Value`] as written, before its numbers are compared.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a value with mark and source, as { value = 4, mark = \"E\", source = \"a paper\" }"
)]
struct Unchecked {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    mark: Mark,
    source: String,
    note: Option<String>,
}

impl TryFrom<Unchecked> for Value {
    type Error = String;

    fn try_from(v: Unchecked) -> Result<Value, String> {
        let (low, high) = (v.low.unwrap_or(v.value), v.high.unwrap_or(v.value));
        if !(v.value > 0.0 && v.value.is_finite()) {
            return Err(format!("value {} must be a number above 0", v.value));
        }
        if low > high {
            return Err(format!("low {low} is above high {high}; exchange them"));
        }
        if !(0.0 <= low && low <= v.value && v.value <= high && high.is_finite()) {
            return Err(format!(
                "value {} must lie between low {low} and high {high}",
                v.value
            ));
        }
        if v.source.trim().is_empty() {
            return Err("`source` is empty: say where the value comes from".into());
        }
        Ok(Value {
            value: v.value,
            low: v.low,
            high: v.high,
            mark: v.mark,
            source: v.source,
            note: v.note,
        })
    }
}
