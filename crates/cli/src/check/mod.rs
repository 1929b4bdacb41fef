//! `lockworks check`: explores every run that the lock code can make.

mod litmus;
mod mutants;
mod optimize;
pub mod options;
mod page;
mod report;
mod sarif;

use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use lockworks_check::command_line::{free_memory, refused};
use lockworks_check::mutants::configurations;
use lockworks_check::{
    Check, Config, Coverage, End, Limits, RandomRuns, Token, TraceStep, load_source, remedies,
};

use lockworks_ui::interruption;
use lockworks_ui::output;
use lockworks_ui::progress;
use lockworks_ui::terminal;
use lockworks_ui::timeline;
use options::{Options, Output};
use report::Counterexample;
pub use report::{CheckReport, CheckReports};

/// A search that is kept is to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Explore every run that the real lock code can make in weak memory.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = HELP)]
pub struct CheckArgs {
    #[command(subcommand)]
    command: Option<CheckCommand>,

    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum CheckCommand {
    Litmus(litmus::LitmusArgs),
    Mutants(mutants::MutantsArgs),
}

const HELP: &str = "\
Runs the C code of the library. Every order of its operations is explored, and every value that \
weak memory allows them to read. docs/reference/checker.md says what that proves and what it does \
not. A broken promise is shown as the shortest run that breaks it, with a token to replay.

Examples:
  lockworks check --lock cna --quick
  lockworks check --lock pv,unfair --threads 3 --acquisitions 1 --cancel
  lockworks check --lock hq --threads 12 --random 10000
  lockworks check spin.c             a lock of your own, in C or C++
  lockworks check spin.c --functions lock=grab,unlock=drop
  lockworks check spin.c --optimize";

/// The most states of one configuration with --quick.
const QUICK_STATES: usize = 200_000;

/// Runs the command.
pub fn command(args: &CheckArgs) -> Result<ExitCode> {
    match &args.command {
        Some(CheckCommand::Litmus(args)) => litmus::command(args),
        Some(CheckCommand::Mutants(args)) => mutants::command(args),
        None => match &args.options.replay {
            Some(token) => replay(token, &args.options),
            None if args.options.optimize => {
                let limits = Limits {
                    threads: threads(),
                    ..args.options.limits
                };
                optimize::command(&args.options, &limits)
            }
            None => check(&args.options),
        },
    }
}

impl Output {
    fn check_trace(&self) -> Result<()> {
        match self.trace.as_deref() {
            None => Ok(()),
            Some(path) if is_page(path) => output::check_file(path),
            Some(path) => timeline::check(path).context("a page ends in .html"),
        }
    }

    /// Writes the runs that break a promise where the user asks for it.
    fn write_trace<'a>(
        &self,
        found: impl Iterator<Item = (&'a Config, &'a Counterexample)>,
    ) -> Result<()> {
        let Some(path) = &self.trace else {
            return Ok(());
        };
        let runs: Vec<page::Run> = found
            .map(|(config, found)| page::Run {
                title: format!("{config}: {}", found.broken.violation),
                replay: found.replay(),
                steps: &found.trace,
            })
            .collect();
        if runs.is_empty() {
            terminal::warn(&format!(
                "no promise is broken, so '{}' is not written",
                path.display()
            ));
            return Ok(());
        }
        if is_page(path) {
            return output::write_file(path, page::page(&runs).as_bytes());
        }
        let steps = |steps: &[TraceStep]| steps.iter().map(timeline_step).collect();
        let runs = runs.into_iter().map(|run| (run.title, steps(run.steps)));
        timeline::write_counterexamples(path, runs)
    }
}

fn timeline_step(step: &TraceStep) -> timeline::Step {
    let details = vec![
        ("place", step.place.clone()),
        ("order", step.order.to_owned()),
        ("effect", step.effect.clone()),
        ("lock", step.word.clone()),
        ("queue", step.queue.clone()),
    ];
    timeline::Step {
        thread: step.thread,
        name: step.operation.clone(),
        details,
    }
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == page::ENDING)
}

