//! stress-ng's stressors of mutexes and of condition variables.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process::Process;
use crate::{LoadOutcome, Program, Runner, Size};

/// Two stressors: threads of `mutex` change their priorities, threads of `pthread` wait for a condition
/// variable.
pub struct StressNg;

impl Program for StressNg {
    fn name(&self) -> &'static str {
        "stress-ng"
    }

    fn operation(&self) -> &'static str {
        "lock of a mutex"
    }

    fn needs(&self) -> Vec<PathBuf> {
        vec!["stress-ng".into()]
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[2], &[2])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        // Its threads take real-time priorities, at most 7/8 of the highest, and may keep every CPU. An
        // instance that begins beside them may get no CPU in its time, and reports that as a failure to
        // create threads. So instances begin with the highest priority.
        let priority: &[_] = if may_be_real_time() {
            &["--sched", "rr", "--sched-prio", "99"]
        } else {
            &[]
        };
        let per_second = stress(runner, "mutex", clients, size, priority)?;
        stress(runner, "pthread", clients, size, &["--pthread-max", "32"])?;
        Ok(LoadOutcome {
            results: "verified\n".to_string(),
            per_second,
        })
    }
}

/// Whether this process may give others real-time priorities; root of a container often may not.
fn may_be_real_time() -> bool {
    let mut chrt = Command::new("chrt");
    chrt.args(["--rr", "99", "true"]).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}

/// Runs one stressor for a time and returns its operations a second. A limit on the number of
/// operations would not work: an instance that starts after the others have reached it reports a
/// failure.
fn stress(
    runner: &Runner,
    stressor: &str,
    instances: usize,
    size: Size,
    options: &[&str],
) -> Result<f64> {
    let directory = tempfile::tempdir()?;
    let mut process = Process::start(
        "stress-ng",
        runner
            .command("stress-ng")
            .args([format!("--{stressor}"), instances.to_string()])
            .args(["--timeout", size.of("1", "2")])
            .args(options)
            .args(["--verify", "--metrics-brief", "--temp-path"])
            .arg(directory.path()),
    )?;
    process.finish()?;
    runner.check(&process)?;
    let printed = process.stdout() + &process.stderr();
    // stress-ng: metrc: [pid] stressor operations seconds user system operations/s ...
    let figures = printed
        .lines()
        .find_map(|line| {
            let mut words = line.split_whitespace().skip(3);
            let mut figures = (words.next()? == stressor).then_some(words)?;
            let done: f64 = figures.next()?.parse().ok()?;
            Some((done, figures.nth(3)?.parse().ok()?))
        })
        .with_context(|| format!("stress-ng printed no metrics of {stressor}:\n{printed}"))?;
    let (done, per_second) = figures;
    ensure!(done > 0.0, "stress-ng's {stressor} made no operations");
    ensure!(
        printed.contains("successful run completed") && !printed.contains("fail"),
        "stress-ng's {stressor} found mistakes:\n{printed}"
    );
    Ok(per_second)
}
