//! `lockworks sweep`: thousands of simulations and checks, as a plan describes them. Each result is
//! stored under a hash of all that it depends on, so no point runs twice.

mod plan;
pub mod point;
mod report;
mod results;
pub mod store;
pub mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use clap::value_parser;
use rayon::iter::{ParallelBridge, ParallelIterator};

use crate::{interruption, output, progress};
use plan::Plan;
use point::{Outcome, Point};
use report::SweepReport;
use results::ResultFile;
use store::{Results, Store};

/// Run all simulations and checks of a plan, and store their results.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct SweepArgs {
    /// The plan: a TOML file with [[sweep]] tables
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// The store, a file with a line of JSON for each result [default: PLAN.results.jsonl, next to
    /// the plan]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,

    /// Write all points with arguments and results to FILE, which must end in .csv or .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<ResultFile>,

    /// Number of points that run at the same time [default: the CPUs of this machine]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Run only every Nth point of the plan, from the Kth on, so that N machines share the plan
    #[arg(long, value_name = "K/N")]
    part: Option<Part>,

    /// Run points that failed again
    #[arg(long)]
    retry: bool,

    /// Print how many points there are, and how many are in the store; run nothing
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,

    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// A part of a plan: `K/N`.
#[derive(Clone, Copy)]
struct Part {
    part: usize,
    parts: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, parts)| {
            let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
            (1..=parts).contains(&part).then_some(Self { part, parts })
        });
        numbers.ok_or_else(|| "give K/N, such as 1/4, with K from 1 to N".to_owned())
    }
}

const HELP: &str = "\
A plan has [[sweep]] tables. Each table describes the product of its values: machines, workloads, \
locks, threads, placements, seeds, tunables and values of the model. docs/reference/sweep.md has all \
keys. Results depend on nothing but the plan and this program, so an interrupted or extended sweep \
goes on where it was. Stores of several machines are put together by `cat`.

Exit status: 0 all is well, 1 a point failed, 2 bad input, 130 interrupted. Each failure is listed \
with the command that repeats it.

Examples:
  lockworks sweep plan.toml
  lockworks sweep plan.toml --output results.csv
  lockworks sweep plan.toml --dry-run
  lockworks sweep plan.toml --part 1/4 --store part1.jsonl";

/// Runs the command.
pub fn command(args: &SweepArgs) -> Result<ExitCode> {
    let mut plan = Plan::read(&args.plan)?;
    if let Some(Part { part, parts }) = args.part {
        plan.keep_part(part, parts);
    }
    let default = || args.plan.with_extension("results.jsonl");
    let path = args.store.clone().unwrap_or_else(default);
    let (store, results) = match args.dry_run {
        true => (None, Results::read(&path)?),
        false => {
            if let Some(file) = &args.output {
                output::check_file(&file.path)?;
            }
            let (store, results) = Store::open(&path)?;
            (Some(store), results)
        }
    };
    let is_pending = |key: &str| !results.has(key) || args.retry && results.failed(key);
    let pending = plan.points.iter().filter(|(key, _)| is_pending(key));
    let pending: Vec<&(String, Point)> = pending.collect();
    let points = plan.points.len();
    let sizes = [points, points - pending.len(), pending.len()];

    let Some(store) = store else {
        let mut report = SweepReport::new(&path, sizes, &[]);
        report.failed = plan
            .points
            .iter()
            .filter(|(key, _)| results.failed(key))
            .count();
        output::print(&match args.json {
            true => output::json(&report)?,
            false => report.intent(args.retry),
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    interruption::before_exit(|| {
        eprintln!("lockworks: interrupted; results are kept, and the same command goes on");
    });
    run("sweep", &pending, store, args.jobs.map_or(0, usize::from))?;
    // As other processes will read them.
    let results = Results::read(&path)?;
    let outcomes = plan.points.iter().map(|(key, _)| results.outcome(key));
    let outcomes: Vec<Outcome> = outcomes.collect::<Result<_>>()?;
    let report = SweepReport::new(&path, sizes, &outcomes);
    if let Some(file) = &args.output {
        file.write(&outcomes)?;
    }
    if args.json {
        output::print(&output::json(&report)?)?;
    } else {
        if args.output.is_none() {
            output::print(&report.text())?;
        }
        eprint!("{}", report.failures());
    }
    Ok(ExitCode::from(u8::from(report.failed > 0)))
}

/// Runs points, `jobs` at the same time (0: one on each CPU), and adds their outcomes to the store.
pub fn run(what: &str, points: &[&(String, Point)], store: Store, jobs: usize) -> Result<()> {
    let bar = progress::runs(points.len(), what);
    let store = Mutex::new(store);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    pool.install(|| {
        points.iter().par_bridge().try_for_each(|(key, point)| {
            let outcome = Outcome::of(key, point, |point| point.run(pool.current_num_threads()));
            tracing::debug!(key, seconds = outcome.seconds, "done");
            bar.inc(1);
            store
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(&outcome)
        })
    })?;
    bar.finish_and_clear();
    Ok(())
}
