//! `lockworks check`: explores every run that the lock code can make.

mod litmus;
mod mutants;
mod page;
mod report;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ArgAction;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use lockworks::{LockType, Setting, Settings};
use lockworks_check::mutants::configurations;
use lockworks_check::{
    COND, Check, Config, ConfigError, Coverage, End, Limits, Memory, Mode, RandomRuns, Time, Token,
    Variant, load_source, lock_in_cond, lock_types, lockref_types, small_settings,
};

use crate::interruption;
use crate::names::{setting, unknown};
use crate::output::{self, Destination};
use crate::progress;
use crate::terminal;
use crate::timeline;
use report::{CheckReport, Counterexample};

/// A search that is kept is to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Explore every run that the real lock code can make in weak memory.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = HELP)]
pub struct CheckArgs {
    #[command(subcommand)]
    command: Option<CheckCommand>,

    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum CheckCommand {
    Litmus(litmus::LitmusArgs),
    Mutants(mutants::MutantsArgs),
}

/// The options of a check. Those that configure it are also the keys of a plan of `lockworks sweep`.
#[derive(clap::Args)]
pub struct Options {
    /// Locks and lockrefs to check, or cond for the condition variable [default: all that are not
    /// broken; with --locks 2, locks only; with --cancel, locks with cancellation]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    pub lock: Vec<String>,

    /// Compile and check the lock in FILE, a C file that uses the operations and ends with
    /// LW_DESCRIBE()
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lock", "variant"])]
    source: Option<PathBuf>,

    /// Check only the few small configurations of each lock in crates/check/mutants/LOCK.toml, each
    /// up to 200,000 states; this tests a change in seconds
    #[arg(long, conflicts_with_all = CONFIGURED)]
    quick: bool,

    /// Number of threads, 1 to 64; more than 3 or 4 have too many states for anything but --random
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    threads: usize,

