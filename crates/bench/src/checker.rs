//! The time and memory that the model checker takes for a proof on one core.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use lockworks_check::{Check, Config, End, Limits, Memory};
use serde::{Deserialize, Serialize};

use crate::host::{self, Host};
use crate::progress::Progress;
use crate::scale::Scale;
use crate::tables::{Row, verdict};

/// The lock, threads and memory model of each check, and the most processor seconds it may take.
const RUNS: [(&str, usize, Memory, f64); 3] = [
    ("qspinlock", 3, Memory::Weak, 10.0),
    ("cna", 3, Memory::Weak, 10.0),
    ("cna", 4, Memory::Sc, 30.0),
];
const ACQUISITIONS: u32 = 2;
const NODES: usize = 2;
/// The most memory that a check may take, in MiB.
const MOST_MEMORY: f64 = 1024.0;

/// One run of the checker. It has a process to itself, so that its memory can be measured.
#[derive(clap::Args)]
pub struct CheckJob {
    /// CPU on which the process runs
    cpu: usize,
    /// Configuration, as JSON
    config: String,
}

/// The report of one run, which its process prints as JSON.
#[derive(Serialize, Deserialize)]
struct CheckReport {
    states: usize,
    transitions: usize,
    cpu_seconds: f64,
    memory_mib: f64,
}

/// The results of one check: medians over its runs.
#[derive(Serialize)]
pub struct CheckedConfig {
    config: Config,
    states: usize,
    transitions: usize,
    /// Seconds of processor time.
    seconds: f64,
    /// The most memory that was resident at once.
    memory_mib: f64,
    /// The most seconds that the check may take.
    required: f64,
    met: bool,
}

/// How many runs [`measure`] makes.
pub fn steps(scale: &Scale) -> usize {
    scale.rounds_checker * RUNS.len()
}

/// Runs every check `scale.rounds_checker` times.
pub fn measure(host: &Host, scale: &Scale, progress: &Progress) -> Result<Vec<CheckedConfig>> {
    let configs = RUNS.map(|(lock, threads, memory, _)| Config {
        threads: threads.min(scale.checked_threads),
        acquisitions: ACQUISITIONS,
        memory,
        nodes: NODES,
        ..Config::new(lock)
    });
    let mut reports: [Vec<CheckReport>; RUNS.len()] = Default::default();
    for _ in 0..scale.rounds_checker {
        for (config, reports) in configs.iter().zip(&mut reports) {
            progress.step(&config.to_string(), "checker");
            reports.push(run_child(host.cpus[0], config)?);
        }
    }
    let proof =
        |((config, mut reports), (.., required)): ((Config, Vec<CheckReport>), (_, _, _, f64))| {
            reports.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
            let median = &reports[reports.len() / 2];
            CheckedConfig {
                config,
                states: median.states,
                transitions: median.transitions,
                seconds: median.cpu_seconds,
                memory_mib: median.memory_mib,
                required,
                met: median.cpu_seconds <= required && median.memory_mib <= MOST_MEMORY,
            }
        };
    Ok(configs
        .into_iter()
        .zip(reports)
        .zip(RUNS)
        .map(proof)
        .collect())
}

fn run_child(cpu: usize, config: &Config) -> Result<CheckReport> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let child = Command::new(program)
        .args(["check", &cpu.to_string(), &serde_json::to_string(config)?])
        .output()
        .context("cannot start a process for the checker")?;
    ensure!(
        child.status.success(),
        "checking {config} failed: {}",
        String::from_utf8_lossy(&child.stderr).trim()
    );
    serde_json::from_slice(&child.stdout).context("the checker's process did not print a report")
}

impl CheckJob {
    /// Runs the check in this process, and prints the report.
    pub fn run(&self) -> Result<()> {
        host::pin(self.cpu)?;
        let config: Config = serde_json::from_str(&self.config)?;
        let start = host::cpu_seconds()?;
        let outcome = Check::new(&config, None)?.run(&Limits::NONE, &mut |_| {});
        ensure!(
            outcome.end == End::Kept && outcome.is_complete(),
            "{config}: the check failed or is incomplete"
        );
        let report = CheckReport {
            states: outcome.coverage.states,
            transitions: outcome.coverage.transitions,
            cpu_seconds: host::cpu_seconds()? - start,
            memory_mib: host::peak_memory_mib()?,
        };
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
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
