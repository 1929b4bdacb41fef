//! The arguments and results of points as flat columns, and the files that they are written to.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow};
use itertools::Itertools;
use serde_json::{Map, Value};

use crate::point::{Outcome, Point};
use lockworks_ui::output;

/// A file for results, in the format that the end of its name says.
#[derive(Clone, Debug)]
pub struct ResultFile {
    /// The path.
    pub path: PathBuf,
    is_json: bool,
}

impl FromStr for ResultFile {
    type Err = String;

    fn from_str(path: &str) -> Result<Self, String> {
        let is_json = match Path::new(path).extension().and_then(|end| end.to_str()) {
            Some("csv") => false,
            Some("json") => true,
            _ => return Err("its name must end in .csv or .json".to_owned()),
        };
        let path = path.into();
        Ok(Self { path, is_json })
    }
}

impl ResultFile {
    /// Writes the outcomes.
    pub fn write(&self, outcomes: &[Outcome]) -> Result<()> {
        let (names, rows) = columns(outcomes);
        let text = match self.is_json {
            true => json(&names, rows)?.into_bytes(),
            false => csv(&names, &rows)?,
        };
        output::write_file(&self.path, &text)
    }
}

/// The names of all columns, and a row for each outcome: first arguments, then results, then the
/// reason of failures. A column in which no row has a value is left out, but not the last one.
fn columns(outcomes: &[Outcome]) -> (Vec<String>, Vec<Map<String, Value>>) {
    let (mut arguments, mut results) = (Map::new(), Map::new());
    let mut rows = Vec::new();
    for outcome in outcomes {
        let mut row = Map::new();
        flatten("", self::arguments(&outcome.point), &mut row);
        arguments.extend(row.clone());
        let mut result = Map::new();
        flatten("", outcome.result.clone().unwrap_or_default(), &mut result);
        results.extend(result.clone());
        row.append(&mut result);
        row.insert("error".to_owned(), outcome.error.clone().into());
        rows.push(row);
    }
    let names = arguments.into_iter().chain(results);
    let names = names.map(|(name, _)| name).chain(["error".to_owned()]);
    (names.unique().collect(), rows)
}

/// The kind of a point, and its options with their defaults.
fn arguments(point: &Point) -> Map<String, Value> {
    let kind = ("kind".to_owned(), point.kind.name().into());
    let defaults = point.kind.options().filter_map(|option| {
        let default = point.kind.default(option)?;
        Some((option.to_owned(), default))
    });
    let options = defaults.chain(point.options.clone());
    let options = options.map(|(option, value)| (option.replace('-', "_"), value));
    [kind].into_iter().chain(options).collect()
}

/// Adds values to a row. Parts of a nested value have names with dots.
fn flatten(prefix: &str, values: Map<String, Value>, row: &mut Map<String, Value>) {
    for (name, value) in values {
        let name = format!("{prefix}{name}");
        match value {
            Value::Null => {}
            Value::Object(parts) => flatten(&format!("{name}."), parts, row),
            Value::Array(list) => {
                row.insert(name, list.iter().join(",").into());
            }
            scalar => {
                row.insert(name, scalar);
            }
        }
    }
}

fn csv(names: &[String], rows: &[Map<String, Value>]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(names)?;
    for row in rows {
        writer.write_record(names.iter().map(|name| match row.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }))?;
    }
    writer.into_inner().map_err(|error| anyhow!("{error}"))
}

/// A list of objects, each with all columns.
fn json(names: &[String], rows: Vec<Map<String, Value>>) -> Result<String> {
    let row = |mut row: Map<String, Value>| {
        let value = |name: &String| (name.clone(), row.remove(name).unwrap_or_default());
        names.iter().map(value).collect()
    };
    let rows: Vec<Map<String, Value>> = rows.into_iter().map(row).collect();
    output::json(&rows)
}