    /// Number of times that each thread acquires the lock or gets a reference, 1 to 16; cond
    /// ignores it
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 2,
        hide_short_help = true
    )]
    acquisitions: u32,

    /// Number of threads that acquire the lock as readers [default: all but one, if the lock has
    /// readers]
    #[arg(long, value_name = "N", hide_short_help = true)]
    readers: Option<usize>,

    /// Number of locks, 1 or 2, or 3 of rqspinlock; threads acquire them in turns, and they share the
    /// queues of NUMA nodes
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    locks: usize,

    /// Memory model: C11, ARMv8, the Linux kernel's, or sequential consistency
    #[arg(short, long, value_name = "MODE", default_value = "c11", value_parser = memory(), hide_short_help = true)]
    memory: Memory,

    /// Limit reads to the newest write and the K writes before it [default: no limit]
    #[arg(long, value_name = "K", hide_short_help = true)]
    staleness: Option<u8>,

    /// Number of threads that have a slot of queue nodes [default: all]
    #[arg(long, value_name = "N", hide_short_help = true)]
    slots: Option<usize>,

    /// Number of NUMA nodes, 1 to 8; threads are spread over them in turn [default: 2 for a
    /// NUMA-aware lock, else 1]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,

    /// Begin every other acquisition with a trylock
    #[arg(long, hide_short_help = true)]
    trylock: bool,

    /// Number of spurious wake-ups of parked threads, of all threads together
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    spurious: u8,

    /// Let any wait be cancelled at any moment; not with --nesting
    #[arg(long, hide_short_help = true)]
    cancel: bool,

    /// Release a lock whose waiters park by a load and a store, as in programs, not in one step as
    /// in a kernel
    #[arg(long, hide_short_help = true)]
    split_release: bool,

    /// Let the waiters of the mutex spin and never park, as in a kernel; not with --cancel
    /// or --split-release
    #[arg(long, hide_short_help = true)]
    never_park: bool,

    /// Nesting depth of interruptions, 0 to 2; each thread is interrupted once at each level,
    /// before any operation
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    nesting: u8,

    /// Threads that have priority, counted from 0 [default: none]
    #[arg(
        long,
        value_name = "THREAD",
        value_delimiter = ',',
        hide_short_help = true
    )]
    priority: Vec<usize>,

    /// Whether time thresholds have been reached: never (early), always (late), or either at every
    /// poll (any)
    #[arg(long, value_name = "WHEN", default_value = "any", value_parser = time(), hide_short_help = true)]
    time: Time,

    /// Check also a bypass bound: of the acquisitions that begin while a thread waits, at most N
    /// complete before that thread's; 0: none [default: not checked]
    #[arg(long, value_name = "N", hide_short_help = true)]
    bypass: Option<u8>,

    /// Check also a bound on idleness, of pv, unfair and the mutex: while the lock is free and its
    /// queue head sleeps, threads do at most N operations [default: not checked]
    #[arg(long, value_name = "N", hide_short_help = true)]
    idle: Option<u8>,

    /// Let a thread fork, once in a run, which goes on in the child; the lock is released as with
    /// --split-release
    #[arg(long, hide_short_help = true)]
    fork: bool,

    /// Let CNA search for waiters to pass over at every hand-off [default: at 1 in 128]
    #[arg(long, hide_short_help = true)]
    no_shuffle_reduction: bool,

    /// Whether CNA and HQ prefer waiters of one NUMA node
    #[arg(long, value_name = "MODE", default_value = "on", value_parser = numa(), action = ArgAction::Set, hide_short_help = true)]
    numa: bool,

    /// Set a tunable, such as hqlock_fairness_threshold=0 [default: small values; --json prints
    /// them]
    #[arg(long, alias = "hqlock", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = setting, hide_short_help = true)]
    tune: Vec<Setting>,

    /// Make this number of random runs instead of exploring all; this finds mistakes that need many
    /// threads, and proves nothing
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "memory_limit"],
          value_parser = clap::value_parser!(u64).range(1..))]
    random: Option<u64>,

    /// Seed of all random choices of --random; the same seed makes the same runs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "random",
        hide_short_help = true
    )]
    seed: u64,

    /// Mode in which an HQ-spinlock starts: queueing by NUMA node (numa), or in one queue (plain)
    #[arg(long, value_name = "MODE", default_value = "numa", value_parser = mode(), hide_short_help = true)]
    mode: Mode,

    /// Check a lock with the memory orders of somebody else's version, a file in
    /// crates/check/variants
    #[arg(long, value_name = "NAME", value_parser = Variant::named, hide_short_help = true)]
    variant: Option<Variant>,

    /// Stop the check of each lock after this time in seconds; with --quick, all its configurations
    /// share it [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Keep to this much memory, in MiB; what does not fit goes to disk, into TMPDIR [default: half of
    /// the available memory]
    #[arg(long, value_name = "MIB", hide_short_help = true)]
    pub memory_limit: Option<usize>,

    /// Stop when a check has this much on disk, in MiB; 0: when memory is full [default: half of the
    /// free space in TMPDIR]
    #[arg(
        long,
        value_name = "MIB",
        hide_short_help = true,
        conflicts_with = "random"
    )]
    pub disk_limit: Option<u64>,

    /// Keep the search in FILE if a limit or ^C ends it, and go on with the search that FILE holds
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = ["quick", "random"])]
    keep: Option<PathBuf>,

    /// Repeat the run of this token, which a broken promise prints, and show each step
    #[arg(long, value_name = "TOKEN", conflicts_with_all = IN_TOKEN, allow_hyphen_values = true)]
    replay: Option<String>,

    /// Draw the run in FILE: .html, or .pftrace for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Print JSON instead of text: an object for one check, an array for several
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

/// The options that configure a check.
const CONFIGURED: [&str; 24] = [
    "variant",
    "threads",
    "acquisitions",
    "locks",
    "memory",
    "staleness",
    "slots",
    "nodes",
    "readers",
    "trylock",
    "nesting",
    "priority",
    "time",
    "bypass",
    "idle",
    "fork",
    "no_shuffle_reduction",
    "spurious",
    "cancel",
    "split_release",
    "never_park",
    "numa",
    "tune",
    "mode",
];

/// The options whose values are in a token, and those that a replay does not need.
const IN_TOKEN: [&str; 32] = {
    let mut all = ["lock"; 32];
    all[1] = "quick";
    all[2] = "seconds";
    all[3] = "memory_limit";
    all[4] = "random";
    all[5] = "seed";
    all[6] = "disk_limit";
    all[7] = "keep";
    let mut i = 0;
    while i < CONFIGURED.len() {
        all[8 + i] = CONFIGURED[i];
        i += 1;
    }
    all
};

const HELP: &str = "\
Runs the C code of the library. Every order of its operations is explored, and every value that \
weak memory allows them to read. docs/reference/checker.md says what that proves and what it does \
not. A broken promise is shown as the shortest run that breaks it, with a token to replay.

Examples:
  lockworks check
  lockworks check --lock cna --quick
  lockworks check --lock cna --threads 3 --nodes 2
  lockworks check --lock pv,unfair --threads 3 --acquisitions 1 --cancel
  lockworks check --lock hq --threads 12 --random 10000
  lockworks check --source mylock.c";

