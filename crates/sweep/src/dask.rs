//! The engine that runs points on a Dask cluster. It is a part of the Python package.

use std::convert::Infallible;
use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::SweepArgs;

/// A program that fails if the engine is not installed.
const PROBE: &str = "import importlib.util, sys; \
    sys.exit(None in map(importlib.util.find_spec, ['lockworks.dask_engine', 'distributed']))";

/// Ends in the engine, which takes the place of this process. It runs the points of the plan that the
/// store does not have, and then ends in `lockworks sweep`, which reports.
///
/// # Errors
///
/// If the engine is not installed.
pub fn exec(args: &SweepArgs, plan: &Path, store: &Path) -> Result<Infallible> {
    let lockworks = env::current_exe().context("cannot find the lockworks command")?;
    let python = python(&lockworks);
    let start = || {
        let mut command = Command::new(&python);
        // A directory lockworks in the current one is not the package.
        command.env("PYTHONSAFEPATH", "1");
        command
    };
    let mut probe = start();
    probe.args(["-c", PROBE]).stderr(Stdio::null());
    let shown = python.display();
    let probed = probe.status();
    let is_there = probed.with_context(|| format!("cannot run {shown}; set LOCKWORKS_PYTHON"))?;
    if !is_there.success() {
        bail!("{shown} has no engine dask; type: pip install 'lockworks[dask]'");
    }
    let mut command = start();
    command.args(["-m", "lockworks.dask_engine"]);
    command.arg(lockworks).arg(plan).arg(store);
    let mut option = |name: &str, value: Option<String>| {
        command.args(value.map(|value| format!("--{name}={value}")));
    };
    option("scheduler", args.scheduler.clone());
    option("jobs", args.jobs.map(|jobs| jobs.to_string()));
    option("part", args.part.map(|part| part.to_string()));
    if let Some(output) = &args.output {
        command.arg("--output").arg(&output.path);
    }
    command.args(args.retry.then_some("--retry"));
    command.args(args.json.then_some("--json"));
    Err(command.exec()).with_context(|| format!("cannot run {shown}"))
}

/// The Python of the environment that this command is installed in, unless the user names one.
fn python(lockworks: &Path) -> PathBuf {
    if let Some(python) = env::var_os("LOCKWORKS_PYTHON") {
        return python.into();
    }
    let beside = lockworks.with_file_name("python3");
    match beside.exists() {
        true => beside,
        false => "python3".into(),
    }
}
