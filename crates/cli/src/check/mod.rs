//! `lockworks check`: all that the lock code can do, looked at.

mod litmus;
mod mutants;
mod report;
mod wide;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ArgAction;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressStyle};
use lockworks::{LockType, Setting, Settings};
use lockworks_check::{
    COND, Check, Config, ConfigError, Coverage, End, Limits, Memory, Mode, Time, Token,
    lock_in_cond, lock_types, lockref_types, small_settings,
};

use crate::names::{setting, unknown};
use crate::output::{self, Destination};
use report::{Counterexample, Report};

/// Look at all that the real lock code can do, in weak memory.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum Command {
    Litmus(litmus::Args),
    Mutants(mutants::Args),
    Wide(Box<wide::Args>),
}

#[derive(clap::Args)]
struct Options {
    /// Locks, lockrefs and cond, the condition variable, to check [default: all that are not broken; with --locks 2, locks only;
    /// with --give-up, locks that know how]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// Number of threads
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    threads: usize,

    /// How often each thread acquires the lock, or gets a reference; not for cond
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    acquisitions: u32,

    /// Locks that threads take in turns, 1 or 2; they share the queues of NUMA nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    locks: usize,

    /// C11's orders as written, or sequential consistency
    #[arg(short, long, value_name = "MODE", default_value = "weak", value_parser = memory())]
    memory: Memory,

    /// Let reads be at most K writes behind the newest [default: any number]
    #[arg(long, value_name = "K")]
    staleness: Option<u8>,

    /// Only the first N threads have a slot of queue nodes [default: all]
    #[arg(long, value_name = "N")]
    slots: Option<usize>,

    /// NUMA nodes; threads are dealt out to them in turn [default: 2 for a lock that knows them]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,

    /// Let every other acquisition try first
    #[arg(long)]
    trylock: bool,

    /// How often threads that are parked may wake for no reason, all of them together
    #[arg(long, value_name = "N", default_value_t = 1)]
    spurious: u8,

    /// Let threads give up waiting at any moment; not with --nesting
    #[arg(long)]
    give_up: bool,

    /// Release locks whose waiters halt as programs do, by a store and a load, not as a kernel does
    #[arg(long)]
    split_release: bool,

    /// How deep interruptions nest, 0 to 2; each thread has one at each level, anywhere
    #[arg(long, value_name = "N", default_value_t = 0)]
    nesting: u8,

    /// Threads that wait with priority, counted from 0
    #[arg(long, value_name = "THREAD", value_delimiter = ',')]
    priority: Vec<usize>,

    /// Thresholds of time: either way at every look, never reached, always reached
    #[arg(long, value_name = "WHEN", default_value = "any", value_parser = time())]
    time: Time,

    /// Promise also that a waiter is overtaken at most N times by threads that began to wait later
    #[arg(long, value_name = "N")]
    overtaking: Option<u8>,

    /// Let CNA look for waiters to pass over at every hand-off, not at one in 128
    #[arg(long)]
    no_shuffle_reduction: bool,

    /// Do CNA and HQ keep waiters of one node together?
    #[arg(long, value_name = "MODE", default_value = "on", value_parser = numa(), action = ArgAction::Set)]
    numa: bool,

    /// Set a lock's tunable, as hqlock_fairness_threshold=0 [default: a kernel's or smaller ones; see --json]
    #[arg(long, alias = "hqlock", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting)]
    tune: Vec<Setting>,

    /// The HQ-spinlock's mode at first
    #[arg(long, value_name = "MODE", default_value = "numa", value_parser = mode())]
    mode: Mode,

    /// Give up after so many seconds, for each lock [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Give up at so much memory [default: half of what is available]
    #[arg(long, value_name = "MIB")]
    memory_limit: Option<usize>,

    /// Make the run of a token again, step by step
    #[arg(long, value_name = "TOKEN", conflicts_with_all = CHECKED)]
    replay: Option<String>,

