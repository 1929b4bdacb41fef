//! Random reads from Debian's leveldb library. The driver, readrandom.cc, is part of this tree.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process::Process;
use crate::{LoadOutcome, Program, Runner, Size};

/// The library, loaded with Get.
pub struct Leveldb;

/// The driver, which `make programs` builds in the checkout of this command. Without a checkout there is none.
fn driver() -> PathBuf {
    crate::checkout()
        .unwrap_or("/nonexistent".as_ref())
        .join("build/programs/readrandom")
}

impl Program for Leveldb {
    fn name(&self) -> &'static str {
        "leveldb readrandom"
    }

    fn operation(&self) -> &'static str {
        "Get"
    }

    fn needs(&self) -> Vec<PathBuf> {
        vec![driver()]
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[4], &[1, 2, 8, 32])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let mut driver = Process::start(
            "readrandom",
            runner
                .command(driver())
                .args([&*clients.to_string(), size.of("0.5", "1")])
                .env("TMPDIR", directory.path()),
        )?;
        let printed = driver.finish()?;
        runner.check(&driver)?;
        let (figure, results) = printed
            .split_once(" operations a second\n")
            .with_context(|| format!("readrandom printed no figure:\n{printed}"))?;
        Ok(LoadOutcome {
            results: results.to_string(),
            per_second: figure.parse()?,
        })
    }
}
