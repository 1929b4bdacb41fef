//! `lockworks torture`: real threads on this machine take locks over and over.

mod host;
pub mod report;
pub mod results;
mod round;
mod subject;
mod workload;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{ValueEnum, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use lockworks::Setting;
use lockworks::tunables::{self, NumaMode};

use crate::names::setting;
use crate::output::{self, Destination};
pub use host::{Host, Pin};
pub use report::{scaled, table};
pub use results::Results;
pub use subject::Subject;
pub use workload::{Preset, Workload};

/// Torture locks with real threads on this machine and compare them.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Locks to torture, by name [default: all of `lockworks locks` that are not broken,
    /// pthread_mutex and pthread_spin]
    ///
    /// Those of `lockworks locks`; of the C library pthread_mutex (or pthread), pthread_adaptive and
    /// pthread_spin; of Rust crates parking_lot, spin and spin_ticket; nsync, abseil, and of
    /// Concurrency Kit ck_mcs, ck_ticket, ck_clh and ck_fas, where they were there when this was built.
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// The lock that ratios are to, tortured too [default: pthread_mutex if it is one of them, else
    /// the first]
    #[arg(long, value_name = "LOCK")]
    reference: Option<String>,

    /// Numbers of threads [default: 1,2,4,... up to four times the CPUs]
    #[arg(short, long, value_name = "N", value_delimiter = ',', value_parser = value_parser!(u16).range(1..))]
    threads: Vec<u16>,

    /// Length of each measured run; fractions are allowed
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = seconds)]
    seconds: f64,

    /// How often to measure each lock; they take turns in every round
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// What the threads do
    #[arg(short, long, value_name = "WHAT", default_value = "plain")]
    preset: Preset,

    /// Work with the lock held, besides two counters (plain only)
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = value_parser!(u64).range(..=1_000_000_000))]
    critical: u64,

    /// Work between two acquisitions (plain only)
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = value_parser!(u64).range(..=1_000_000_000))]
    think: u64,

    /// Bind threads to CPUs; more threads than CPUs start over
    #[arg(long, value_name = "HOW", default_value = "none")]
    pin: Pin,

    /// Do CNA and HQ keep waiters of one node together? [default: auto, with two nodes or more]
    #[arg(long, value_name = "MODE")]
    numa: Option<Numa>,

    /// How long CNA may pass over waiters of other nodes, 1 to 100 milliseconds [default: 10]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u32).range(1..=100))]
    threshold: Option<u32>,

    /// Let CNA look for waiters to pass over at every hand-off, not at one in 128
    #[arg(long)]
    no_shuffle_reduction: bool,

    /// Set a lock's tunable, as hqlock_fairness_threshold=100; `lockworks locks hq` lists those of hq
    #[arg(long, alias = "hqlock", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting)]
    tune: Vec<Setting>,

    /// Give JSON rather than a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

const HELP: &str = "\
What is measured, for each lock and number of threads:
  ops/s      operations a second: median of the rounds, and min..max, after a warm-up of a tenth of
             the time. Then by those of the reference in the same round, the median of such ratios. Threads that wait for the lock when the time is up end when their turn comes,
             which takes spinning FIFO locks seconds when there are far more threads than CPUs.
  fairness   the threads' operations sorted downwards, the upper half's share of the total: 0.5 is
             strictly fair, 1 totally unfair. Of an odd number of threads the middle one counts half
             to either side, so that one thread alone has 0.5. Median of the rounds.
  p50..max   time from asking for the lock to having it: medians of the rounds' percentiles, and the
             longest seen in any. One acquisition in 1 to 256 is timed, so that it takes about 1 % of
             the time: by count, so long waits are neither sought nor avoided; but a single rare one
             may be missed. It includes the clock, some 20 ns.
  remote     hand-offs between threads on different nodes, among those between different threads;
             seen by the holder, for every lock alike.
  waiting    for a CPU: time that threads could run but did not, as a share of their time.
