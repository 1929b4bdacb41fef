//! How near the simulator comes to the published tables, by `lockworks reproduce`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::progress::Progress;

/// The tables that the simulator reproduces, as `lockworks reproduce` names them.
const TABLES: [&str; 8] = [
    "cna_locktorture",
    "cna_will_it_scale_open1",
    "cna_will_it_scale_lock2",
    "cna_leveldb_readrandom",
    "hq_locktorture_epyc9654_gain_percent",
    "hq_locktorture_kunpeng920_gain_percent",
    "pv_kernel_build_haswell_ex_seconds",
    "mutex_aim7_high_systime_jpm",
];

/// One table.
#[derive(Serialize)]
pub struct Reproduction {
    table: String,
    rows: usize,
    mean_absolute_error_percent: f64,
    /// The most that the table may be off, where there is such a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
    wall_seconds: f64,
}

/// How many runs [`measure`] makes.
pub fn steps() -> usize {
    TABLES.len()
}

/// All tables that the command knows, and a note if there is none.
pub fn measure(quick: bool, progress: &Progress) -> Result<(Vec<Reproduction>, Option<String>)> {
    let mut tables = Vec::new();
    let program = sibling()?;
    if !quick && knows_reproduce(&program) {
        for table in TABLES {
            progress.step(table, "reproduction");
            tables.extend(reproduce(&program, table)?);
        }
    }
    let note = tables.is_empty().then(|| {
        if quick {
            "--quick: published tables are not reproduced.".to_string()
        } else {
            "Published tables are not reproduced: `lockworks reproduce` is not there.".to_string()
        }
    });
    Ok((tables, note))
}

/// The `lockworks` command that was built beside this program.
fn sibling() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program")?;
    Ok(this.with_file_name("lockworks"))
}

fn knows_reproduce(program: &Path) -> bool {
    Command::new(program)
        .args(["reproduce", "--help"])
        .output()
        .is_ok_and(|child| child.status.success())
}

/// None if the command does not know the table.
fn reproduce(program: &Path, table: &str) -> Result<Option<Reproduction>> {
    let start = Instant::now();
    let child = Command::new(program)
        .args(["reproduce", table, "--json"])
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if child.status.code() == Some(2) {
        return Ok(None);
    }
    ensure!(
        child.status.success(),
        "reproducing {table} failed: {}",
        String::from_utf8_lossy(&child.stderr).trim()
    );
    let json: Value = serde_json::from_slice(&child.stdout)
        .with_context(|| format!("`lockworks reproduce {table} --json` gave no JSON"))?;
    read(table, &json, start.elapsed().as_secs_f64()).map(Some)
}

fn read(table: &str, json: &Value, wall_seconds: f64) -> Result<Reproduction> {
    let error = json["mean_absolute_error_percent"]
        .as_f64()
        .with_context(|| format!("{table}: no mean_absolute_error_percent"))?;
    let limit = json["limit_percent"].as_f64();
    Ok(Reproduction {
        table: table.to_string(),
        rows: json["rows"].as_array().map_or(0, Vec::len),
        mean_absolute_error_percent: error,
        limit_percent: limit,
        met: limit.map(|limit| error <= limit),
        wall_seconds,
    })
}

impl Reproduction {
    /// Its row in a table.
    pub fn cells(&self) -> Vec<String> {
        vec![
            self.table.clone(),
            self.rows.to_string(),
            format!("{:.2}", self.mean_absolute_error_percent),
            format!("{:.1}", self.wall_seconds),
            self.limit_percent
                .zip(self.met)
                .map_or(String::new(), |(limit, met)| {
                    format!("<= {limit} %: {}", if met { "met" } else { "NOT MET" })
                }),
        ]
    }

    /// Is what was required of it met? None if nothing was.
    pub fn judged(&self) -> Option<Result<(), String>> {
        let limit = self.limit_percent?;
        Some(if self.met? {
            Ok(())
        } else {
            Err(format!(
                "reproduction: {} is off by {:.2} %, more than {limit}",
                self.table, self.mean_absolute_error_percent
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_command_says() {
        let json = serde_json::json!({
            "rows": [{}, {}],
            "mean_absolute_error_percent": 2.5,
            "limit_percent": 2.0
        });
        let table = read("t", &json, 1.0).unwrap();
        assert_eq!((table.rows, table.met), (2, Some(false)));
        assert!(read("t", &serde_json::json!({}), 1.0).is_err());
    }
}