/// The exit status when a promise is broken.
const BROKEN: u8 = 1;
/// The exit status when a limit ended a check.
const UNFINISHED: u8 = 3;
/// The longest time spent on making a run shorter.
const SHORTENING: Duration = Duration::from_secs(30);

fn check(options: &Options) -> Result<ExitCode> {
    let output = &options.output;
    output.destination.check()?;
    output.check_trace()?;
    if let Some(path) = &output.sarif {
        output::check_file(path)?;
    }
    let mut text = String::new();
    let mut is_first = true;
    let reports = run_all(options, |report| {
        if output.json {
            return Ok(());
        }
        let before = match std::mem::take(&mut is_first) {
            true => report::functions(),
            false => String::new(),
        };
        let lines = before
            + &match options.quick {
                true => report.in_short(),
                false => report.to_string(),
            };
        match output.destination.output {
            Some(_) => text += &lines,
            // At once, since the next check may take long.
            None => output::print(&lines)?,
        }
        Ok(())
    })?;
    let once = report::of_source(&reports);
    match (output.json, &output.destination.output) {
        (true, _) => text = output::one_or_more(&reports)?,
        (false, Some(_)) => text += &once,
        (false, None) => output::print(&once)?,
    }
    if output.json || output.destination.output.is_some() {
        output.destination.write(&text)?;
    }
    if let Some(path) = &output.sarif {
        output::write_file(path, output::json(&sarif::log(&reports))?.as_bytes())?;
    }
    output.write_trace(reports.iter().filter_map(|report| {
        let found = report.counterexample.as_ref()?;
        Some((report.config(), found))
    }))?;
    let status = if reports.iter().any(|report| report.counterexample.is_some()) {
        BROKEN
    } else if reports.iter().any(CheckReport::is_cut) {
        UNFINISHED
    } else {
        0
    };
    Ok(ExitCode::from(status))
}

/// Makes all checks that the options ask for, and gives each report to `show`.
pub fn run_all(
    options: &Options,
    mut show: impl FnMut(&CheckReport) -> Result<()>,
) -> Result<Vec<CheckReport>> {
    let mut configs = Vec::new();
    for subject in options.subjects()? {
        match options.quick {
            true => configs.extend(configurations(subject.0)?),
            false => configs.extend(options.uses(subject)),
        }
    }
    let checks: Vec<(&Config, Check)> = configs
        .iter()
        .map(|config| Ok((config, Check::new(config, None).map_err(refused)?)))
        .collect::<Result<_>>()?;
    if options.output.keep.is_some() {
        ensure!(
            checks.len() == 1,
            "--keep is for one lock; choose it with --lock"
        );
        interruption::before_exit(|| STOPPED.store(true, Ordering::Relaxed));
    }
    // An interruption waits until the search is kept.
    let _whole = options
        .output
        .keep
        .as_ref()
        .map(|_| interruption::put_off());
    let limits = Limits {
        stop: options.output.keep.as_ref().map(|_| &STOPPED),
        memory: options.limits.memory.or_else(|| free_memory(1)),
        disk: options.limits.disk.or_else(free_disk),
        states: options.quick.then_some(QUICK_STATES),
        threads: threads(),
        ..options.limits
    };

    let mut reports = Vec::new();
    for of_lock in checks.chunk_by(|(one, _), (other, _)| one.lock == other.lock) {
        let begin = Instant::now();
        for (i, (config, check)) in of_lock.iter().enumerate() {
            let left = of_lock.len() - i;
            let limits = Limits {
                time: limits.time.map(|all| share(all, begin.elapsed(), left)),
                ..limits
            };
            let report = match options.checked.random(limits.time) {
                Some(plan) => random(check, config, &plan),
                None => run(check, config, &limits, options.output.keep.as_deref())?,
            };
            show(&report)?;
            reports.push(report);
        }
    }
    Ok(reports)
}

/// The number of OS threads that search.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The time for the next of `left` checks, if all checks of a lock may take `all` and those before
/// have taken `spent`.
fn share(all: Duration, spent: Duration, left: usize) -> Duration {
    all.saturating_sub(spent).div_f64(left as f64)
}