/// The most states of one configuration with --quick.
const QUICK_STATES: usize = 200_000;

fn memory() -> impl TypedValueParser<Value = Memory> {
    let values = Memory::ALL.map(|memory| {
        let value = PossibleValue::new(memory.name());
        match memory {
            // Its name before there were others.
            Memory::C11 => value.alias("weak"),
            _ => value,
        }
    });
    PossibleValuesParser::new(values).map(|name| {
        let named = |memory: &Memory| memory.name() == name;
        Memory::ALL.into_iter().find(named).unwrap_or(Memory::C11)
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
        Ok(seconds) if 0.0 < seconds && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("give a number above 0, up to 1000000000".to_owned()),
    }
}

/// Everything that can be checked: its name, and the lock that it is or contains.
pub fn subjects() -> impl Iterator<Item = (&'static str, &'static LockType)> {
    let lockrefs = lockref_types().map(|lockref| (lockref.name(), lockref.lock()));
    lock_types()
        .map(|lock| (lock.name(), lock))
        .chain(lockrefs)
        .chain([(COND, lock_in_cond())])
}

/// The error for a configuration that cannot be checked; an unknown lock comes with the nearest
/// name.
pub fn refused(error: ConfigError) -> anyhow::Error {
    match error {
        ConfigError::UnknownLock(name) => unknown("lock", &name, subjects().map(|(name, _)| name)),
        other => other.into(),
    }
}

/// Runs the command.
pub fn command(args: &CheckArgs) -> Result<ExitCode> {
    match &args.command {
        Some(CheckCommand::Litmus(args)) => litmus::command(args),
        Some(CheckCommand::Mutants(args)) => mutants::command(args),
        None => match &args.options.replay {
            Some(token) => replay(token, &args.options),
            None => check(&args.options),
        },
    }
}

impl Options {
    /// The configuration of the check of this lock, lockref or condition variable.
    pub fn config(&self, (name, lock): (&str, &LockType)) -> Config {
        Config {
            lock: name.to_owned(),
            threads: self.threads,
            acquisitions: self.acquisitions,
            readers: self.readers.unwrap_or_else(|| match lock.has_readers() {
                true => self.threads - 1,
                false => 0,
            }),
            locks: self.locks,
            memory: self.memory,
            staleness: self.staleness,
            slots: self.slots,
            nodes: self.nodes.unwrap_or_else(|| default_nodes(lock)),
            trylock: self.trylock,
            spurious: self.spurious,
            cancel: self.cancel,
            split_release: self.split_release,
            never_park: self.never_park,
            nesting: self.nesting,
            priority: self.priority.clone(),
            time: self.time,
            bypass: self.bypass,
            idle: self.idle,
            fork: self.fork,
            tunables: tunables(self.numa, !self.no_shuffle_reduction, &self.tune),
            mode: self.mode,
            variant: self.variant.clone(),
        }
    }
}

impl Options {
    fn check_trace(&self) -> Result<()> {
        match self.trace.as_deref() {
            None => Ok(()),
            Some(path) if is_page(path) => output::check_file(path),
            Some(path) => timeline::check(path).context("a page ends in .html"),
        }
    }

    /// Writes the runs that break a promise where the user asks for it.
    fn write_trace<'a>(
        &self,
        found: impl Iterator<Item = (&'a Config, &'a Counterexample)>,
    ) -> Result<()> {
        let Some(path) = &self.trace else {
            return Ok(());
        };
        let runs: Vec<page::Run> = found
            .map(|(config, found)| page::Run {
                title: format!("{config}: {}", found.broken.violation),
                replay: found.replay(),
                steps: &found.trace,
            })
            .collect();
        if runs.is_empty() {
            terminal::warn(&format!(
                "no promise is broken, so '{}' is not written",
                path.display()
            ));
            return Ok(());
        }
        if is_page(path) {
            return output::write_file(path, page::page(&runs).as_bytes());
        }
        let runs: Vec<_> = runs.into_iter().map(|run| (run.title, run.steps)).collect();
        timeline::write_counterexamples(path, &runs)
    }
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == page::ENDING)
}

/// The number of NUMA nodes of a check that gives none.
fn default_nodes(lock: &LockType) -> usize {
    1 + usize::from(lock.is_numa_aware())
}

