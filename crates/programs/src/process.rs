//! A process that is watched: its output is kept, and neither it nor what it starts outlives us.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Whatever takes so long hangs.
const WATCHDOG: Duration = Duration::from_secs(300);

/// How often is looked whether something has come to be.
const POLL: Duration = Duration::from_millis(10);

/// Lines of a failure's output that are shown.
const SHOWN: usize = 20;

/// A command that the system ends if the thread that started it is gone.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command.env("LC_ALL", "C");
    command
}

/// A process that runs, leader of a process group of its own.
pub struct Process {
    child: Child,
    name: String,
    output: TempDir,
}

impl Process {
    /// Starts it; `name` is for messages.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let output = tempfile::tempdir()?;
        let child = command
            .stdout(File::create(output.path().join("stdout"))?)
            .stderr(File::create(output.path().join("stderr"))?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            child,
            name: name.to_string(),
            output,
        })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        self.printed("stdout")
    }

    /// What it has printed so far on standard error.
    pub fn stderr(&self) -> String {
        self.printed("stderr")
    }

    fn printed(&self, stream: &str) -> String {
        let bytes = fs::read(self.output.path().join(stream)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until it answers.
    pub fn wait_until(&mut self, mut answers: impl FnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        while !answers() {
            if let Some(status) = self.child.try_wait()? {
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

    /// Waits until it ends, which it must with success, and gives what it has printed.
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

    /// Asks it to end, which it must.
    pub fn terminate(&mut self) -> Result<()> {
        killpg(self.group(), Signal::SIGTERM)?;
        self.finish().map(drop)
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            self.check(start)?;
            thread::sleep(POLL);
        }
    }

    fn check(&self, start: Instant) -> Result<()> {
        ensure!(
            start.elapsed() < WATCHDOG,
            "{} hangs: nothing for {} s{}",
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

    fn group(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = killpg(self.group(), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Runs a command to its end, which must be success, and gives what it has printed.
pub fn output(name: &str, command: &mut Command) -> Result<String> {
    Process::start(name, command)?.finish()
}
