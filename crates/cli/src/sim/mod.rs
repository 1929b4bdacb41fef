//! `lockworks sim`: locks on a simulated machine.

pub mod answer;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use itertools::Itertools;
use lockworks::{LockType, Settings};
use lockworks_machine::Kernel;
use lockworks_sim::{ScenarioValue, Workload};
use serde::Serialize;

use lockworks_ui::figures::counted;
use lockworks_ui::interruption;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::progress;
use lockworks_ui::timeline;

use self::answer::Answer;
use lockworks_sim::command_line::{SimOptions, find_lock, whole};
use lockworks_sim::comparison::{self, SimulationPlan, SimulationRow};

/// Run the real lock code on a simulated machine, in virtual time.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct SimArgs {
    #[command(flatten)]
    options: SimOptions,

    /// List the workloads instead of simulating one
    #[arg(long)]
    workloads: bool,

    /// Number of seeds that each lock runs with; the table has the median [default: 3, or 40 with
    /// --doubt]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, hide_short_help = true)]
    seeds: Option<u64>,

    /// The lock that others are compared with [default: qspinlock if it runs, else the first]
    #[arg(long, value_name = "LOCK", hide_short_help = true)]
    reference: Option<String>,

    #[command(flatten)]
    printing: Printing,
}

const HELP: &str = "\
The C code of the locks runs as it is in the library. Only time is simulated, from a description \
of the machine. Values are from the literature unless --set changes them; `lockworks reproduce` \
shows how well they predict published figures. Runs are independent and use all CPUs of this \
machine.

Columns of the table:
  range     with --doubt: the lowest and the highest ops/s
  of LOCK   ops/s over those of the reference lock with the same seed, median over the seeds; so
            not the quotient of the medians beside it
  fairness  share of operations by the busier half of threads; 0.5 is fair
  p50       half of the waits for the lock were shorter
  p99.9     one wait in 1000 was longer
  RMWs      atomic read-modify-writes for an acquisition and its release
  remote    share of hand-offs to another NUMA node
  moved     CNA only: number of waiters moved to the secondary queue
  flushed   CNA only: number of times that the secondary queue was served

With --doubt, each seed has a machine of its own, and the answer says in how many machines like the described one a lock is the fastest, and \
which value decides. Without a range of its own, a value may be off by 5 % if it was measured on that \
part (E), 15 % if on a sibling (S), 25 % if recalled (R), and a factor of 2 if inferred (I).

The answer below the table names the fastest lock of each number of threads. Locks \
are compared seed by seed. With another seed, a placement at random changes too.

Lines below the table are about HQ's queues of NUMA nodes, and about threads that share CPUs. The \
latter count how often threads halted, were kicked, lost their CPU, and left their guest because \
they spun. They also give the share of time in which threads waited for a CPU (steal), in all and \
with a lock held.

Many simulations: `lockworks regret` compares all locks over machines and workloads, `lockworks sweep` runs what \
a plan describes, `lockworks replay` has a program's own locks.

Examples:
  lockworks sim --lock qspinlock,cna --threads 1,18,72,142
  lockworks sim --machine epyc-9654-nps12 --workload locktorture-new \\
      --threads 384 --json
  lockworks sim --lock qspinlock,cna,mutex --threads 8,72 --doubt --ms 10
  lockworks sim --lock tas,qspinlock --threads 16,64 --cpus 16 --ms 500
  lockworks sim --lock rwlock,mutex --readers 99.9 --threads 96,144
  lockworks sim --machine haswell-ex-4 --workload kernel_build \\
      --vcpus 32,48,60 --cpus 32 --ms 500
  lockworks machines this -o here.toml && lockworks sim --machine ./here.toml
  lockworks sim --workload ./mine.toml     # docs/guides/workloads.md";

/// The number of seeds that each lock runs with unless the user asks for another. With doubt, each is a machine.
pub fn usual_seeds(doubt: bool) -> u64 {
    match doubt {
        true => 40,
        false => 3,
    }
}

