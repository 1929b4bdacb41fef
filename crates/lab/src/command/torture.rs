//! `lockworks kernel torture`: the kernel's locktorture on its own locks and ours.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::value_parser;
use comfy_table::{CellAlignment, ContentArrangement};
use lockworks_kernel::remote_share;
use lockworks_measurements::{median, sorted};
use lockworks_names::command_line::by_name;
use lockworks_ui::figures::scaled;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::plot::figure::{Bar, Chart, Data, Figure};
use lockworks_ui::terminal::fitted;
use serde::Serialize;

use super::options::{Machine, Source, Steps, verdict};
use super::soak;
use crate::cache::Cache;
use crate::complaint::Complaint;
use crate::lock::Lock;
use crate::machine::Input;
use crate::torture::{LocktorturePlan, TortureOutcome, TortureRound, TortureSubject, torture};

/// Torture spinlocks in a guest with the kernel's locktorture module.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct GuestTortureArgs {
    #[command(flatten)]
    pub source: Source,

    #[command(flatten)]
    pub machine: Machine,

    /// Slow paths to torture: one or several of stock, qspinlock, cna, hq, mutex and unfair, which
    /// take turns in one guest; or one of native, stock-pv, pv, pv-mutex and byte; or busted, a
    /// broken lock
    #[arg(
        short,
        long,
        value_name = "LOCK",
        value_delimiter = ',',
        default_value = "cna"
    )]
    lock: Vec<String>,

    /// Type of lock that locktorture acquires [default: spin_lock; with --soak all types]
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(KINDS.into_iter().chain(RESILIENT)), hide_short_help = true)]
    pub kind: Option<String>,

    /// Number of threads that acquire the lock [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=4096), hide_short_help = true)]
    writers: Option<u32>,

    /// Length of each round in seconds; fractions are allowed
    #[arg(short, long, value_name = "S", default_value = "5", value_parser = seconds)]
    seconds: f64,

    /// Number of rounds of each lock, in one guest
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Soak the locks for MINUTES, with disturbances, in place of a number of rounds
    #[arg(long, value_name = "MINUTES", value_parser = minutes, conflicts_with_all = ["rounds", "hotplug", "plot"])]
    pub soak: Option<f64>,

    /// Seed of the random choices of --soak [default: a random one, which is printed]
    #[arg(long, value_name = "N", requires = "soak", value_parser = value_parser!(u32).range(..1 << 31), hide_short_help = true)]
    pub seed: Option<u32>,

    /// Switch CPUs off and on during the rounds
    #[arg(long, hide_short_help = true)]
    hotplug: bool,

    /// Additional parameters of the module, such as "long_hold=10 nested_locks=2"
    #[arg(
        long,
        value_name = "K=V ...",
        default_value = "",
        hide_short_help = true
    )]
    torture_args: String,

    /// Print JSON instead of a table: an object for one lock, an array for several
    #[arg(long)]
    pub json: bool,

    /// Draw the acquisitions of each lock in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    pub destination: Destination,
}

const HELP: &str = "\
Builds the kernel if necessary, boots it in an emulated NUMA guest, and runs locktorture. The run \
fails at any violation of mutual exclusion, and at any panic, WARNING, BUG, stall, lockup, hang, \
lockdep or KCSAN report.

Columns:
  operations: acquisitions in a round, median of the rounds.
  fairness: an upper bound of the fairness factor in all rounds. The factor is the share of all \
operations that the busier half of the threads has: 0.5 is fair, 1 unfair. locktorture reports \
only the total, the most and the least. With n threads, the factor is at most n/2 * most / total \
and at most 1 - n/2 * least / total. For two threads the bound is the factor itself.
  remote: the share of hand-offs to another node among all counted hand-offs.
The counters are the kernel's lock events, of all its locks, summed over the rounds.

hq is tortured on a spinlock that opted in to it: the types spin_lock and spin_lock_irq become \
spin_lock_hq and spin_lock_irq_hq. The module's long_hold, stutter, shuffle_interval and rt_boost \
are 0 unless --torture-args sets them. Emulation has no NUMA cost: compare counters, and \
operations only as ratios within one guest.

With --soak the rounds go on for so many minutes, over all locks and types in turn. Meanwhile, at \
random times: CPUs are switched off and on, in half of the rounds; the conformance module is loaded, \
tests a lock, and is removed; memory of a node is added and removed (x86-64); one virtual CPU is \
suspended for up to a second, while the others run and the guest's time goes on; the machine is stopped \
with its clock for up to two seconds, which the guest cannot notice. A virtual CPU has a thread of its \
own unless --emulation single is given; then all are suspended together. --seed repeats the choices, \
but not their times. If the command is interrupted, it prints what was covered.

Examples:
  lockworks kernel torture --lock cna --nodes 4 --cpus 8 --seconds 10 --json
  lockworks kernel torture --lock stock,cna,hq --version 7.3 --compiler clang
  lockworks kernel torture --config debug --type spin_lock_irq --hotplug
  lockworks kernel torture --lock pv --config paravirt --emulation multi
  lockworks kernel torture --arch arm64 --lock cna --seconds 10
  lockworks kernel torture --lock busted
  lockworks kernel torture --soak 30 --lock stock,cna,hq,mutex";