    /// Give JSON rather than text: an object for one lock, else an array
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

/// Options that a token knows better.
const CHECKED: [&str; 22] = [
    "lock",
    "threads",
    "acquisitions",
    "locks",
    "memory",
    "staleness",
    "slots",
    "nodes",
    "trylock",
    "nesting",
    "priority",
    "time",
    "overtaking",
    "no_shuffle_reduction",
    "spurious",
    "give_up",
    "split_release",
    "numa",
    "tune",
    "mode",
    "seconds",
    "memory_limit",
];

const HELP: &str = "\
The locks' C code runs as it is in the library; every order of its operations, and every value that
weak memory lets them read, is looked at. docs/reference/checker.md says what that proves and what it does not.
A broken promise is shown as the run that breaks it, with a token to replay.

Exit status: 0 all was looked at and nothing found, 1 a promise is broken, 3 ended at a limit before
all was looked at.

Examples:
  lockworks check
  lockworks check --lock cna --threads 3 --nodes 2
  lockworks check --lock mcs --threads 4 --acquisitions 1 --seconds 60 --json
  lockworks check --lock lockref-cna,lockref-tas --acquisitions 3
  lockworks check --lock pv,unfair --threads 3 --acquisitions 1 --give-up
  lockworks check --lock busted";

fn memory() -> impl TypedValueParser<Value = Memory> {
    PossibleValuesParser::new(["weak", "sc"]).map(|name| match name.as_str() {
        "sc" => Memory::Sc,
        _ => Memory::Weak,
    })
}

fn time() -> impl TypedValueParser<Value = Time> {
    PossibleValuesParser::new(["any", "early", "late"]).map(|name| match name.as_str() {
        "early" => Time::Early,
        "late" => Time::Late,
        _ => Time::Any,
    })
}

fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["numa", "plain"]).map(|name| match name.as_str() {
        "plain" => Mode::Plain,
        _ => Mode::Numa,
    })
}

fn numa() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|name| name == "on")
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("give a number from 0 to 1000000000".to_owned()),
    }
}

/// All that can be checked, by name, and the lock that it is or contains.
fn subjects() -> impl Iterator<Item = (&'static str, &'static LockType)> {
    let lockrefs = lockref_types().map(|lockref| (lockref.name(), lockref.lock()));
    lock_types()
        .map(|lock| (lock.name(), lock))
        .chain(lockrefs)
        .chain([(COND, lock_in_cond())])
}

/// A check that cannot be, with what to do instead.
pub fn refused(error: ConfigError) -> anyhow::Error {
    match error {
        ConfigError::UnknownLock(name) => unknown("lock", &name, subjects().map(|(name, _)| name)),
        other => other.into(),
    }
}

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Some(Command::Litmus(args)) => litmus::command(args),
        Some(Command::Mutants(args)) => mutants::command(args),
        Some(Command::Wide(args)) => wide::command(args),
        None => match &args.options.replay {
            Some(token) => replay(token, &args.options),
            None => check(&args.options),
        },
    }
}

impl Options {
    fn config(&self, (name, lock): (&str, &LockType)) -> Config {
        Config {
            lock: name.to_owned(),
            threads: self.threads,
            acquisitions: self.acquisitions,
            locks: self.locks,
            memory: self.memory,
            staleness: self.staleness,
            slots: self.slots,
            nodes: self.nodes.unwrap_or(1 + usize::from(lock.is_numa_aware())),
            trylock: self.trylock,
            spurious: self.spurious,
            patient: self.give_up,
            split_release: self.split_release,
            nesting: self.nesting,
            priority: self.priority.clone(),
            time: self.time,
            overtaking: self.overtaking,
            tunables: Settings {
                numa_aware: self.numa,
                shuffle_reduction: !self.no_shuffle_reduction,
                ..small_settings()
            }
            .with(&self.tune),
            mode: self.mode,
        }
    }
}

/// A broken promise has been found.
const BROKEN: u8 = 1;
/// A limit was met.
const UNFINISHED: u8 = 3;
/// Longest time spent to make a run shorter.
const SHORTENING: Duration = Duration::from_secs(30);

fn find_subject(name: &str) -> Result<(&'static str, &'static LockType)> {
    subjects()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| refused(ConfigError::UnknownLock(name.to_owned())))
}

