//! The experiment behind a published table, as `experiments/NAME.toml` describes it.

use std::collections::BTreeMap;

use lockworks_machine::{Kernel, Mark};
use serde::Deserialize;

/// How a published table was measured, and how it is simulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The measurement, in one line.
    pub title: String,
    /// Where the figures were published.
    pub source: String,
    /// The machine of all columns that name no other.
    pub machine: String,
    /// The version of Linux of the measurements, if it is not that of the machine.
    pub kernel: Option<Kernel>,
    /// The workload.
    pub workload: String,
    /// Where threads run.
    pub placement: ThreadPlacement,
    /// Set if the threads are the virtual CPUs of a guest.
    pub guest: Option<Guest>,
    /// Set if the threads are tasks of users on some nodes of the machine.
    pub nodes: Option<RestrictedNodes>,
    /// Tunables of the locks that differ from those of a kernel.
    #[serde(default)]
    pub tunables: BTreeMap<String, u64>,
    /// Values of machine, workload or model that differ from their description.
    #[serde(default, rename = "set")]
    pub settings: Vec<DescribedValue>,
    /// The number of random placements whose mean is taken; fewer are simulated with more threads.
    pub placements: u64,
    /// The unit of the published figures.
    pub unit: String,
    /// Converts operations a second into the unit.
    #[serde(default)]
    pub per_second: f64,
    /// The reference of speedups: a column, or a lock where the table has gains or latencies.
    /// Empty where the table has neither.
    #[serde(default)]
    pub baseline: String,
    /// The column that the publication is about. Empty if it is about all of them.
    #[serde(default)]
    pub headline: String,
    /// The greatest judged error that passes, in percent.
    pub limit_percent: f64,
    /// Whether the limit is for fitted values rather than for values as described.
    #[serde(default)]
    pub limit_is_for_fitted: bool,
    /// Whether some values were chosen on this table, so that its error is no prediction.
    #[serde(default)]
    pub values_from_table: bool,
    /// Whether no value and no rule of the model was chosen with a look at this table.
    #[serde(default)]
    pub unused: bool,
    /// Virtual time of each run.
    #[serde(default = "five")]
    pub milliseconds: f64,
    /// The assumptions about what was not published.
    pub assumptions: Vec<String>,
    /// The columns, in the order in which they are shown.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
}

/// Where the threads of a table run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThreadPlacement {
    /// Core by core, socket by socket.
    Compact,
    /// On random cores.
    Scatter,
    /// On CPUs in their order: first all hardware threads of a core.
    Packed,
    /// In groups on one node, of the size given by the workload's constant `gather_threads`.
    Gather,
}

/// The guest whose virtual CPUs are the threads.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guest {
    /// The number of CPUs of the host.
    pub cpus: usize,
    /// Whether each virtual CPU was pinned to one of them.
    #[serde(default)]
    pub pinned: bool,
}

/// Nodes and tasks of a restricted machine, where the rows of the table do not give them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestrictedNodes {
    /// The number of nodes.
    #[serde(default)]
    pub nodes: usize,
    /// The number of tasks, one for each user.
    #[serde(default)]
    pub users: usize,
}

/// A value of machine, workload or model that holds in this experiment only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribedValue {
    /// Its name, as in `lockworks sim --json`.
    pub key: String,
    /// The value.
    pub value: f64,
    /// How well it is known.
    pub mark: Mark,
    /// Where it is from.
    pub source: String,
}

/// A column of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    /// Its name.
    pub name: String,
    /// The column of the CSV file that has its figures, if that is not the one of its name.
    figures: Option<String>,
    /// The lock that is simulated for it.
    pub lock: String,
    /// The machine, if it is not that of the table.
    pub machine: Option<String>,
    /// The quantity that its figures measure.
    #[serde(default)]
    pub measure: Measure,
    /// The number of tasks, if columns differ in it.
    pub users: Option<usize>,
    /// Whether CNA skips most of its searches for waiters of its own node.
    #[serde(default = "yes")]
    pub shuffle_reduction: bool,
}

impl Column {
    /// The column of the CSV file that has its figures.
    pub fn figures(&self) -> &str {
        self.figures.as_deref().unwrap_or(&self.name)
    }
}

/// The quantity that the figures of a column measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    /// Operations in some time.
    #[default]
    Rate,
    /// By how much the rate exceeds that of the baseline, in percent of the baseline.
    Gain,
    /// By how much an operation takes longer than with the baseline, in percent. With as many
    /// clients as before, each with one request under way, that is the inverse of a speedup.
    Latency,
    /// The fairness factor.
    Fairness,
    /// How long the workload's whole job takes.
    Seconds,
    /// Whole jobs a minute.
    Jobs,
    /// The share of the lock's atomic read-modify-writes in the time for which CPUs had a thread to
    /// run, in percent.
    Rmws,
}

fn yes() -> bool {
    true
}

fn five() -> f64 {
    5.0
}
