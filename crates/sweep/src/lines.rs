//! Points and results as lines of JSON, for programs that have the points of a plan run elsewhere.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::point::{Outcome, Point, VERSION};
use crate::store::{Results, Store};
use lockworks_ui::output;

/// A point that is to be run.
#[derive(Serialize, Deserialize)]
struct Task {
    key: String,
    /// The version that printed the point. Only this version may run it.
    version: String,
    #[serde(flatten)]
    point: Point,
}

/// Prints points, a line each.
pub fn print(points: &[&(String, Point)]) -> Result<()> {
    let mut lines = String::new();
    for (key, point) in points {
        let task = Task {
            key: key.clone(),
            version: VERSION.to_owned(),
            point: point.clone(),
        };
        lines.push_str(&(serde_json::to_string(&task)? + "\n"));
    }
    output::print(&lines)
}

/// Runs the points of a file, or of standard input if it is `-`. Prints the outcome of each when it
/// ends. None is run if one of them is not of this version.
pub fn run(file: &Path, jobs: usize, memory: Option<usize>) -> Result<()> {
    let mut points = Vec::new();
    for (number, line) in (1..).zip(open(file)?.lines()) {
        let task: Task = serde_json::from_str(&line?)
            .with_context(|| format!("line {number} is no point of a sweep"))?;
        check(number, &task.key, &task.version, &task.point)?;
        points.push((task.key, task.point));
    }
    let points: Vec<&(String, Point)> = points.iter().collect();
    super::run("points", &points, jobs, memory, |outcome| {
        let line = serde_json::to_string(outcome)? + "\n";
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(line.as_bytes());
        written
            .and_then(|()| stdout.flush())
            .context("nobody reads the results")
    })
}

/// Adds the results of a file, or of standard input if it is `-`, to the store, each when it has been
/// read. A result that the store has is left out.
pub fn import(file: &Path, plan: &Plan, store: &mut Store, mut results: Results) -> Result<()> {
    let planned: HashSet<&str> = plan.points.iter().map(|(key, _)| key.as_str()).collect();
    for (number, line) in (1..).zip(open(file)?.lines()) {
        let line = line? + "\n";
        let outcome: Outcome = serde_json::from_str(&line)
            .with_context(|| format!("line {number} is no result of a sweep"))?;
        check(number, &outcome.key, &outcome.version, &outcome.point)?;
        let key = outcome.key.as_str();
        ensure!(
            planned.contains(key),
            "line {number}: no point of the plan has the key {key}; give the plan of the results"
        );
        if results.add_new(&line)? {
            store.append(&line)?;
        }
    }
    Ok(())
}

/// Fails if a line is not of this version, or its key is not that of its point.
fn check(number: usize, key: &str, version: &str, point: &Point) -> Result<()> {
    ensure!(
        version == VERSION,
        "line {number} is of version {version}, but this is lockworks {VERSION}; use the same one"
    );
    let found = point.key().with_context(|| format!("line {number}"))?;
    if found != key {
        bail!(
            "line {number}: the key is not that of the point; its machine or workload has to be the \
             same file here"
        );
    }
    Ok(())
}

fn open(file: &Path) -> Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(file).with_context(|| {
        let file = file.display();
        format!("cannot read {file}; give a file of lines, or - for standard input")
    })?;
    Ok(Box::new(BufReader::new(opened)))
}