/// The tunables of a check. Those that `tune` does not set are small.
fn tunables(numa: bool, shuffle_reduction: bool, tune: &[Setting]) -> Settings {
    Settings {
        numa_aware: numa,
        shuffle_reduction,
        ..small_settings()
    }
    .with(tune)
}

/// The exit status when a promise is broken.
const BROKEN: u8 = 1;
/// The exit status when a limit ended a check.
const UNFINISHED: u8 = 3;
/// The longest time spent on making a run shorter.
const SHORTENING: Duration = Duration::from_secs(30);

/// The lock, lockref or condition variable of this name, and the lock that it is or contains.
pub fn find_subject(name: &str) -> Result<(&'static str, &'static LockType)> {
    subjects()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| refused(ConfigError::UnknownLock(name.to_owned())))
}

/// The locks to check.
fn chosen(options: &Options) -> Result<Vec<(&'static str, &'static LockType)>> {
    if !options.lock.is_empty() {
        return options.lock.iter().map(|name| find_subject(name)).collect();
    }
    if let Some(source) = &options.source {
        return Ok(vec![find_subject(load_source(source)?)?]);
    }
    if let Some(variant) = &options.variant {
        return Ok(vec![find_subject(&variant.lock)?]);
    }
    Ok(subjects()
        .filter(|(_, lock)| !lock.is_broken())
        // A lockref or condition variable is checked alone.
        .filter(|(name, lock)| options.locks == 1 || *name == lock.name())
        .filter(|(name, _)| options.nesting == 0 || *name != COND)
        .filter(|(name, lock)| !options.cancel || (lock.can_time_out() && *name == lock.name()))
        .collect())
}

fn check(options: &Options) -> Result<ExitCode> {
    options.destination.check()?;
    options.check_trace()?;
    let mut configs = Vec::new();
    for subject in chosen(options)? {
        match options.quick {
            true => configs.extend(configurations(subject.0)?),
            false => configs.push(options.config(subject)),
        }
    }
    let checks: Vec<(&Config, Check)> = configs
        .iter()
        .map(|config| Ok((config, Check::new(config, None).map_err(refused)?)))
        .collect::<Result<_>>()?;
    if options.keep.is_some() {
        ensure!(
            checks.len() == 1,
            "--keep is for one lock; choose it with --lock"
        );
        interruption::before_exit(|| STOPPED.store(true, Ordering::Relaxed));
    }
    // An interruption waits until the search is kept.
    let _whole = options.keep.as_ref().map(|_| interruption::put_off());
    let limits = Limits {
        stop: options.keep.as_ref().map(|_| &STOPPED),
        time: None,
        memory: memory_limit(options.memory_limit, 1),
        disk: disk_limit(options.disk_limit),
        states: options.quick.then_some(QUICK_STATES),
        threads: std::thread::available_parallelism().map_or(1, NonZero::get),
    };

    let mut reports = Vec::new();
    let mut text = String::new();
    for of_lock in checks.chunk_by(|(one, _), (other, _)| one.lock == other.lock) {
        let begin = Instant::now();
        for (i, (config, check)) in of_lock.iter().enumerate() {
            let left = of_lock.len() - i;
            let limits = Limits {
                time: options.seconds.map(|all| share(all, begin.elapsed(), left)),
                ..limits
            };
            let report = match options.random {
                Some(runs) => random(check, config, runs, options.seed, limits.time),
                None => run(check, config, &limits, options.keep.as_deref())?,
            };
            if !options.json {
                let lines = match options.quick {
                    true => report.in_short(),
                    false => report.to_string(),
                };
                match options.destination.output {
                    Some(_) => text += &lines,
                    // At once, since the next check may take long.
                    None => output::print(&lines)?,
                }
            }
            reports.push(report);
        }
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
    options.write_trace(reports.iter().filter_map(|report| {
        let found = report.counterexample.as_ref()?;
        Some((report.config(), found))
    }))?;
    let status = if reports.iter().any(|report| report.counterexample.is_some()) {
        BROKEN
    } else if reports.iter().any(CheckReport::is_cut) {
        UNFINISHED
    } else {
        0
    };
    Ok(ExitCode::from(status))
}

/// The time for the next of `left` checks, if all checks of a lock may take `all` and those before
/// have taken `spent`.
fn share(all: Duration, spent: Duration, left: usize) -> Duration {
    all.saturating_sub(spent).div_f64(left as f64)
}

fn run<'a>(
    check: &Check,
    config: &'a Config,
    limits: &Limits,
    keep: Option<&Path>,
) -> Result<CheckReport<'a>> {
    let bar = progress_line(config);
    let begin = Instant::now();
    let show = &mut |coverage: &Coverage| show(&bar, begin, coverage);
    let outcome = match keep {
        Some(file) => check
            .run_kept(limits, file, show)
            .with_context(|| format!("cannot keep the search in {}", file.display()))?,
        None => check.run(limits, show),
    };
    let seconds = outcome.time.as_secs_f64();
    tracing::info!(%config, states = outcome.coverage.states, seconds, "searched");
    let counterexample = match &outcome.end {
        End::Broken(broken) => {
            bar.set_message(format!("{config}: searching for the shortest run"));
            let limits = Limits {
                time: Some(limits.time.unwrap_or(SHORTENING).min(SHORTENING)),
                states: None,
                ..*limits
            };
            Some(Counterexample::new(
                check,
                check.shorten(&limits, broken.clone()),
            ))
        }
        _ => None,
    };
    bar.finish_and_clear();
    Ok(CheckReport::new(config, outcome, counterexample))
}