fn check(options: &Options) -> Result<ExitCode> {
    options.destination.check()?;
    let configs: Vec<Config> = match options.lock.as_slice() {
        [] => subjects()
            .filter(|(_, lock)| !lock.is_broken())
            // A lockref and a condition variable are checked alone.
            .filter(|(name, lock)| options.locks == 1 || *name == lock.name())
            .filter(|(name, _)| options.nesting == 0 || *name != COND)
            .filter(|(name, lock)| {
                !options.give_up || (lock.can_time_out() && *name == lock.name())
            })
            .map(|subject| options.config(subject))
            .collect(),
        names => names
            .iter()
            .map(|name| Ok(options.config(find_subject(name)?)))
            .collect::<Result<_>>()?,
    };
    let checks: Vec<Check> = configs
        .iter()
        .map(|config| Check::new(config, None).map_err(refused))
        .collect::<Result<_>>()?;
    let limits = Limits {
        time: options.seconds,
        memory: options
            .memory_limit
            .map(|mib| mib.saturating_mul(1 << 20))
            .or_else(half_of_available_memory),
        states: None,
    };

    let mut reports = Vec::new();
    let mut text = String::new();
    for (check, config) in checks.iter().zip(&configs) {
        let report = run(check, config, &limits);
        if !options.json {
            let lines = report.to_string();
            match options.destination.output {
                Some(_) => text += &lines,
                // At once: the next check may take long.
                None => output::print(&lines)?,
            }
        }
        reports.push(report);
    }
    if options.json {
        text = match reports.as_slice() {
            [report] => output::json(report)?,
            all => output::json(&all)?,
        };
    }
    if options.json || options.destination.output.is_some() {
        options.destination.write(&text)?;
    }
    let status = if reports.iter().any(|r| r.counterexample.is_some()) {
        BROKEN
    } else if reports.iter().any(|r| !r.complete) {
        UNFINISHED
    } else {
        0
    };
    Ok(ExitCode::from(status))
}

fn run<'a>(check: &Check, config: &'a Config, limits: &Limits) -> Report<'a> {
    let bar = progress(config);
    let begin = Instant::now();
    let outcome = check.run(limits, &mut |coverage| show(&bar, begin, coverage));
    let counterexample = match &outcome.end {
        End::Broken(broken) => {
            bar.set_message(format!("{config}: looking for the shortest run"));
            let limits = Limits {
                time: Some(limits.time.unwrap_or(SHORTENING).min(SHORTENING)),
                ..*limits
            };
            let broken = check.shorten(&limits, broken.clone());
            Some(Counterexample {
                token: Token::new(check, &broken).to_string(),
                trace: check.trace(&broken),
                broken,
            })
        }
        _ => None,
    };
    bar.finish_and_clear();
    Report::new(config, outcome, counterexample)
}

/// A line about the search, on a terminal.
fn progress(config: &Config) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("it is well formed");
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(config.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn show(bar: &ProgressBar, begin: Instant, coverage: &Coverage) {
    if bar.is_hidden() {
        return;
    }
    let rate = coverage.states as f64 / begin.elapsed().as_secs_f64().max(0.001);
    bar.set_message(format!(
        "{} states, {} a second, {} waiting, {} MiB",
        report::grouped(coverage.states),
        report::grouped(rate as usize),
        report::grouped(coverage.waiting),
        coverage.memory >> 20,
    ));
}

fn half_of_available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024 / 2)
}

fn replay(text: &str, options: &Options) -> Result<ExitCode> {
    options.destination.check()?;
    let token: Token = text.parse().context("cannot replay")?;
    let check = Check::new(&token.config, token.mutation).map_err(refused)?;
    let broken = token.replay(&check).context("cannot replay")?;
    let counterexample = Counterexample {
        trace: check.trace(&broken),
        token: token.to_string(),
        broken,
    };
    let text = match options.json {
        true => output::json(&report::Replay::new(&token, &counterexample))?,
        false => report::replayed(&token, &counterexample),
    };
    options.destination.write(&text)?;
    Ok(ExitCode::from(BROKEN))
}
