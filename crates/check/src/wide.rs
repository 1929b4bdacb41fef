//! Wide random runs: more threads than a search can have, scheduled by chance.
//!
//! The same lock code under the same hooks, as tasks of the `shuttle` crate. Every operation is a
//! point where its scheduler may let another thread go on. Memory is a plain map from address to
//! byte: operations take effect one after another, so memory orders mean nothing here. What these
//! runs find is wrong in any memory model; what they do not find is not proven.

mod world;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Task, TaskId};

use crate::config::{Config, ConfigError};
use crate::hooks;
use crate::mutation::Mutation;
use world::World;

/// What the threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// The client of the model checker, with interruptions if the configuration has any.
    Check,
    /// The conformance client of `clients/`, which every world runs.
    Conformance,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Check => "check",
            Self::Conformance => "conformance",
        })
    }
}

/// Who goes on next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// Any thread that can, at every operation.
    Random,
    /// Probabilistic concurrency testing: the first by priority, which changes at few points.
    Pct {
        /// One more than the points at which priorities change.
        depth: u32,
    },
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "random",
            Self::Pct { .. } => "pct",
        })
    }
}

/// Random runs to be made.
#[derive(Clone, Copy, Debug)]
pub struct Wide<'a> {
    /// Which lock, how many threads and so on; memory model and bounds of a search play no part.
    pub config: &'a Config,
    /// What the threads do.
    pub program: Program,
    /// Who goes on next.
    pub scheduler: Scheduler,
    /// How many runs.
    pub runs: usize,
    /// Of all random choices.
    pub seed: u64,
    /// A change to the lock; another memory order changes nothing here.
    pub mutation: Option<Mutation>,
}

/// What came of random runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WideOutcome {
    /// Runs made.
    pub runs: usize,
    /// Operations and interruptions in them.
    pub steps: u64,
    /// What the last run broke, if it did.
    pub violation: Option<WideViolation>,
}

/// A promise that a random run broke.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WideViolation {
    /// Its kind, for programs.
    pub kind: &'static str,
    /// What happened.
    pub text: String,
    /// Makes the same run again, as [`WideToken`].
    pub token: String,
    /// The last operations of the run.
    pub steps: Vec<WideStep>,
}

/// An operation in a random run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WideStep {
    /// Who.
    pub thread: usize,
    /// Source file and line.
    pub place: String,
    /// Function, operation and operand.
    pub operation: String,
    /// What it read or wrote.
    pub effect: String,
}

/// A run of the schedulers starts afresh after so many, so that any can be had again by making few.
const BATCH: usize = 32;

impl Wide<'_> {
    /// Makes the runs until one breaks a promise or `limit` is over. `progress` is told now and
    /// then how many were made.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn run(
        &self,
        limit: Option<Duration>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<WideOutcome, ConfigError> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut seeds = Pcg64::seed_from_u64(self.seed);
        let mut sum = WideOutcome {
            runs: 0,
            steps: 0,
            violation: None,
        };
        while sum.runs < self.runs && sum.violation.is_none() {
            let runs = BATCH.min(self.runs - sum.runs);
            let batch = self.batch(seeds.random(), runs, deadline)?;
            sum.runs += batch.runs;
            sum.steps += batch.steps;
            sum.violation = batch.violation;
            progress(sum.runs);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
        }
        Ok(sum)
    }

    fn batch(
        &self,
        seed: u64,
        runs: usize,
        deadline: Option<Instant>,
    ) -> Result<WideOutcome, ConfigError> {
        let lock = self.config.validate_wide()?;
        let world = Arc::new(World::new(
            self.config.clone(),
            lock,
            self.program,
            self.mutation,
        ));
        match self.scheduler {
            Scheduler::Random => {
                let inner = RandomScheduler::new_from_seed(seed, runs);
                execute(&world, inner, deadline);
            }
            Scheduler::Pct { depth } => {
                let inner = PctScheduler::new_from_seed(seed, depth.max(1) as usize, runs);
                execute(&world, inner, deadline);
            }
        }
        let (runs, steps, fault) = world.outcome();
        let violation = fault.map(|fault| WideViolation {
            kind: fault.name(),
            text: fault.to_string(),
            token: WideToken {
                config: self.config.clone(),
                program: self.program,
                scheduler: self.scheduler,
                seed,
                run: runs as u32,
            }
            .to_string(),
            steps: world.steps(),
        });
        Ok(WideOutcome {
            runs,
            steps,
            violation,
        })
    }
}

fn execute<S>(world: &Arc<World>, inner: S, deadline: Option<Instant>)
where
    S: shuttle::scheduler::Scheduler + 'static,
{
    let mut config = shuttle::Config::new();
    // How a run went is in the world, which also bounds it; shuttle shall print nothing.
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::None;
    config.silence_warnings = true;
    let scheduler = Guided {
        inner,
        world: Arc::clone(world),
        deadline,
    };
    let _guard = hooks::enter(&**world);
    let threads = Arc::clone(world);
    shuttle::Runner::new(scheduler, config).run(move || threads.run_threads());
}

/// Chooses among the threads that the world lets go on, and ends a run that has broken a promise.
///
/// Lock code cannot be unwound. A task that is never scheduled again needs no unwinding: shuttle
/// discards its stack. That way what the task owns is leaked, once for each violation.
struct Guided<S> {
    inner: S,
    world: Arc<World>,
    deadline: Option<Instant>,
}

impl<S: shuttle::scheduler::Scheduler> shuttle::scheduler::Scheduler for Guided<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        let late = self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        if late || self.world.is_broken() {
            // The random scheduler complains unless it comes to its end.
            while self.inner.new_execution().is_some() {}
            return None;
        }
        let schedule = self.inner.new_execution()?;
        self.world.start();
        Some(schedule)
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let ready = self.world.ready(runnable)?;
        self.inner.next_task(&ready, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}

/// Which run of which configuration; as text, what `--replay` takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WideToken {
    /// Which lock, how many threads and so on.
    pub config: Config,
    /// What the threads did.
    pub program: Program,
    /// Who went on next.
    pub scheduler: Scheduler,
    seed: u64,
    /// Its place in the batch that `seed` makes, from 1.
    run: u32,
}

/// Text that is no [`WideToken`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("this is no token of a wide run; give one as `check wide` has printed it")]
pub struct WideTokenError;

impl WideToken {
    /// Makes the run again; `mutation` is not part of the token.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn replay(&self, mutation: Option<Mutation>) -> Result<WideOutcome, ConfigError> {
        let wide = Wide {
            config: &self.config,
            program: self.program,
            scheduler: self.scheduler,
            runs: self.run as usize,
            seed: self.seed,
            mutation,
        };
        wide.batch(self.seed, BATCH.min(self.run as usize), None)
    }
}

impl fmt::Display for WideToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for WideToken {
    type Err = WideTokenError;

    fn from_str(text: &str) -> Result<Self, WideTokenError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim())
            .map_err(|_| WideTokenError)?;
        match postcard::take_from_bytes(&bytes) {
            Ok((token, [])) => Ok(token),
            _ => Err(WideTokenError),
        }
    }
}
