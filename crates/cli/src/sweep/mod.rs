//! `lockworks sweep`: thousands of simulations and checks, as a plan describes them. Each result is
//! stored under a hash of all that it depends on, so no point runs twice.

mod batch;
mod checks;
mod columns;
mod engine;
mod exchange;
mod parquet_file;
mod plan;
mod point;
mod report;
mod simulations;
mod source;
mod store;
mod values;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use clap::value_parser;

use crate::{interruption, output, progress};
use batch::Scheduler;
use columns::ResultFile;
use exchange::{Failure, ImportArgs};
pub use exchange::{PointsArgs, points};
use plan::Plan;
use point::{Outcome, Point};
use report::SweepReport;
use store::{Keys, Store, Writer};

/// Run all simulations and checks of a plan, and store their results.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = HELP
)]
pub struct SweepArgs {
    #[command(subcommand)]
    command: Option<SweepCommand>,

    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum SweepCommand {
    Merge(MergeArgs),
    Import(ImportArgs),
}

/// Put the results of other stores into one.
#[derive(clap::Args)]
#[command(after_help = "\
A result replaces a failure of the same point, and nothing else. The other stores stay as they are.

Examples:
  lockworks sweep merge plan.results.sqlite other.results.sqlite")]
struct MergeArgs {
    /// The store that gets the results; it is made if it does not exist
    #[arg(value_name = "INTO")]
    into: PathBuf,

