//! Published tables, and their experiments repeated in simulation.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use itertools::Itertools;
use lockworks::{Setting, Settings, Tunable, fairness};
use lockworks_machine::{Machine, Mark};
use lockworks_sim::{Outcome, Placement, Run, Scenario, Sharing};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::names::unknown;
use crate::sim::{find_lock, find_workload, set};

macro_rules! tables {
    ($($name:literal),*) => {
        &[$((
            include_str!(concat!("../../../experiments/", $name, ".toml")),
            include_str!(concat!("../../../experiments/published/", $name, ".csv")),
        )),*]
    };
}

/// Description and published figures of each table.
const TABLES: &[(&str, &str)] = tables!(
    "cna_locktorture",
    "cna_will_it_scale_open1",
    "cna_will_it_scale_lock2",
    "cna_leveldb_readrandom",
    "hq_locktorture_epyc9654_gain_percent",
    "hq_locktorture_epyc9654_fairness",
    "hq_locktorture_kunpeng920_gain_percent",
    "hq_nginx_kunpeng920_percent",
    "hq_memcached_epyc9654_nps4_percent",
    "hq_memcached_kunpeng920_percent",
    "pv_kernel_build_haswell_ex_seconds",
    "pv_kernel_build_westmere_ex_seconds",
    "pv_kernel_build_westmere_ex_pinned_seconds",
    "mutex_aim7_high_systime_jpm",
    "mutex_slowpath_time_percent",
    "mutex_aim7_workloads_change_percent"
);

/// What `lockworks fit` has found, each on tables of one workload.
const FITS: &[&str] = &[
    include_str!("../../../experiments/fit.toml"),
    include_str!("../../../experiments/fit_hq.toml"),
    include_str!("../../../experiments/fit_memcached.toml"),
    include_str!("../../../experiments/fit_pv_haswell.toml"),
    include_str!("../../../experiments/fit_pv_westmere.toml"),
    include_str!("../../../experiments/fit_aim7.toml"),
];

/// How a published table came about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the table.
    pub name: String,
    /// What was run.
    pub title: String,
    /// Where the figures were published.
    pub source: String,
    /// On which machine, unless a column says another.
    pub machine: String,
    /// Which workload.
    pub workload: String,
    placement: Placing,
    /// Threads are the virtual CPUs of a guest.
    guest: Option<Guest>,
    /// Threads are tasks of users on some nodes of the machine.
    nodes: Option<Nodes>,
    /// Of the locks, where they are not those of a kernel.
    #[serde(default)]
    tunables: BTreeMap<String, u64>,
    /// Values that were otherwise than the model has them.
    #[serde(default, rename = "set")]
    settings: Vec<Described>,
    /// Over so many random placements the mean is taken, fewer with more threads.
    placements: u64,
    /// What the published figures count.
    pub unit: String,
    #[serde(default)]
    per_second: f64,
    /// The column that speedups are relative to; the lock, where gains are published; none, where
    /// seconds are.
    #[serde(default)]
    pub baseline: String,
    /// The column that the works are about, if it is one.
    #[serde(default)]
    pub headline: String,
    /// The most that the mean error may be, for `make bench`,
    pub limit_percent: f64,
    /// with fitted values, rather than with those described.
    #[serde(default)]
    pub limit_is_for_fitted: bool,
    /// Virtual time of each run.
    #[serde(default = "five")]
    pub milliseconds: f64,
    /// What had to be assumed (I).
    pub assumptions: Vec<String>,
    #[serde(rename = "column")]
    columns: Vec<Column>,
    #[serde(skip)]
    published: Vec<Published>,
    /// The saved fit on tables of such circumstances.
    #[serde(skip)]
    pub fit: Option<Fit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Placing {
    Compact,
    Scatter,
    /// As many threads together as the workload's constant `gather_threads` says.
    Gather,
}

/// What a guest ran on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guest {
    /// CPUs of the host.
    cpus: usize,
    /// Its virtual CPUs stayed each on one of them.
    #[serde(default)]
    pinned: bool,
}

