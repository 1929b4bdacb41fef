//! One run of the program, with its times and context switches.

use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use lockworks::LockType;
use lockworks_programs::children::{self, Ending, Running};
use lockworks_ui::{interruption, terminal};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use regex::Regex;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::library::SERVED_FILE;
use crate::plan::PLAN;
use crate::{LOCK, Library, Program};

/// The locks that a program is run with.
#[derive(Clone)]
pub enum Contestant {
    /// glibc's own locks.
    Glibc,
    /// A lock of Lockworks in the program's mutexes.
    Lock(&'static LockType),
    /// The locks of the plan in this file, and glibc's.
    Plan(Arc<Path>),
}

impl Contestant {
    /// The contestant's name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Lock(lock) => lock.name(),
            Self::Plan(_) => "plan",
        }
    }
}

/// The value that is compared.
#[derive(Clone)]
pub enum Measure {
    /// The time from start to end, in seconds.
    WallTime,
    /// A figure that the program prints.
    Figure {
        /// The expression. The last match of its first group is the figure.
        pattern: Regex,
        /// Whether a lower figure is better.
        lower_is_better: bool,
    },
}

impl Measure {
    /// Whether a lower value is better.
    pub fn lower_is_better(&self) -> bool {
        match self {
            Self::WallTime => true,
            Self::Figure {
                lower_is_better, ..
            } => *lower_is_better,
        }
    }
}

/// A run that ended with status 0, with its times and context switches.
#[derive(Serialize)]
pub struct ProgramRun {
    /// The value that is compared.
    pub value: f64,
    /// Seconds from start to end.
    pub wall_s: f64,
    /// Seconds that the program was on CPUs.
    pub user_s: f64,
    /// Seconds that the kernel was on CPUs for it.
    pub system_s: f64,
    /// How often a thread left its CPU to wait.
    pub voluntary_switches: i64,
    /// How often a thread was preempted.
    pub involuntary_switches: i64,
    /// Whether a process with threads locked a mutex that a lock of Lockworks serves.
    #[serde(skip)]
    pub is_served: bool,
    /// The warning of the preload library.
    #[serde(skip)]
    pub warning: Option<String>,
}

/// How a run ended.
pub enum RunOutcome {
    /// The program ended with status 0.
    Ended(ProgramRun),
    /// The program failed.
    Failed(Failure),
}

/// A run that failed.
pub struct Failure {
    status: ExitStatus,
    /// The time after which the run was given up.
    given_up: Option<Duration>,
    output: String,
}

impl Failure {
    /// The error for a failed run with glibc's locks: the other locks then have nothing to be
    /// compared with.
    pub fn under_glibc(&self) -> anyhow::Error {
        anyhow!("the program fails with glibc's locks too: {self}")
    }

