//! A process that runs already: who waits for whom, from samples of its threads. `lockworks profile --pid`
//! sums them up, and `lockworks top` shows them as they come.

mod process;
mod report;
mod sampler;
pub mod top;
mod wait;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockworks_ui::output::{self, Destination};
use lockworks_ui::{interruption, progress};

use crate::places::Places;
use process::Process;
use report::AttachReport;
use sampler::{Pace, Sampler};

/// The exit status of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// The longest that an interruption has to wait.
const STEP: Duration = Duration::from_millis(100);

/// Time after which the progress is shown.
const SILENT: Duration = Duration::from_secs(2);

/// A number of seconds.
pub fn seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("not a number of seconds between 0 and 1000000".to_owned()),
    }
}

/// Whether ^C was typed.
static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Has ^C end the samples, not this process, which has yet to report.
fn end_by_interruption() {
    interruption::before_exit(|| {
        INTERRUPT.store(true, Relaxed);
        loop {
            thread::park();
        }
    });
}

/// Sleeps. False: ^C was typed meanwhile.
fn sleep(time: Duration) -> bool {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if INTERRUPT.load(Relaxed) || left.is_zero() {
            return !INTERRUPT.load(Relaxed);
        }
        thread::sleep(left.min(STEP));
    }
}

/// Samples a process for a time, or until it has deadlocked, and reports.
pub fn profile(
    pid: u32,
    seconds: f64,
    hz: u32,
    top: usize,
    json: bool,
    destination: &Destination,
) -> Result<ExitCode> {
    let process = Process::open(pid)?;
    end_by_interruption();
    let mut places = Places::default();
    let mut sampler = Sampler::new(process, &mut places);
    let mut pace = Pace::new(hz);
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(seconds);
    let (mut line, mut is_there) = (None, true);
    let is_over = |sampler: &Sampler| sampler.found.samples > 1 && Instant::now() >= end;
    while is_there && sampler.found.deadlock.is_empty() && !is_over(&sampler) {
        let wait;
        (is_there, wait) = pace.step(|| sampler.sample(&mut places));
        if line.is_none() && begin.elapsed() > SILENT {
            let words = format!(
                "{{spinner}} process {pid}, {{elapsed}} of {seconds:.0} s; ^C reports at once"
            );
            line = Some(progress::line(&words).with_elapsed(begin.elapsed()));
        }
        if !sleep(wait.min(end.saturating_duration_since(Instant::now()))) {
            break;
        }
    }
    if let Some(line) = line {
        line.finish_and_clear();
    }
    ensure!(sampler.found.samples > 0, "process {pid} has just ended");
    let report = AttachReport::of(&mut sampler, &mut places, !is_there);
    destination.write(&match json {
        true => output::json(&report)?,
        false => report.tables(top),
    })?;
    Ok(match report.deadlock.is_empty() {
        _ if INTERRUPT.load(Relaxed) => INTERRUPTED.into(),
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
