//! This machine, as far as the system tells.

use std::fs;

use anyhow::{Context, Result};
use lockworks::topology;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;

/// This machine.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Nodes, as the locks see them.
    pub nodes: u32,
    /// What the processor calls itself.
    pub model: Option<String>,
}

impl Host {
    /// Looks around.
    pub fn look() -> Result<Self> {
        Ok(Self {
            cpus: allowed_cpus()?.len(),
            nodes: topology::nodes(),
            model: model(),
        })
    }
}

/// How threads are bound to CPUs.
#[derive(Clone, Copy, Debug, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// One node after the other, as threads come
    Compact,
    /// Threads take turns over the nodes
    Spread,
    /// The scheduler decides
    None,
}

impl Pin {
    /// The CPU for each thread in turn, to be begun anew after the last; empty for none.
    pub fn order(self) -> Result<Vec<usize>> {
        let mut cpus = allowed_cpus()?;
        let node = |cpu: usize| topology::node_of_cpu(cpu as u32);
        match self {
            Self::None => cpus.clear(),
            Self::Compact => cpus.sort_by_key(|&cpu| node(cpu)),
            Self::Spread => {
                let mut taken = vec![0; topology::nodes() as usize];
                cpus.sort_by_cached_key(|&cpu| {
                    let turn = &mut taken[node(cpu) as usize];
                    *turn += 1;
                    (*turn, node(cpu))
                });
            }
        }
        Ok(cpus)
    }
}

/// Binds this thread to a CPU that it may use.
pub fn pin_to(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .expect("the CPU was allowed when we looked");
}

fn allowed_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .context("cannot tell which CPUs to use; run on a machine with at most 1024")?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect())
}

fn model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Ticks, mostly of 10 ms, that the hypervisor has kept this machine's CPUs from running.
pub fn steal_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let total = stat.lines().find(|line| line.starts_with("cpu "))?;
    total.split_whitespace().nth(8)?.parse().ok()
}

/// What the scheduler has withheld from a thread.
#[derive(Clone, Copy, Debug)]
pub struct Withheld {
    /// Times that it was taken off its CPU though it could run.
    pub involuntary_switches: Option<u64>,
    /// Nanoseconds that it could run but had no CPU.
    pub runqueue_wait_ns: Option<u64>,
}

impl Withheld {
    /// From this thread, so far.
    pub fn so_far() -> Self {
        Self {
            involuntary_switches: involuntary_switches(),
            runqueue_wait_ns: runqueue_wait_ns(),
        }
    }

    /// From this thread, since `earlier`.
    pub fn since(earlier: Self) -> Self {
        let now = Self::so_far();
        let difference = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            involuntary_switches: difference(
                now.involuntary_switches,
                earlier.involuntary_switches,
            ),
            runqueue_wait_ns: difference(now.runqueue_wait_ns, earlier.runqueue_wait_ns),
        }
    }
}

fn involuntary_switches() -> Option<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    usage.involuntary_context_switches().try_into().ok()
}

fn runqueue_wait_ns() -> Option<u64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().nth(1)?.parse().ok()
}