    /// How the program ended.
    pub fn status(&self) -> String {
        if let Some(limit) = self.given_up {
            return format!("given up after {:.0} s", limit.as_secs_f64());
        }
        match self.status.signal() {
            Some(signal) => format!("killed by signal {signal}"),
            None => format!("exit status {}", self.status.code().unwrap_or_default()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; {}", self.status(), printed(&self.output))
    }
}

/// The file of one byte that a process with threads sets if a lock of Lockworks serves it.
pub struct ServedByte(NamedTempFile);

impl ServedByte {
    /// Makes the file.
    pub fn new() -> Result<Self> {
        let make = || {
            let file = NamedTempFile::new()?;
            interruption::removes(file.path());
            // The process that is served may be of another user.
            let all = Permissions::from_mode(0o666);
            file.as_file().set_permissions(all)?;
            file.as_file().set_len(1)?;
            Ok::<_, io::Error>(file)
        };
        let file = make()
            .context("cannot make a temporary file; set TMPDIR to a directory with some room")?;
        Ok(Self(file))
    }

    /// Returns whether it was set, and clears it.
    fn take(&self) -> io::Result<bool> {
        let mut byte = [0];
        self.0.as_file().read_exact_at(&mut byte, 0)?;
        self.0.as_file().write_all_at(&[0], 0)?;
        Ok(byte != [0])
    }
}

/// Runs the program once, for `limit` at most.
pub fn run(
    program: &Program,
    library: &Library,
    served: &ServedByte,
    contestant: &Contestant,
    measure: &Measure,
    limit: Option<Duration>,
) -> Result<RunOutcome> {
    let mut command = match contestant {
        Contestant::Glibc => program.command(),
        Contestant::Lock(lock) => {
            let mut command = program.command_served(library);
            command.env(LOCK, lock.name());
            command.env_remove(PLAN);
            command
        }
        Contestant::Plan(path) => {
            let mut command = program.command_served(library);
            command.env(PLAN, path.as_os_str());
            command
        }
    };
    command.env(SERVED_FILE, served.0.path());
    // A file does not fill up as a pipe does, and does not stay open as long as a child of the program.
    let mut capture = tempfile::tempfile().context("cannot keep the program's output")?;
    command.stdin(Stdio::null());
    command.stdout(capture.try_clone()?);
    command.stderr(capture.try_clone()?);

    let before = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let begin = Instant::now();
    let mut running =
        Running::start(&mut command, Ending::Asked).map_err(|error| program.not_started(error))?;
    let (status, mut given_up) = match limit {
        Some(limit) => {
            let (status, late) = running.wait_for(limit)?;
            (status, late.then_some(limit))
        }
        None => (running.wait()?, None),
    };
    // A program that puts itself into the background has not ended yet.
    let is_late = || !status.success() || limit.is_some_and(|limit| begin.elapsed() > limit);
    let ended = Instant::now();
    let left = children::wait_for_left(|left| say_once(left, ended), is_late);
    if let Some(warning) = left.warning() {
        terminal::warn(&warning);
    }
    if left.were_ended && status.success() {
        given_up = limit;
    }
    let wall_s = begin.elapsed().as_secs_f64();
    let after = getrusage(UsageWho::RUSAGE_CHILDREN)?;

    tracing::debug!(lock = contestant.name(), seconds = wall_s, %status, "run");
    let output = read(&mut capture)?;
    let is_served = served.take()?;
    if !status.success() || given_up.is_some() {
        return Ok(RunOutcome::Failed(Failure {
            status,
            given_up,
            output,
        }));
    }
    let value = match measure {
        Measure::WallTime => wall_s,
        Measure::Figure { pattern, .. } => {
            figure(pattern, &output).with_context(|| format!("run under {}", contestant.name()))?
        }
    };
    let seconds = |time: fn(&Usage) -> nix::sys::time::TimeVal| {
        (time(&after) - time(&before)).num_microseconds() as f64 / 1e6
    };
    let times = |count: fn(&Usage) -> i64| count(&after) - count(&before);
    let warning = output.lines().find(|line| line.starts_with("lockworks: "));
    Ok(RunOutcome::Ended(ProgramRun {
        value,
        wall_s,
        user_s: seconds(Usage::user_time),
        system_s: seconds(Usage::system_time),
        voluntary_switches: times(Usage::voluntary_context_switches),
        involuntary_switches: times(Usage::involuntary_context_switches),
        is_served,
        warning: warning.map(str::to_owned),
    }))
}

/// Says once, in all runs, what is waited for since the program has ended, unless that ends soon.
fn say_once(left: &[Pid], ended: Instant) {
    static SAID: Once = Once::new();
    let is_long = ended.elapsed() > Duration::from_secs(10);
    if let (Some(first), true) = (left.first(), is_long) {
        SAID.call_once(|| {
            terminal::warn(&format!(
                "the program has left process {first} in the background, and a run takes until that ends; to end it, \
                 interrupt (^C)"
            ));
        });
    }
}

fn read(capture: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    capture.rewind()?;
    capture.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The figure in the program's output.
fn figure(pattern: &Regex, output: &str) -> Result<f64> {
    let Some(found) = pattern
        .captures_iter(output)
        .filter_map(|c| c.get(1))
        .last()
    else {
        bail!("--metric '{pattern}' matches nothing; {}", printed(output));
    };
    let text = found.as_str().trim();
    let value: f64 = text
        .parse()
        .map_err(|_| anyhow!("--metric '{pattern}' matches '{text}', which is no number"))?;
    // Ratios of figures are taken, so they must be positive.
    ensure!(
        value.is_finite() && value > 0.0,
        "--metric '{pattern}' matches {text}; only figures above 0 can be compared"
    );
    Ok(value)
}

/// The end of the program's output, for messages.
fn printed(output: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = output.trim_end().lines().collect();
    if lines.is_empty() {
        return "it printed nothing".to_owned();
    }
    let (what, from) = match lines.len().checked_sub(LINES) {
        None | Some(0) => ("it printed:".to_owned(), 0),
        Some(from) => (format!("the last {LINES} lines that it printed:"), from),
    };
    format!("{what}\n  {}", lines[from..].join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_of_the_group_counts() {
        let pattern = Regex::new("rate: ([0-9.e-]+)").unwrap();
        let figure = |output| figure(&pattern, output).map_err(|error| error.to_string());
        assert_eq!(figure("rate: 1\nrate: 2.5e3 /s\n"), Ok(2500.0));
        let error = figure("one\ntwo\n").unwrap_err();
        assert!(error.contains("matches nothing") && error.ends_with("one\n  two"));
        assert!(figure("rate: 0").unwrap_err().contains("above 0"));
        assert!(figure("rate: e").unwrap_err().contains("no number"));
    }

    #[test]
    fn only_the_end_of_much_is_shown() {
        assert_eq!(printed(""), "it printed nothing");
        assert_eq!(printed("a\nb\n"), "it printed:\n  a\n  b");
        let much = printed(&"x\n".repeat(21));
        assert_eq!(much.lines().count(), 21);
        assert!(much.starts_with("the last 20"));
    }
}
