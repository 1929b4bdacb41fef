//! The speed and memory of the simulator and of the model checker, on one core.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use lockworks_check::{Check, Config, End, Limits, Memory};
use lockworks_machine::Machine;
use lockworks_sim::{Placement, Run, Scenario, Settings, Workload};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

use super::Scale;
use super::rows::{Row, verdict};
use lockworks_machine::affinity;
use lockworks_sim::command_line::find_lock;

/// The machine, threads and lock of each simulation, and what is required of the simulator.
const SIMULATIONS: [(&str, usize, &str, Required); 4] = [
    ("oracle-x5-4", 142, "qspinlock", Required::Speed(1e6)),
    ("oracle-x5-4", 142, "cna", Required::Speed(0.8e6)),
    ("epyc-9654-nps12", 384, "qspinlock", Required::Memory(64.0)),
    ("epyc-9654-nps12", 384, "cna", Required::Memory(64.0)),
];
const WORKLOAD: &str = "locktorture-old";

/// The lock, threads and memory model of each check, and the most processor seconds it may take.
const CHECKS: [(&str, usize, Memory, f64); 3] = [
    ("qspinlock", 3, Memory::C11, 10.0),
    ("cna", 3, Memory::C11, 10.0),
    ("cna", 4, Memory::Sc, 30.0),
];
/// The most memory that a check may take, in MiB.
const MOST_MEMORY: f64 = 1024.0;

/// The requirement that a simulation has to meet.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Required {
    /// The least number of simulated acquisitions a second of processor time.
    Speed(f64),
    /// The most memory, in MiB.
    Memory(f64),
}

/// One run of the simulator or the checker. It has a process to itself, so that its memory can be
/// measured.
#[derive(Serialize, Deserialize)]
struct Job {
    /// The CPU on which the process runs.
    cpu: usize,
    work: Work,
}

/// The work of a job.
#[derive(Clone, Serialize, Deserialize)]
pub enum Work {
    /// A simulation.
    Simulate {
        machine: String,
        threads: usize,
        lock: String,
        milliseconds: f64,
    },
    /// A check.
    Check(Box<Config>),
}

/// The report of a job, which its process prints as JSON.
#[derive(Serialize, Deserialize)]
struct JobReport {
    /// Simulated acquisitions, or states.
    done: u64,
    /// Transfers of simulated cache lines, or transitions between states.
    transitions: u64,
    cpu_seconds: f64,
    memory_mib: f64,
}

/// Runs a job in this process, and returns its report.
pub fn run(job: &str) -> Result<String> {
    let job: Job = serde_json::from_str(job).context("this is no job")?;
    affinity::bind(job.cpu)?;
    let (done, transitions, cpu_seconds) = match job.work {
        Work::Simulate {
            machine,
            threads,
            lock,
            milliseconds,
        } => {
            let scenario = Scenario::new(Machine::find(&machine)?, Workload::find(WORKLOAD)?);
            let run = Run {
                scenario: &scenario,
                lock: find_lock(&lock)?,
                threads,
                sharing: None,
                placement: Placement::Scatter(1),
                seconds: milliseconds / 1e3,
                tunables: Settings::kernel(),
                odd_threads_have_priority: false,
                seed: 1,
            };
            let start = cpu_seconds()?;
            let outcome = run.run()?;
            let seconds = cpu_seconds()? - start;
            ensure!(
                outcome.violations == 0,
                "{lock} does not exclude in the simulator"
            );
            (outcome.acquisitions, outcome.engine.transfers, seconds)
        }
        Work::Check(config) => {
            let start = cpu_seconds()?;
            let outcome = Check::new(&config, None)?.run(&Limits::NONE, &mut |_| {});
            let seconds = cpu_seconds()? - start;
            ensure!(
                outcome.end == End::Kept && outcome.is_complete(),
                "{config}: the check failed or is incomplete"
            );
            let coverage = outcome.coverage;
            (coverage.states as u64, coverage.transitions as u64, seconds)
        }
    };
    let report = JobReport {
        done,
        transitions,
        cpu_seconds,
        memory_mib: peak_memory_mib()?,
    };
    Ok(serde_json::to_string(&report)?)
}

