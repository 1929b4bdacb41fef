//! Which locks are tortured with how many threads, and the rounds in which they take turns.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use lockworks_machine::affinity;
use lockworks_measurements::turns;

use crate::contender::Contender;
use crate::host::{Host, Pin, allowed_cpus};
use crate::quota::Quota;
use crate::results::{Collected, TortureResults};
use crate::round;
use crate::workload::Workload;
use lockworks_ui::progress;

/// The measurements to make.
#[derive(Clone, Debug)]
pub struct TorturePlan {
    /// The locks.
    pub contenders: Vec<Contender>,
    /// The lock among the contenders that ratios are relative to.
    pub reference: Contender,
    /// The numbers of threads that each lock is measured with.
    pub threads: Vec<usize>,
    /// The length of a measured run.
    pub duration: Duration,
    /// How often each lock is measured with each number of threads.
    pub rounds: usize,
    /// The work of the threads.
    pub workload: Workload,
    /// How threads are bound to CPUs.
    pub pin: Pin,
    /// The share of the CPUs' time that all threads may use together, in percent.
    pub quota: Option<u32>,
    /// The number of events to record of each lock and number of threads, in the first round.
    pub recorded: usize,
}

/// Numbers of threads from 1 to four times the CPUs, doubling.
pub fn usual_threads(cpus: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |threads| Some(threads * 2))
        .take_while(|&threads| threads <= 4 * cpus)
        .collect()
}

/// The lock that most programs have, if it is among these, else the first.
pub fn usual_reference(contenders: &[Contender]) -> Contender {
    let usual = contenders
        .iter()
        .find(|lock| lock.name() == "pthread_mutex");
    *usual.unwrap_or(&contenders[0])
}

/// Measures everything planned. On a terminal, a bar shows the progress.
pub fn run(plan: &TorturePlan) -> Result<TortureResults> {
    let allowed = allowed_cpus()?.len();
    let cpus = plan.pin.order()?;
    let quota = match plan.quota {
        Some(percent) => Some(Quota::enter(percent, Host::look()?.cpus)?),
        None => None,
    };
    let mut collected = Collected::new(plan);
    let bar = progress_bar(plan);
    for round in 0..plan.rounds {
        for (row, &threads) in plan.threads.iter().enumerate() {
            let conditions = round::Conditions {
                threads,
                duration: plan.duration,
                workload: plan.workload,
                seed: round as u64,
                cpus: &cpus,
                recorded: if round == 0 { plan.recorded } else { 0 },
            };
            for lock in turns(plan.contenders.len(), round) {
                let contender = plan.contenders[lock];
                tracing::debug!(lock = contender.name(), threads, round, "tortured");
                bar.set_message(format!("{}, {threads} threads", contender.name()));
                bar.inc(1);
                collected.add(row, lock, round::run(contender, &conditions)?);
            }
        }
    }
    bar.finish_and_clear();
    affinity::check(allowed)?;
    let throttling = quota.as_ref().map(Quota::throttling).transpose()?;
    collected.results(throttling)
}

/// A bar on a terminal, for plans that take more than two seconds.
fn progress_bar(plan: &TorturePlan) -> ProgressBar {
    let runs = plan.contenders.len() * plan.threads.len() * plan.rounds;
    let short = plan.duration * runs as u32 <= Duration::from_secs(2);
    if short || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    progress::bar(runs, "{bar:30} {pos}/{len} {msg}, {elapsed}")
}

#[cfg(test)]
mod tests {
    use super::usual_threads;

    #[test]
    fn threads_double() {
        assert_eq!(usual_threads(1), [1, 2, 4]);
        assert_eq!(usual_threads(3), [1, 2, 4, 8]);
    }
}