Mutual exclusion is checked in every run: an owner word at entry and exit, and a count that is not
atomic. Any violation is reported, and the exit status is 1.
JSON has sums over all rounds for what is counted, and null for what the system does not tell;
by_round has every round's operations a second and percentiles, p999_ratio p99.9 by the reference's.

Below the table, of the HQ-spinlock: how often locks went over to queueing by node and back, how many
nodes' queues they took and how many waiters did without as another lock had it, and the most local
hand-offs in a row. Of locks whose waiters halt: halts and kicks, by occasion, wake-ups in vain, what
was stolen, and how far entries lie from their places in the table of parked waiters; with --tune
pv_latencies=1 also how long a kick takes, and a wake-up. JSON has all that locks of the library count.

Presets: locktorture is the writer loop of the Linux module on a spinlock, with n threads: a delay
of 2 us with probability 1/(400 n), or 1/(4 n) in kernels up to 6.4 (locktorture-old), and one of
100 ms with probability 1/(200000 n), spun with the lock held as in the original, so short runs
vary. Four writers' counters share a cache line.

Examples:
  lockworks torture --lock qspinlock,cna,pthread_mutex --threads 1,2,4
  lockworks torture --lock tas,pthread,parking_lot,nsync,abseil --threads 4,16,64 --reference abseil
  lockworks torture --preset locktorture --seconds 10 --json -o torture.json
  LOCKWORKS_TOPOLOGY=0:1 lockworks torture --lock cna,hq --pin spread    CPUs 0 and 1 as two nodes
  LOCKWORKS_TOPOLOGY=0:1 lockworks torture --lock hq -t 4 --tune hqlock_fairness_threshold=100";

/// As `tunables::NumaMode`.
#[derive(Clone, Copy, ValueEnum)]
enum Numa {
    Auto,
    On,
    Off,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number from 0.001 to 86400".to_owned()),
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which locks.
    pub subjects: Vec<Subject>,
    /// The one among them that ratios are to.
    pub reference: Subject,
    /// With how many threads each.
    pub threads: Vec<usize>,
    /// Length of a measured run.
    pub duration: Duration,
    /// How often.
    pub rounds: usize,
    /// What the threads do.
    pub workload: Workload,
    /// Where they run.
    pub pin: Pin,
}

/// Numbers of threads from 1 to four times the CPUs, doubling.
pub fn usual_threads(cpus: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |threads| Some(threads * 2))
        .take_while(|&threads| threads <= 4 * cpus)
        .collect()
}

/// Measures everything planned. `progress` is told of each run before it begins.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<Results> {
    let cpus = plan.pin.order()?;
    let mut rows = results::Collected::new(plan);
    for round in 0..plan.rounds {
        for (row, &threads) in plan.threads.iter().enumerate() {
            let conditions = round::Conditions {
                threads,
                duration: plan.duration,
                workload: plan.workload,
                seed: round as u64,
                cpus: &cpus,
            };
            for lock in turns(plan.subjects.len(), round) {
                let subject = plan.subjects[lock];
                progress(&format!("{}, {threads} threads", subject.name()));
                rows.add(row, lock, round::run(subject, &conditions)?);
            }
        }
    }
    rows.results()
}

/// The order in which the locks run in a round: another one starts each time, and every second
/// round goes backwards.
pub fn turns(locks: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..locks).collect();
    order.rotate_left(round % locks);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let plan = args.plan()?;
    args.destination.check()?;
    args.set_tunables()?;

    let results = run_with_bar(&plan)?;
    args.destination.write(&if args.json {
        output::json(&results)?
    } else {
        table(&results)
    })?;
    Ok(verdict(&results))
}