/// The types of spinlocks that locktorture can have.
pub const KINDS: [&str; 4] = [
    "spin_lock",
    "spin_lock_irq",
    "raw_spin_lock",
    "raw_spin_lock_irq",
];

/// The types of BPF's resilient spinlock, in Linux 7. It has a slow path of its own.
const RESILIENT: [&str; 2] = ["raw_res_spin_lock", "raw_res_spin_lock_irq"];

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.1..=10_080.0).contains(&minutes) => Ok(minutes),
        _ => Err("give a number from 0.1 to 10080, a week".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number from 0.1 to 86400".to_owned()),
    }
}

fn subject(name: &str) -> Result<TortureSubject> {
    let locks = Lock::ALL.map(TortureSubject::Lock).into_iter();
    by_name(
        "lock",
        name,
        locks.chain([TortureSubject::Busted]),
        TortureSubject::name,
    )
}

/// Runs the command.
pub fn command(args: &GuestTortureArgs) -> Result<ExitCode> {
    let plan = args.plan()?;
    let lock = match plan.subjects[..] {
        [TortureSubject::Lock(lock)] => Some(lock),
        _ => None,
    };
    let locks = plan.subjects.iter().filter_map(|subject| match subject {
        TortureSubject::Lock(lock) => Some(*lock),
        TortureSubject::Busted => None,
    });
    args.machine.check(&args.source, locks)?;
    args.destination.check()?;
    plot::check(args.plot.as_deref())?;
    if let Some(minutes) = args.soak {
        return soak::command(args, plan, lock, minutes);
    }

    let cache = Cache::open()?;
    let steps = Steps::new();
    let built = args.source.build_to_boot(&args.machine, &cache, &steps)?;
    let limits = args.machine.limits(args.source.config());
    let guest = args.machine.guest(&built, lock, Input::Nothing, limits)?;
    let tortured = torture(&plan, &guest, &cache, &|step| steps.begin(step))?;
    steps.end();

    let reports: Vec<TortureReport> = tortured
        .subjects
        .iter()
        .map(|(subject, rounds)| TortureReport {
            version: built.version.name(),
            arch: built.arch.name(),
            compiler: built.compiler.name(),
            config: args.source.config().name(),
            threshold_ms: args.machine.threshold,
            shuffle_reduction: !args.machine.no_shuffle_reduction,
            nodes: args.machine.nodes,
            cpus: args.machine.cpus,
            emulation: args.machine.emulation().name(),
            ..TortureReport::new(&plan, *subject, rounds, &tortured)
        })
        .collect();
    if let Some(path) = &args.plot {
        plot::write(path, &figures(&reports, &plot::this_command()))?;
    }
    args.destination.write(&if args.json {
        output::one_or_more(&reports)?
    } else {
        table(&reports)
    })?;
    verdict(&tortured.judged)
}

