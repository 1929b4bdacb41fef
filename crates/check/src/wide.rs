//! Wide random runs: more threads than a search can have, scheduled by chance.
//!
//! The threads run the same lock code under the same hooks, as tasks of the `shuttle` crate. At every
//! operation its scheduler may let another thread go on. Memory is a map from addresses to bytes:
//! operations take effect one after another, so memory orders mean nothing here. A violation found
//! here is one in any memory model, but runs without one prove nothing.

mod fault;
mod world;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Task, TaskId};

use crate::config::{Config, ConfigError};
use crate::hooks;
use crate::mutation::Mutation;
use crate::token::{seal, unseal};
use world::World;

/// The program of the threads.
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

/// The rule by which the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// A random thread among those that can go on, at every operation.
    Random,
    /// Probabilistic concurrency testing: the thread with the highest priority. Priorities are random
    /// and change at few points.
    Pct {
        /// One more than the number of points at which priorities change.
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

/// A batch of random runs.
#[derive(Clone, Copy, Debug)]
pub struct Wide<'a> {
    /// The lock, the number of threads and so on. The memory model and search bounds are ignored.
    pub config: &'a Config,
    /// The program of the threads.
    pub program: Program,
    /// The rule by which the next thread is chosen.
    pub scheduler: Scheduler,
    /// The number of runs.
    pub runs: usize,
    /// The seed of all random choices.
    pub seed: u64,
    /// A change to the lock. A changed memory order has no effect here.
    pub mutation: Option<Mutation>,
}

/// The result of random runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WideOutcome {
    /// The number of runs made.
    pub runs: usize,
    /// The number of operations and interruptions in all runs.
    pub steps: u64,
    /// The promise that the last run broke, if it broke one.
    pub violation: Option<WideViolation>,
}

/// A promise that a random run broke.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WideViolation {
    /// The kind of violation, for programs.
    pub kind: &'static str,
    /// The violation in words.
    pub text: String,
    /// The token that repeats the run, see [`WideToken`].
    pub token: String,
    /// The last operations of the run.
    pub steps: Vec<WideStep>,
}

/// An operation in a random run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WideStep {
    /// The thread.
    pub thread: usize,
    /// The source file and line.
    pub place: String,
    /// The function, the operation and its operand.
    pub operation: String,
    /// The value that the operation read or wrote.
    pub effect: String,
}

/// The number of runs after which a scheduler starts again from a new seed, so that a replay repeats
/// few runs.
const BATCH: usize = 32;

impl Wide<'_> {
    /// Makes runs until one breaks a promise or the time `limit` is reached. Calls `progress` from
    /// time to time with the number of runs made.
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
    // The world records how a run went, and bounds it, so shuttle prints nothing.
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

/// A scheduler that chooses among the threads that the world lets go on, and ends a run that has
/// broken a promise.
///
/// Lock code cannot be unwound. A task that is never scheduled again needs no unwinding, since
/// shuttle discards its stack. Everything that the task owns is leaked then, once per violation.
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
            // The random scheduler panics unless it comes to its end.
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

/// A run of a configuration. As text it is the argument of `check wide --replay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WideToken {
    /// The lock, the number of threads and so on.
    pub config: Config,
    /// The program of the threads.
    pub program: Program,
    /// The rule by which the next thread is chosen.
    pub scheduler: Scheduler,
    pub(crate) seed: u64,
    /// The number of the run in the batch of `seed`, from 1.
    pub(crate) run: u32,
}

/// Text that is no [`WideToken`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("this is no token of a wide run, or a damaged one; copy all of what `check wide` printed")]
pub struct WideTokenError;

impl WideToken {
    /// Repeats the run. `mutation` is not part of the token.
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
        f.write_str(&seal(&bytes))
    }
}

impl FromStr for WideToken {
    type Err = WideTokenError;

    fn from_str(text: &str) -> Result<Self, WideTokenError> {
        let bytes = unseal(text).ok_or(WideTokenError)?;
        match postcard::take_from_bytes(&bytes) {
            Ok((token, [])) => Ok(token),
            _ => Err(WideTokenError),
        }
    }
}
