//! `lockworks sweep`: thousands of simulations and checks, as a plan describes them. Each result is
//! stored under a hash of all that it depends on, so no point runs twice.

mod dask;
mod lines;
mod plan;
mod point;
pub mod regret;
mod report;
mod results;
mod store;
mod table;

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use clap::{ValueEnum, value_parser};
use rayon::iter::{ParallelBridge, ParallelIterator};

use lockworks_ui::{interruption, output, progress};
pub use plan::Plan;
pub use point::VERSION;
use point::{Outcome, Point};
pub use report::SweepReport;
use results::ResultFile;
use store::{Results, Store};

/// Run all simulations and checks of a plan, and store their results.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct SweepArgs {
    /// The plan: a TOML file with [[sweep]] tables
    #[arg(value_name = "PLAN", required_unless_present = "points")]
    plan: Option<PathBuf>,

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
    #[arg(long, value_name = "K/N", hide_short_help = true)]
    part: Option<Part>,

    /// Run points that failed again
    #[arg(long, hide_short_help = true)]
    retry: bool,

    /// Print how many points there are, and how many are in the store; run nothing
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,

    /// Print a summary as JSON
    #[arg(long)]
    json: bool,

    /// The engine that runs the points
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Engine::Local)]
    engine: Engine,

    /// The scheduler of the Dask cluster, such as tcp://HOST:8786 [default: the engine starts a
    /// cluster on this machine]
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with = "jobs",
        hide_short_help = true
    )]
    scheduler: Option<String>,

    /// Print the points that the store does not have, a line of JSON each; run nothing
    #[arg(long, conflicts_with_all = ["dry_run", "output", "json"], hide_short_help = true)]
    pending: bool,

    /// Run the points that --pending printed to FILE, - for standard input; print a result for each,
    /// as the store has it
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "plan", "store", "output", "part", "retry", "dry_run", "json", "engine", "scheduler",
        "pending", "import"
    ], hide_short_help = true)]
    points: Option<PathBuf>,

    /// Stop a check of --points that has no such limit when it uses this much memory, in MiB
    /// [default: its share of half of the available memory]
    #[arg(
        long,
        value_name = "MIB",
        requires = "points",
        conflicts_with = "plan",
        hide_short_help = true
    )]
    memory_limit: Option<usize>,

    /// Add the results that --points printed to FILE, - for standard input, to the store; run nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "dry_run", "output", "json", "retry", "engine", "scheduler", "pending"
    ], hide_short_help = true)]
    import: Option<PathBuf>,
}

/// The engine that runs the points of a sweep.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Engine {
    /// The CPUs of this machine
    Local,
    /// A Dask cluster; needs the Python package
    Dask,
}

/// A part of a plan: `K/N`.
#[derive(Clone, Copy)]
struct Part {
    part: usize,
    parts: usize,
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.parts)
    }
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

`--engine dask` runs the points on a Dask cluster: that of --scheduler, or one that it starts on this \
machine. Install it with `pip install 'lockworks[dask]'`. --pending, --points and --import are for \
other programs that run points elsewhere.

Examples:
  lockworks sweep plan.toml
  lockworks sweep plan.toml --output results.csv
  lockworks sweep plan.toml --dry-run
  lockworks sweep plan.toml --part 1/4 --store part1.jsonl
  lockworks sweep plan.toml --engine dask --scheduler tcp://head:8786
  lockworks sweep plan.toml --pending | ssh other lockworks sweep --points - > results.jsonl
  lockworks sweep plan.toml --import results.jsonl";

