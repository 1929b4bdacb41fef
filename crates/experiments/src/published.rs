//! The figures of a published table, as `experiments/published/NAME.csv` holds them.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use itertools::Itertools;
use lockworks_machine::Machine;

use crate::description::{Column, Description};

/// A row of a published table: what ran, and a figure for each column.
#[derive(Clone, Debug)]
pub(crate) struct PublishedRow {
    /// The number of threads, or of nodes where the machine was restricted to some. Fits choose rows
    /// by it.
    pub point: usize,
    /// The number of threads.
    pub threads: usize,
    /// The conditions of the row besides, as "4 nodes".
    pub circumstances: Option<String>,
    /// Values of machine, workload or model that hold for this row: each column of the table whose name
    /// has a dot, as `workload.critical_ns`.
    pub settings: Vec<(String, f64)>,
    /// The number of CPUs that threads share, where the machine was restricted to some.
    pub cpus: Option<usize>,
    /// Whether these CPUs are all hardware threads of their cores.
    pub packed: bool,
    /// The figure of each column.
    pub figures: Vec<f64>,
    /// The standard deviation of each column, if it was published.
    pub deviations: Option<Vec<f64>>,
}

/// Reads the rows of the table that `description` describes.
pub(crate) fn read(description: &Description, text: &str) -> Result<Vec<PublishedRow>> {
    let cells = cells(text)?;
    let (header, lines) = cells.split_first().context("the table is empty")?;
    let deviations = description
        .columns
        .iter()
        .all(|column| header.contains(&deviation_of(column.figures())));
    let rows = lines.iter().map(|cells| {
        let line = Line { header, cells };
        let row = match description.nodes {
            Some(_) => restricted_row(description, &line)?,
            None => row_of_threads(&line)?,
        };
        let columns = description.columns.iter().map(Column::figures);
        let settings = line.settings()?;
        Ok(PublishedRow {
            circumstances: row.circumstances.or_else(|| in_words(&settings)),
            settings,
            figures: columns
                .clone()
                .map(|name| line.number(name))
                .collect::<Result<_>>()?,
            deviations: if deviations {
                Some(
                    columns
                        .map(|name| line.number(&deviation_of(name)))
                        .collect::<Result<_>>()?,
                )
            } else {
                None
            },
            ..row
        })
    });
    let rows: Vec<_> = rows
        .enumerate()
        .map(|(at, row): (usize, Result<_>)| row.with_context(|| format!("row {}", at + 1)))
        .collect::<Result<_>>()?;
    ensure!(!rows.is_empty(), "the table has a header and no rows");
    Ok(rows)
}

/// The cells of all lines, the header first. A table with one line for each lock is transposed.
fn cells(text: &str) -> Result<Vec<Vec<String>>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let lines: Vec<Vec<String>> = reader.deserialize().collect::<Result<_, _>>()?;
    let by_lock = lines.first().is_some_and(|header| header[0] == "lock");
    if !by_lock {
        return Ok(lines);
    }
    let transposed = |at: usize| lines.iter().map(|line| line[at].clone()).collect();
    Ok((0..lines[0].len()).map(transposed).collect())
}

fn deviation_of(column: &str) -> String {
    format!("{column}_sd")
}

/// Settings as a condition of a row: "critical_ns 200, parallel_ns 1000".
fn in_words(settings: &[(String, f64)]) -> Option<String> {
    let one = |(key, value): &(String, f64)| {
        let (_, name) = key.split_once('.').expect("settings have a dot");
        format!("{name} {value}")
    };
    (!settings.is_empty()).then(|| settings.iter().map(one).join(", "))
}

/// A line of the CSV file.
struct Line<'a> {
    header: &'a [String],
    cells: &'a [String],
}

impl Line<'_> {
    fn cell(&self, column: &str) -> Option<&str> {
        let at = self.header.iter().position(|name| name == column)?;
        Some(&self.cells[at])
    }

    fn number(&self, column: &str) -> Result<f64> {
        let Some(cell) = self.cell(column) else {
            bail!("no column {column}");
        };
        cell.parse()
            .with_context(|| format!("column {column}: {cell:?} is not a number"))
    }

    /// The columns that are values of machine, workload or model.
    fn settings(&self) -> Result<Vec<(String, f64)>> {
        let keys = self.header.iter().filter(|name| name.contains('.'));
        keys.map(|key| Ok((key.clone(), self.number(key)?)))
            .collect()
    }

    /// A column of counts, which the table need not have.
    fn count(&self, column: &str) -> Result<Option<usize>> {
        match self.cell(column) {
            Some(_) => Ok(Some(self.number(column)? as usize)),
            None => Ok(None),
        }
    }
}

/// A row that begins with its number of threads or virtual CPUs.
fn row_of_threads(line: &Line) -> Result<PublishedRow> {
    let first = line.cells[0].trim_start_matches("vcpus_");
    let threads = first
        .parse()
        .with_context(|| format!("{first:?} is not a number of threads"))?;
    Ok(PublishedRow {
        point: threads,
        threads,
        circumstances: None,
        settings: Vec::new(),
        cpus: None,
        packed: false,
        figures: Vec::new(),
        deviations: None,
    })
}

/// A row of tasks on some nodes of the machine. Of a range of users the middle one is taken.
fn restricted_row(description: &Description, line: &Line) -> Result<PublishedRow> {
    let defaults = description.nodes.context("a table of nodes")?;
    let nodes = line.count("nodes")?.unwrap_or(defaults.nodes);
    let users = line.count("users_from")?.zip(line.count("users_to")?);
    let packed = line.cell("hyperthreads") == Some("on");
    let machine = Machine::find(&description.machine)?;
    let is_on_them = |cpu: &usize| machine.node_of(*cpu) < nodes;
    let cpus = (0..machine.cpus()).filter(is_on_them).count();
    let cores: BTreeSet<_> = (0..cpus).map(|cpu| machine.core_of(cpu)).collect();
    let circumstances = match line.cell("workload") {
        Some(workload) => workload.to_owned(),
        None if packed => format!("{nodes} nodes, hyperthreads"),
        None => format!("{nodes} nodes"),
    };
    Ok(PublishedRow {
        point: nodes,
        threads: users.map_or(defaults.users, |(from, to)| (from + to) / 2),
        circumstances: Some(circumstances),
        settings: Vec::new(),
        cpus: Some(if packed { cpus } else { cores.len() }),
        packed,
        figures: Vec::new(),
        deviations: None,
    })
}
