//! Points of `kind = "sim"`: their table in a plan, the points of the table, and their results.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use itertools::Itertools;
use lockworks::{LockType, Settings};
use lockworks_machine::Machine;
use lockworks_machine::description::Fault;
use lockworks_sim::{Placement, Scenario, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{Tunables, add, fault, settings, tunings};
use super::point::{Judged, Point, PointRun, object};
use super::source::{self, ReadSources, Source};
use super::values::{
    Key, Placed, Threads, Tree, Whole, all, check_range, given, numbers, options, values,
};
use crate::scenario::{
    DEFAULT_MACHINE, DEFAULT_THRESHOLD, DEFAULT_WORKLOAD, MILLISECONDS, THRESHOLDS, find_lock, set,
};
use crate::simulation::{MOST_THREADS, SimulatedHost, SimulationPlan, simulate};

/// The virtual time of tables that give none, in milliseconds: that of most reproduced tables.
const DEFAULT_MS: f64 = 5.0;

/// A simulation with all its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimPoint {
    /// The machine.
    pub machine: Source,
    /// The workload.
    pub workload: Source,
    /// The lock.
    pub lock: String,
    /// The number of threads; of each guest, where there are guests.
    pub threads: usize,
    /// The number of CPUs that the threads run on.
    cpus: usize,
    /// The number of guests whose virtual CPUs the threads are. None: they belong to a program.
    guests: Option<usize>,
    pinned: bool,
    placement: String,
    ms: f64,
    seed: u64,
    numa: bool,
    threshold: u32,
    shuffle_reduction: bool,
    odd_priority: bool,
    /// Tunables that do not have their default.
    tune: BTreeMap<String, u64>,
    /// Values of machine, workload or model that are not those of their descriptions.
    set: BTreeMap<String, f64>,
}

/// The table of simulations in a plan. Every key with several values multiplies the points.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimTable {
    machines: Key<String>,
    workloads: Key<String>,
    locks: Key<String>,
    threads: Key<Threads>,
    placements: Key<String>,
    seeds: Key<Whole>,
    ms: Key<f64>,
    cpus: Key<Whole>,
    guests: Key<Whole>,
    pinned: Key<bool>,
    numa: Key<bool>,
    threshold: Key<u32>,
    shuffle_reduction: Key<bool>,
    odd_priority: Key<bool>,
    #[serde(default)]
    tune: Tunables,
    #[serde(default)]
    set: Tree,
}

/// The values of a table that do not depend on the machine or workload.
struct Choices {
    locks: Vec<&'static LockType>,
    seeds: Vec<u64>,
    ms: Vec<f64>,
    cpus: Vec<Option<Placed<u64>>>,
    guests: Vec<Option<Placed<u64>>>,
    pinned: Vec<bool>,
    numa: Vec<Option<bool>>,
    thresholds: Vec<u32>,
    shuffle_reduction: Vec<bool>,
    odd_priority: Vec<bool>,
    tunings: Vec<BTreeMap<String, u64>>,
}

impl SimTable {
    fn choices(&self, table: &Range<usize>) -> Result<Choices, Fault> {
        let locks = match &self.locks {
            None => lockworks_sim::lock_types()
                .filter(|lock| !lock.is_broken())
                .collect(),
            Some(names) => given(names)?
                .iter()
                .map(|(span, name)| find_lock(name).map_err(|error| fault(span, &error)))
                .collect::<Result<_, _>>()?,
        };
        let ms = all(&self.ms, table, DEFAULT_MS)?;
        for ms in &ms {
            check_range("ms", ms, &MILLISECONDS)?;
        }
        let thresholds = all(&self.threshold, table, DEFAULT_THRESHOLD)?;
        for threshold in &thresholds {
            check_range("threshold", threshold, &THRESHOLDS)?;
        }
        let guests = numbers(&self.guests)?;
        for guests in guests.iter().flatten() {
            check_range("guests", guests, &(1..=MOST_THREADS as u64))?;
        }
        if let (Some(pinned), None) = (&self.pinned, &self.guests) {
            let message = "pinned is about virtual CPUs; give guests = 1, or remove it";
            return Err(Fault::at(pinned, message));
        }
        let seeds = numbers(&self.seeds)?.into_iter();
        Ok(Choices {
            locks,
            seeds: seeds.map(|seed| seed.map_or(1, |(_, n)| n)).collect(),
            ms: ms.into_iter().map(|(_, ms)| ms).collect(),
            cpus: numbers(&self.cpus)?,
            guests,
            pinned: values(&self.pinned, false)?,
            numa: options(&self.numa)?,
            thresholds: thresholds.into_iter().map(|(_, ms)| ms).collect(),
            shuffle_reduction: values(&self.shuffle_reduction, true)?,
            odd_priority: values(&self.odd_priority, false)?,
            tunings: tunings(&self.tune)?,
        })
    }

