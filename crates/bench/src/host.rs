//! This machine: its CPUs, and the CPU time and memory that threads and processes take on it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;
use serde::Serialize;

/// The machine on which the figures were measured.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// The kernel's name of the processor.
    pub processor: String,
    /// The CPUs that this process may use.
    pub cpus: Vec<usize>,
}

impl Host {
    /// Finds out about this machine.
    pub fn find() -> Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(0))
            .context("cannot read which CPUs this process may use")?;
        let cpus = (0..CpuSet::count())
            .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
            .collect();
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = info
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .and_then(|rest| rest.split_once(':'))
            .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
        Ok(Self {
            processor: processor.to_string(),
            cpus,
        })
    }
}

/// The `lockworks` command that was built beside this program.
pub fn lockworks() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program")?;
    Ok(this.with_file_name("lockworks"))
}

/// Pins this thread to one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("cannot pin a thread to CPU {cpu}"))
}

/// The number of times that this thread was preempted.
pub fn preemptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}

/// The processor time that this process has taken, in seconds.
pub fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("cannot read the processor time")?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The most memory of this process that was resident at once, in MiB.
pub fn peak_memory_mib() -> Result<f64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .context("/proc/self/status has no VmHWM")?;
    Ok(kib / 1024.0)
}
