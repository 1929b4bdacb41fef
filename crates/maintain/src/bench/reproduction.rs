//! The simulator's error in the published tables, from `lockworks reproduce`.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::rows::{Row, verdict};

/// The simulator's error in one published table.
#[derive(Serialize)]
pub struct Reproduction {
    table: String,
    rows: usize,
    /// The error with values from the literature.
    mean_absolute_error_percent: f64,
    /// The error with fitted values, at the points that were not used for the fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    fitted_error_percent: Option<f64>,
    /// The error that the limit applies to.
    judged_error_percent: f64,
    limit_percent: f64,
    wall_seconds: f64,
}

/// Reproduces each of these tables once.
pub fn measure(tables: &[String], step: &dyn Fn(&str)) -> Result<Vec<Reproduction>> {
    let reproduce = |table: &String| {
        step(&format!("reproduction: {table}"));
        let start = Instant::now();
        let child = Command::new(std::env::current_exe()?)
            .args(["reproduce", table, "--json"])
            .output()?;
        let message = String::from_utf8_lossy(&child.stderr);
        ensure!(
            child.status.success(),
            "reproducing {table} failed: {}",
            message.trim()
        );
        let json = serde_json::from_slice(&child.stdout)?;
        read(table, &json, start.elapsed().as_secs_f64())
    };
    tables.iter().map(reproduce).collect()
}

fn read(table: &str, json: &Value, wall_seconds: f64) -> Result<Reproduction> {
    let error = |of: &Value, key: &str| {
        of[key]
            .as_f64()
            .with_context(|| format!("{table}: the JSON has no {key}"))
    };
    Ok(Reproduction {
        table: table.to_string(),
        rows: json["rows"].as_array().map_or(0, Vec::len),
        mean_absolute_error_percent: error(json, "mean_absolute_error_percent")?,
        fitted_error_percent: json["fitted"]["mean_absolute_error_percent_not_fitted"].as_f64(),
        judged_error_percent: error(json, "judged_error_percent")?,
        limit_percent: error(json, "limit_percent")?,
        wall_seconds,
    })
}

impl Reproduction {
    fn met(&self) -> bool {
        self.judged_error_percent <= self.limit_percent
    }

    fn judge(&self) -> Result<(), String> {
        if self.met() {
            Ok(())
        } else {
            Err(format!(
                "reproduction: {} is off by {:.2} %, more than {}",
                self.table, self.judged_error_percent, self.limit_percent
            ))
        }
    }
}

impl Row for Reproduction {
    const TITLE: &'static str = "The simulator against the published tables";
    const HEADER: &'static [&'static str] = &[
        "table",
        "rows",
        "error %",
        "fitted %",
        "wall seconds",
        "required",
    ];
    const FIGURES: &'static [usize] = &[1, 2, 3, 4];

    fn cells(&self) -> Vec<String> {
        vec![
            self.table.clone(),
            self.rows.to_string(),
            format!("{:.2}", self.mean_absolute_error_percent),
            self.fitted_error_percent
                .map_or(String::new(), |error| format!("{error:.2}")),
            format!("{:.1}", self.wall_seconds),
            verdict(
                &format!(
                    "{:.2} <= {} %",
                    self.judged_error_percent, self.limit_percent
                ),
                self.met(),
            ),
        ]
    }

    fn judged(&self) -> Option<Result<(), String>> {
        Some(self.judge())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_output_of_the_command() {
        let json = serde_json::json!({
            "rows": [{}, {}],
            "mean_absolute_error_percent": 1.5,
            "judged_error_percent": 2.5,
            "limit_percent": 2.0
        });
        let table = read("t", &json, 1.0).unwrap();
        assert_eq!((table.rows, table.met()), (2, false));
        assert!(read("t", &serde_json::json!({}), 1.0).is_err());
    }
}
