//! The speed and memory of the simulator on one core.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use lockworks_machine::Machine;
use lockworks_sim::{Placement, Run, Scenario, Settings, Workload};
use serde::{Deserialize, Serialize};

use crate::host::{self, Host};
use crate::progress::Progress;
use crate::scale::Scale;
use crate::tables::{Row, verdict};

/// The machine, threads and lock of each simulation, and what is required of the simulator.
const RUNS: [(&str, usize, &str, Required); 4] = [
    ("oracle-x5-4", 142, "qspinlock", Required::Speed(1e6)),
    ("oracle-x5-4", 142, "cna", Required::Speed(0.8e6)),
    ("epyc-9654-nps12", 384, "qspinlock", Required::Memory(64.0)),
    ("epyc-9654-nps12", 384, "cna", Required::Memory(64.0)),
];
const WORKLOAD: &str = "locktorture";

/// The requirement that a simulation has to meet.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Required {
    /// The least number of simulated acquisitions a second of processor time.
    Speed(f64),
    /// The most memory, in MiB.
    Memory(f64),
}

/// One run of the simulator. It has a process to itself, so that its memory can be measured.
#[derive(clap::Args)]
pub struct SimulationJob {
    /// CPU on which the process runs
    cpu: usize,
    /// Simulated machine
    machine: String,
    /// Simulated threads
    threads: usize,
    /// Name of the lock
    lock: String,
    /// Virtual milliseconds
    milliseconds: f64,
}

/// The report of one run, which its process prints as JSON.
#[derive(Serialize, Deserialize)]
struct SimulationReport {
    acquisitions: u64,
    transfers: u64,
    cpu_seconds: f64,
    memory_mib: f64,
}

/// The results of one simulation: medians over its runs.
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

/// How many runs [`measure`] makes.
pub fn steps(scale: &Scale) -> usize {
    scale.rounds_simulator * RUNS.len()
}

/// Runs every simulation `scale.rounds_simulator` times.
pub fn measure(host: &Host, scale: &Scale, progress: &Progress) -> Result<Vec<Simulation>> {
    let mut reports: Vec<Vec<SimulationReport>> = RUNS.iter().map(|_| Vec::new()).collect();
    for _ in 0..scale.rounds_simulator {
        for ((machine, threads, lock, _), reports) in RUNS.iter().zip(&mut reports) {
            progress.step(&format!("{lock} on {machine}"), "simulator");
            let cpu = host.cpus[0];
            reports.push(run_child(cpu, machine, *threads, lock, scale.simulated_ms)?);
        }
    }
    let simulation = |(&(machine, threads, lock, required), mut reports): (
        &(_, _, _, _),
        Vec<SimulationReport>,
    )| {
        reports.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
        let median = &reports[reports.len() / 2];
        let acquisitions = median.acquisitions as f64;
        let speed = acquisitions / median.cpu_seconds;
        Simulation {
            machine,
            threads,
            lock,
            virtual_seconds: scale.simulated_ms / 1e3,
            acquisitions: median.acquisitions,
            acquisitions_per_second: speed,
            cpu_seconds: median.cpu_seconds,
            transfers_per_acquisition: median.transfers as f64 / acquisitions,
            memory_mib: median.memory_mib,
            required,
            met: match required {
                Required::Speed(least) => speed >= least,
                Required::Memory(most) => median.memory_mib <= most,
            },
        }
    };
    Ok(RUNS.iter().zip(reports).map(simulation).collect())
}

fn run_child(
    cpu: usize,
    machine: &str,
    threads: usize,
    lock: &str,
    milliseconds: f64,
) -> Result<SimulationReport> {
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
    serde_json::from_slice(&child.stdout).context("the simulator's process did not print a report")
}

impl SimulationJob {
    /// Runs the simulation in this process, and prints the report.
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
            sharing: None,
            placement: Placement::Scatter(1),
            seconds: self.milliseconds / 1e3,
            tunables: Settings::kernel(),
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
        let report = SimulationReport {
            acquisitions: outcome.acquisitions,
            transfers: outcome.engine.transfers,
            cpu_seconds,
            memory_mib: host::peak_memory_mib()?,
        };
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    }
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