/// Runs the command. `lockworks` is the whole command line: a plan cannot have every option of its
/// commands.
pub fn command(args: &SweepArgs, lockworks: &clap::Command) -> Result<ExitCode> {
    if let Some(points) = &args.points {
        let memory = args.memory_limit.map(|mib| mib.saturating_mul(1 << 20));
        lines::run(points, args.jobs(), memory)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.pending {
        let (plan, path) = args.planned(lockworks)?;
        lines::print(&args.to_run(&plan, &Results::read(&path)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &args.import {
        let (plan, path) = args.planned(lockworks)?;
        let (mut store, results) = Store::open(&path)?;
        lines::import(file, &plan, &mut store, results)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = args.report(lockworks)?;
    if args.json {
        output::print(&output::json(&report)?)?;
    } else if args.dry_run {
        output::print(&report.intent(args.retry))?;
    } else {
        if args.output.is_none() {
            output::print(&report.text())?;
        }
        eprint!("{}", report.failures());
    }
    let failed = !args.dry_run && report.failed > 0;
    Ok(ExitCode::from(u8::from(failed)))
}

impl SweepArgs {
    /// The points that run at the same time; 0: one on each CPU.
    fn jobs(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }

    /// The file of the plan, which is given unless points are.
    fn file(&self) -> &Path {
        self.plan.as_deref().expect("a plan or points")
    }

    /// The plan, and the path of its store.
    fn planned(&self, lockworks: &clap::Command) -> Result<(Plan, PathBuf)> {
        ensure!(
            self.scheduler.is_none() || self.engine == Engine::Dask,
            "--scheduler is an option of the engine dask; add --engine dask"
        );
        let mut plan = Plan::read(self.file(), lockworks)?;
        if let Some(Part { part, parts }) = self.part {
            plan.keep_part(part, parts);
        }
        let default = || self.file().with_extension("results.jsonl");
        Ok((plan, self.store.clone().unwrap_or_else(default)))
    }

    /// The points that are to be run, because the store does not have their results.
    fn to_run<'a>(&self, plan: &'a Plan, results: &Results) -> Vec<&'a (String, Point)> {
        let is_pending = |key: &str| !results.has(key) || self.retry && results.failed(key);
        let points = plan.points.iter();
        points.filter(|(key, _)| is_pending(key)).collect()
    }

    /// Runs the points of the plan that the store does not have, and writes the results where the user
    /// asks for them. A dry run only counts them.
    ///
    /// # Errors
    ///
    /// If plan or store are wrong, or a file cannot be written. A point that fails is in the report.
    pub fn report(&self, lockworks: &clap::Command) -> Result<SweepReport> {
        let (plan, path) = self.planned(lockworks)?;
        let points = plan.points.len();
        let sizes = |run: usize| [points, points - run, run];
        if self.dry_run {
            let results = Results::read(&path)?;
            let to_run = self.to_run(&plan, &results).len();
            let mut report = SweepReport::new(path, sizes(to_run), &[]);
            let failed = plan.points.iter().filter(|(key, _)| results.failed(key));
            report.failed = failed.count();
            return Ok(report);
        }
        if let Some(file) = &self.output {
            output::check_file(&file.path)?;
        }
        let (mut store, results) = Store::open(&path)?;
        let to_run = self.to_run(&plan, &results);
        interruption::before_exit(|| {
            eprintln!("lockworks: interrupted; results are kept, and the same command goes on");
        });
        if self.engine == Engine::Dask && !to_run.is_empty() {
            drop(store);
            match dask::exec(self, self.file(), &path)? {}
        }
        run("sweep", &to_run, self.jobs(), None, |outcome| {
            store.add(outcome)
        })?;
        drop(store);
        // As other processes will read them.
        let results = Results::read(&path)?;
        let outcomes = plan.points.iter().map(|(key, _)| results.outcome(key));
        let outcomes: Vec<Outcome> = outcomes.collect::<Result<_>>()?;
        if let Some(file) = &self.output {
            file.write(&outcomes)?;
        }
        Ok(SweepReport::new(path, sizes(to_run.len()), &outcomes))
    }
}

/// Runs points, `jobs` at the same time (0: one on each CPU), and gives each outcome to `add`. A check
/// that sets no limit may use `memory` bytes, or its share of the memory.
fn run(
    what: &str,
    points: &[&(String, Point)],
    jobs: usize,
    memory: Option<usize>,
    add: impl FnMut(&Outcome) -> Result<()> + Send,
) -> Result<()> {
    let bar = progress::runs(points.len(), what);
    let add = Mutex::new(add);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    pool.install(|| {
        points.iter().par_bridge().try_for_each(|(key, point)| {
            let outcome = Outcome::of(key, point, |point| {
                point.run(pool.current_num_threads(), memory)
            });
            tracing::debug!(key, seconds = outcome.seconds, "done");
            bar.inc(1);
            let mut add = add.lock().unwrap_or_else(PoisonError::into_inner);
            add(&outcome)
        })
    })?;
    bar.finish_and_clear();
    Ok(())
}