/// Makes random runs.
fn random<'a>(
    check: &Check,
    config: &'a Config,
    runs: u64,
    seed: u64,
    time: Option<Duration>,
) -> CheckReport<'a> {
    let plan = RandomRuns { runs, seed, time };
    let bar = progress::runs(runs as usize, &config.to_string());
    let outcome = check.random(&plan, &|so_far| bar.set_position(so_far.runs));
    bar.finish_and_clear();
    let seconds = outcome.time.as_secs_f64();
    tracing::info!(%config, runs = outcome.runs, steps = outcome.steps, seconds, "run at random");
    let counterexample = outcome
        .broken
        .clone()
        .map(|broken| Counterexample::new(check, broken));
    CheckReport::of_random_runs(config, &plan, outcome, counterexample)
}

/// A line on a terminal that shows how far a check is.
fn progress_line(config: &Config) -> ProgressBar {
    progress::line("{spinner} {wide_msg}").with_message(config.to_string())
}

fn show(bar: &ProgressBar, begin: Instant, coverage: &Coverage) {
    if bar.is_hidden() {
        return;
    }
    let rate = coverage.states as f64 / begin.elapsed().as_secs_f64().max(0.001);
    bar.set_message(format!(
        "{} {}states, {} a second, {} waiting, {} MiB",
        report::grouped(coverage.states),
        if coverage.merged { "merged " } else { "" },
        report::grouped(rate as usize),
        report::grouped(coverage.waiting),
        coverage.memory >> 20,
    ));
}

/// The memory that each of `checks` checks at the same time may use, in bytes: `mib` MiB if the user
/// sets this limit, else its share of half of the available memory.
pub fn memory_limit(mib: Option<usize>, checks: usize) -> Option<usize> {
    match mib {
        Some(mib) => Some(mib.saturating_mul(1 << 20)),
        None => half_of_available_memory().map(|bytes| bytes / checks.max(1)),
    }
}

/// What a check may have on disk, in bytes: `mib` MiB if the user sets this limit, else half of the free
/// space.
fn disk_limit(mib: Option<u64>) -> Option<u64> {
    match mib {
        Some(mib) => Some(mib.saturating_mul(1 << 20)),
        None => {
            let free = rustix::fs::statvfs(std::env::temp_dir()).ok()?;
            Some(free.f_bavail * free.f_frsize / 2)
        }
    }
}

fn half_of_available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024 / 2)
}

fn replay(text: &str, options: &Options) -> Result<ExitCode> {
    options.destination.check()?;
    options.check_trace()?;
    if let Some(source) = &options.source {
        load_source(source)?;
    }
    let token: Token = text.parse().context("cannot replay")?;
    let check = Check::new(&token.config, token.mutation).map_err(refused)?;
    let broken = token.replay(&check).context("cannot replay")?;
    let counterexample = Counterexample::new(&check, broken);
    let text = match options.json {
        true => output::json(&report::Replay::new(&token, &counterexample))?,
        false => report::replayed(&token, &counterexample),
    };
    options.destination.write(&text)?;
    options.write_trace([(&token.config, &counterexample)].into_iter())?;
    Ok(ExitCode::from(BROKEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_a_lock_share_its_time() {
        let seconds = Duration::from_secs;
        assert_eq!(share(seconds(12), seconds(0), 12), seconds(1));
        // Quick checks leave their time to those after them.
        assert_eq!(share(seconds(12), seconds(2), 2), seconds(5));
        assert_eq!(share(seconds(12), seconds(13), 2), seconds(0));
    }
}
