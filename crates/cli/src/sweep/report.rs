//! The report at the end of a sweep: a summary, failures, and the state of the store.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::point::{Outcome, PointRun, VERSION};
use crate::figures::scaled;
use crate::output;
use crate::terminal;

/// The most failures that are listed as text.
const LISTED: usize = 20;

/// The state of a sweep.
#[derive(Serialize)]
pub struct SweepReport<'a> {
    version: &'static str,
    store: &'a Path,
    /// The number of points in the plan.
    pub points: usize,
    /// The number of points that were in the store already.
    pub stored: usize,
    /// The number of points that were run, or are to be run.
    pub run: usize,
    /// The number of points in the plan that failed.
    pub failed: usize,
    failures: Vec<Failure>,
    summary: Vec<Group>,
}

#[derive(Serialize)]
struct Failure {
    key: String,
    error: String,
    command: String,
}

/// Points with the same lock, on the same machine under the same workload.
#[derive(Serialize)]
struct Group {
    kind: &'static str,
    machine: Option<String>,
    workload: Option<String>,
    lock: String,
    points: usize,
    failed: usize,
    /// The geometric mean over the points of a simulation.
    operations_per_second: Option<f64>,
    /// The arithmetic mean over the points of a simulation.
    fairness: Option<f64>,
    /// The sum over the points of a check.
    states: Option<u64>,
    #[serde(skip)]
    rates: Vec<f64>,
    #[serde(skip)]
    fairnesses: Vec<f64>,
}

impl<'a> SweepReport<'a> {
    /// The report on a plan of `points` points, of which `stored` were in the store before.
    pub fn new(store: &'a Path, [points, stored, run]: [usize; 3], outcomes: &[Outcome]) -> Self {
        let failures: Vec<Failure> = outcomes.iter().filter_map(failure).collect();
        Self {
            version: VERSION,
            store,
            points,
            stored,
            run,
            failed: failures.len(),
            failures,
            summary: groups(outcomes),
        }
    }

    /// The failures, each with the command that repeats it. Empty if there are none.
    pub fn failures(&self) -> String {
        if self.failures.is_empty() {
            return String::new();
        }
        let mut text = format!("{} of {} points failed:\n", self.failed, self.points);
        for failure in self.failures.iter().take(LISTED) {
            let first = failure.error.lines().next().unwrap_or_default();
            text.push_str(&format!("  {first}\n    {}\n", failure.command));
        }
        if self.failed > LISTED {
            let more = self.failed - LISTED;
            text.push_str(&format!("  and {more} more; --json lists all\n"));
        }
        text
    }

    /// The summary as tables, and where the store is.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for kind in ["sim", "check"] {
            let groups: Vec<&Group> = self.summary.iter().filter(|g| g.kind == kind).collect();
            if !groups.is_empty() {
                text.push_str(&format!("{}\n", table(kind, &groups)));
            }
        }
        let store = format!(
            "{} points, {} run now. Results are in {}; write them with --output FILE.csv, .json or \
             .parquet.",
            self.points,
            self.run,
            self.store.display()
        );
        format!("{text}{}\n", terminal::prose(&store))
    }

    /// The number of points, and how many of them are to be run. With `retry` these include those
    /// that failed.
    pub fn intent(&self, retry: bool) -> String {
        let store = self.store.display();
        let failed = match self.failed {
            failed if failed > 0 && !retry => format!(", {failed} of them failed"),
            _ => String::new(),
        };
        format!(
            "{} points: {} in {store}{failed}, {} to run\n",
            self.points, self.stored, self.run
        )
    }
}

fn failure(outcome: &Outcome) -> Option<Failure> {
    Some(Failure {
        key: outcome.key.clone(),
        error: outcome.error.clone()?,
        command: outcome.point.command(),
    })
}

fn groups(outcomes: &[Outcome]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for outcome in outcomes {
        let (kind, machine, workload, lock) = match &outcome.point.run {
            PointRun::Sim(point) => {
                let name = |source: &super::source::Source| Some(source.name().to_owned());
                (
                    "sim",
                    name(&point.machine),
                    name(&point.workload),
                    &point.lock,
                )
            }
            PointRun::Check(point) => ("check", None, None, &point.lock),
        };
        let id = (kind, machine.clone(), workload.clone(), lock.clone());
        let place = *places.entry(id).or_insert_with(|| {
            groups.push(Group {
                kind,
                machine,
                workload,
                lock: lock.clone(),
                points: 0,
                failed: 0,
                operations_per_second: None,
                fairness: None,
                states: None,
                rates: Vec::new(),
                fairnesses: Vec::new(),
            });
            groups.len() - 1
        });
        groups[place].add(outcome);
    }
    for group in &mut groups {
        group.finish();
    }
    groups
}

impl Group {
    fn add(&mut self, outcome: &Outcome) {
        self.points += 1;
        self.failed += usize::from(outcome.error.is_some());
        let empty = Map::new();
        let result = outcome.result.as_ref().unwrap_or(&empty);
        let number = |key: &str| result.get(key).and_then(Value::as_f64);
        let rate = number("operations_per_second");
        self.rates.extend(rate.filter(|rate| *rate > 0.0));
        self.fairnesses.extend(number("fairness"));
        if let Some(states) = result.get("states").and_then(Value::as_u64) {
            self.states = Some(self.states.unwrap_or(0) + states);
        }
    }

    fn finish(&mut self) {
        let mean = |values: &[f64]| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let logarithms: Vec<f64> = self.rates.iter().map(|rate| rate.ln()).collect();
        self.operations_per_second = mean(&logarithms).map(f64::exp);
        self.fairness = mean(&self.fairnesses);
    }
}

fn table(kind: &str, groups: &[&Group]) -> crate::table::Table {
    let mut table = match kind {
        "sim" => output::table(&[
            "lock", "machine", "workload", "points", "failed", "ops/s", "fairness",
        ]),
        _ => output::table(&["lock", "points", "failed", "states"]),
    };
    for group in groups {
        let mut cells = vec![group.lock.clone()];
        cells.extend(group.machine.clone());
        cells.extend(group.workload.clone());
        cells.push(group.points.to_string());
        cells.push(group.failed.to_string());
        match kind {
            "sim" => {
                cells.push(group.operations_per_second.map_or_else(String::new, scaled));
                let fairness = group.fairness.map(|fairness| format!("{fairness:.3}"));
                cells.push(fairness.unwrap_or_default());
            }
            _ => cells.push(group.states.unwrap_or(0).to_string()),
        }
        table.add_row(cells);
    }
    table
}
