//! `lockworks kernel compare`: the locks for guests, in overcommitted guests.

mod results;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::value_parser;
use lockworks_names::command_line::by_name;
use lockworks_ui::interruption;
use lockworks_ui::output::Destination;
use lockworks_ui::plot;

use self::results::GuestComparisonResults;
use super::options::{Boot, Sources, Steps};
use crate::arch::Arch;
use crate::build::Target;
use crate::cache::Cache;
use crate::compare::{ComparisonPlan, Workload, compare};
use crate::compiler::Compiler;
use crate::disk;
use crate::emulation::Emulation;
use crate::guest::{Guest, Tuning};
use crate::lock::Lock;
use crate::machine::Input;
use crate::qemu::WaitLimits;
use crate::requirements;
use crate::topology::Topology;
use crate::variant::Variant;

/// Compare the locks for guests, in guests with more CPUs than this machine has.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct GuestCompareArgs {
    #[command(flatten)]
    sources: Sources,

    /// Number of CPUs of a guest, each emulated by a thread
    #[arg(long, value_name = "N", default_value_t = 8)]
    cpus: u32,

    /// Memory of a guest in MiB
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 2048,
        hide_short_help = true
    )]
    memory: u32,

    /// Locks to compare, from the list below [default: all]
    #[arg(short, long, value_name = "MODE", value_delimiter = ',')]
    modes: Vec<String>,

    /// Workloads of the guests, from the list below [default: all]
    #[arg(
        short,
        long,
        value_name = "WORKLOAD",
        value_delimiter = ',',
        hide_short_help = true
    )]
    workloads: Vec<String>,

    #[command(flatten)]
    boot: Boot,

    /// Lock by whose rates those of the others are divided [default: stock-pv if it is compared,
    /// else the first mode]
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    reference: Option<String>,

    /// Number of rounds; each round boots a guest for every mode
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Length of each workload in seconds
    #[arg(short, long, value_name = "S", default_value_t = 5, value_parser = value_parser!(u32).range(1..=3600))]
    seconds: u32,

    /// Longest time in seconds until a guest has booted, and for which a workload may exceed its
    /// length
    #[arg(long, value_name = "S", default_value_t = 90, value_parser = value_parser!(u32).range(1..), hide_short_help = true)]
    timeout: u32,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// Draw the ratios of each workload in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    destination: Destination,
}

const HELP: &str = "\
Each round boots a guest for every mode, one after another, and runs all workloads in it. Guests \
with more CPUs than this machine has are overcommitted: the CPU that holds a lock is often \
preempted. The rates are those of emulated CPUs, so compare them only with each other.

Modes; waiters of the paravirt locks halt, and interrupts kick them:
  native    the kernel's queued spinlock
  byte      the kernel's unfair byte lock
  unfair    Lockworks' queued unfair lock
  stock-pv  the kernel's paravirt spinlock
  pv        Lockworks' improved paravirt spinlock
  mutex     Lockworks' mutex; waiters spin
  pv-mutex  Lockworks' mutex; waiters halt

Workloads:
  locktorture  a thread for each CPU acquires one spinlock
  open         threads of a program open and close files in one directory
  create       threads of a program make and remove files in one directory
  lock2        threads of a program lock and unlock one file
  nginx        a web server and its clients
  memcached    a memcached server and its clients, which set as often as they get
  hackbench    groups of processes send messages to each other
  compile      a parallel compile, repeatedly

Columns:
  / LOCK   rate divided by that of the reference in the same round, median
  max/min  locktorture only: most divided by fewest acquisitions of a thread

A guest that does not end a workload in time is ended and reported. If the command is interrupted, \
it prints the figures of the guests that have ended.

Examples:
  lockworks kernel compare --version 6.12 --cpus 8 --json
  lockworks kernel compare --modes native,byte --workloads locktorture --cpus 2
  lockworks kernel compare --modes pv,stock-pv \\
      --boot sysctl.kernel.pv_kick_ahead=1";