/// On what users' tasks ran, where the table does not say for each row.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nodes {
    /// So many nodes.
    #[serde(default)]
    nodes: usize,
    /// So many tasks, one for each user.
    #[serde(default)]
    users: usize,
}

/// A value of the experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    key: String,
    value: f64,
    mark: Mark,
    source: String,
}

/// What a column's figures are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Measure {
    /// Operations in some time.
    #[default]
    Rate,
    /// What the rate is above that of the baseline, in percent of this.
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
    /// Of the time in which CPUs had a thread to run, what the lock's atomic read-modify-writes took,
    /// in percent.
    Rmws,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    lock: String,
    machine: Option<String>,
    #[serde(default)]
    measure: Measure,
    /// So many tasks, if columns differ in that.
    users: Option<usize>,
    #[serde(default = "yes")]
    shuffle_reduction: bool,
}

fn yes() -> bool {
    true
}

fn five() -> f64 {
    5.0
}

/// What is run for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Subject<'a> {
    machine: &'a str,
    lock: &'a str,
    shuffle_reduction: bool,
    threads: usize,
    /// CPUs of the machine that they share, where it was restricted.
    cpus: Option<usize>,
    /// These are all hardware threads of their cores.
    packed: bool,
}

#[derive(Clone, Debug)]
struct Published {
    /// What fits choose points by: how many threads, or nodes.
    point: usize,
    threads: usize,
    /// What else is said of the row.
    circumstances: Option<String>,
    cpus: Option<usize>,
    packed: bool,
    /// Of each column.
    figures: Vec<f64>,
    deviations: Option<Vec<f64>>,
}

/// A fit, as saved.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The tables it was made on, of one workload.
    pub tables: Vec<String>,
    /// At which thread counts.
    pub points: Vec<usize>,
    /// The values it changed.
    #[serde(rename = "value")]
    pub values: Vec<Fitted>,
}

/// One fitted value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// Its name.
    pub key: String,
    /// What the fit found.
    pub value: f64,
    /// What it could choose from.
    pub low: f64,
    /// Likewise.
    pub high: f64,
}

/// One figure of a table, published and simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Number of threads.
    pub threads: usize,
    /// What the row is of besides, as nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<String>,
    /// What fits choose it by.
    #[serde(skip)]
    pub point: usize,
    /// The table's column.
    pub column: String,
    /// The lock simulated for it.
    pub lock: String,
    /// The machine simulated for it.
    pub machine: String,
    /// In the table's unit.
    pub published: f64,
    /// Standard deviation of the published runs, where it was published.
    pub published_sd: Option<f64>,
    /// In the table's unit.
    pub simulated: f64,
    /// Of the simulated figure; that of the speedup where it is a gain or a latency, and in
    /// percentage points where it is a fairness factor.
    pub error_percent: f64,
    /// The speedup, where there is a baseline.
    pub speedup: Option<Speedup>,
}

/// Two columns in the wrong order.
#[derive(Clone, Debug, Serialize)]
pub struct Misordered {
    /// Number of threads.
    pub threads: usize,
    /// As published.
    pub slower: String,
    /// As published.
    pub faster: String,
}

/// What a lock makes of a baseline's rate.
#[derive(Clone, Debug, Serialize)]
pub struct Speedup {
    /// As published, in full digits.
    pub published: f64,
    /// Relative to the simulated baseline.
    pub simulated: f64,
    /// Of the simulated speedup.
    pub error_percent: f64,
}

