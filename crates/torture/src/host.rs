//! This machine, as the system describes it, and the CPUs that threads are bound to.

use std::fs;
use std::iter::Sum;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lockworks::topology;
use lockworks_machine::{affinity, ticks};
use nix::unistd::{SysconfVar, sysconf};
use serde::Serialize;

/// This machine.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// The number of CPUs that this process may use.
    pub cpus: usize,
    /// The number of NUMA nodes, as the locks see them.
    pub nodes: u32,
    /// The model name of the processor.
    pub model: Option<String>,
}

impl Host {
    /// Describes this machine.
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
    /// Fill one NUMA node after the other
    Compact,
    /// Threads take turns over the nodes
    Spread,
    /// The scheduler decides
    None,
}

impl Pin {
    /// The CPUs for the threads in turn, again from the first after the last. Empty: any CPU.
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

/// The CPUs that this process may use.
pub fn allowed_cpus() -> Result<Vec<usize>> {
    affinity::allowed().context("cannot find out which CPUs this process may use")
}

fn model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The time for which these CPUs have been idle, of all of them together. None: the system does not report it.
pub fn idle_time(cpus: &[usize]) -> Option<Duration> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let ticks = ticks::idle_of(cpus)?;
    Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// CPU time that the scheduler has withheld from threads. None: the system does not report it.
#[derive(Clone, Copy, Debug)]
pub struct Withheld {
    /// How often threads were preempted.
    pub involuntary_switches: Option<u64>,
    /// Nanoseconds in which threads could run but had no CPU.
    pub runqueue_wait_ns: Option<u64>,
    /// Nanoseconds of all threads, running or not.
    pub presence_ns: u64,
}

impl Withheld {
    /// Does this work, and measures the CPU time withheld from this thread meanwhile.
    pub fn during<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (switches, wait, start) = (involuntary_switches(), runqueue_wait_ns(), Instant::now());
        let done = work();
        let difference = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let withheld = Self {
            involuntary_switches: difference(involuntary_switches(), switches),
            runqueue_wait_ns: difference(runqueue_wait_ns(), wait),
            presence_ns: start.elapsed().as_nanos() as u64,
        };
        (done, withheld)
    }
}

impl Sum for Withheld {
    fn sum<I: Iterator<Item = Self>>(threads: I) -> Self {
        let none = Self {
            involuntary_switches: Some(0),
            runqueue_wait_ns: Some(0),
            presence_ns: 0,
        };
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        threads.fold(none, |a, b| Self {
            involuntary_switches: sum(a.involuntary_switches, b.involuntary_switches),
            runqueue_wait_ns: sum(a.runqueue_wait_ns, b.runqueue_wait_ns),
            presence_ns: a.presence_ns + b.presence_ns,
        })
    }
}

/// How often this thread was preempted. None: the system does not report it.
pub fn involuntary_switches() -> Option<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    usage.involuntary_context_switches().try_into().ok()
}

fn runqueue_wait_ns() -> Option<u64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().nth(1)?.parse().ok()
}
