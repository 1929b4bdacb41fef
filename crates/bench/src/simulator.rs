//! How fast the simulator is on one core, and how much memory it takes.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use lockworks_machine::Machine;
use lockworks_sim::{Placement, Run, Scenario, Tunables, Workload};
use serde::{Deserialize, Serialize};

use crate::Scale;
use crate::host::{self, Host};
use crate::progress::Progress;

/// The most that the simulator may take for the largest machine.
const MEMORY_LIMIT_MIB: f64 = 64.0;
const LARGEST: &str = "epyc-9654-nps12";
/// Machine and threads.
const MACHINES: [(&str, usize); 2] = [("oracle-x5-4", 142), (LARGEST, 384)];
const WORKLOAD: &str = "locktorture";
const LOCKS: [&str; 2] = ["qspinlock", "cna"];

/// One run, in a process of its own so that its memory can be told.
#[derive(clap::Args)]
pub struct Job {
    /// CPU to stay on
    cpu: usize,
    /// A machine of the crate
    machine: String,
    /// Threads on it
    threads: usize,
    /// The lock
    lock: String,
    /// Virtual milliseconds
    milliseconds: f64,
}

/// What the process says.
#[derive(Serialize, Deserialize)]
struct Report {
    acquisitions: u64,
    transfers: u64,
    cpu_seconds: f64,
    memory_mib: f64,
}

/// What came of one run.
#[derive(Serialize)]
pub struct Simulation {
    machine: &'static str,
    threads: usize,
    lock: &'static str,
    virtual_seconds: f64,
    acquisitions: u64,
    /// Of processor time.
    acquisitions_per_second: f64,
    cpu_seconds: f64,
    /// Line transfers in the simulated machine, of the lock and of what it protects.
    transfers_per_acquisition: f64,
    /// The most that was resident at once.
    memory_mib: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_limit_mib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

/// How many runs [`measure`] makes.
pub fn steps(scale: &Scale) -> usize {
    scale.rounds_simulator * MACHINES.len() * LOCKS.len()
}

/// Both locks on both machines. The speed is the best of some runs, the memory the worst.
pub fn measure(host: &Host, scale: &Scale, progress: &Progress) -> Result<Vec<Simulation>> {
    let mut simulations = Vec::new();
    for (machine, threads) in MACHINES {
        for lock in LOCKS {
            let mut reports = Vec::new();
            for _ in 0..scale.rounds_simulator {
                progress.step(&format!("{lock} on {machine}"), "simulator");
                reports.push(run_child(
                    host.cpus[0],
                    machine,
                    threads,
                    lock,
                    scale.simulated_ms,
                )?);
            }
            let memory_mib = reports.iter().map(|r| r.memory_mib).fold(0.0, f64::max);
            let best = reports
                .into_iter()
                .min_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds))
                .expect("at least one round");
            let limit = (machine == LARGEST).then_some(MEMORY_LIMIT_MIB);
            simulations.push(Simulation {
                machine,
                threads,
                lock,
                virtual_seconds: scale.simulated_ms / 1e3,
                acquisitions: best.acquisitions,
                acquisitions_per_second: best.acquisitions as f64 / best.cpu_seconds,
                cpu_seconds: best.cpu_seconds,
                transfers_per_acquisition: best.transfers as f64 / best.acquisitions as f64,
                memory_mib,
                memory_limit_mib: limit,
                met: limit.map(|limit| memory_mib <= limit),
            });
        }
    }
    Ok(simulations)
}

fn run_child(
    cpu: usize,
    machine: &str,
    threads: usize,
    lock: &str,
    milliseconds: f64,
) -> Result<Report> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let child = Command::new(program)
        .args([
            "simulate",
            &cpu.to_string(),
            machine,
            &threads.to_string(),
            lock,
            &milliseconds.to_string(),
        ])
        .output()
        .context("cannot start a process for the simulator")?;
    ensure!(
        child.status.success(),
        "simulating {lock} on {machine} failed: {}",
        String::from_utf8_lossy(&child.stderr).trim()
    );
    serde_json::from_slice(&child.stdout).context("the simulator's process said something else")
}

impl Job {
    /// Runs it, in the process for that, and prints what came of it.
    pub fn run(&self) -> Result<()> {
        host::pin(self.cpu)?;
        let machine = Machine::find(&self.machine)?;
        let lock = lockworks_sim::lock_types()
            .find(|lock| lock.name() == self.lock)
            .with_context(|| format!("the simulator has no lock {}", self.lock))?;
        let workload = Workload::find(WORKLOAD)
            .with_context(|| format!("the simulator has no workload {WORKLOAD}"))?;
        let scenario = Scenario::new(machine, workload);
        let run = Run {
            scenario: &scenario,
            lock,
            threads: self.threads,
            placement: Placement::Scatter(1),
            seconds: self.milliseconds / 1e3,
            tunables: Tunables::default(),
            odd_threads_have_priority: false,
            seed: 1,
        };
        let start = host::cpu_seconds()?;
        let outcome = run.run()?;
        let cpu_seconds = host::cpu_seconds()? - start;
        ensure!(
            outcome.violations == 0,
            "{} does not exclude in the simulator",
            self.lock
        );
        let report = Report {
            acquisitions: outcome.acquisitions,
            transfers: outcome.engine.transfers,
            cpu_seconds,
            memory_mib: peak_memory_mib()?,
        };
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    }
}

/// The most memory that this process has had resident at once.
fn peak_memory_mib() -> Result<f64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .context("/proc/self/status has no VmHWM")?;
    Ok(kib / 1024.0)
}

impl Simulation {
    /// Its row in a table.
    pub fn cells(&self) -> Vec<String> {
        vec![
            self.machine.to_string(),
            self.threads.to_string(),
            self.lock.to_string(),
            format!("{:.0}", self.acquisitions_per_second),
            format!("{:.2}", self.cpu_seconds),
            format!("{:.1}", self.transfers_per_acquisition),
            format!("{:.1}", self.memory_mib),
            self.memory_limit_mib
                .zip(self.met)
                .map_or(String::new(), |(limit, met)| {
                    format!("<= {limit} MiB: {}", if met { "met" } else { "NOT MET" })
                }),
        ]
    }

    /// Is what was required of it met? None if nothing was.
    pub fn judged(&self) -> Option<Result<(), String>> {
        let limit = self.memory_limit_mib?;
        Some(if self.met? {
            Ok(())
        } else {
            Err(format!(
                "simulator: {} on {} took {:.1} MiB, more than {limit}",
                self.lock, self.machine, self.memory_mib
            ))
        })
    }
}
