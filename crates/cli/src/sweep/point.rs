//! A point: one simulation or check with all its arguments. Its key is a hash of the program's
//! version and the arguments, so equal points have equal keys, and equal results.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use super::checks::CheckPoint;
use super::simulations::SimPoint;
use super::source::ReadSources;

/// The version that results are stored under: the version of the package, and a hash of the sources
/// that results depend on.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("LOCKWORKS_SOURCES"));

/// A simulation or check with all its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The program that gives the result; [`VERSION`] for points of this program.
    pub version: String,
    /// The simulation or check.
    #[serde(flatten)]
    pub run: PointRun,
}

/// The simulation or check of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PointRun {
    /// A simulation.
    Sim(SimPoint),
    /// A check.
    Check(CheckPoint),
}

/// The outcome of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The key of the point.
    pub key: String,
    /// The point.
    pub point: Point,
    /// The result. None: the point failed before it had one.
    pub result: Option<Map<String, Value>>,
    /// Why the point failed, if it did. A violation is a failure with a result.
    pub error: Option<String>,
    /// The duration in seconds.
    pub seconds: f64,
}

/// A result, and why it counts as a failure if it does.
pub type Judged = (Option<Map<String, Value>>, Option<String>);

impl Point {
    /// The point of this program that runs `run`.
    pub fn new(run: PointRun) -> Self {
        Self {
            version: VERSION.to_owned(),
            run,
        }
    }

    /// The hash of the version and of all arguments that can change the result.
    pub fn key(&self) -> String {
        let identity = Self {
            version: self.version.clone(),
            run: match &self.run {
                PointRun::Sim(point) => PointRun::Sim(point.identity()),
                PointRun::Check(point) => PointRun::Check(point.identity()),
            },
        };
        let json = serde_json::to_string(&identity).expect("a point is JSON");
        format!("{:032x}", xxh3_128(json.as_bytes()))
    }

    /// The command that repeats the point.
    pub fn command(&self) -> String {
        let words = match &self.run {
            PointRun::Sim(point) => point.command(),
            PointRun::Check(point) => point.command(),
        };
        let words = words.iter().map(String::as_str);
        shlex::try_join(words).unwrap_or_else(|_| "a command with a NUL".to_owned())
    }

    /// Runs the point.
    pub fn result(&self, sources: &ReadSources, jobs: usize) -> Result<Judged> {
        match &self.run {
            PointRun::Sim(point) => point.result(sources),
            PointRun::Check(point) => point.result(jobs),
        }
    }
}

/// A value as the JSON of an object.
pub fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("points and results are objects"),
    }
}
