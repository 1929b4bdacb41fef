//! `lockworks regret`: how far each lock is from the best fair lock, over machines, workloads and
//! numbers of threads. Each simulation is a point of a sweep, so it is stored and never runs twice.

mod cells;
mod figures;
mod report;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::value_parser;
use itertools::Itertools;
use lockworks_machine::{MACHINES, Machine};

use self::cells::{Cell, Plan, PlannedCell};
pub use self::report::RegretReport;
use crate::point::{Kind, Point};
use crate::store::Store;
use crate::table::{located, whole};
use lockworks_sim::command_line::{find_lock, milliseconds};
use lockworks_sim::comparison::{LONGER, doubled};
use lockworks_ui::interruption;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::plot::figure::Draw;

/// The locks that are judged unless the user names others: a choice of this command, whose table has this
/// order. It leaves out the plain queues, of which qspinlock is the better one.
const LOCKS: &str = "mutex,hq,cna,qspinlock,pv,unfair,tas";

/// Show how far each lock is from the best fair lock, and which one to take.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct RegretArgs {
    /// Locks to judge
    #[arg(
        short,
        long,
        value_name = "LOCK",
        value_delimiter = ',',
        default_value = LOCKS
    )]
    lock: Vec<String>,

    /// Locks that may be the best too
    #[arg(
        long,
        value_name = "LOCK",
        value_delimiter = ',',
        default_value = LOCKS,
        hide_short_help = true
    )]
    against: Vec<String>,

    /// Machines: of `lockworks machines`, or files that describe one [default: all of `lockworks
    /// machines`]
    #[arg(short, long, value_name = "NAME|PATH", value_delimiter = ',')]
    machine: Vec<String>,

    /// Workloads: of `lockworks sim --workloads`, or files that describe one [default: those of
    /// locktorture (old and new), open1_threads, lock2_threads and leveldb_readrandom]
    #[arg(
        short,
        long,
        value_name = "NAME|PATH",
        value_delimiter = ',',
        hide_default_value = true,
        default_value = "locktorture-old,locktorture-new,open1_threads,lock2_threads,leveldb_readrandom"
    )]
    workload: Vec<String>,

    /// Numbers of threads [default: 1,2,4,... up to the machine's CPUs]
    #[arg(short, long, value_name = "N", value_delimiter = ',', value_parser = value_parser!(u16).range(1..))]
    threads: Vec<u16>,

    /// Also simulate two and four times as many threads as CPUs, on the first 8 and 32 CPUs, for ten
    /// times as long
    #[arg(long)]
    oversubscribed: bool,

    /// The greatest fairness factor of a fair lock; 0.5 is strictly fair
    #[arg(long, value_name = "FACTOR", default_value_t = 0.70, value_parser = fairness_factor, hide_short_help = true)]
    fair: f64,

    /// Virtual time of each run, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = milliseconds, hide_short_help = true)]
    ms: f64,

    /// Number of seeds that each lock runs with; the median counts [default: 1, or 5 with --doubt]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), hide_short_help = true)]
    seeds: Option<u64>,

    /// Give each seed a machine of its own, as `lockworks sim --doubt` does, and show the band
    #[arg(long)]
    doubt: bool,

    /// Number of worst cells to list for each lock
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    cells: usize,

    /// The store of results, with which an interrupted run goes on, as of `lockworks sweep`
    #[arg(long, value_name = "FILE", default_value = "regret.results.jsonl")]
    pub store: PathBuf,

    /// Number of simulations that run at the same time [default: the CPUs of this machine]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u16).range(1..), hide_short_help = true)]
    jobs: Option<u16>,

    /// Write all cells to FILE, a CSV with a line for each cell and lock
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Draw all cells as a heat map in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

const HELP: &str = "\
A cell is a machine, a workload and a number of threads. The best lock of a cell is the fastest one \
that is fair there. A lock's share is its throughput divided by that of the best. So an unfair lock \
may have more than 1. In cells of --oversubscribed the best is the fastest lock, however fair.

Columns of the table:
  of best       geometric mean of the share; with --doubt, its range over the machines like these
  worst         the worst share, and its cell
  of 1 in 20    one cell in 20 has this share or a worse one
  within 5 %    cells in which the share is 0.95 or more
  of stock      the worst throughput over that of qspinlock
  unfair        cells in which the fairness factor is above --fair

Results are kept in the store. So an interrupted run goes on where it was, and one more lock runs \
only that lock. The lock to take is the one with the greatest mean of those that are fair in nine of \
ten cells in which threads have a CPU each. `lockworks reproduce all` shows how far such predictions can be trusted.

Examples:
  lockworks regret --machine kunpeng-920,./mine.toml --workload locktorture-new
  lockworks regret --lock mutex,hq --cells 10 --plot regret.svg --csv regret.csv
  lockworks regret --machine epyc-9654-nps4 --doubt --ms 5
  lockworks regret --oversubscribed --json -o regret.json";

/// A fairness factor.
fn fairness_factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.5..=1.0).contains(&factor) => Ok(factor),
        _ => Err("give a number from 0.5 to 1".to_owned()),
    }
}

/// The numbers of CPUs of cells with more threads than CPUs.
const SHARED_CPUS: [usize; 2] = [8, 32];
/// The numbers of threads there, for each CPU.
const THREADS_A_CPU: [usize; 2] = [2, 4];

