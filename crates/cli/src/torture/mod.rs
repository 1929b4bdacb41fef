//! `lockworks torture`: real threads on this machine take locks over and over.

mod answer;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{ValueEnum, value_parser};
use lockworks::Setting;
use lockworks::tunables::{self, NumaMode};

use lockworks_names::command_line::{percent, setting};
use lockworks_torture::{
    Contender, Host, Pin, Preset, TorturePlan, TortureResults, Workload, run, usual_reference,
    usual_threads,
};
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::terminal;
use lockworks_ui::timeline;
use lockworks_ui::usage::seconds;
pub use report::table;

/// Torture locks with real threads on this machine and compare them.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct TortureArgs {
    /// Locks to torture, by name [default: all of `lockworks locks` that are not broken,
    /// pthread_mutex and pthread_spin]
    ///
    /// Other locks than those of `lockworks locks` can be named too. The C library has
    /// pthread_mutex, pthread_adaptive, pthread_spin and pthread_rwlock. Rust crates have parking_lot,
    /// parking_lot_rwlock, spin and spin_ticket.
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// The lock by whose figures those of the others are divided; it is tortured too [default:
    /// pthread_mutex if --lock names it, else the first lock]
    #[arg(long, value_name = "LOCK", hide_short_help = true)]
    reference: Option<String>,

    /// Numbers of threads [default: 1,2,4,... up to four times the CPUs]
    #[arg(short, long, value_name = "N", value_delimiter = ',', value_parser = value_parser!(u16).range(1..))]
    threads: Vec<u16>,

    /// Length of each measured run in seconds; fractions are allowed
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = seconds)]
    seconds: f64,

    /// Number of rounds; each round measures every lock once
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The work of the threads
    #[arg(short, long, value_name = "WHAT", default_value = "plain")]
    preset: Preset,

    /// Time of work with the lock held, in nanoseconds, besides two counters (preset plain only)
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = value_parser!(u64).range(..=1_000_000_000))]
    critical: u64,

    /// Time of work between two acquisitions, in nanoseconds (preset plain only)
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = value_parser!(u64).range(..=1_000_000_000))]
    think: u64,

    /// Share of acquisitions as a reader, in percent; fractions are allowed. A lock without readers is
    /// acquired alone (preset plain only)
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    readers: f64,

    /// How to bind threads to CPUs; if threads outnumber CPUs, the next thread gets the first CPU
    /// again
    #[arg(
        long,
        value_name = "HOW",
        default_value = "none",
        hide_short_help = true
    )]
    pin: Pin,

    /// Quota: a share of the CPUs' time, as in a container; takes root
    #[arg(long, value_name = "PERCENT", value_parser = value_parser!(u32).range(1..=100))]
    quota: Option<u32>,

    /// Whether CNA and HQ prefer waiters of one NUMA node [default: auto]
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    numa: Option<Numa>,

    /// Time for which CNA may pass over waiters of other nodes, 1 to 100 milliseconds [default: 10]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u32).range(1..=100), hide_short_help = true)]
    threshold: Option<u32>,

    /// Let CNA search for waiters to pass over at every hand-off [default: at 1 in 128]
    #[arg(long, hide_short_help = true)]
    no_shuffle_reduction: bool,

    /// Set a tunable of a lock, such as hqlock_fairness_threshold=100; `lockworks locks hq` lists
    /// those of hq
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting, hide_short_help = true)]
    tune: Vec<Setting>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// Draw throughput and fairness by number of threads in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Write what each thread did at the beginning of the first round in FILE, a .pftrace for
    /// ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    destination: Destination,
}

const HELP: &str = "\
Columns, for each lock and number of threads:
  ops/s: operations per second, median of the rounds; min..max: the lowest and highest of the \
rounds. A warm-up of a tenth of the time comes first. Threads that wait when the time is up end \
after their turn. With far more threads than CPUs, that takes a spinning FIFO lock some seconds.
  of LOCK: operations per second divided by those of the reference in the same round, median of \
the rounds.
  fairness: the share of all operations that the busier half of the threads made, median of the \
rounds. 0.5 is strictly fair, 1 totally unfair. With an odd number of threads, the middle one \
counts half to either side.
  p50..max: the time from the call of lock until the lock is acquired: medians of the rounds' \
percentiles, and the longest wait of all. One acquisition in 1 to 256 is timed, by count, so a \
rare long wait may be missed. Reading the clock takes some 20 ns of each time.
  remote: the share of hand-offs to another NUMA node, among those to another thread.
  waiting: the share of time in which threads could run but had no CPU.

Mutual exclusion is checked in every run, by an owner word and by a count that is not atomic. A \
violation is reported, and the exit status is 1.

