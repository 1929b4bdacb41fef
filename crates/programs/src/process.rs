//! A child process whose output is kept.

use std::fs::{self, File};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::children::{self, Ending, Running};

/// A process that has not answered or ended after this time counts as hanging.
const WATCHDOG: Duration = Duration::from_secs(300);

/// The time between two polls for an answer or an end.
const POLL: Duration = Duration::from_millis(10);

/// How many lines of a failed process's output are shown.
const SHOWN: usize = 20;

/// A command that the system ends if this process ends, and that prints in English.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = children::command(program, Ending::Killed);
    command.env("LC_ALL", "C");
    command
}

/// A running process.
pub struct Process {
    running: Running,
    name: String,
    output: TempDir,
}

impl Process {
    /// Starts a process. Messages call it `name`.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let output = tempfile::tempdir()?;
        command
            .stdout(File::create(output.path().join("stdout"))?)
            .stderr(File::create(output.path().join("stderr"))?);
        let running = Running::start(command, Ending::Killed)
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            running,
            name: name.to_string(),
            output,
        })
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// The standard output of the process so far.
    pub fn stdout(&self) -> String {
        self.printed("stdout")
    }

    /// The standard error of the process so far.
    pub fn stderr(&self) -> String {
        self.printed("stderr")
    }

    fn printed(&self, stream: &str) -> String {
        let bytes = fs::read(self.output.path().join(stream)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until `answers` is true.
    pub fn wait_until(&mut self, mut answers: impl FnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        while !answers() {
            if let Some(status) = self.running.try_wait()? {
                bail!(
                    "{} ended before it answered: {status}{}",
                    self.name,
                    self.tail()
                );
            }
            self.check(start)?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until the process ends and returns its standard output. An error if the process
    /// failed.
    pub fn finish(&mut self) -> Result<String> {
        let status = self.wait()?;
        ensure!(
            status.success(),
            "{} failed: {status}{}",
            self.name,
            self.tail()
        );
        Ok(self.stdout())
    }

    /// Asks the process to end and waits until it has ended. An error if the process failed.
    pub fn terminate(&mut self) -> Result<()> {
        self.running.ask_to_end()?;
        self.finish().map(drop)
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.running.try_wait()? {
                return Ok(status);
            }
            self.check(start)?;
            thread::sleep(POLL);
        }
    }

    fn check(&self, start: Instant) -> Result<()> {
        ensure!(
            start.elapsed() < WATCHDOG,
            "{} hangs: no answer and no end within {} s{}",
            self.name,
            WATCHDOG.as_secs(),
            self.tail()
        );
        Ok(())
    }

    fn tail(&self) -> String {
        let printed = self.stdout() + &self.stderr();
        let lines: Vec<&str> = printed.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN)..];
        shown.iter().map(|line| format!("\n  {line}")).collect()
    }
}

/// Runs a command to its end and returns its standard output. An error if the command failed.
pub fn output(name: &str, command: &mut Command) -> Result<String> {
    Process::start(name, command)?.finish()
}