impl GuestTortureArgs {
    fn plan(&self) -> Result<LocktorturePlan> {
        let mut subjects = Vec::new();
        for name in &self.lock {
            let subject = subject(name)?;
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        ensure!(
            subjects.len() == 1 || !subjects.contains(&TortureSubject::Busted),
            "busted is a type of locktorture, not a slow path; torture it alone"
        );
        let for_good = |subject: &&TortureSubject| matches!(subject, TortureSubject::Lock(lock) if !lock.takes_turns());
        if let Some(lock) = subjects.iter().find(for_good) {
            ensure!(
                subjects.len() == 1,
                "{} is chosen when a guest boots; torture it alone, or use lockworks kernel compare",
                lock.name()
            );
        }
        let kind = self.kind.as_deref().unwrap_or(KINDS[0]);
        ensure!(
            !subjects.contains(&TortureSubject::Lock(Lock::Hq)) || !kind.starts_with("raw_"),
            "hq is tortured on spin_lock and spin_lock_irq, not {kind}; choose another --type"
        );
        Ok(LocktorturePlan {
            subjects,
            kind: kind.to_owned(),
            writers: self.writers.unwrap_or(self.machine.cpus),
            seconds: self.seconds,
            rounds: self.rounds,
            hotplug: self.hotplug,
            parameters: self.torture_args.clone(),
        })
    }
}

/// The results of a lock.
#[derive(Default, Serialize)]
struct TortureReport {
    verdict: &'static str,
    lock: &'static str,
    /// Median of the rounds.
    operations: Option<u64>,
    /// Upper bound of the fairness factor in all rounds.
    fairness: Option<f64>,
    fail: u64,
    /// Sums over the rounds.
    counters: BTreeMap<String, u64>,
    version: &'static str,
    release: String,
    arch: &'static str,
    compiler: &'static str,
    config: &'static str,
    #[serde(rename = "type")]
    kind: String,
    nodes: u32,
    cpus: u32,
    emulation: &'static str,
    writers: u32,
    seconds: f64,
    threshold_ms: Option<u32>,
    shuffle_reduction: bool,
    hotplug: bool,
    /// The number of times that a CPU was switched off, in all rounds of all locks.
    offlined: u64,
    rounds: Vec<TortureRound>,
    complaints: Vec<Complaint>,
    console: String,
    command: Vec<String>,
}

impl TortureReport {
    fn new(
        plan: &LocktorturePlan,
        subject: TortureSubject,
        rounds: &[TortureRound],
        tortured: &TortureOutcome,
    ) -> Self {
        let judged = &tortured.judged;
        let mut counters = BTreeMap::new();
        for (name, count) in rounds.iter().flat_map(|round| &round.counters) {
            *counters.entry(name.clone()).or_default() += count;
        }
        let pass = judged.complaints.is_empty();
        let operations = sorted(rounds.iter().map(|round| round.figures.operations as f64));
        Self {
            verdict: if pass { "pass" } else { "fail" },
            lock: subject.name(),
            operations: median(&operations).map(|median| median.round() as u64),
            fairness: rounds
                .iter()
                .filter_map(|round| round.fairness)
                .reduce(f64::max),
            fail: rounds.iter().map(|round| round.figures.fail).sum(),
            counters,
            release: tortured.release.clone(),
            kind: plan.type_of(subject),
            writers: plan.writers,
            seconds: plan.seconds,
            hotplug: plan.hotplug,
            offlined: judged.offlined,
            rounds: rounds.to_vec(),
            complaints: judged.complaints.clone(),
            console: judged.console.display().to_string(),
            command: std::env::args().collect(),
            ..Self::default()
        }
    }
}

/// The acquisitions of each lock.
fn figures(reports: &[TortureReport], command: &str) -> Vec<Figure> {
    let bars = reports.iter().filter_map(|row| {
        let rounds = || {
            row.rounds
                .iter()
                .map(|round| round.figures.operations as f64)
        };
        Some(Bar {
            name: row.lock.to_owned(),
            low: rounds().reduce(f64::min)?,
            middle: row.operations? as f64,
            high: rounds().reduce(f64::max)?,
        })
    });
    vec![Figure {
        id: "locktorture".to_owned(),
        title: format!(
            "locktorture in a guest, Linux {}, {} CPUs",
            reports[0].version, reports[0].cpus
        ),
        text: "Acquisitions in a round: the median; lines show the lowest and the highest round. \
                   Emulation has no NUMA cost, so compare the locks of one guest only."
            .to_owned(),
        command: command.to_owned(),
        chart: Some(Chart::Bars {
            unit: "acquisitions in a round",
            alike: false,
            bars: bars.collect(),
        }),
        data: Data::of(
            reports,
            &[
                ("lock", &|row| row.lock.into()),
                ("operations", &|row| row.operations.into()),
                ("fairness", &|row| row.fairness.into()),
                ("fail", &|row| row.fail.into()),
                ("verdict", &|row| row.verdict.into()),
            ],
        ),
    }]
}

fn table(reports: &[TortureReport]) -> String {
    let first = &reports[0];
    let mut text = format!(
        "Linux {} ({}, {}, {}), {} CPUs on {} nodes, emulation {}. {}, {} writers, rounds of {} s: {}.\n",
        first.release,
        first.arch,
        first.compiler,
        first.config,
        first.cpus,
        first.nodes,
        first.emulation,
        first.kind,
        first.writers,
        first.seconds,
        first.rounds.len(),
    );
    text = fitted(&text);
    let header = [
        "lock",
        "verdict",
        "operations",
        "min..max",
        "fairness",
        "fail",
        "remote",
    ];
    let mut table = output::table(&header);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(reports.iter().map(cells));
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    text.push_str(&format!("{table}\n"));
    // For experts: with --verbose.
    let verbose = tracing::enabled!(tracing::Level::DEBUG);
    let counted = |report: &&TortureReport| verbose && !report.counters.is_empty();
    for report in reports.iter().filter(counted) {
        let mut counted = format!("Counted with {}:", report.lock);
        for (name, count) in &report.counters {
            counted.push_str(&format!(" {name} {}", scaled(*count as f64)));
        }
        text.push_str(&format!("{}\n", fitted(&counted)));
    }
    text
}

fn cells(report: &TortureReport) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let operations = || report.rounds.iter().map(|round| round.figures.operations);
    let range = operations().min().zip(operations().max());
    [
        report.lock.to_owned(),
        report.verdict.to_owned(),
        or_dash(report.operations.map(|n| scaled(n as f64))),
        or_dash(range.map(|(min, max)| format!("{}..{}", scaled(min as f64), scaled(max as f64)))),
        or_dash(report.fairness.map(|fairness| format!("<= {fairness:.3}"))),
        report.fail.to_string(),
        or_dash(remote_share(&report.counters).map(|share| format!("{:.1} %", 100.0 * share))),
    ]
}