The last sentences name the lock that is nearest to the fastest one: the geometric mean of its rate \
over that of the fastest lock of each number of threads. Locks within 5 % of it are level.

With --verbose, lines below the table are about two kinds of locks. For HQ, they say how often it began and ended \
queueing by node. For locks whose waiters halt, they count halts, kicks, steals and spurious \
wake-ups; --tune pv_latencies=1 also measures the time of kicks and wake-ups. JSON has everything \
that a lock counts, as sums over the rounds, and null for figures that the system does not report.

With --quota, all threads are in a control group whose quota is that share of the time of all CPUs, in \
periods of 100 ms. A lock whose waiters spin uses up the quota that the holder needs.

The preset locktorture-new is the writer loop of Linux' module with n threads. It spins with the lock \
held: 2 us with probability 1/(400 n), and 100 ms with probability 1/(200000 n), so that short \
runs vary. locktorture-old is the loop of kernels up to 6.4: 2 us with probability 1/(4 n).

Examples:
  lockworks torture --lock qspinlock,cna,pthread_mutex --threads 1,2,4
  lockworks torture --lock tas,spin,parking_lot --threads 4,16 --reference spin
  lockworks torture --lock rwlock,pthread_rwlock --readers 99
  lockworks torture --preset locktorture-new --seconds 10 --json -o torture.json
  lockworks torture --lock mutex,pthread_mutex --quota 50
  lockworks torture --lock hq -t 4 --tune hqlock_fairness_threshold=100

CPUs 0 and 1 as two NUMA nodes:
  LOCKWORKS_TOPOLOGY=0:1 lockworks torture --lock cna,hq --pin spread";

/// The values of --numa, which are those of `tunables::NumaMode`.
#[derive(Clone, Copy, ValueEnum)]
enum Numa {
    /// On if there are two nodes or more
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// Runs the command.
pub fn command(args: &TortureArgs) -> Result<ExitCode> {
    let plan = args.plan()?;
    args.destination.check()?;
    plot::check(args.plot.as_deref())?;
    args.trace.as_deref().map_or(Ok(()), timeline::check)?;
    args.set_tunables()?;

    let results = run(&plan)?;
    for warning in &results.warnings {
        terminal::warn(warning);
    }
    if let Some(path) = &args.plot {
        plot::draw(path, &results)?;
    }
    if let Some(path) = &args.trace {
        let timelines = results.rows.iter().map(|row| {
            let title = format!("{}, {} threads", row.lock, row.threads);
            (title, &row.timeline)
        });
        timeline::write_runs(path, timelines)?;
    }
    args.destination.write(&if args.json {
        output::json(&results)?
    } else {
        table(&results)
    })?;
    Ok(verdict(&results))
}

/// Reports every violation. The exit status is 1 if there was one.
pub fn verdict(results: &TortureResults) -> ExitCode {
    for violation in results.violations() {
        eprintln!("lockworks: {violation}");
    }
    ExitCode::from(u8::from(results.violations().next().is_some()))
}

impl TortureArgs {
    /// The plan that the options describe.
    pub fn plan(&self) -> Result<TorturePlan> {
        let mut named: Vec<Contender> = match self.lock.as_slice() {
            [] => Contender::usual().collect(),
            names => names
                .iter()
                .map(|name| Contender::find(name))
                .collect::<Result<_>>()?,
        };
        let reference = match &self.reference {
            Some(name) => Contender::find(name)?,
            None => usual_reference(&named),
        };
        named.push(reference);
        let threads = match self.threads.as_slice() {
            [] => usual_threads(Host::look()?.cpus),
            some => first_of_each(some).map(|&n| usize::from(n)).collect(),
        };
        ensure!(
            self.preset == Preset::Plain
                || (self.critical, self.think, self.readers) == (0, 0, 0.0),
            "--critical, --think and --readers are for the preset plain only; leave them out, or --preset"
        );
        Ok(TorturePlan {
            contenders: first_of_each(&named).copied().collect(),
            reference,
            threads,
            duration: Duration::from_secs_f64(self.seconds),
            rounds: self.rounds as usize,
            workload: Workload {
                preset: self.preset,
                critical_ns: self.critical,
                think_ns: self.think,
                readers: self.readers,
            },
            pin: self.pin,
            quota: self.quota,
            recorded: match self.trace {
                Some(_) => timeline::RECORDED_EVENTS,
                None => 0,
            },
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

#[cfg(test)]
mod tests {
    use super::first_of_each;

    #[test]
    fn repeats_count_once() {
        assert!(first_of_each(&[4, 1, 4, 1, 2]).eq(&[4, 1, 2]));
    }
}
