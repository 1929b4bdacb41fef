//! Under which lock a program runs, and the proof of it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::process::{self, Process};

/// What is in a program's mutexes.
#[derive(Clone, Copy, Debug)]
pub struct Runner<'a> {
    /// The `lockworks` command.
    pub lockworks: &'a Path,
    /// A lock of ours; None: the program is left to glibc.
    pub lock: Option<&'a str>,
}

impl Runner<'_> {
    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.lock.unwrap_or("glibc")
    }

    /// The program, under the lock; it says so on standard error.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self.lock {
            None => process::command(program),
            Some(lock) => {
                let mut command = process::command(self.lockworks);
                command.args(["run", "--lock", lock, "--"]).arg(program);
                command.env("LOCKWORKS_VERBOSE", "1");
                command
            }
        };
        command.env_remove("LD_PRELOAD");
        command
    }

    /// Was it this lock that served the process?
    pub(crate) fn check(&self, process: &Process) -> Result<()> {
        let said = process.stderr();
        let said = said.lines().find(|line| line.starts_with("lockworks: "));
        let expected = self
            .lock
            .map(|lock| format!("lockworks: '{lock}' serves process {}", process.id()));
        ensure!(
            said == expected.as_deref(),
            "expected {expected:?} of the program, which said {said:?}"
        );
        Ok(())
    }
}