impl Experiment {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = TABLES
            .iter()
            .map(|(description, figures)| {
                let mut experiment: Self =
                    toml::from_str(description).expect("built-in descriptions are well formed");
                experiment.published = experiment.read(figures);
                experiment
            })
            .collect();
        for text in FITS {
            let fit: Fit = toml::from_str(text).expect("saved fits are well formed");
            let made_on: Vec<_> = all
                .iter()
                .filter(|e| fit.tables.contains(&e.name))
                .map(Self::circumstances)
                .collect();
            for experiment in &mut all {
                if made_on.contains(&experiment.circumstances()) {
                    experiment.fit = Some(fit.clone());
                }
            }
        }
        all
    }

    /// What a fit is made for: workload, machine, and whether virtual CPUs are pinned.
    fn circumstances(&self) -> (String, String, bool) {
        let pinned = self.guest.is_some_and(|guest| guest.pinned);
        (self.workload.clone(), self.machine.clone(), pinned)
    }

    /// The experiment behind this table.
    pub fn find(name: &str) -> Result<Self> {
        let all = Self::all();
        let names: Vec<String> = all.iter().map(|e| e.name.clone()).collect();
        all.into_iter()
            .find(|e| e.name == name)
            .ok_or_else(|| unknown("table", name, names.iter().map(String::as_str)))
    }

    fn read(&self, figures: &str) -> Vec<Published> {
        let mut lines: Vec<Vec<&str>> = figures.lines().map(|l| l.split(',').collect()).collect();
        // Locks by counts of virtual CPUs, rather than counts of threads by locks.
        if lines[0][0] == "lock" {
            lines = (0..lines[0].len())
                .map(|at| lines.iter().map(|line| line[at]).collect())
                .collect();
        }
        let header = lines.remove(0);
        let at = |name: &str| {
            header
                .iter()
                .position(|h| *h == name)
                .unwrap_or_else(|| panic!("{} has no column {name}", self.name))
        };
        let number = |record: &[&str], name: &str| -> f64 {
            record[at(name)]
                .parse()
                .expect("published figures are numbers")
        };
        let deviations = self
            .columns
            .iter()
            .all(|c| header.iter().any(|h| *h == format!("{}_sd", c.name)));
        let columns = |record: &[&str], suffix: &str| {
            self.columns
                .iter()
                .map(|c| number(record, &format!("{}{suffix}", c.name)))
                .collect()
        };
        let count =
            |name: &str, line: &[&str]| header.contains(&name).then(|| number(line, name) as usize);
        lines
            .iter()
            .map(|line| {
                let row = match self.nodes {
                    Some(nodes) => {
                        let users = count("users_from", line).zip(count("users_to", line));
                        self.restricted(
                            count("nodes", line).unwrap_or(nodes.nodes),
                            users.map_or(nodes.users, |(from, to)| (from + to) / 2),
                            header
                                .iter()
                                .zip(line)
                                .any(|cell| cell == (&"hyperthreads", &"on")),
                            header.contains(&"workload").then_some(line[0]),
                        )
                    }
                    None => {
                        let threads = line[0]
                            .trim_start_matches("vcpus_")
                            .parse()
                            .expect("published tables begin with a count of threads");
                        Published {
                            point: threads,
                            threads,
                            circumstances: None,
                            cpus: None,
                            packed: false,
                            figures: Vec::new(),
                            deviations: None,
                        }
                    }
                };
                Published {
                    figures: columns(line, ""),
                    deviations: deviations.then(|| columns(line, "_sd")),
                    ..row
                }
            })
            .collect()
    }

    /// A row of so many tasks on some nodes of the machine.
    fn restricted(
        &self,
        nodes: usize,
        users: usize,
        hyperthreads: bool,
        workload: Option<&str>,
    ) -> Published {
        let machine = Machine::find(&self.machine).expect("a built-in machine");
        let cpus = machine.cpus() / machine.nodes() * nodes;
        let cores: BTreeSet<_> = (0..cpus).map(|cpu| machine.core_of(cpu)).collect();
        Published {
            point: nodes,
            threads: users,
            circumstances: Some(match workload {
                Some(workload) => workload.to_owned(),
                None if hyperthreads => format!("{nodes} nodes, hyperthreads"),
                None => format!("{nodes} nodes"),
            }),
            cpus: Some(if hyperthreads { cpus } else { cores.len() }),
            packed: hyperthreads,
            figures: Vec::new(),
            deviations: None,
        }
    }

    /// Thread counts of the table, or those of nodes where machines were restricted to some.
    pub fn points(&self) -> Vec<usize> {
        self.published.iter().map(|p| p.point).unique().collect()
    }

    /// Its machines.
    pub fn machines(&self) -> Vec<&str> {
        let machines = self.columns.iter().map(|c| self.machine_of(c));
        machines.unique().collect()
    }

    fn machine_of<'a>(&'a self, column: &'a Column) -> &'a str {
        column.machine.as_deref().unwrap_or(&self.machine)
    }

    /// One of its machines, and its workload, with values as described.
    pub fn scenario(&self, machine: &str) -> Result<Scenario> {
        let machine = Machine::find(machine)?;
        let mut scenario = Scenario::new(machine, find_workload(&self.workload)?);
        for Described {
            key,
            value,
            mark,
            source,
        } in &self.settings
        {
            scenario
                .describe(key, *value, *mark, source)
                .expect("built-in descriptions are well formed");
        }
        Ok(scenario)
    }

    /// The scenario of each of its machines, with values as described but those set here.
    pub fn scenarios(&self, settings: &[(String, f64)]) -> Result<Vec<Scenario>> {
        self.machines()
            .into_iter()
            .map(|machine| {
                let mut scenario = self.scenario(machine)?;
                for (key, value) in settings {
                    set(&mut scenario, key, *value)?;
                }
                Ok(scenario)
            })
            .collect()
    }

    fn placements(&self, threads: usize) -> u64 {
        match threads {
            0..=4 => self.placements,
            5..=36 => self.placements.div_ceil(2),
            _ => self.placements.div_ceil(4),
        }
    }

    fn subject<'a>(&'a self, row: &Published, column: &'a Column) -> Subject<'a> {
        Subject {
            machine: self.machine_of(column),
            lock: &column.lock,
            shuffle_reduction: column.shuffle_reduction,
            threads: column.users.unwrap_or(row.threads),
            cpus: row.cpus,
            packed: row.packed,
        }
    }

    /// What a column's speedups are relative to.
    fn baseline_of<'a>(&'a self, row: &Published, column: &'a Column) -> Option<Subject<'a>> {
        match column.measure {
            Measure::Rate | Measure::Jobs => {
                Some(self.subject(row, &self.columns[self.column(&self.baseline)]))
            }
            Measure::Gain | Measure::Latency => Some(Subject {
                lock: &self.baseline,
                ..self.subject(row, column)
            }),
            Measure::Fairness | Measure::Seconds | Measure::Rmws => None,
        }
    }

    /// How many runs a simulation of all columns at these points takes.
    pub fn runs(&self, points: &[usize]) -> usize {
        self.subjects(points).len()
    }

    fn rows_at(&self, points: &[usize]) -> impl Iterator<Item = &Published> {
        self.published.iter().filter(|p| points.contains(&p.point))
    }

    /// Subject and placement of each run.
    fn subjects(&self, points: &[usize]) -> Vec<(Subject<'_>, u64)> {
        let mut subjects = Vec::new();
        for (row, column) in self.rows_at(points).cartesian_product(&self.columns) {
            let baseline = self.baseline_of(row, column).into_iter();
            for subject in baseline.chain([self.subject(row, column)]) {
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
        let placements = |subject: Subject| 0..self.placements(subject.threads);
        let each = |subject| placements(subject).map(move |placement| (subject, placement));
        subjects.into_iter().flat_map(each).collect()
    }

    fn place(&self, scenario: &Scenario, subject: Subject, seed: u64) -> Placement {
        match self.placement {
            Placing::Compact if subject.packed => Placement::Packed,
            Placing::Compact => Placement::Compact,
            Placing::Scatter => Placement::Scatter(seed),
            Placing::Gather => scenario.workload.gather(seed),
        }
    }

    /// How its threads share CPUs.
    fn sharing(&self, subject: Subject) -> Option<Sharing> {
        let guest = self.guest.map(|guest| Sharing {
            cpus: guest.cpus,
            guests: Some(1),
            pinned: guest.pinned,
        });
        guest.or(subject.cpus.map(|cpus| Sharing {
            cpus,
            guests: None,
            pinned: false,
        }))
    }

    /// Simulates the table at these points on the scenarios of its machines, `seconds` of
    /// virtual time a run.
    pub fn simulate(
        &self,
        scenarios: &[Scenario],
        points: &[usize],
        seconds: f64,
        bar: &ProgressBar,
    ) -> Result<Vec<Row>> {
        let runs = self.subjects(points);
        let scenario_of = |subject: Subject| {
            let mut scenarios = scenarios.iter();
            let of = scenarios.find(|scenario| scenario.machine.name == subject.machine);
            of.expect("a scenario for each machine")
        };
        let tunables: Vec<Setting> = self
            .tunables
            .iter()
            .map(|(name, &value)| Ok(Setting::new(Tunable::find(name)?, value)?))
            .collect::<Result<_>>()?;
        let outcomes: Vec<Outcome> = runs
            .par_iter()
            .map(|&(subject, placement)| {
                let threads = subject.threads;
                let scenario = scenario_of(subject);
                let outcome = Run {
                    scenario,
                    lock: find_lock(subject.lock)?,
                    threads,
                    placement: self.place(scenario, subject, placement + 1),
                    sharing: self.sharing(subject),
                    seconds,
                    tunables: Settings {
                        shuffle_reduction: subject.shuffle_reduction,
                        ..Settings::kernel()
                    }
                    .with(&tunables),
                    odd_threads_have_priority: false,
                    seed: placement + 1,
                }
                .run();
                bar.inc(1);
                let outcome =
                    outcome.with_context(|| format!("{} with {threads} threads", subject.lock))?;
                ensure!(
                    outcome.violations == 0,
                    "{} failed to exclude",
                    subject.lock
                );
                ensure!(
                    outcome.operations_per_second > 0.0,
                    "{} with {threads} threads did nothing in {} ms; ask for more with --ms",
                    subject.lock,
                    seconds * 1e3
                );
                Ok(outcome)
            })
            .collect::<Result<_>>()?;

        let mean_of = |subject: Subject, figure: fn(&Outcome) -> f64| {
            let mine = runs.iter().zip(&outcomes);
            mean(
                mine.filter(|((s, _), _)| *s == subject)
                    .map(|(_, outcome)| figure(outcome)),
            )
        };
        let rate = |subject| mean_of(subject, |o| o.operations_per_second);
        let job = |subject| {
            let workload = &scenario_of(subject).workload;
            workload.job().expect("a job's workload")
        };
        let percent = |value: f64, of: f64| 100.0 * (value / of - 1.0);
        let mut rows = Vec::new();
        for published in self.rows_at(points) {
            for (at, column) in self.columns.iter().enumerate() {
                let figure = published.figures[at];
                let subject = self.subject(published, column);
                let speedup = self.baseline_of(published, column).map(|baseline| {
                    let published = match column.measure {
                        Measure::Gain => 1.0 + figure / 100.0,
                        Measure::Latency => 1.0 / (1.0 + figure / 100.0),
                        _ => figure / published.figures[self.column(&self.baseline)],
                    };
                    let simulated = rate(subject) / rate(baseline);
                    Speedup {
                        published,
                        simulated,
                        error_percent: percent(simulated, published),
                    }
                });
                let (simulated, error_percent) = match (column.measure, &speedup) {
                    (Measure::Gain, Some(speedup)) => {
                        (percent(speedup.simulated, 1.0), speedup.error_percent)
                    }
                    (Measure::Latency, Some(speedup)) => {
                        (percent(1.0, speedup.simulated), speedup.error_percent)
                    }
                    (Measure::Fairness, _) => {
                        let simulated =
                            mean_of(subject, |o| fairness(&o.operations).unwrap_or(1.0));
                        (simulated, 100.0 * (simulated - figure))
                    }
                    (Measure::Seconds, _) => {
                        let simulated = job(subject) / rate(subject);
                        (simulated, percent(simulated, figure))
                    }
                    (Measure::Jobs, _) => {
                        let simulated = 60.0 * rate(subject) / job(subject);
                        (simulated, percent(simulated, figure))
                    }
                    (Measure::Rmws, _) => {
                        let simulated = mean_of(subject, |o| 100.0 * o.lock_rmw_share);
                        (simulated, simulated - figure)
                    }
                    _ => {
                        let simulated = self.figure(rate(subject));
                        (simulated, percent(simulated, figure))
                    }
                };
                rows.push(Row {
                    threads: subject.threads,
                    circumstances: published.circumstances.clone(),
                    point: published.point,
                    column: column.name.clone(),
                    lock: column.lock.clone(),
                    machine: subject.machine.to_owned(),
                    published: figure,
                    published_sd: published.deviations.as_ref().map(|d| d[at]),
                    simulated,
                    error_percent,
                    speedup,
                });
            }
        }
        Ok(rows)
    }

    /// Mean absolute error, in percent: of the headline's speedups, or of all figures if there is
    /// no headline.
    pub fn error<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) -> f64 {
        if self.headline.is_empty() {
            mean(rows.into_iter().map(|row| row.error_percent.abs()))
        } else {
            speedup_error(rows, &self.headline).unwrap_or_default()
        }
    }

    /// Are errors percentage points?
    pub fn is_in_points(&self) -> bool {
        let in_points = |c: &Column| matches!(c.measure, Measure::Fairness | Measure::Rmws);
        self.columns.iter().all(in_points)
    }

    /// Pairs of columns of seconds whose order is not as published, though these are more than 5 %
    /// apart.
    pub fn misordered(&self, rows: &[Row]) -> Vec<Misordered> {
        let is_seconds =
            |row: &Row| self.columns[self.column(&row.column)].measure == Measure::Seconds;
        let seconds = || rows.iter().filter(|row| is_seconds(row));
        seconds()
            .cartesian_product(seconds())
            .filter(|(a, b)| a.threads == b.threads && a.published > 1.05 * b.published)
            .filter(|(a, b)| a.simulated <= b.simulated)
            .map(|(a, b)| Misordered {
                threads: a.threads,
                slower: a.column.clone(),
                faster: b.column.clone(),
            })
            .collect()
    }

    /// Operations a second in the table's unit.
    pub fn figure(&self, operations_per_second: f64) -> f64 {
        operations_per_second * self.per_second
    }

    fn column(&self, name: &str) -> usize {
        self.columns
            .iter()
            .position(|c| c.name == name)
            .expect("descriptions name their own columns")
    }

    /// The lock behind a column.
    pub fn lock(&self, column: &str) -> &str {
        &self.columns[self.column(column)].lock
    }

    /// The published speedup of a column over the baseline.
    pub fn published_speedup(&self, column: &str, threads: usize) -> f64 {
        let row = self.published.iter().find(|p| p.threads == threads);
        row.map_or(f64::NAN, |p| {
            p.figures[self.column(column)] / p.figures[self.column(&self.baseline)]
        })
    }

    /// The published figures, column by column.
    pub fn published_series(&self) -> Vec<PublishedSeries<'_>> {
        self.columns
            .iter()
            .enumerate()
            .map(|(at, column)| PublishedSeries {
                column: &column.name,
                lock: &column.lock,
                points: self
                    .published
                    .iter()
                    .map(|p| {
                        let deviation = p.deviations.as_ref().map_or(0.0, |d| d[at]);
                        (p.threads, p.figures[at], deviation)
                    })
                    .collect(),
            })
            .collect()
    }
}

/// A column of a published table.
pub struct PublishedSeries<'a> {
    /// Its name.
    pub column: &'a str,
    /// The lock behind it.
    pub lock: &'a str,
    /// Threads, figure and standard deviation.
    pub points: Vec<(usize, f64, f64)>,
}

/// Mean absolute error, in percent, of the rows' speedups in a column, if it has any.
pub fn speedup_error<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> Option<f64> {
    let errors: Vec<f64> = rows
        .into_iter()
        .filter(|r| r.column == column)
        .filter_map(|r| r.speedup.as_ref())
        .map(|speedup| speedup.error_percent.abs())
        .collect();
    (!errors.is_empty()).then(|| mean(errors))
}

/// Mean absolute error, in percent, of the rows' figures in a column.
pub fn figure_error<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> f64 {
    mean(
        rows.into_iter()
            .filter(|r| r.column == column)
            .map(|r| r.error_percent.abs()),
    )
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values
        .into_iter()
        .fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    sum / f64::from(n.max(1))
}