    /// Adds the points of the table, which is at `table` of the plan. Paths are relative to
    /// `directory`.
    pub fn expand(
        &self,
        table: &Range<usize>,
        directory: &Path,
        points: &mut Vec<Point>,
    ) -> Result<(), Fault> {
        let choices = self.choices(table)?;
        let keys = self.set.keys()?;
        let settings: Vec<Vec<(&str, Placed<f64>)>> = keys
            .iter()
            .map(|(key, values)| values.iter().map(move |v| (key.as_str(), v.clone())))
            .multi_cartesian_product()
            .collect();
        for (machine_at, machine) in all(&self.machines, table, DEFAULT_MACHINE.to_owned())? {
            let (machine_source, machine) =
                source::machine(&machine, directory).map_err(|e| fault(&machine_at, &e))?;
            for (workload_at, workload) in all(&self.workloads, table, DEFAULT_WORKLOAD.to_owned())?
            {
                let (workload_source, workload) =
                    source::workload(&workload, directory).map_err(|e| fault(&workload_at, &e))?;
                for setting in &settings {
                    let mut scenario = Scenario::new(machine.clone(), workload.clone());
                    for (key, (span, value)) in setting {
                        set(&mut scenario, key, *value).map_err(|error| fault(span, &error))?;
                    }
                    let setting = setting.iter().map(|(key, (_, v))| ((*key).to_owned(), *v));
                    let base = Base {
                        machine: machine_source.clone(),
                        workload: workload_source.clone(),
                        scenario: &scenario,
                        set: setting.collect(),
                        table,
                        workload_at: &workload_at,
                    };
                    self.expand_scenario(&choices, &base, points)?;
                }
            }
        }
        Ok(())
    }

