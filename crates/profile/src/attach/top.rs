//! `lockworks top`: the locks that threads of running processes wait for, as a table that is drawn again
//! each second.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::value_parser;
use itertools::Itertools;
use lockworks_ui::figures::{counted, nanoseconds};
use lockworks_ui::output;
use lockworks_ui::table::Table;
use lockworks_ui::terminal;

use crate::attach::process::{self, Process};
use crate::attach::report::{AttachReport, place_name, printed};
use crate::attach::sampler::{Pace, Sampler};
use crate::attach::{INTERRUPT, end_by_interruption, sleep};
use crate::places::Places;

/// Show for which locks threads of running processes wait now, and who holds these.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct TopArgs {
    /// A process [default: all of this user that have several threads; for root, of all users]
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..))]
    pid: Option<u32>,

    /// Seconds until it ends by itself [default: it goes on until ^C]
    #[arg(long, value_name = "S", value_parser = super::seconds)]
    seconds: Option<f64>,

    /// Number of locks to show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    top: u32,

    /// Print a line of JSON for each process and second instead of tables
    #[arg(long)]
    json: bool,

    /// Samples a second, at most: there are fewer if they would take more than 0.5 % of the CPUs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..=1000))]
    hz: u32,
}

const HELP: &str = "\
Nothing is stopped, and nothing is loaded into a process. `lockworks profile --pid PID --help-all` says what \
is seen, and what is not. The columns are of the second before:
  waiters: threads that waited for the lock at a time, on average.
  longest: the longest wait so far.
  holder: what it did for most of the time.
The command ends by ^C, or when the process ends.

Examples:
  lockworks top
  lockworks top --pid 4711
  lockworks top --pid 4711 --json --seconds 60";

/// The most tables a second.
const TABLES: u32 = 1;

/// Runs the command.
pub fn command(args: &TopArgs) -> Result<ExitCode> {
    let (mut samplers, mut places) = (Vec::new(), Places::default());
    if let Some(pid) = args.pid {
        samplers.push(Sampler::new(Process::open(pid)?, &mut places));
    }
    end_by_interruption();
    let mut refused = HashSet::new();
    if args.pid.is_none() {
        add_new(&mut samplers, &mut refused, &mut places);
    }
    let begin = Instant::now();
    let is_over = || {
        let limit = args.seconds.map(Duration::from_secs_f64);
        limit.is_some_and(|limit| begin.elapsed() >= limit) || INTERRUPT.load(Relaxed)
    };
    let (mut pace, mut of_tables) = (Pace::new(args.hz), Pace::new(TABLES));
    let mut period = Duration::from_secs(1) / TABLES;
    while !is_over() {
        let drawn = Instant::now();
        // A sample is of the time since the one before, so the first table takes two.
        for nth in 0.. {
            let (_, wait) = pace.step(|| samplers.retain_mut(|one| one.sample(&mut places)));
            let is_due = drawn.elapsed() >= period || is_over();
            let is_none_left = samplers.is_empty() && args.pid.is_some();
            if is_none_left || INTERRUPT.load(Relaxed) || nth > 0 && is_due {
                break;
            }
            sleep(wait.min(period.saturating_sub(drawn.elapsed())));
        }
        let reports;
        (reports, period) = of_tables.regular_step(|| -> Vec<AttachReport> {
            let reports = samplers
                .iter_mut()
                .map(|one| AttachReport::of(one, &mut places, false));
            reports.filter(|report| report.seconds > 0.0).collect()
        });
        if let (Some(pid), true) = (args.pid, samplers.is_empty()) {
            terminal::warn(&format!("process {pid} has ended"));
            break;
        }
        match args.json {
            true => {
                for report in &reports {
                    output::print(&format!("{}\n", serde_json::to_string(report)?))?;
                }
            }
            false => {
                let text = table(&reports, args.top as usize);
                output::clear()?;
                output::print(&text)?;
            }
        }
        if args.pid.is_none() && !is_over() {
            add_new(&mut samplers, &mut refused, &mut places);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds processes that have begun, of this user or, for root, of all. Those that may not be looked at are
/// not tried again.
fn add_new(samplers: &mut Vec<Sampler>, refused: &mut HashSet<u32>, places: &mut Places) {
    let known: HashSet<u32> = samplers.iter().map(|one| one.process.pid).collect();
    for pid in process::visible() {
        if known.contains(&pid) || refused.contains(&pid) {
            continue;
        }
        match Process::open(pid) {
            Ok(process) => samplers.push(Sampler::new(process, places)),
            Err(_) => {
                refused.insert(pid);
            }
        }
    }
}

/// The hottest locks of all processes.
fn table(reports: &[AttachReport], top: usize) -> String {
    let locks = reports
        .iter()
        .flat_map(|report| report.locks.iter().map(move |lock| (report, lock)));
    let locks = locks.sorted_by_key(|(_, lock)| Reverse(lock.waited_ns));
    let mut table = Table::new(&[
        "process",
        "lock, hottest place",
        "waiters",
        "longest",
        "holder",
    ]);
    for (report, lock) in locks.take(top) {
        table.add_row([
            format!("{} {}", report.pid, report.name),
            format!("{}, {}", lock.lock, place_name(lock.places.first())),
            report.waiters(lock),
            nanoseconds(lock.longest_ns),
            lock.meanwhile
                .first()
                .map_or(String::new(), |first| first.holder.clone()),
        ]);
    }
    let mut text = format!(
        "{}; threads that poll are not seen.\n",
        counted_processes(reports.len())
    );
    match table.is_empty() {
        true => text.push_str("No thread was seen to wait for a lock.\n"),
        false => text.push_str(&printed(table, &[2, 3])),
    }
    for report in reports.iter().filter(|report| !report.deadlock.is_empty()) {
        let threads = report.deadlock.iter().map(|one| one.thread);
        text.push_str(&terminal::prose(&format!(
            "Deadlock in process {}: threads {} wait for each other. `lockworks profile --pid {}` says where.\n",
            report.pid,
            threads.format(", "),
            report.pid
        )));
    }
    text
}

fn counted_processes(number: usize) -> String {
    match number {
        1 => counted(1, "process"),
        n => format!("{n} processes"),
    }
}
