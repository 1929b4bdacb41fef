//! Points and results as lines of JSON, for engines that run points in other processes: `lockworks
//! points` reads points and writes results, and `lockworks sweep import` puts results into a store.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use clap::value_parser;
use serde::Serialize;
use serde_json::Value;

use super::engine;
use super::point::{Outcome, Point, VERSION};
use super::store::{Store, Writer};
use crate::{interruption, output};

/// Run points that standard input gives, for engines that distribute a sweep.
#[derive(clap::Args)]
#[command(after_help = "\
Each line of standard input is a point, as `lockworks sweep PLAN.toml --pending` prints them. The \
first line of standard output has the version of this program. Then each point that is done gives \
a line with its result, or with its error if it failed; `lockworks sweep import` reads these lines. \
The exit status is 0 also if points failed.

Examples:
  lockworks sweep plan.toml --pending | lockworks points --jobs 4 > results.jsonl
  lockworks sweep import plan.results.sqlite < results.jsonl")]
pub struct PointsArgs {
    /// Number of points that run at the same time [default: the CPUs of this machine]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Put results of `lockworks points`, which standard input gives, into a store.
#[derive(clap::Args)]
#[command(after_help = "\
A result replaces a failure of the same point, and nothing else.

Examples:
  lockworks sweep import plan.results.sqlite < results.jsonl")]
pub struct ImportArgs {
    /// The store; it is made if it does not exist
    #[arg(value_name = "STORE")]
    store: PathBuf,
}

/// The key of the first line of `lockworks points`, whose value is the version.
const HEADER: &str = "lockworks";

/// A value as a line of JSON.
pub fn line(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}

/// The lines of standard input.
#[derive(Default)]
struct Input {
    /// The number of lines that were read.
    lines: usize,
}

impl Input {
    /// The next line that is not empty, as `parse` reads it. None: there is no more line.
    fn next<T>(&mut self, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        loop {
            let mut text = String::new();
            self.lines += 1;
            let place = format!("line {} of standard input", self.lines);
            if io::stdin().read_line(&mut text).context(place.clone())? == 0 {
                return Ok(None);
            }
            if !text.trim().is_empty() {
                return parse(&text).map(Some).context(place);
            }
        }
    }
}

fn point(line: &str) -> Result<Point> {
    let point: Point = serde_json::from_str(line)
        .context("this is no point; `lockworks sweep PLAN.toml --pending` prints points")?;
    ensure!(
        point.version == VERSION,
        "the point is of lockworks {}, and this is {VERSION}; use the same lockworks for both",
        point.version
    );
    Ok(point)
}

/// Runs `lockworks points`.
pub fn points(args: &PointsArgs) -> Result<ExitCode> {
    output::print(&line(&serde_json::json!({ HEADER: VERSION }))?)?;
    let jobs = args.jobs.map_or_else(engine::default_jobs, usize::from);
    let input = Mutex::new(Input::default());
    let failure = Failure::default();
    let next = || {
        let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
        failure
            .none_yet()
            .then(|| failure.caught(input.next(point)))??
    };
    engine::run(jobs, next, |outcome| {
        let _whole = interruption::put_off();
        failure.caught(line(&outcome).and_then(|text| output::print(&text)));
    });
    failure.result().map(|()| ExitCode::SUCCESS)
}

/// The first error of several threads.
#[derive(Default)]
pub struct Failure(Mutex<Option<anyhow::Error>>);

impl Failure {
    /// Whether there was no error yet.
    pub fn none_yet(&self) -> bool {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.is_none()
    }

    /// The value of a result. An error is kept if it is the first.
    pub fn caught<T>(&self, result: Result<T>) -> Option<T> {
        let keep = |error| {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        };
        result.map_err(keep).ok()
    }

    /// The first error.
    pub fn result(self) -> Result<()> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The outcome in a line. None: the line is the first one of `lockworks points`.
fn outcome(line: &str) -> Result<Option<Outcome>> {
    let no_result = "this is no result; `lockworks points` prints results";
    let value: Value = serde_json::from_str(line).context(no_result)?;
    if value.get(HEADER).is_some() {
        return Ok(None);
    }
    let outcome: Outcome = serde_json::from_value(value).context(no_result)?;
    ensure!(
        outcome.key == outcome.point.key(),
        "key {} is not that of the point; import what `lockworks points` printed",
        outcome.key
    );
    Ok(Some(outcome))
}

/// Runs `lockworks sweep import`.
pub fn import(args: &ImportArgs) -> Result<ExitCode> {
    let store = Store::open(&args.store)?;
    let before = store.keys()?.all.len();
    let mut writer = Writer::new(store);
    let mut input = Input::default();
    let mut read = 0;
    // Lines before a wrong one are kept.
    let end = loop {
        match input.next(outcome) {
            Ok(None) => break Ok(()),
            Ok(Some(None)) => {}
            Ok(Some(Some(outcome))) => {
                read += 1;
                writer.add(outcome)?;
            }
            Err(error) => break Err(error),
        }
    };
    let new = writer.store()?.keys()?.all.len() - before;
    end?;
    output::print(&format!(
        "{read} results read, {new} of them new in {}\n",
        args.store.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