    fn expand_scenario(
        &self,
        choices: &Choices,
        base: &Base,
        points: &mut Vec<Point>,
    ) -> Result<(), Fault> {
        let placements: Vec<Placement> = match &self.placements {
            None => vec![base.scenario.workload.placement()],
            Some(names) => given(names)?
                .iter()
                .map(|(span, name)| {
                    name.parse().map_err(|message: String| Fault {
                        span: span.clone(),
                        message,
                    })
                })
                .collect::<Result<_, _>>()?,
        };
        let machine = &base.scenario.machine;
        for (cpus, guests) in choices.cpus.iter().cartesian_product(&choices.guests) {
            let cpus = match cpus {
                None => machine.cpus(),
                Some(cpus) => {
                    check_range("cpus", cpus, &(1..=machine.cpus() as u64))?;
                    cpus.1 as usize
                }
            };
            let guests = guests.as_ref().map(|(_, guests)| *guests as usize);
            let threads = self.threads(base, cpus, guests.unwrap_or(1))?;
            let tuned = choices.tunings.iter().cartesian_product(&choices.numa);
            for (tune, numa) in tuned {
                for (&pinned, &threshold, &shuffle_reduction, &odd_priority, placement, &ms) in itertools::iproduct!(
                    &choices.pinned,
                    &choices.thresholds,
                    &choices.shuffle_reduction,
                    &choices.odd_priority,
                    &placements,
                    &choices.ms
                ) {
                    let placement = placement.to_string();
                    for (&threads, lock, &seed) in
                        itertools::iproduct!(&threads, &choices.locks, &choices.seeds)
                    {
                        let point = SimPoint {
                            machine: base.machine.clone(),
                            workload: base.workload.clone(),
                            lock: lock.name().to_owned(),
                            threads,
                            cpus,
                            guests,
                            pinned,
                            placement: placement.clone(),
                            ms,
                            seed,
                            numa: numa.unwrap_or(machine.nodes() > 1),
                            threshold,
                            shuffle_reduction,
                            odd_priority,
                            tune: tune.clone(),
                            set: base.set.clone(),
                        };
                        add(points, PointRun::Sim(point), base.table)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The numbers of threads on this many CPUs.
    fn threads(&self, base: &Base, cpus: usize, guests: usize) -> Result<Vec<usize>, Fault> {
        let mut numbers = Vec::new();
        for (span, threads) in all(&self.threads, base.table, Threads::Doubled)? {
            for n in threads.on(cpus) {
                let all = n.saturating_mul(guests);
                check_range(
                    "the number of threads",
                    &(span.clone(), all),
                    &(1..=MOST_THREADS),
                )?;
                let Scenario {
                    machine, workload, ..
                } = base.scenario;
                workload
                    .check(machine, all)
                    .map_err(|error| fault(base.workload_at, &error.into()))?;
                if !numbers.contains(&n) {
                    numbers.push(n);
                }
            }
        }
        Ok(numbers)
    }
}

/// A machine and a workload with some changed values.
struct Base<'a> {
    machine: Source,
    workload: Source,
    scenario: &'a Scenario,
    set: BTreeMap<String, f64>,
    /// The place of the table in the plan.
    table: &'a Range<usize>,
    /// The place of the workload in the plan.
    workload_at: &'a Range<usize>,
}

impl SimPoint {
    /// The arguments that can change the result.
    #[must_use]
    pub fn identity(&self) -> Self {
        Self {
            machine: self.machine.identity(),
            workload: self.workload.identity(),
            ..self.clone()
        }
    }

    /// The words of the command that repeats the simulation.
    pub fn command(&self) -> Vec<String> {
        let mut words = vec!["lockworks".to_owned(), "sim".to_owned()];
        let mut option = |name: &str, value: String| {
            words.push(format!("--{name}"));
            words.push(value);
        };
        option("machine", self.machine.argument());
        option("workload", self.workload.argument());
        option("lock", self.lock.clone());
        match self.guests {
            None => option("threads", self.threads.to_string()),
            Some(guests) => {
                option("vcpus", self.threads.to_string());
                option("guests", guests.to_string());
            }
        }
        option("cpus", self.cpus.to_string());
        option("placement", self.placement.clone());
        option("ms", self.ms.to_string());
        option("seed", self.seed.to_string());
        option("seeds", "1".to_owned());
        option("numa", if self.numa { "on" } else { "off" }.to_owned());
        if self.threshold != DEFAULT_THRESHOLD {
            option("threshold", self.threshold.to_string());
        }
        for (name, value) in &self.tune {
            option("tune", format!("{name}={value}"));
        }
        for (key, value) in &self.set {
            option("set", format!("{key}={value}"));
        }
        let flags = [
            ("--pinned", self.pinned),
            ("--no-shuffle-reduction", !self.shuffle_reduction),
            ("--odd-priority", self.odd_priority),
        ];
        let flags = flags.iter().filter(|(_, given)| *given);
        words.extend(flags.map(|(flag, _)| (*flag).to_owned()));
        words
    }

    /// Simulates the point.
    pub fn result(&self, sources: &ReadSources) -> Result<Judged> {
        let machine = sources.machine(&self.machine)?;
        let workload = sources.workload(&self.workload)?;
        let scenario = self.scenario(&machine, &workload)?;
        let lock = find_lock(&self.lock)?;
        let placement = self.placement.parse().map_err(anyhow::Error::msg)?;
        let tune = settings(&self.tune)?;
        let plan = SimulationPlan {
            scenario: &scenario,
            locks: vec![lock],
            threads: vec![self.threads],
            host: SimulatedHost {
                cpus: self.cpus,
                guests: self.guests,
                pinned: self.pinned,
            },
            placement,
            ms: self.ms,
            tunables: Settings {
                numa_aware: self.numa,
                numa_threshold_ms: self.threshold,
                shuffle_reduction: self.shuffle_reduction,
                ..Settings::kernel()
            }
            .with(&tune),
            odd_priority: self.odd_priority,
            seed: self.seed,
            seeds: 1,
        };
        let threads = self.threads.saturating_mul(self.guests.unwrap_or(1));
        ensure!(
            (1..=MOST_THREADS).contains(&threads),
            "{threads} threads cannot be simulated; ask for 1 to {MOST_THREADS}"
        );
        let row = simulate(&plan, lock, self.threads)?;
        let violations = row.violations;
        let mut result = object(&row);
        // Arguments, and comparisons with other runs.
        for key in [
            "lock",
            "threads",
            "operations_per_second_by_seed",
            "reference_ratio",
        ] {
            result.shift_remove(key);
        }
        if let Some(Value::Object(events)) = result.get_mut("events") {
            events.retain(|_, count| *count != 0);
        }
        let failure = (violations > 0)
            .then(|| format!("VIOLATION: the lock failed to exclude {violations} times"));
        Ok((Some(result), failure))
    }

    fn scenario(&self, machine: &Machine, workload: &Workload) -> Result<Scenario> {
        let mut scenario = Scenario::new(machine.clone(), workload.clone());
        for (key, value) in &self.set {
            set(&mut scenario, key, *value).context("the point's values")?;
        }
        Ok(scenario)
    }
}
