//! The options of simulations, and the names of what they simulate.

use std::ops::RangeInclusive;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use lockworks::{LockType, Setting, Settings};
use lockworks_machine::{Kernel, Machine, Mark};
use lockworks_names::command_line::{self as names, percent, unknown};

use crate::comparison::{self, MOST_THREADS, SimulatedHost, SimulationPlan};
use crate::doubt::Doubt;
use crate::{Placement, Scenario, ScenarioValue, SetError, Workload};

/// The machine of simulations that name none.
const DEFAULT_MACHINE: &str = "oracle-x5-4";
/// The workload of simulations that name none.
const DEFAULT_WORKLOAD: &str = "locktorture-old";
/// CNA's threshold of simulations that give none, in milliseconds.
const DEFAULT_THRESHOLD: u32 = 10;

/// The virtual times that a run may have, in milliseconds.
const MILLISECONDS: RangeInclusive<f64> = 0.01..=60_000.0;
/// The thresholds that CNA may have, in milliseconds.
const THRESHOLDS: RangeInclusive<u32> = 1..=100;

/// The milliseconds of a run in which each thread has a CPU.
const MS: f64 = 50.0;

/// The options that say what is simulated.
#[derive(Args)]
pub struct SimOptions {
    /// Locks to run, of those in `lockworks locks` [default: all that are not broken]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// The machine: one of `lockworks machines`, or a file that describes one
    #[arg(short, long, value_name = "NAME|PATH", default_value = DEFAULT_MACHINE)]
    machine: String,

    /// The workload: one that `lockworks sim --workloads` lists, or a file that describes one
    #[arg(short, long, value_name = "NAME|PATH", default_value = DEFAULT_WORKLOAD)]
    workload: String,

    /// Share of acquisitions as a reader, in percent; the workload is then `readers`
    #[arg(long, value_name = "PERCENT", conflicts_with = "workload", value_parser = percent)]
    readers: Option<f64>,

    /// Numbers of threads; threads that outnumber the CPUs take turns on them [default: 1,2,4,...
    /// up to the machine's CPUs]
    #[arg(short, long, value_name = "N", value_delimiter = ',', value_parser = whole::<usize>)]
    threads: Vec<usize>,

    /// Number of CPUs that threads share, the first ones of the placement [default: all CPUs of the
    /// machine]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, hide_short_help = true)]
    cpus: Option<usize>,

    /// Numbers of virtual CPUs of a guest; they are the threads, and halt where threads would sleep
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        conflicts_with = "threads",
        value_parser = whole::<usize>, hide_short_help = true)]
    vcpus: Vec<usize>,

    /// Number of guests; each has the number of virtual CPUs that --vcpus says, and its own locks
    #[arg(long, value_name = "N", requires = "vcpus", default_value_t = 1, value_parser = whole::<usize>, hide_short_help = true)]
    guests: usize,

    /// Keep each virtual CPU on one CPU of the machine
    #[arg(long, requires = "vcpus", hide_short_help = true)]
    pinned: bool,

    /// Where threads run: compact, packed, spread, scatter[:SEED] or gather:SIZE[:SEED] [default:
    /// the workload's]
    #[arg(short, long, value_name = "HOW", hide_short_help = true)]
    placement: Option<Placement>,

    /// Virtual time of each run, in milliseconds; CNA is fair only in runs of many thresholds [default:
    /// 50, or 500 if threads share CPUs]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    ms: Option<f64>,

    /// First seed of all random choices; the same seeds give the same results, to the bit
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>, hide_short_help = true)]
    seed: u64,

    /// Whether CNA and HQ prefer waiters of one NUMA node
    #[arg(
        long,
        value_name = "MODE",
        default_value = "auto",
        hide_short_help = true
    )]
    numa: Numa,

    /// Time for which CNA may pass over waiters of other nodes, 1 to 100 milliseconds
    #[arg(long, value_name = "MS", default_value_t = DEFAULT_THRESHOLD, value_parser = threshold, hide_short_help = true)]
    threshold: u32,

    /// Let CNA search for waiters to pass over at every hand-off [default: at 1 in 128]
    #[arg(long, hide_short_help = true)]
    no_shuffle_reduction: bool,

    /// Set a tunable of a lock, such as hqlock_fairness_threshold=100; `lockworks locks hq` lists
    /// those of hq
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = names::setting, hide_short_help = true)]
    tune: Vec<Setting>,

    /// Give threads with an odd number priority, so that CNA never passes over them
    #[arg(long, hide_short_help = true)]
    odd_priority: bool,

    /// Vary the machine's values within their ranges
    #[arg(long)]
    pub doubt: bool,

    /// Schedule threads that share CPUs as this version of Linux does, such as 6.5 or 7.0 [default:
    /// that of the machine, or 6.12]
    #[arg(long, value_name = "VERSION", hide_short_help = true)]
    kernel: Option<Kernel>,

    /// Change a value of machine, workload or model, such as machine.rmw_cycles=30; --json lists
    /// the values
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, hide_short_help = true)]
    set: Vec<(String, f64)>,
}

/// When CNA and HQ keep waiters of one NUMA node together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Numa {
    /// On if the machine has two nodes or more
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// Virtual time in milliseconds.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ms) if MILLISECONDS.contains(&ms) => Ok(ms),
        _ => Err("give a number from 0.01 to 60000".to_owned()),
    }
}

