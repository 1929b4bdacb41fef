//! Runs a program under a lock, and verifies that this lock served it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::process::{self, Process};

/// Runs programs under a lock.
#[derive(Clone, Copy, Debug)]
pub struct Runner<'a> {
    /// The `lockworks` command.
    pub lockworks: &'a Path,
    /// The lock of Lockworks. None: glibc's own.
    pub lock: Option<&'a str>,
}

impl Runner<'_> {
    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.lock.unwrap_or("glibc")
    }

    /// A command that runs the program under the lock. The preload library names the lock on
    /// standard error.
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

    /// Fails if another lock served the process.
    pub(crate) fn check(&self, process: &Process) -> Result<()> {
        let said = process.stderr();
        let said = said.lines().find(|line| line.starts_with("lockworks: "));
        let expected = self
            .lock
            .map(|lock| format!("lockworks: '{lock}' serves process {} (", process.id()));
        let is_as_expected = match (said, &expected) {
            (Some(said), Some(expected)) => said.starts_with(expected),
            (said, expected) => said.is_none() && expected.is_none(),
        };
        ensure!(
            is_as_expected,
            "the program should have printed {expected:?}, and printed {said:?}"
        );
        Ok(())
    }
}
