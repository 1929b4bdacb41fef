//! `lockworks compare`: a program as it is, with each of several locks in its mutexes and with
//! glibc's, in turns; which serves it best?

mod figures;
mod report;
mod runs;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::value_parser;
use indicatif::{ProgressBar, ProgressStyle};
use itertools::Itertools;
use lockworks::LockType;
use regex::Regex;

use crate::output::{self, Destination};
use crate::program::{Library, Program};
use crate::run::{self, preloadable, preloadables};
use crate::torture::turns;
use report::Results;
use runs::{Contestant, Measure, Outcome, run};

/// Run a program under several locks and glibc in turns, and say which served it best.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Locks to compare with glibc, by name [default: mutex and the others whose
    /// waiters sleep and may be overtaken]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// How often to run it under each; in every round each has its turn, in another order
    #[arg(short, long, value_name = "N", default_value_t = 9, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Rounds before those, which do not count
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(..=1000))]
    warmup: u32,

    /// Judge by a figure that it prints, the last that the group of this expression matches, rather
    /// than by wall time
    #[arg(short, long, value_name = "REGEX")]
    metric: Option<String>,

    /// Of that figure, less is better
    #[arg(long, requires = "metric")]
    lower_is_better: bool,

    /// Give JSON rather than a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,

    /// The program, and what it is given
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
The program is run as by `lockworks run`, and once a round with glibc's own locks. Its standard input
is empty; its output is shown only if it fails, that is, ends with another status than 0. A lock under
which it fails is left out from then on. It runs alone: let nothing else run meanwhile.

What is said, of each lock:
  median, min..max   of the rounds: seconds from start to end, or the figure asked for
  / glibc            that by glibc's in the same round, the median of such ratios, and the interval in
                     which the true median is: by the sign test, so whatever the noise is like, with
                     95 % for all locks of the table together
  CPU s              time on CPUs, of the program and the kernel for it, median; waiters that spin cost
  switches           times that threads left their CPUs, waiting or not, median
A lock is better or worse than glibc where that interval does not contain 1, which takes 6 rounds with
one lock, 7 with two or three. All else is noise. What spins warns if threads outnumber CPUs, and is
compared only where named. LOCKWORKS_... in the environment has effect as with `lockworks run`.

--metric takes the last match of the expression in all that it prints, on either stream: (?m) lets ^
and $ match at lines. More is better, unless --lower-is-better.

Interrupted, it gives what the complete rounds came to.

Exit status: 0; 1 the program failed under a lock; 2 an option is wrong, it failed under glibc or has
not printed the figure; 126 it cannot be run so, 127 it is not found, 130 interrupted.

Examples:
  lockworks compare -- ./build.sh
  lockworks compare --lock mutex --lock pv --rounds 15 -- python3 threads.py
  lockworks compare --metric 'Throughput: ([0-9.]+)' -- ./client --threads 8
  lockworks compare --metric 'p99 = (\\S+) us' --lower-is-better -- ./client";

/// A lock has failed the program.
const FAILED: u8 = 1;

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let contestants = args.contestants()?;
    let measure = args.measure()?;
    ensure!(
        !Library::is_loaded(run::LIBRARY),
        "LD_PRELOAD has {} already, so that nothing would run with glibc's locks; unset it",
        run::LIBRARY
    );
    let library = Library::find(run::LIBRARY)?;
    let program = Program::find(&args.command)?;
    args.destination.check()?;

    let results = Results::new(args.rounds, measure.clone(), contestants.clone());
    let results = Arc::new(Mutex::new(results));
    output::when_interrupted({
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

    let bar = progress_bar(contestants.len() * (args.warmup + args.rounds) as usize);
    for number in 0..args.warmup + args.rounds {
        let mut round = Vec::new();
        for turn in turns(contestants.len(), number as usize) {
            let contestant = contestants[turn];
            if !lock(&results).has_failed(turn) {
                bar.set_message(contestant.name());
                let outcome = run(&program, &library, contestant, &measure)?;
                if let (Contestant::Glibc, Outcome::Failed(failure)) = (contestant, &outcome) {
                    bar.finish_and_clear();
                    return Err(failure.under_glibc());
                }
                round.push((turn, outcome));
            }
            bar.inc(1);
        }
        lock(&results).add_round(round, number >= args.warmup);
    }
    bar.finish_and_clear();
    let results = lock(&results);
    give(&results, args.json, &args.destination)?;
    output::when_interrupted(|| {});
    Ok(verdict(&results))
}

fn lock(results: &Mutex<Results>) -> MutexGuard<'_, Results> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

fn give(results: &Results, json: bool, destination: &Destination) -> Result<()> {
    destination.write(&match json {
        true => output::json(&results.report())?,
        false => results.report().table(),
    })
}

fn verdict(results: &Results) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for row in &results.rows {
        if let Some(failure) = &row.failure {
            eprintln!("lockworks: FAIL: {}: {failure}", row.contestant.name());
            status = ExitCode::from(FAILED);
        }
    }
    status
}

impl Args {
    /// glibc first, which all are compared with.
    fn contestants(&self) -> Result<Vec<Contestant>> {
        let named = self.lock.iter().unique().map(|name| preloadable(name));
        let mut locks: Vec<&LockType> = named.collect::<Result<_>>()?;
        if locks.is_empty() {
            // Those that hand over in strict order collapse under programs with many threads.
            locks.extend(preloadables().filter(|lock| !lock.spins() && !lock.is_fifo()));
            locks.sort_by_key(|lock| lock.name() != run::DEFAULT);
        }
        let locks = locks.into_iter().map(Contestant::Lock);
        Ok([Contestant::Glibc].into_iter().chain(locks).collect())
    }

    fn measure(&self) -> Result<Measure> {
        let Some(text) = &self.metric else {
            return Ok(Measure::WallTime);
        };
        // The parser draws what is wrong on several lines, the last of which says it.
        let pattern = Regex::new(text).map_err(|error| {
            let text = error.to_string();
            anyhow::anyhow!(text.lines().last().unwrap_or_default().to_owned())
        });
        let pattern = pattern.with_context(|| format!("--metric '{text}' is no expression"))?;
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
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {elapsed}, {eta} left")
        .expect("a template that it takes");
    let bar = ProgressBar::new(runs as u64).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