/// A whole number that is not negative.
pub fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let number = text.parse();
    number.map_err(|_| "give a whole number that is not negative".to_owned())
}

/// CNA's threshold, in milliseconds.
fn threshold(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(ms) if THRESHOLDS.contains(&ms) => Ok(ms),
        _ => Err("give a whole number from 1 to 100".to_owned()),
    }
}

/// `KEY=VALUE`.
pub fn setting(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    let value: f64 = value
        .parse()
        .map_err(|_| format!("'{value}' is not a number"))?;
    if !value.is_finite() || value < 0.0 {
        return Err("give a value that is not negative".to_owned());
    }
    Ok((key.to_owned(), value))
}

/// Names of glibc's mutex, which the lock futex is.
const GLIBC: [&str; 2] = ["glibc", "pthread_mutex"];

/// A lock of the simulated world.
pub fn find_lock(name: &str) -> Result<&'static LockType> {
    let name = if GLIBC.contains(&name) { "futex" } else { name };
    crate::lock_types()
        .find(|lock| lock.name() == name)
        .ok_or_else(|| unknown("lock", name, crate::lock_types().map(LockType::name)))
}

/// Changes a value of the scenario.
pub fn set(scenario: &mut Scenario, key: &str, value: f64) -> Result<()> {
    scenario
        .set(key, value, "set by hand")
        .map_err(|error| match error {
            SetError::Unknown => {
                let values = scenario.values();
                unknown("value", key, values.iter().map(|v| v.key.as_str()))
            }
            out_of_range => anyhow::anyhow!("{key} {out_of_range}, not {value}"),
        })
}

/// A sentence that lists the values that are inferred, fitted or set by hand.
pub fn inferred(values: &[ScenarioValue]) -> String {
    let keys: Vec<&str> = values
        .iter()
        .filter(|v| v.mark == Mark::I)
        .map(|v| v.key.as_str())
        .collect();
    if keys.is_empty() {
        "All values are from the literature.".to_owned()
    } else {
        format!("Inferred, fitted or set by hand (I): {}.", keys.join(", "))
    }
}

impl SimOptions {
    /// The simulations that the options ask for, each with this number of seeds.
    ///
    /// # Errors
    ///
    /// If they name something that does not exist, or do not fit the machine and the workload.
    pub fn plan(&self, seeds: u64) -> Result<SimulationPlan> {
        let machine = Machine::find(&self.machine)?;
        let workload = match self.readers {
            Some(_) => "readers",
            None => &self.workload,
        };
        let mut scenario = Scenario::new(machine, Workload::find(workload)?);
        if let Some(percent) = self.readers {
            set(&mut scenario, "workload.read_percent", percent)?;
        }
        if let Some(kernel) = self.kernel {
            scenario.schedule_as(kernel);
        }
        for (key, value) in &self.set {
            set(&mut scenario, key, *value)?;
        }
        let cpus = scenario.machine.cpus();
        let placement = match &self.placement {
            Some(placement) => placement.clone(),
            None => scenario.workload.placement(),
        };
        let locks: Vec<_> = match self.lock.as_slice() {
            [] => crate::lock_types()
                .filter(|lock| !lock.is_broken())
                .collect(),
            names => names.iter().map(|n| find_lock(n)).collect::<Result<_>>()?,
        };
        ensure!(seeds > 0, "no seeds to run with; ask for at least 1");
        let host = SimulatedHost {
            cpus: self.cpus.unwrap_or(cpus),
            guests: (!self.vcpus.is_empty()).then_some(self.guests),
            pinned: self.pinned,
        };
        ensure!(
            (1..=cpus).contains(&host.cpus),
            "{} has {cpus} CPUs, not {}; ask for 1 to {cpus}",
            scenario.machine.name,
            host.cpus
        );
        let threads = match (self.threads.as_slice(), self.vcpus.as_slice()) {
            ([], []) => comparison::doubled(host.cpus),
            ([], some) | (some, _) => some.to_vec(),
        };
        ensure!(self.guests > 0, "no guests to run; ask for at least 1");
        for &n in &threads {
            ensure!(n > 0, "no threads to run; ask for at least 1");
            let all = n.saturating_mul(host.guests.unwrap_or(1));
            ensure!(
                all <= MOST_THREADS,
                "{all} threads are too many to simulate; ask for at most {MOST_THREADS} in all"
            );
            scenario.workload.check(&scenario.machine, all)?;
        }
        let share = threads.iter().any(|n| host.sharing(*n).is_some());
        let numa_aware = match self.numa {
            Numa::Auto => scenario.machine.nodes() > 1,
            on_or_off => on_or_off == Numa::On,
        };
        Ok(SimulationPlan {
            scenario,
            locks,
            threads,
            host,
            placement,
            ms: self
                .ms
                .unwrap_or(if share { comparison::LONGER * MS } else { MS }),
            tunables: Settings {
                numa_aware,
                numa_threshold_ms: self.threshold,
                shuffle_reduction: !self.no_shuffle_reduction,
                ..Settings::kernel()
            }
            .with(&self.tune),
            odd_priority: self.odd_priority,
            seed: self.seed,
            seeds,
            recorded: 0,
            doubt: self.doubt.then(|| Doubt {
                known: self.set.iter().map(|(key, _)| key.clone()).collect(),
            }),
        })
    }
}