/// The list of all workloads.
fn list_workloads(as_json: bool) -> Result<String> {
    let workloads = Workload::all()?;
    if as_json {
        let described = workloads.iter().map(|workload| {
            serde_json::json!({
                "name": workload.name,
                "title": workload.title,
                "placement": workload.placement().to_string(),
            })
        });
        return output::json(&described.collect::<Vec<_>>());
    }
    let mut table = output::table(&["workload", "what threads do", "placement"]);
    for workload in workloads {
        let placement = workload.placement().to_string();
        table.add_row([workload.name, workload.title, placement]);
    }
    Ok(format!(
        "{}\nA file of your own works as well: `lockworks sim --workload ./mine.toml`.\n",
        table.trim_fmt()
    ))
}

/// The results of simulations.
#[derive(Serialize)]
pub struct SimulationResults {
    machine: String,
    workload: String,
    placement: String,
    cpus: usize,
    /// The version of Linux that schedules threads that share CPUs.
    kernel: Kernel,
    /// The number of guests. None: the threads belong to a program.
    guests: Option<usize>,
    pinned: bool,
    virtual_milliseconds: f64,
    seed: u64,
    seeds: u64,
    /// Whether each seed had a machine of its own.
    doubt: bool,
    reference: &'static str,
    tunables: Settings,
    odd_priority: bool,
    values: Vec<ScenarioValue>,
    rows: Vec<SimulationRow>,
    answer: Answer,
    /// What measurements of others say against these predictions.
    contested: Vec<String>,
    /// Why the rates mean nothing, and only ratios of locks do.
    ratios_only: Option<String>,
    /// What was measured of the recording that is replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<serde_json::Value>,
}

/// The options that say where results go.
#[derive(clap::Args, Clone)]
pub struct Printing {
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Draw throughput and fairness by number of threads in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Write what each thread did at the beginning of each run in FILE, a .pftrace for
    /// ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    #[command(flatten)]
    pub destination: Destination,

    /// What is said before the results, as text and as JSON.
    #[arg(skip)]
    pub before: Option<(String, serde_json::Value)>,
}

impl Printing {
    /// Checks the files.
    pub fn check(&self) -> Result<()> {
        self.destination.check()?;
        plot::check(self.plot.as_deref())?;
        self.trace.as_deref().map_or(Ok(()), timeline::check)
    }
}