/// The processor time that this process has taken, in seconds.
fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("cannot read the processor time")?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The most memory of this process that was resident at once, in MiB.
fn peak_memory_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    Ok(kib.context("/proc/self/status has no VmHWM")? / 1024.0)
}

/// Runs each job `rounds` times, in turn, and returns the run of each with the median time.
fn medians(
    work: &[Work],
    rounds: usize,
    cpu: usize,
    step: &dyn Fn(&str),
) -> Result<Vec<JobReport>> {
    let mut reports: Vec<Vec<JobReport>> = work.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (work, reports) in work.iter().zip(&mut reports) {
            let name = match work {
                Work::Simulate { machine, lock, .. } => format!("simulator: {lock} on {machine}"),
                Work::Check(config) => format!("checker: {config}"),
            };
            step(&name);
            let work = work.clone();
            let job = serde_json::to_string(&Job { cpu, work })?;
            let child = Command::new(std::env::current_exe()?)
                .args(["bench", "--job", &job])
                .output()?;
            let message = String::from_utf8_lossy(&child.stderr);
            ensure!(child.status.success(), "{name} failed: {}", message.trim());
            reports.push(serde_json::from_slice(&child.stdout)?);
        }
    }
    let median = |mut reports: Vec<JobReport>| {
        reports.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
        reports.swap_remove(reports.len() / 2)
    };
    Ok(reports.into_iter().map(median).collect())
}

/// The simulations to run, if they are wanted.
pub fn simulations(scale: &Scale, wanted: bool) -> Vec<Work> {
    let simulation = |&(machine, threads, lock, _): &(&str, usize, &str, _)| Work::Simulate {
        machine: machine.to_owned(),
        threads,
        lock: lock.to_owned(),
        milliseconds: scale.simulated_ms,
    };
    SIMULATIONS
        .iter()
        .filter(|_| wanted)
        .map(simulation)
        .collect()
}

/// The checks to run, if they are wanted.
pub fn checks(scale: &Scale, wanted: bool) -> Vec<Work> {
    let check = |&(lock, threads, memory, _): &(&str, usize, Memory, f64)| {
        Work::Check(Box::new(Config {
            threads: threads.min(scale.checked_threads),
            acquisitions: 2,
            memory,
            nodes: 2,
            ..Config::new(lock)
        }))
    };
    CHECKS.iter().filter(|_| wanted).map(check).collect()
}

/// The results of one simulation: those of the run with the median time.
#[derive(Serialize)]
pub struct Simulation {
    machine: &'static str,
    threads: usize,
    lock: &'static str,
    virtual_seconds: f64,
    acquisitions: u64,
    /// Simulated acquisitions a second of processor time.
    acquisitions_per_second: f64,
    cpu_seconds: f64,
    /// Transfers of simulated cache lines: of the lock and of the data that it protects.
    transfers_per_acquisition: f64,
    /// The most memory that was resident at once.
    memory_mib: f64,
    required: Required,
    met: bool,
}

/// Runs the simulations.
pub fn simulate(
    scale: &Scale,
    cpu: usize,
    work: &[Work],
    step: &dyn Fn(&str),
) -> Result<Vec<Simulation>> {
    let reports = medians(work, scale.rounds_simulator, cpu, step)?;
    let simulation = |(&(machine, threads, lock, required), report): (&(_, _, _, _), JobReport)| {
        let speed = report.done as f64 / report.cpu_seconds;
        Simulation {
            machine,
            threads,
            lock,
            virtual_seconds: scale.simulated_ms / 1e3,
            acquisitions: report.done,
            acquisitions_per_second: speed,
            cpu_seconds: report.cpu_seconds,
            transfers_per_acquisition: report.transitions as f64 / report.done as f64,
            memory_mib: report.memory_mib,
            required,
            met: match required {
                Required::Speed(least) => speed >= least,
                Required::Memory(most) => report.memory_mib <= most,
            },
        }
    };
    Ok(SIMULATIONS.iter().zip(reports).map(simulation).collect())
}

