//! CPython's own tests of threads.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::process::Process;
use crate::{LoadOutcome, Program, Runner, Size};

/// Debian's interpreter, with the part of its test suite that Debian ships.
pub struct Python;

/// Asks the preload library which lock serves the process, then runs the tests.
///
/// The library must not name the lock on standard error, because tests read everything there.
///
/// Some tests send SIGINT to themselves. A shell starts background processes with SIGINT ignored,
/// so the script sets Python's handler again.
const SCRIPT: &str = "\
import ctypes, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    name = ctypes.CDLL(None).lw_preload_lock_name
    name.restype = ctypes.c_char_p
    print(name().decode(), flush=True)
except AttributeError:
    print('glibc', flush=True)
sys.argv[1:] = ['-v', 'test_thread', 'test_threading']
runpy.run_module('test', run_name='__main__')";

impl Program for Python {
    fn name(&self) -> &'static str {
        "CPython's tests"
    }

    fn operation(&self) -> &'static str {
        "test"
    }

    fn needs(&self) -> Vec<PathBuf> {
        vec!["/usr/bin/python3".into()]
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[1], &[1])
    }

    fn run(&self, runner: &Runner, _clients: usize, _size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let mut process = Process::start(
            "python3 -m test",
            runner
                .command("/usr/bin/python3")
                .args(["-c", SCRIPT])
                .env_remove("LOCKWORKS_VERBOSE")
                .current_dir(directory.path()),
        )?;
        let printed = process.finish()?;
        let served = printed.lines().next();
        ensure!(
            served == Some(runner.name()),
            "{served:?} served, not {}",
            runner.name()
        );
        outcome(&printed)
    }
}

/// The outcome from the summary of each file: `Ran 24 tests in 0.693s`, an empty line, `OK (skipped=1)`.
fn outcome(printed: &str) -> Result<LoadOutcome> {
    let (mut results, mut all, mut seconds) = (String::new(), 0.0, 0.0);
    for summary in printed.split("\nRan ").skip(1) {
        let mut lines = summary.lines();
        let (tests, time) = lines
            .next()
            .and_then(|line| line.split_once(" tests in "))
            .context("python3 -m test printed a summary without the number of tests")?;
        let verdict = lines.nth(1).unwrap_or_default();
        results += &format!("{tests} tests: {verdict}\n");
        all += tests.parse::<f64>()?;
        seconds += time.trim_end_matches('s').parse::<f64>()?;
    }
    ensure!(all > 0.0, "python3 -m test has no tests:\n{printed}");
    Ok(LoadOutcome {
        results,
        per_second: all / seconds,
    })
}