fn run(
    check: &Check,
    config: &Config,
    limits: &Limits,
    keep: Option<&Path>,
) -> Result<CheckReport> {
    let bar = progress_line(config);
    let begin = Instant::now();
    let show = &mut |coverage: &Coverage| show(&bar, begin, coverage);
    let outcome = match keep {
        Some(file) => check
            .run_kept(limits, file, show)
            .with_context(|| format!("cannot keep the search in {}", file.display()))?,
        None => check.run(limits, show),
    };
    let seconds = outcome.time.as_secs_f64();
    tracing::info!(%config, states = outcome.coverage.states, seconds, "searched");
    let counterexample = match &outcome.end {
        End::Broken(broken) => {
            bar.set_message(format!("{config}: searching for the shortest run"));
            let shorter = Limits {
                time: Some(limits.time.unwrap_or(SHORTENING).min(SHORTENING)),
                states: None,
                ..*limits
            };
            let shortest = check.shorten(&shorter, broken.clone());
            Some(Counterexample::new(check, shortest))
        }
        _ => None,
    };
    let stronger = match counterexample {
        Some(_) => {
            bar.set_message(format!(
                "{config}: looking for stronger orders that would do"
            ));
            remedies(config, limits).map_err(refused)?
        }
        None => Vec::new(),
    };
    bar.finish_and_clear();
    Ok(CheckReport::new(config, outcome, counterexample, stronger))
}

/// Makes random runs.
fn random(check: &Check, config: &Config, plan: &RandomRuns) -> CheckReport {
    let bar = progress::runs(plan.runs as usize, &config.to_string());
    let outcome = check.random(plan, &|so_far| bar.set_position(so_far.runs));
    bar.finish_and_clear();
    let seconds = outcome.time.as_secs_f64();
    tracing::info!(%config, runs = outcome.runs, steps = outcome.steps, seconds, "run at random");
    let counterexample = outcome
        .broken
        .clone()
        .map(|broken| Counterexample::new(check, broken));
    CheckReport::of_random_runs(config, plan, outcome, counterexample)
}

/// A line on a terminal that shows how far a check is.
fn progress_line(config: &Config) -> ProgressBar {
    progress::line("{spinner} {wide_msg}").with_message(config.to_string())
}

fn show(bar: &ProgressBar, begin: Instant, coverage: &Coverage) {
    if bar.is_hidden() {
        return;
    }
    let rate = coverage.states as f64 / begin.elapsed().as_secs_f64().max(0.001);
    bar.set_message(format!(
        "{} {}states, {} a second, {} waiting, {} MiB",
        report::grouped(coverage.states),
        if coverage.merged { "merged " } else { "" },
        report::grouped(rate as usize),
        report::grouped(coverage.waiting),
        coverage.memory >> 20,
    ));
}

/// The most bytes that a check may have on disk if no limit says so: half of the free space.
fn free_disk() -> Option<u64> {
    let free = rustix::fs::statvfs(std::env::temp_dir()).ok()?;
    Some(free.f_bavail * free.f_frsize / 2)
}

fn replay(text: &str, options: &Options) -> Result<ExitCode> {
    options.output.destination.check()?;
    options.output.check_trace()?;
    if let Some(source) = options.file.as_ref().or(options.source.as_ref()) {
        load_source(source, &options.functions.functions)?;
    }
    let token: Token = text.parse().context("cannot replay")?;
    let check = Check::new(&token.config, token.mutation).map_err(refused)?;
    let broken = token.replay(&check).context("cannot replay")?;
    let counterexample = Counterexample::new(&check, broken);
    let text = match options.output.json {
        true => output::json(&report::Replay::new(&token, &counterexample))?,
        false => report::replayed(&token, &counterexample),
    };
    options.output.destination.write(&text)?;
    options
        .output
        .write_trace([(&token.config, &counterexample)].into_iter())?;
    Ok(ExitCode::from(BROKEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_a_lock_share_its_time() {
        let seconds = Duration::from_secs;
        assert_eq!(share(seconds(12), seconds(0), 12), seconds(1));
        // Quick checks leave their time to those after them.
        assert_eq!(share(seconds(12), seconds(2), 2), seconds(5));
        assert_eq!(share(seconds(12), seconds(13), 2), seconds(0));
    }
}
