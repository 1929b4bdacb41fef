//! The arguments and results of points as flat columns, and the files that columns are written to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::parquet_file;
use super::point::{Outcome, Point, PointRun, object};
use crate::output;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnType {
    /// True or false.
    Bool,
    /// Whole numbers of 64 bits with a sign.
    Int,
    /// Other numbers.
    Float,
    /// Text.
    Text,
}

/// A column: a value for each row, or null.
pub struct Column {
    /// The name. Parts of a nested value have names with dots.
    pub name: String,
    /// A value for each row.
    pub values: Vec<Value>,
}

impl Column {
    /// The narrowest type that all values have.
    pub fn column_type(&self) -> ColumnType {
        let given = || self.values.iter().filter(|value| !value.is_null());
        if given().all(Value::is_boolean) {
            ColumnType::Bool
        } else if given().all(Value::is_i64) {
            ColumnType::Int
        } else if given().all(Value::is_number) {
            ColumnType::Float
        } else {
            ColumnType::Text
        }
    }
}

/// A file for results, in the format that the end of its name says.
#[derive(Clone, Debug)]
pub struct ResultFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Csv,
    Json,
    Parquet,
}

impl std::str::FromStr for ResultFile {
    type Err = String;

    fn from_str(path: &str) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let format = match path.extension().and_then(|end| end.to_str()) {
            Some("csv") => Format::Csv,
            Some("json") => Format::Json,
            Some("parquet") => Format::Parquet,
            _ => return Err("its name must end in .csv, .json or .parquet".to_owned()),
        };
        Ok(Self { path, format })
    }
}

impl ResultFile {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the outcomes.
    pub fn write(&self, outcomes: &[Outcome]) -> Result<()> {
        let columns = columns(outcomes);
        let written = match self.format {
            Format::Csv => csv_text(&columns, outcomes.len()),
            Format::Json => Ok(json_text(columns, outcomes.len())?.into_bytes()),
            Format::Parquet => parquet_file::bytes(&columns),
        };
        let bytes = written.with_context(|| format!("cannot write {}", self.path.display()))?;
        output::write_file(&self.path, &bytes)
    }
}

/// The columns of the outcomes: first arguments, then results, then the reason of failures. Columns
/// in which no row has a value are left out, but not the last one.
fn columns(outcomes: &[Outcome]) -> Vec<Column> {
    let mut arguments = Collected::default();
    let mut results = Collected::default();
    for (row, outcome) in outcomes.iter().enumerate() {
        arguments.add(row, "", argument_values(&outcome.point));
        results.add(row, "", outcome.result.clone().unwrap_or_default());
    }
    let errors = outcomes.iter().map(|outcome| outcome.error.clone().into());
    let mut columns = arguments.finished(outcomes.len());
    columns.extend(results.finished(outcomes.len()));
    columns.push(Column {
        name: "error".to_owned(),
        values: errors.collect(),
    });
    columns
}

/// The arguments of a point that can change its result.
fn argument_values(point: &Point) -> Map<String, Value> {
    let (mut values, kind) = match &point.run {
        PointRun::Sim(point) => (object(&point.identity()), "sim"),
        PointRun::Check(point) => (object(&point.identity()), "check"),
    };
    for source in ["machine", "workload"] {
        if let Some(Value::Object(file)) = values.get(source).cloned() {
            values[source] = file["name"].clone();
            values.insert(format!("{source}_hash"), file["hash"].clone());
        }
    }
    let mut all = Map::from_iter([("kind".to_owned(), kind.into())]);
    all.append(&mut values);
    all
}

/// Columns in the order in which their names came up, with the rows that have values.
#[derive(Default)]
struct Collected {
    places: HashMap<String, usize>,
    columns: Vec<(String, Vec<(usize, Value)>)>,
}

impl Collected {
    /// Adds the values of a row. Names begin with `prefix`.
    fn add(&mut self, row: usize, prefix: &str, values: Map<String, Value>) {
        for (name, value) in values {
            let name = format!("{prefix}{name}");
            let value = match value {
                Value::Null => continue,
                Value::Object(below) => {
                    self.add(row, &format!("{name}."), below);
                    continue;
                }
                Value::Array(list) if list.is_empty() => continue,
                Value::Array(list) => {
                    let words: Vec<String> = list.iter().map(Value::to_string).collect();
                    words.join(",").into()
                }
                scalar => scalar,
            };
            let place = *self.places.entry(name).or_insert_with_key(|name| {
                self.columns.push((name.clone(), Vec::new()));
                self.columns.len() - 1
            });
            self.columns[place].1.push((row, value));
        }
    }

    fn finished(self, rows: usize) -> Vec<Column> {
        let column = |(name, given): (String, Vec<(usize, Value)>)| {
            let mut values = vec![Value::Null; rows];
            for (row, value) in given {
                values[row] = value;
            }
            Column { name, values }
        };
        self.columns.into_iter().map(column).collect()
    }
}

fn csv_text(columns: &[Column], rows: usize) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|column| &column.name))?;
    for row in 0..rows {
        let cells = columns.iter().map(|column| match &column.values[row] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        writer.write_record(cells)?;
    }
    match writer.into_inner() {
        Ok(bytes) => Ok(bytes),
        Err(error) => bail!("{error}"),
    }
}

fn json_text(columns: Vec<Column>, rows: usize) -> Result<String> {
    let mut objects = vec![Map::new(); rows];
    for column in columns {
        for (object, value) in objects.iter_mut().zip(column.values) {
            object.insert(column.name.clone(), value);
        }
    }
    output::json(&objects)
}