/// The results of one check: those of the run with the median time.
#[derive(Serialize)]
pub struct CheckedConfig {
    config: Config,
    states: u64,
    transitions: u64,
    /// Seconds of processor time.
    seconds: f64,
    /// The most memory that was resident at once.
    memory_mib: f64,
    /// The most seconds that the check may take.
    required: f64,
    met: bool,
}

/// Runs the checks.
pub fn check(
    scale: &Scale,
    cpu: usize,
    work: &[Work],
    step: &dyn Fn(&str),
) -> Result<Vec<CheckedConfig>> {
    let reports = medians(work, scale.rounds_checker, cpu, step)?;
    let checked = work.iter().zip(reports).zip(CHECKS);
    let checked = checked.filter_map(|((work, report), (.., required))| match work {
        Work::Simulate { .. } => None,
        Work::Check(config) => Some(CheckedConfig {
            config: Config::clone(config),
            states: report.done,
            transitions: report.transitions,
            seconds: report.cpu_seconds,
            memory_mib: report.memory_mib,
            required,
            met: report.cpu_seconds <= required && report.memory_mib <= MOST_MEMORY,
        }),
    });
    Ok(checked.collect())
}

impl Simulation {
    fn requirement(&self) -> String {
        match self.required {
            Required::Speed(least) => format!(">= {least}/s"),
            Required::Memory(most) => format!("<= {most} MiB"),
        }
    }

    fn judge(&self) -> Result<(), String> {
        if self.met {
            return Ok(());
        }
        Err(format!(
            "simulator: {} on {} made {:.0} acquisitions/s in {:.1} MiB, not {}",
            self.lock,
            self.machine,
            self.acquisitions_per_second,
            self.memory_mib,
            self.requirement()
        ))
    }
}

impl Row for Simulation {
    const TITLE: &'static str = "The simulator, on one core";
    const HEADER: &'static [&'static str] = &[
        "machine",
        "threads",
        "lock",
        "acquisitions/s",
        "CPU seconds",
        "transfers each",
        "memory MiB",
        "required",
    ];
    const FIGURES: &'static [usize] = &[1, 3, 4, 5, 6];

    fn cells(&self) -> Vec<String> {
        vec![
            self.machine.to_string(),
            self.threads.to_string(),
            self.lock.to_string(),
            format!("{:.0}", self.acquisitions_per_second),
            format!("{:.2}", self.cpu_seconds),
            format!("{:.1}", self.transfers_per_acquisition),
            format!("{:.1}", self.memory_mib),
            verdict(&self.requirement(), self.met),
        ]
    }

    fn judged(&self) -> Option<Result<(), String>> {
        Some(self.judge())
    }
}

impl CheckedConfig {
    fn requirement(&self) -> String {
        format!("<= {} s, {MOST_MEMORY} MiB", self.required)
    }

    fn judge(&self) -> Result<(), String> {
        if self.met {
            return Ok(());
        }
        Err(format!(
            "checker: {} took {:.1} s and {:.0} MiB, not {}",
            self.config,
            self.seconds,
            self.memory_mib,
            self.requirement()
        ))
    }
}

impl Row for CheckedConfig {
    const TITLE: &'static str = "The model checker, on one core";
    const HEADER: &'static [&'static str] = &[
        "check",
        "states",
        "transitions",
        "CPU seconds",
        "memory MiB",
        "required",
    ];
    const FIGURES: &'static [usize] = &[1, 2, 3, 4];

    fn cells(&self) -> Vec<String> {
        vec![
            self.config.to_string(),
            self.states.to_string(),
            self.transitions.to_string(),
            format!("{:.2}", self.seconds),
            format!("{:.0}", self.memory_mib),
            verdict(&self.requirement(), self.met),
        ]
    }

    fn judged(&self) -> Option<Result<(), String>> {
        Some(self.judge())
    }
}
