//! `lockworks check wide`: random runs with many threads.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::value_parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockworks::LockType;
use lockworks_check::{
    Config, Memory, Program, Scheduler, Wide, WideOutcome, WideStep, WideToken, WideViolation,
    lock_types,
};
use rayon::prelude::*;
use serde::Serialize;

use crate::names::by_name;
use crate::output::{self, Destination};
use crate::terminal;

/// Run the real lock code with many threads under a random scheduler.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct WideArgs {
    /// Locks to run, of those in `lockworks locks` [default: all that are not broken]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// Numbers of threads, from 2 to 64
    #[arg(
        short,
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "8,16"
    )]
    threads: Vec<usize>,

    /// Number of times that each thread acquires the lock
    #[arg(short, long, value_name = "N", default_value_t = 4)]
    acquisitions: u32,

    /// Number of locks, 1 or 2, that threads of the checker's client acquire in turns
    #[arg(long, value_name = "N", default_value_t = 1)]
    locks: usize,

    /// Number of NUMA nodes; threads are spread over them in turn
    #[arg(long, value_name = "N", default_value_t = 2)]
    nodes: usize,

    /// Nesting depth of interruptions, which may come before any operation
    #[arg(long, value_name = "N", default_value_t = 0)]
    nesting: u8,

    /// Begin every other acquisition with a trylock
    #[arg(long)]
    trylock: bool,

    /// Rule by which the next thread is chosen [default: both]
    #[arg(long, value_name = "HOW", value_delimiter = ',')]
    scheduler: Vec<How>,

    /// Number of runs for each lock, number of threads, client and scheduler [default: 200, or with
    /// --seconds as many as fit]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    runs: Option<u32>,

    /// Stop after about this time in seconds, which all locks, numbers of threads, clients and
    /// schedulers share [default: no limit]
    #[arg(short, long, value_name = "S", value_parser = value_parser!(u32).range(1..))]
    seconds: Option<u32>,

    /// Seed of all random choices; the same seed makes the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Repeat the run of this token, which a violation prints, and show its last operations
    #[arg(long, value_name = "TOKEN", conflicts_with_all = [
        "lock", "threads", "acquisitions", "locks", "nodes", "nesting", "trylock", "scheduler", "runs",
        "seconds", "seed",
    ])]
    replay: Option<WideToken>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

const HELP: &str = "\
Threads run two clients in turn: that of the model checker, and the conformance client that every \
world runs. Only the first has interruptions. Operations take effect one after another, so memory \
orders have no effect here. Random runs find mistakes but prove nothing.

Schedulers: random picks a random thread at each operation. pct runs the thread with the highest \
priority; priorities are random and change at a few points of a run.

Examples:
  lockworks check wide --lock cna --threads 16 --nesting 2 --runs 10000
  lockworks check wide --lock busted";

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum How {
    Random,
    Pct,
}

/// One more than the number of points of a run at which priorities change.
const PCT_DEPTH: u32 = 5;
const DEFAULT_RUNS: usize = 200;
/// The number of operations that a replay shows.
const SHOWN: usize = 40;

impl How {
    fn scheduler(self) -> Scheduler {
        match self {
            Self::Random => Scheduler::Random,
            Self::Pct => Scheduler::Pct { depth: PCT_DEPTH },
        }
    }
}

#[derive(Serialize)]
struct WideResults {
    seed: Option<u64>,
    rows: Vec<WideRow>,
}

/// One lock with one number of threads, a client and a scheduler.
#[derive(Serialize)]
struct WideRow {
    lock: String,
    threads: usize,
    client: Program,
    scheduler: String,
    runs: usize,
    steps: u64,
    violation: Option<WideViolation>,
}

impl WideRow {
    fn new(config: &Config, program: Program, scheduler: Scheduler, outcome: WideOutcome) -> Self {
        Self {
            lock: config.lock.clone(),
            threads: config.threads,
            client: program,
            scheduler: scheduler.to_string(),
            runs: outcome.runs,
            steps: outcome.steps,
            violation: outcome.violation,
        }
    }
}

fn find_lock(name: &str) -> Result<&'static LockType> {
    by_name("lock", name, lock_types(), LockType::name)
}

/// Runs the command.
pub fn command(args: &WideArgs) -> Result<ExitCode> {
    args.destination.check()?;
    let results = match &args.replay {
        Some(token) => replay(token)?,
        None => run(args)?,
    };
    let mut failed = false;
    for row in &results.rows {
        let Some(violation) = &row.violation else {
            continue;
        };
        failed = true;
        eprintln!(
            "lockworks: VIOLATION: {} with {} threads, {} client, {}: {}",
            row.lock, row.threads, row.client, row.scheduler, violation.text
        );
        if args.replay.is_none() {
            eprintln!("  lockworks check wide --replay {}", violation.token);
        }
    }
    let text = match (args.json, &args.replay) {
        (true, _) => output::json(&results)?,
        (false, None) => table(&results.rows),
        (false, Some(_)) => results.rows.iter().map(last_steps).collect(),
    };
    args.destination.write(&text)?;
    Ok(ExitCode::from(u8::from(failed)))
}