/// Runs the command.
pub fn command(args: &GuestCompareArgs) -> Result<ExitCode> {
    let topology = Topology::new(1, args.cpus, args.memory)?;
    let mut plan = ComparisonPlan {
        modes: chosen("mode", &args.modes, Lock::COMPARED, Lock::name)?,
        workloads: chosen("workload", &args.workloads, &Workload::ALL, Workload::name)?,
        rounds: args.rounds,
        seconds: args.seconds,
        disk: None,
    };
    let reference = args.reference(&plan.modes)?;
    args.destination.check()?;
    plot::check(args.plot.as_deref())?;

    let cache = Cache::open()?;
    let steps = Steps::new();
    let progress = |step: &str| steps.begin(step);
    let target = Target {
        arch: Arch::X86_64,
        compiler: Compiler::Gcc,
        variant: Variant::Paravirt,
        statistics: true,
    };
    requirements::provide_to_boot(target.arch, target.compiler, &cache, &progress)?;
    let built = args.sources.build(target, &cache, &steps)?;
    if plan.workloads.iter().any(|workload| workload.is_on_disk()) {
        plan.disk = Some(disk::disk(&cache, &progress)?);
    }
    let (directory, _used) = cache.new_run()?;
    let built = built.copy_to(directory)?;

    let results = GuestComparisonResults {
        version: built.version.name(),
        release: built.release.clone(),
        guest_cpus: args.cpus,
        cpus: available_parallelism().map_or(1, usize::from),
        seconds: args.seconds,
        rounds: args.rounds,
        interrupted: true,
        reference: reference.name(),
        modes: plan.modes.iter().map(|mode| mode.name()).collect(),
        workloads: plan.workloads.clone(),
        runs: Vec::new(),
    };
    let results = Arc::new(Mutex::new(results));
    let lock = |results: &Mutex<GuestComparisonResults>| {
        results
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    };
    let (json, destination) = (args.json, args.destination.clone());
    let give = move |results: &GuestComparisonResults| destination.write(&results.text(json)?);
    interruption::before_exit({
        let (results, give) = (Arc::clone(&results), give.clone());
        move || {
            let results = lock(&results);
            if !results.runs.is_empty()
                && let Err(error) = give(&results)
            {
                eprintln!("lockworks: {error:#}");
            }
        }
    });
    let guest = |built, mode| Guest {
        built,
        topology,
        emulation: Emulation::Multi,
        hypervisor: false,
        lock: Some(mode),
        tuning: Tuning::default(),
        boot: &args.boot.words,
        console: None,
        input: Input::Nothing,
        limits: args.limits(),
    };
    let compared = compare(&plan, &built, &guest, &cache, &progress, &mut |run| {
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        results.runs.push(run);
    });
    steps.end();
    let mut results = lock(&results);
    results.interrupted = compared.is_err();
    if compared.is_ok() || !results.runs.is_empty() {
        give(&results)?;
        if let Some(path) = &args.plot {
            plot::draw(path, &results)?;
        }
    }
    interruption::before_exit(|| {});
    let verdict = results.verdict();
    compared?;
    Ok(verdict)
}

/// The values that are given by name, each once, or else all.
fn chosen<T: Copy + PartialEq>(
    kind: &str,
    given: &[String],
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>> {
    if given.is_empty() {
        return Ok(all.to_vec());
    }
    let mut chosen = Vec::new();
    for given in given {
        let found = by_name(kind, given, all.iter().copied(), name)?;
        if !chosen.contains(&found) {
            chosen.push(found);
        }
    }
    Ok(chosen)
}

impl GuestCompareArgs {
    fn reference(&self, modes: &[Lock]) -> Result<Lock> {
        let usual = match modes.contains(&Lock::StockPv) {
            true => Lock::StockPv,
            false => modes[0],
        };
        let Some(given) = &self.reference else {
            return Ok(usual);
        };
        let reference = by_name("mode", given, Lock::COMPARED.iter().copied(), Lock::name)?;
        ensure!(
            modes.contains(&reference),
            "the reference {given} is not among the modes; add it to --modes"
        );
        Ok(reference)
    }

    fn limits(&self) -> WaitLimits {
        let timeout = Duration::from_secs(self.timeout.into());
        WaitLimits {
            boot: timeout,
            step: timeout + Duration::from_secs(self.seconds.into()),
        }
    }
}
