//! The report at the end of a sweep: a summary, failures, and the state of the store.

use std::path::PathBuf;

use itertools::Itertools;
use serde::Serialize;

use crate::point::{Kind, Outcome, VERSION};
use lockworks_ui::figures::scaled;
use lockworks_ui::output;
use lockworks_ui::terminal;

/// The most failures that are listed as text.
const LISTED: usize = 20;

/// The state of a sweep.
#[derive(Serialize)]
pub struct SweepReport {
    version: &'static str,
    store: PathBuf,
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
    kind: Kind,
    machine: String,
    workload: String,
    lock: String,
    points: usize,
    failed: usize,
    /// The geometric mean over the points of a simulation.
    operations_per_second: Option<f64>,
    /// The arithmetic mean over the points of a simulation.
    fairness: Option<f64>,
    /// The sum over the points of a check.
    states: u64,
}

impl SweepReport {
    /// The report on a plan of `points` points, of which `stored` were in the store before.
    pub(crate) fn new(
        store: PathBuf,
        [points, stored, run]: [usize; 3],
        outcomes: &[Outcome],
    ) -> Self {
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
        for kind in [Kind::Sim, Kind::Check] {
            let groups: Vec<&Group> = self.summary.iter().filter(|g| g.kind == kind).collect();
            if !groups.is_empty() {
                text.push_str(&format!("{}\n", table(kind, &groups)));
            }
        }
        let store = format!(
            "{} points, {} run now. Results are in {}; write them with --output FILE.csv or \
             FILE.json.",
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

/// The groups of outcomes, in the order of the plan.
fn groups(outcomes: &[Outcome]) -> Vec<Group> {
    let key = |outcome: &&Outcome| {
        let names = ["machine", "workload", "lock"];
        (
            outcome.point.kind,
            names.map(|option| outcome.point.text(option)),
        )
    };
    let by_key = outcomes.iter().into_group_map_by(key);
    let groups = outcomes.iter().map(|outcome| key(&outcome)).unique();
    groups
        .map(|key| Group::new(key.clone(), &by_key[&key]))
        .collect()
}

impl Group {
    fn new((kind, [machine, workload, lock]): (Kind, [String; 3]), outcomes: &[&Outcome]) -> Self {
        let figures = || outcomes.iter().map(|outcome| outcome.figures());
        let mean = |values: Vec<f64>| {
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let rates = figures().filter_map(|figures| figures.operations_per_second);
        Self {
            kind,
            machine,
            workload,
            lock,
            points: outcomes.len(),
            failed: outcomes.iter().filter(|o| o.error.is_some()).count(),
            operations_per_second: mean(rates.filter(|r| *r > 0.0).map(f64::ln).collect())
                .map(f64::exp),
            fairness: mean(figures().filter_map(|figures| figures.fairness).collect()),
            states: figures().filter_map(|figures| figures.states).sum(),
        }
    }
}

fn table(kind: Kind, groups: &[&Group]) -> lockworks_ui::table::Table {
    let mut table = output::table(match kind {
        Kind::Sim => &[
            "lock", "machine", "workload", "points", "failed", "ops/s", "fairness",
        ],
        Kind::Check => &["lock", "points", "failed", "states"],
    });
    // A file is named without its directory.
    let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    for group in groups {
        let [points, failed] = [group.points, group.failed].map(|n| n.to_string());
        let number =
            |number: Option<f64>, text: fn(f64) -> String| number.map_or_else(String::new, text);
        table.add_row(match kind {
            Kind::Sim => vec![
                group.lock.clone(),
                name(&group.machine),
                name(&group.workload),
                points,
                failed,
                number(group.operations_per_second, scaled),
                number(group.fairness, |fairness| format!("{fairness:.3}")),
            ],
            Kind::Check => vec![group.lock.clone(), points, failed, group.states.to_string()],
        });
    }
    table
}
