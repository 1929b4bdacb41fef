//! `lockworks compare`: runs a program in turns with glibc's locks and several locks of Lockworks.

mod report;
mod results;
mod runs;
mod significance;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::value_parser;
use indicatif::ProgressBar;
use itertools::Itertools;
use lockworks::LockType;
use lockworks_measurements::turns;
use regex::Regex;

use crate::plan::Plan;
use crate::{DEFAULT, LIBRARY, Library, Program, preloadable, preloadables};
use lockworks_programs::children;
use lockworks_ui::interruption;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::progress;
use lockworks_ui::terminal;
pub use report::ComparisonReport;
use report::SERVED_NONE;
pub use results::Comparison;
use runs::{Contestant, Measure, RunOutcome, ServedByte, run};

/// Run a program under several locks and glibc in turns, and say which served it best.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct CompareArgs {
    /// Locks to compare with glibc, by name [default: all whose waiters park and that are not
    /// strictly FIFO]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// A plan to compare too: a file that says which mutexes get which lock, and leaves the others to glibc
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,

    /// Number of rounds; each round runs the program once under every lock, in another order
    #[arg(short, long, value_name = "N", default_value_t = 9, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Number of rounds before those, which do not count
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(..=1000))]
    warmup: u32,

    /// Give up on a run that takes so many times as long as the slowest with glibc's locks, and more
    /// than 10 seconds
    #[arg(long, value_name = "TIMES", default_value_t = 20, value_parser = value_parser!(u32).range(2..))]
    give_up: u32,

    /// Compare a figure that the program prints, not its time: the last match of this expression's
    /// group
    #[arg(short, long, value_name = "REGEX")]
    metric: Option<String>,

    /// A lower figure is better
    #[arg(long, requires = "metric")]
    lower_is_better: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// Draw the ratio of each lock in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    destination: Destination,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
Each round runs the program under every lock, as `lockworks run` does, and once with glibc's own \
locks. Its standard input is empty. The program fails if it ends with a status other than 0. Only \
then its output is shown, and the lock is left out of later rounds. So it is if a run takes 20 times \
as long as with glibc: a lock that spins can take forever if threads outnumber CPUs. Let nothing \
else run meanwhile.

Columns, for each lock:
  median, min..max: of the rounds; seconds from start to end, or the figure of --metric.
  / glibc: the value divided by that of glibc in the same round, median of the rounds. By the sign \
test, the intervals beside it contain the true medians of all locks of the table with a \
confidence of 95 %.
  CPU s: seconds on CPUs, of the program and of the kernel for it, median. Waiters that spin add to it.
  switches: how often threads left their CPUs, whether they waited or were preempted, median.

A lock is better or worse than glibc only if the interval does not contain 1. That takes at least \
6 rounds with one lock, and 7 with two or three. A lock that spins collapses if threads outnumber \
CPUs, so it is compared only if --lock names it. Variables LOCKWORKS_... work as with `lockworks \
run`.

--metric takes the last match of the expression in all output of the program, on either stream. \
With (?m), ^ and $ match at lines. A higher figure is better, unless --lower-is-better is given.

If the command is interrupted, it prints the results of the complete rounds.

Examples:
  lockworks compare -- ./build.sh
  lockworks compare --lock mutex --lock pv --rounds 15 -- python3 threads.py
  lockworks compare --plan client.plan --lock mutex -- ./client
  lockworks compare --metric 'Throughput: ([0-9.]+)' -- ./client --threads 8
  lockworks compare --metric 'p99 = (\\S+) us' --lower-is-better -- ./client";

/// No run is given up before this time.
const LEAST_LIMIT: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn command(args: &CompareArgs) -> Result<ExitCode> {
    let (program, library, results) = args.prepare()?;
    args.destination.check()?;
    plot::check(args.plot.as_deref())?;
    program.warn_of_runtime();

    let results = Arc::new(Mutex::new(results));
    interruption::before_exit({
        let (results, json, destination) =
            (Arc::clone(&results), args.json, args.destination.clone());
        move || {
            let results = lock(&results);
            if results.has_rounds()
                && let Err(error) = give(&results, json, &destination)
            {
                eprintln!("lockworks: {error:#}");
            }
        }
    });
    let compared = args.compare(&program, &library, &results);
    let results = lock(&results);
    // A run that cannot be evaluated does not cost the rounds before it.
    if compared.is_err() && !results.has_rounds() {
        return compared.map(|()| ExitCode::SUCCESS);
    }
    if let Some(path) = &args.plot {
        plot::draw(path, &*results)?;
    }
    give(&results, args.json, &args.destination)?;
    interruption::before_exit(|| {});
    for failure in results.failures() {
        eprintln!("lockworks: {failure}");
    }
    compared?;
    let has_failed = results.failures().next().is_some();
    Ok(ExitCode::from(u8::from(has_failed)))
}

fn lock(results: &Mutex<Comparison>) -> MutexGuard<'_, Comparison> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