    /// The other stores
    #[arg(value_name = "FROM", required = true)]
    from: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct Options {
    /// The plan: a TOML file with [[sweep]] tables
    #[arg(value_name = "PLAN", required = true)]
    plan: Option<PathBuf>,

    /// The store of results, an SQLite file [default: PLAN.results.sqlite, next to the plan]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,

    /// Write all points with arguments and results to FILE, which must end in .csv, .json or
    /// .parquet
    #[arg(short, long, value_name = "FILE")]
    output: Option<ResultFile>,

    /// Number of points that run at the same time [default: the CPUs of this machine]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Run points that failed again
    #[arg(long)]
    retry: bool,

    /// Print how many points there are, and how many are in the store; run nothing
    #[arg(long, conflicts_with_all = ["output", "pending", "write"])]
    dry_run: bool,

    /// Print the points that are not in the store as lines of JSON; run nothing
    #[arg(long, conflicts_with_all = ["output", "write", "json"])]
    pending: bool,

    /// Write scripts that run the points elsewhere to a new directory: slurm DIR, or snakemake DIR
    #[arg(long, num_args = 2, value_names = ["SCHEDULER", "DIR"], conflicts_with_all = ["output", "json"])]
    write: Option<Vec<String>>,

    /// Number of points in each job of --write [default: 100, or more so that there are at most
    /// 1,000 jobs]
    #[arg(long, value_name = "N", requires = "write", value_parser = value_parser!(u32).range(1..))]
    chunk: Option<u32>,

    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
A plan has [[sweep]] tables. Each table describes the product of its values: machines, workloads, \
locks, threads, placements, seeds, tunables and values of the model. docs/reference/sweep.md has all \
keys. Results depend on nothing but the plan and the version of this program, so an interrupted or \
extended sweep goes on where it was.

Exit status: 0 all is well, 1 a point failed, 2 bad input, 130 interrupted. Each failure is listed \
with the command that repeats it.

Examples:
  lockworks sweep plan.toml
  lockworks sweep plan.toml --output results.csv
  lockworks sweep plan.toml --dry-run
  lockworks sweep plan.toml --write slurm jobs
  lockworks sweep merge plan.results.sqlite other.results.sqlite";

/// Runs the command.
pub fn command(args: &SweepArgs) -> Result<ExitCode> {
    match &args.command {
        Some(SweepCommand::Merge(args)) => merge(args),
        Some(SweepCommand::Import(args)) => exchange::import(args),
        None => sweep(&args.options),
    }
}

fn merge(args: &MergeArgs) -> Result<ExitCode> {
    let others = args.from.iter().map(|path| {
        Store::existing(path)?
            .with_context(|| format!("there is no store {}; give a store", path.display()))
    });
    let others: Vec<Store> = others.collect::<Result<_>>()?;
    let mut into = Store::open(&args.into)?;
    let target = args.into.canonicalize()?;
    for other in &others {
        ensure!(
            other.path().canonicalize()? != target,
            "{} is the store that gets the results; give other stores",
            other.path().display()
        );
    }
    for other in &others {
        let new = into.merge(other)?;
        let (from, into) = (other.path().display(), args.into.display());
        output::print(&format!("{from}: {new} results new in {into}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sweep(options: &Options) -> Result<ExitCode> {
    let path = options
        .plan
        .as_deref()
        .context("no plan; give a TOML file")?;
    let plan = Plan::read(path)?;
    let store_path = options
        .store
        .clone()
        .unwrap_or_else(|| path.with_extension("results.sqlite"));
    let keys = match Store::existing(&store_path)? {
        Some(store) => store.keys()?,
        None => Keys::default(),
    };
    let is_pending =
        |key: &String| !keys.all.contains(key) || options.retry && keys.failed.contains(key);
    let pending: Vec<Point> = plan
        .points
        .iter()
        .filter(|(key, _)| is_pending(key))
        .map(|(_, point)| point.clone())
        .collect();
    let sizes = [
        plan.points.len(),
        plan.points.len() - pending.len(),
        pending.len(),
    ];

    if options.pending {
        let lines = pending.iter().map(exchange::line);
        output::print(&lines.collect::<Result<String>>()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some([scheduler, directory]) = options.write.as_deref() {
        let scheduler: Scheduler = scheduler.parse()?;
        ensure!(
            !pending.is_empty(),
            "all points are in {}",
            store_path.display()
        );
        let chunk = options.chunk.map(|n| n as usize);
        let next = batch::write(
            scheduler,
            Path::new(directory),
            &store_path,
            &pending,
            chunk,
        )?;
        output::print(&format!(
            "{} points to run; type\n  {next}\n",
            pending.len()
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.dry_run {
        let failed = |(key, _): &&(String, Point)| keys.failed.contains(key);
        let mut report = SweepReport::new(&store_path, sizes, &[]);
        report.failed = plan.points.iter().filter(failed).count();
        output::print(&match options.json {
            true => output::json(&report)?,
            false => report.intent(options.retry),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &options.output {
        output::check_file(file.path())?;
    }
    let jobs = options.jobs.map_or_else(engine::default_jobs, usize::from);
    let outcomes = run(&plan, pending, Store::open(&store_path)?, jobs)?;
    let report = SweepReport::new(&store_path, sizes, &outcomes);
    if let Some(file) = &options.output {
        file.write(&outcomes)?;
    }
    if options.json {
        output::print(&output::json(&report)?)?;
    } else {
        if options.output.is_none() {
            output::print(&report.text())?;
        }
        eprint!("{}", report.failures());
    }
    Ok(ExitCode::from(u8::from(report.failed > 0)))
}

/// Runs the pending points, and returns the outcomes of the whole plan.
fn run(plan: &Plan, pending: Vec<Point>, store: Store, jobs: usize) -> Result<Vec<Outcome>> {
    let path = store.path().to_owned();
    let bar = progress::runs(pending.len(), "sweep");
    let writer = Arc::new(Mutex::new(Writer::new(store)));
    let last = Arc::clone(&writer);
    interruption::before_exit(move || match locked(&last).write() {
        Ok(()) => eprintln!(
            "lockworks: interrupted; results are kept in {}, and the same command goes on",
            path.display()
        ),
        Err(error) => eprintln!("lockworks: {error:#}"),
    });
    let points = Mutex::new(pending.into_iter());
    let failure = Failure::default();
    let next = || {
        let next = points.lock().unwrap_or_else(PoisonError::into_inner).next();
        next.filter(|_| failure.none_yet())
    };
    engine::run(jobs, next, |outcome| {
        tracing::debug!(key = outcome.key, seconds = outcome.seconds, "done");
        failure.caught(locked(&writer).add(outcome));
        bar.inc(1);
    });
    bar.finish_and_clear();
    failure.result()?;

    let mut writer = locked(&writer);
    let store = writer.store()?;
    store.outcomes(plan.points.iter().map(|(key, _)| key))
}

fn locked(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}