fn replay(token: &WideToken) -> Result<WideResults> {
    let outcome = token
        .replay(None)
        .with_context(|| token.config.to_string())?;
    Ok(WideResults {
        seed: None,
        rows: vec![WideRow::new(
            &token.config,
            token.program,
            token.scheduler,
            outcome,
        )],
    })
}

fn run(args: &WideArgs) -> Result<WideResults> {
    let locks: Vec<_> = match args.lock.as_slice() {
        [] => lock_types().filter(|lock| !lock.is_broken()).collect(),
        names => names.iter().map(|n| find_lock(n)).collect::<Result<_>>()?,
    };
    let schedulers = match args.scheduler.as_slice() {
        [] => &[How::Random, How::Pct],
        some => some,
    };
    let mut jobs = Vec::new();
    for lock in &locks {
        for &threads in &args.threads {
            let config = Config {
                threads,
                acquisitions: args.acquisitions,
                locks: args.locks,
                memory: Memory::Sc,
                nodes: args.nodes,
                trylock: args.trylock,
                nesting: args.nesting,
                ..Config::new(lock.name())
            };
            for program in [Program::Check, Program::Conformance] {
                for how in schedulers {
                    jobs.push((config.clone(), program, how.scheduler()));
                }
            }
        }
    }
    let runs = match (args.runs, args.seconds) {
        (Some(runs), _) => runs as usize,
        (None, None) => DEFAULT_RUNS,
        (None, Some(_)) => usize::MAX,
    };
    let side_by_side = rayon::current_num_threads().min(jobs.len()).max(1);
    let share = args.seconds.map(|seconds| {
        Duration::from_secs(seconds.into()).mul_f64(side_by_side as f64 / jobs.len() as f64)
    });
    let bar = Bar::new(args, jobs.len(), runs);
    let rows = jobs
        .par_iter()
        .map(|(config, program, scheduler)| {
            let wide = Wide {
                config,
                program: *program,
                scheduler: *scheduler,
                runs,
                seed: args.seed,
                mutation: None,
            };
            let mut made = 0;
            let outcome = wide
                .run(share, &mut |now| {
                    bar.advance(now - made);
                    made = now;
                })
                .with_context(|| config.to_string())?;
            tracing::info!(%config, %program, %scheduler, runs = outcome.runs, "run");
            Ok(WideRow::new(config, *program, *scheduler, outcome))
        })
        .collect::<Result<_>>();
    bar.bar.finish_and_clear();
    Ok(WideResults {
        seed: Some(args.seed),
        rows: rows?,
    })
}

/// A progress bar on a terminal, shown after two seconds.
struct Bar {
    bar: ProgressBar,
    begin: Instant,
    /// The bar shows seconds, since the number of runs is not known.
    timed: bool,
}

impl Bar {
    fn new(args: &WideArgs, jobs: usize, runs: usize) -> Self {
        let timed = args.runs.is_none() && args.seconds.is_some();
        let (length, unit) = match args.seconds {
            Some(seconds) if timed => (seconds.into(), "s"),
            _ => ((runs * jobs) as u64, "runs"),
        };
        let style =
            ProgressStyle::with_template(&format!("wide [{{wide_bar}}] {{pos}}/{{len}} {unit}"))
                .expect("the template is well formed");
        Self {
            bar: ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden())
                .with_style(style),
            begin: Instant::now(),
            timed,
        }
    }

    fn advance(&self, runs: usize) {
        let elapsed = self.begin.elapsed();
        if self.bar.is_hidden()
            && elapsed > Duration::from_secs(2)
            && std::io::stderr().is_terminal()
        {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if self.timed {
            self.bar.set_position(elapsed.as_secs());
        } else {
            self.bar.inc(runs as u64);
        }
    }
}

fn table(rows: &[WideRow]) -> String {
    let mut table = output::table(&[
        "lock",
        "threads",
        "client",
        "scheduler",
        "runs",
        "steps",
        "found",
    ]);
    for row in rows {
        table.add_row([
            row.lock.clone(),
            row.threads.to_string(),
            row.client.to_string(),
            row.scheduler.clone(),
            row.runs.to_string(),
            row.steps.to_string(),
            row.violation
                .as_ref()
                .map_or("nothing", |violation| violation.kind)
                .to_owned(),
        ]);
    }
    let note = terminal::fitted(
        "Random runs, one operation after another: they find mistakes, but prove nothing.",
    );
    format!("{table}\n{note}\n")
}

fn last_steps(row: &WideRow) -> String {
    let Some(violation) = &row.violation else {
        return format!("no violation in {} runs\n", row.runs);
    };
    let mut table = output::table(&["thread", "at", "operation", "effect"]);
    let left_out = violation.steps.len().saturating_sub(SHOWN);
    for WideStep {
        thread,
        place,
        operation,
        effect,
    } in &violation.steps[left_out..]
    {
        table.add_row([&thread.to_string(), place, operation, effect]);
    }
    let before = match left_out {
        0 => String::new(),
        n => format!("{n} more before them: --json\n"),
    };
    let text = terminal::fitted(&violation.text);
    format!("{table}\n{before}{text}\n")
}