/// Measures everything planned. On a terminal, a bar shows how far it is; warnings follow.
pub fn run_with_bar(plan: &Plan) -> Result<Results> {
    let runs = plan.subjects.len() * plan.threads.len() * plan.rounds;
    let bar = progress_bar(runs, plan.duration);
    let results = run(plan, &mut |what| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    let results = results?;
    for warning in &results.warnings {
        eprintln!("lockworks: warning: {warning}");
    }
    Ok(results)
}

/// Tells of every violation; the exit status is 1 if there was one.
pub fn verdict(results: &Results) -> ExitCode {
    for row in results.rows.iter().filter(|row| row.violations > 0) {
        eprintln!(
            "lockworks: VIOLATION: {} with {} threads failed to exclude {} times",
            row.lock, row.threads, row.violations
        );
    }
    let violated = results.rows.iter().any(|row| row.violations > 0);
    ExitCode::from(u8::from(violated))
}

impl Args {
    fn plan(&self) -> Result<Plan> {
        let mut named: Vec<Subject> = match self.lock.as_slice() {
            [] => Subject::usual().collect(),
            names => names
                .iter()
                .map(|name| Subject::find(name))
                .collect::<Result<_>>()?,
        };
        let reference = match &self.reference {
            Some(name) => Subject::find(name)?,
            None => usual_reference(&named),
        };
        named.push(reference);
        let threads = match self.threads.as_slice() {
            [] => usual_threads(Host::look()?.cpus),
            some => first_of_each(some).map(|&n| usize::from(n)).collect(),
        };
        ensure!(
            self.preset == Preset::Plain || (self.critical, self.think) == (0, 0),
            "--critical and --think are for the plain preset; leave them or --preset out"
        );
        Ok(Plan {
            subjects: first_of_each(&named).copied().collect(),
            reference,
            threads,
            duration: Duration::from_secs_f64(self.seconds),
            rounds: self.rounds as usize,
            workload: Workload {
                preset: self.preset,
                critical_ns: self.critical,
                think_ns: self.think,
            },
            pin: self.pin,
        })
    }

    fn set_tunables(&self) -> Result<()> {
        if let Some(mode) = self.numa {
            tunables::set_numa_spinlock(match mode {
                Numa::Auto => NumaMode::Auto,
                Numa::On => NumaMode::On,
                Numa::Off => NumaMode::Off,
            });
        }
        if let Some(ms) = self.threshold {
            tunables::set_numa_spinlock_threshold(ms)?;
        }
        if self.no_shuffle_reduction {
            tunables::set_shuffle_reduction(false);
        }
        for setting in &self.tune {
            setting.apply();
        }
        Ok(())
    }
}

fn first_of_each<T: PartialEq>(items: &[T]) -> impl Iterator<Item = &T> {
    let seen_before = |i: usize| items[..i].contains(&items[i]);
    (0..items.len())
        .filter(move |&i| !seen_before(i))
        .map(|i| &items[i])
}

/// The lock that most programs have, if it is among these, else the first.
pub fn usual_reference(subjects: &[Subject]) -> Subject {
    let usual = subjects.iter().find(|s| s.name() == "pthread_mutex");
    *usual.unwrap_or(&subjects[0])
}

/// A bar on a terminal, for what takes more than two seconds.
fn progress_bar(runs: usize, each: Duration) -> ProgressBar {
    if each * runs as u32 <= Duration::from_secs(2) || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {elapsed}")
        .expect("a template that it takes");
    ProgressBar::new(runs as u64).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_take_turns() {
        assert_eq!(turns(3, 0), [0, 1, 2]);
        assert_eq!(turns(3, 1), [0, 2, 1]);
        assert_eq!(turns(3, 2), [2, 0, 1]);
        assert_eq!(turns(1, 5), [0]);
    }

    #[test]
    fn threads_double() {
        assert_eq!(usual_threads(1), [1, 2, 4]);
        assert_eq!(usual_threads(3), [1, 2, 4, 8]);
    }

    #[test]
    fn repeats_count_once() {
        assert!(first_of_each(&[4, 1, 4, 1, 2]).eq(&[4, 1, 2]));
    }
}