fn give(results: &Comparison, json: bool, destination: &Destination) -> Result<()> {
    destination.write(&match json {
        true => output::json(&results.report())?,
        false => results.report().table(),
    })
}

impl CompareArgs {
    /// The program, the library that serves its locks, and a comparison without runs.
    pub fn prepare(&self) -> Result<(Program<'_>, Library, Comparison)> {
        let mut contestants = self.contestants()?;
        let measure = self.measure()?;
        ensure!(
            !Library::is_loaded(LIBRARY),
            "LD_PRELOAD has {} already, so no run would have glibc's locks; unset it",
            LIBRARY
        );
        let library = Library::find(LIBRARY)?;
        let program = Program::find(&self.command)?;
        if let Some(path) = &self.plan {
            let (_, path) = Plan::open_for(path, &program)?;
            contestants.push(Contestant::Plan(path.into()));
        }
        let comparison = Comparison::new(self.rounds, measure, contestants);
        Ok((program, library, comparison))
    }

    /// Makes the runs of all rounds.
    pub fn compare(
        &self,
        program: &Program,
        library: &Library,
        results: &Mutex<Comparison>,
    ) -> Result<()> {
        children::adopt().context("cannot wait for processes in the background")?;
        let contestants: Vec<Contestant> = lock(results).contestants().collect();
        let measure = lock(results).measure.clone();
        let served = ServedByte::new()?;
        let mut slowest = None;
        let bar = progress_bar(contestants.len() * (self.warmup + self.rounds) as usize);
        for number in 0..self.warmup + self.rounds {
            let mut round = Vec::new();
            for turn in turns(contestants.len(), number as usize) {
                let contestant = &contestants[turn];
                if !lock(results).has_failed(turn) {
                    bar.set_message(contestant.name());
                    let is_glibc = matches!(contestant, Contestant::Glibc);
                    let limit = slowest
                        .filter(|_| !is_glibc)
                        .map(|slowest| self.limit(slowest));
                    let outcome = run(program, library, &served, contestant, &measure, limit)?;
                    if let (true, RunOutcome::Ended(run)) = (is_glibc, &outcome) {
                        slowest = Some(slowest.unwrap_or_default().max(run.wall_s));
                    }
                    if let (Contestant::Glibc, RunOutcome::Failed(failure)) = (contestant, &outcome)
                    {
                        bar.finish_and_clear();
                        return Err(failure.under_glibc());
                    }
                    round.push((turn, outcome));
                }
                bar.inc(1);
            }
            let mut results = lock(results);
            results.add_round(round, number >= self.warmup);
            if number == 0 && self.warmup + self.rounds > 1 && results.served_none() {
                bar.suspend(|| {
                    terminal::warn(&format!(
                        "the first round compared nothing. {SERVED_NONE} To end the others, interrupt (^C)."
                    ));
                });
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// glibc, which the locks are compared with, then the locks.
    fn contestants(&self) -> Result<Vec<Contestant>> {
        // glibc is always compared, so naming it adds nothing.
        let named = self.lock.iter().unique().filter(|name| *name != "glibc");
        let named = named.map(|name| preloadable(name));
        let mut locks: Vec<&LockType> = named.collect::<Result<_>>()?;
        if locks.is_empty() && self.plan.is_none() {
            ensure!(
                self.lock.is_empty(),
                "glibc's mutex is always compared; name a lock to compare it with, such as --lock mutex"
            );
            // Locks that hand over in strict order collapse under programs with many threads.
            locks.extend(preloadables().filter(|lock| !lock.spins() && !lock.is_fifo()));
            locks.sort_by_key(|lock| lock.name() != DEFAULT);
        }
        let locks = locks.into_iter().map(Contestant::Lock);
        Ok([Contestant::Glibc].into_iter().chain(locks).collect())
    }

    /// The longest time for a run, if the slowest run with glibc's locks took this many seconds.
    fn limit(&self, slowest: f64) -> Duration {
        Duration::from_secs_f64(slowest)
            .saturating_mul(self.give_up)
            .max(LEAST_LIMIT)
    }

    fn measure(&self) -> Result<Measure> {
        let Some(text) = &self.metric else {
            return Ok(Measure::WallTime);
        };
        // The parser's message has several lines; the last one says what is wrong.
        let pattern = Regex::new(text).map_err(|error| {
            let text = error.to_string();
            anyhow::anyhow!(text.lines().last().unwrap_or_default().to_owned())
        });
        let pattern =
            pattern.with_context(|| format!("--metric '{text}' is not a regular expression"))?;
        ensure!(
            pattern.captures_len() > 1,
            "--metric '{text}' has no group; put the figure in parentheses, as in 'rate: ([0-9.]+)'"
        );
        Ok(Measure::Figure {
            pattern,
            lower_is_better: self.lower_is_better,
        })
    }
}

/// A bar on a terminal.
fn progress_bar(runs: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = progress::bar(runs, "{bar:30} {pos}/{len} {msg}, {elapsed}, {eta} left");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