impl RegretArgs {
    /// The cells, without their points.
    fn cells(&self) -> Result<Vec<Cell>> {
        let machines: Vec<String> = match self.machine.as_slice() {
            [] => MACHINES.all()?.iter().map(|m| m.name.to_owned()).collect(),
            given => given.to_vec(),
        };
        let mut cells = Vec::new();
        for machine in machines.iter().unique() {
            let all = Machine::find(machine)?.cpus();
            let threads = match self.threads.as_slice() {
                [] => doubled(all),
                given => given.iter().map(|n| usize::from(*n)).collect(),
            };
            let mut numbers: Vec<_> = threads
                .into_iter()
                .map(|n| (n, (n > all).then_some(all)))
                .collect();
            if self.oversubscribed {
                let cpus = SHARED_CPUS.into_iter().filter(|cpus| *cpus <= all);
                let shared = cpus.cartesian_product(THREADS_A_CPU);
                numbers.extend(shared.map(|(cpus, times)| (cpus * times, Some(cpus))));
            }
            for workload in self.workload.iter().unique() {
                cells.extend(numbers.iter().map(|&(threads, cpus)| Cell {
                    machine: located(MACHINES.kind, machine, Path::new("")),
                    workload: located("workload", workload, Path::new("")),
                    threads,
                    cpus,
                }));
            }
        }
        Ok(cells)
    }

    /// The point of a lock in a cell, with one seed.
    fn point(&self, cell: &Cell, lock: &str, seed: u64) -> Point {
        let ms = if cell.cpus.is_some() {
            LONGER * self.ms
        } else {
            self.ms
        };
        let mut options = BTreeMap::from([
            ("machine".to_owned(), cell.machine.as_str().into()),
            ("workload".to_owned(), cell.workload.as_str().into()),
            ("lock".to_owned(), lock.into()),
            ("threads".to_owned(), cell.threads.into()),
            ("ms".to_owned(), whole(ms.into())),
            ("seed".to_owned(), seed.into()),
        ]);
        if let Some(cpus) = cell.cpus {
            options.insert("cpus".to_owned(), cpus.into());
        }
        if self.doubt {
            options.insert("doubt".to_owned(), true.into());
        }
        Point::new(Kind::Sim, options)
    }

    /// All points, by cell and lock.
    pub fn plan(&self) -> Result<Plan> {
        let names = self.lock.iter().chain(&self.against).unique();
        let locks: Vec<&'static str> = names
            .map(|name| Ok(find_lock(name)?.name()))
            .collect::<Result<_>>()?;
        let cells = self.cells()?;
        // The largest number of threads shows whether the workload fits the machine.
        for (_, some) in &cells
            .iter()
            .chunk_by(|cell| (&cell.machine, &cell.workload))
        {
            let largest = some.max_by_key(|cell| cell.threads).expect("a cell");
            self.point(largest, locks[0], 1).validate()?;
        }
        let seeds = self.seeds.unwrap_or(if self.doubt { 5 } else { 1 });
        let planned = cells.into_iter().map(|cell| {
            let keyed = |lock, seed| {
                let point = self.point(&cell, lock, seed);
                Ok((point.key()?, point))
            };
            let of_lock = |lock: &&'static str| (1..=seeds).map(|seed| keyed(lock, seed)).collect();
            let points: Result<Vec<Vec<_>>> = locks.iter().map(of_lock).collect();
            Ok(PlannedCell {
                points: points?,
                cell,
            })
        });
        Ok(Plan {
            cells: planned.collect::<Result<_>>()?,
            judged: self.lock.iter().unique().cloned().collect(),
            locks,
            fair: self.fair,
            listed: self.cells,
            seeds: seeds as usize,
            doubt: self.doubt,
        })
    }

    /// Runs the points of a plan that the store does not have.
    pub fn simulate(&self, plan: Plan) -> Result<RegretReport> {
        let (mut store, results) = Store::open(&self.store)?;
        let is_pending = |key: &str| !results.has(key) || results.failed(key);
        let points = plan.cells.iter().flat_map(PlannedCell::points);
        let pending: Vec<_> = points.filter(|(key, _)| is_pending(key)).collect();
        let jobs = self.jobs.map_or(0, usize::from);
        crate::run("regret", &pending, jobs, None, |outcome| store.add(outcome))?;
        drop(store);
        RegretReport::read(plan, &self.store)
    }
}

/// Runs the command.
pub fn command(args: &RegretArgs) -> Result<ExitCode> {
    args.destination.check()?;
    plot::check(args.plot.as_deref())?;
    if let Some(file) = &args.csv {
        output::check_file(file)?;
    }
    let plan = args.plan()?;
    let on_interruption = (plan.clone(), args.store.clone());
    interruption::before_exit(move || {
        let (plan, path) = on_interruption;
        // What is finished is shown as far as it can be.
        if let Ok(report) = RegretReport::read(plan, &path) {
            let _ = output::print(&report.text());
        }
        eprintln!("lockworks: interrupted; results are kept, and the same command goes on");
    });
    let report = args.simulate(plan)?;
    if let Some(path) = &args.csv {
        output::write_file(path, &report.csv()?)?;
    }
    if let Some(path) = &args.plot {
        plot::write(path, &report.figures(&plot::this_command())[..1])?;
    }
    args.destination.write(&match args.json {
        true => output::json(&report)?,
        false => report.text(),
    })?;
    for (command, error) in &report.failures {
        eprintln!("lockworks: {error}\n  {command}");
    }
    Ok(ExitCode::from(u8::from(!report.failures.is_empty())))
}