/// The lock that others are compared with, which must be one of those that run.
pub fn reference(asked: Option<&str>, locks: &[&'static LockType]) -> Result<&'static str> {
    let wanted = asked.unwrap_or("qspinlock");
    match locks.iter().find(|lock| lock.name() == wanted) {
        Some(lock) => Ok(lock.name()),
        None if asked.is_some() => {
            let name = find_lock(wanted)?.name();
            anyhow::bail!("the reference {name} does not run; add it to --lock")
        }
        None => Ok(locks.first().expect("a lock runs").name()),
    }
}

/// The results of the runs that ended.
pub fn results(
    plan: &SimulationPlan,
    reference: &'static str,
    mut rows: Vec<SimulationRow>,
    before: Option<&(String, serde_json::Value)>,
) -> SimulationResults {
    comparison::compare_with(reference, &mut rows);
    let scenario = &plan.scenario;
    let locks: Vec<&str> = plan.locks.iter().map(|lock| lock.name()).collect();
    let answer = Answer::of(&rows, reference, plan);
    SimulationResults {
        machine: scenario.machine.name.clone(),
        workload: scenario.workload.name.clone(),
        placement: plan.placement.to_string(),
        cpus: plan.host.cpus,
        kernel: scenario.kernel(),
        guests: plan.host.guests,
        pinned: plan.host.pinned,
        virtual_milliseconds: plan.ms,
        seed: plan.seed,
        seeds: plan.seeds,
        doubt: plan.doubt.is_some(),
        reference,
        tunables: plan.tunables,
        odd_priority: plan.odd_priority,
        values: scenario.values(),
        rows,
        answer,
        contested: scenario.machine.contested(&locks).collect(),
        ratios_only: scenario.workload.ratios_only.clone(),
        recording: before.map(|(_, values)| values.clone()),
    }
}

/// The results as the command prints them.
fn printed(plan: &SimulationPlan, results: &SimulationResults, as_json: bool) -> Result<String> {
    match as_json {
        true => output::json(results),
        false => Ok(report::text(&plan.scenario, results)),
    }
}

/// Runs the command.
pub fn command(args: &SimArgs) -> Result<ExitCode> {
    let printing = args.printing.clone();
    printing.check()?;
    if args.workloads {
        printing
            .destination
            .write(&list_workloads(printing.json)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let seeds = args.seeds.unwrap_or(usual_seeds(args.options.doubt));
    let plan = args.options.plan(seeds)?;
    let reference = reference(args.reference.as_deref(), &plan.locks)?;
    simulate(plan, reference, printing)
}

/// Simulates what a plan says, and prints the results.
pub fn simulate(
    plan: SimulationPlan,
    reference: &'static str,
    printing: Printing,
) -> Result<ExitCode> {
    let plan = Arc::new(SimulationPlan {
        recorded: printing
            .trace
            .as_ref()
            .map_or(0, |_| timeline::RECORDED_EVENTS),
        ..plan
    });
    let printing = Arc::new(printing);
    let finished = Arc::new(Mutex::new(Vec::new()));
    let on_interruption = (
        Arc::clone(&plan),
        Arc::clone(&finished),
        Arc::clone(&printing),
    );
    interruption::before_exit(move || {
        let (plan, finished, printing) = on_interruption;
        let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: Vec<SimulationRow> = std::mem::take(&mut finished);
        let points = plan.points();
        let place = |row: &SimulationRow| {
            let is_its =
                |(n, lock): &(usize, &LockType)| *n == row.threads && lock.name() == row.lock;
            points.iter().position(is_its)
        };
        rows.sort_by_key(place);
        let number = rows.len();
        if number > 0 {
            let results = results(&plan, reference, rows, printing.before.as_ref());
            if let Ok(text) = printed(&plan, &results, printing.json) {
                let _ = output::print(&text);
            }
            let plot = printing.plot.as_ref();
            if let Some(Err(error)) = plot.map(|path| plot::draw(path, &results)) {
                eprintln!("lockworks: {error:#}");
            }
        }
        eprintln!(
            "lockworks: interrupted after {number} of {} runs",
            points.len()
        );
    });
    let bar = progress::runs(plan.points().len(), &plan.scenario.machine.name);
    let on_row = |row: &Result<SimulationRow>| {
        if let Ok(row) = row {
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.push(row.clone());
        }
        bar.inc(1);
    };
    let rows = comparison::run(&plan, on_row);
    bar.finish_and_clear();
    let (rows, errors): (Vec<_>, Vec<_>) = rows.into_iter().partition_result();
    // What refuses one run often refuses all of them.
    let by_cause = errors
        .iter()
        .into_group_map_by(|error| error.root_cause().to_string());
    for alike in by_cause.values() {
        let others = match alike.len() - 1 {
            0 => String::new(),
            n => format!(
                " ({} failed in the same way)",
                counted(n as u64, "other run")
            ),
        };
        eprintln!("lockworks: {:#}{others}", alike[0]);
    }
    if rows.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    let mut failed = !errors.is_empty();
    for row in rows.iter().filter(|row| row.violations > 0) {
        failed = true;
        eprintln!(
            "lockworks: VIOLATION: {} with {} threads failed to exclude {} times",
            row.lock, row.threads, row.violations
        );
    }
    if let Some(path) = &printing.trace {
        let timelines = rows.iter().filter_map(|row| {
            let title = format!("{}, {} threads", row.lock, row.threads);
            Some((title, row.timeline.as_ref()?))
        });
        timeline::write_runs(path, timelines)?;
    }
    let results = results(&plan, reference, rows, printing.before.as_ref());
    if let Some(path) = &printing.plot {
        plot::draw(path, &results)?;
    }
    let before = printing.before.as_ref().filter(|_| !printing.json);
    let before = before.map_or("", |(text, _)| text);
    let text = printed(&plan, &results, printing.json)?;
    printing.destination.write(format!("{before}{text}"))?;
    Ok(ExitCode::from(u8::from(failed)))
}
