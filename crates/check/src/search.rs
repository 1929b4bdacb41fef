//! The search through all states of a check, breadth first.
//!
//! The search keeps each state as a 128-bit hash of its bytes. Only states that are still to be
//! explored are kept whole. Several OS threads explore states, each with a model of its own; what they
//! find is added in the order of the states. So their number does not change the states of a search
//! that comes to its end. Which of the shortest violations is found first may change. What does not fit
//! into memory goes to disk.

mod expand;
mod kept;
mod known;
mod livelock;
mod progress;
mod proof;
mod queue;
mod run;
mod tape;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::num::ParseIntError;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use clap::Args;

use crate::automaton::{LocalId, Log};
use crate::cells::Findings;
use crate::check::Check;
use crate::config::{Config, Memory};
use crate::model::{Model, Stop};
use crate::mutation::Mutation;
use crate::results::{Broken, Coverage, End};
use crate::state::Histories;
use crate::violation::Violation;

use expand::{Expander, Halt};
pub use kept::KeptError;
pub(crate) use kept::{Keeper, Kept};
use progress::{Finish, Job, Output, Progress, Shared};
use proof::{Outcome, Proof};

/// The limits at which a search ends before it has explored all states. They are also options of
/// `lockworks check`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limits {
    /// Stop the check of each lock after this time in seconds; with --quick, all its configurations
    /// share it [default: no limit]
    #[arg(id = "seconds", long, value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,

    // In bytes, approximately, as is the disk.
    /// Keep to this much memory, in MiB; what does not fit goes to disk, into TMPDIR [default: half of
    /// the available memory]
    #[arg(
        id = "memory_limit",
        long = "memory-limit",
        value_name = "MIB",
        value_parser = mib,
        hide_short_help = true
    )]
    pub memory: Option<usize>,

    /// Stop when a check has this much on disk, in MiB; 0: when memory is full [default: half of the
    /// free space in TMPDIR]
    #[arg(
        id = "disk_limit",
        long = "disk-limit",
        value_name = "MIB",
        value_parser = disk_mib,
        hide_short_help = true
    )]
    pub disk: Option<u64>,

    /// The most states.
    #[arg(skip)]
    pub states: Option<usize>,

    /// The most OS threads that search.
    #[arg(skip = 1_usize)]
    pub threads: usize,

    /// The search ends soon after this is true.
    #[arg(skip)]
    pub stop: Option<&'static AtomicBool>,
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    match text.parse() {
        Ok(seconds) if 0.0 < seconds && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("give a number above 0, up to 1000000000"),
    }
}

/// Bytes, of which the text has the number in MiB.
fn mib(text: &str) -> Result<usize, ParseIntError> {
    Ok(text.parse::<usize>()?.saturating_mul(1 << 20))
}

fn disk_mib(text: &str) -> Result<u64, ParseIntError> {
    Ok(mib(text)? as u64)
}

/// The reason of [`End::Unfinished`] at the limit of states.
pub const LIMIT_OF_STATES: &str = "the limit of states is reached";

impl Limits {
    /// No limits, and one OS thread.
    pub const NONE: Self = Self {
        time: None,
        memory: None,
        disk: None,
        states: None,
        threads: 1,
        stop: None,
    };
}

/// The number of states after which a search tries a proof by states with merged histories.
pub(crate) const BEFORE_PROOF: usize = 1_000_000;

/// The number of states from which on several OS threads search.
const MANY: u32 = if cfg!(test) { 100 } else { 20_000 };

/// The time between two calls of a search's callback.
const BETWEEN_SHOWS: Duration = Duration::from_millis(100);

/// What a search needs to make more models of the check.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) config: &'a Config,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) symmetric: bool,
}

/// The options and callbacks of a search.
pub(crate) struct SearchPlan<'a> {
    pub(crate) limits: &'a Limits,
    /// Take local steps at once, without a choice between threads.
    pub(crate) reduce: bool,
    /// None: a single OS thread searches.
    pub(crate) origin: Option<Origin<'a>>,
    /// The number of states after which it tries a proof.
    pub(crate) few: usize,
    pub(crate) begin: Instant,
    /// A search to go on with.
    pub(crate) kept: Option<Kept>,
    /// Where to keep the search, and how that went.
    pub(crate) keep: Option<(Keeper<'a>, Result<(), KeptError>)>,
    /// The results of each run's end.
    pub(crate) results: BTreeSet<Vec<u64>>,
    /// Called from time to time.
    pub(crate) progress: &'a mut dyn FnMut(&Coverage),
}

/// What an OS thread has seen.
struct Seen {
    covered: Vec<bool>,
    events: [u64; 2],
    cut: bool,
    relied_on: Vec<LocalId>,
    findings: Findings,
    /// An assumption failed.
    restart: bool,
}

pub(crate) struct Search<'a, const N: usize> {
    expander: Expander<'a, N>,
    reduce: bool,
    progress: Progress,
    /// The search can go on: a limit ended it, and no state was lost.
    can_go_on: bool,
    /// The extent of a proof that has ended the search.
    proof: Option<Coverage>,
}

impl<'a, const N: usize> Search<'a, N> {
    pub(crate) fn new(mut model: Model<'a, N>, reduce: bool) -> Self {
        model.number_cells_in_order();
        Self {
            expander: Expander::new(model, reduce),
            reduce,
            progress: Progress::new(),
            can_go_on: false,
            proof: None,
        }
    }

    /// Goes on with a search.
    pub(crate) fn go_on_with(&mut self, kept: Kept) {
        self.expander
            .model
            .add_seen(&kept.covered, kept.events, kept.cut);
        for local in kept.relied_on {
            self.expander.model.automata.rely_on(local);
        }
        self.progress = kept.progress;
    }

    /// Keeps the search in a file if it can go on. Removes the file if it has come to its end.
    pub(crate) fn keep(&mut self, keeper: &Keeper, end: &End) -> Result<(), KeptError> {
        match end {
            End::Unfinished(_) if self.can_go_on => {
                kept::save(&mut self.progress, &self.expander.model, keeper)
            }
            // An older state of the search, if one was kept, is better than none.
            End::Unfinished(_) => Ok(()),
            End::Kept | End::Broken(_) => keeper.remove(),
        }
    }

    pub(crate) fn model(&self) -> &Model<'a, N> {
        &self.expander.model
    }

    pub(crate) fn into_model(self) -> Model<'a, N> {
        self.expander.model
    }

    pub(crate) fn coverage(&self) -> Coverage {
        let coverage = self.proof.unwrap_or_else(|| self.progress.coverage());
        completed(coverage, self.model())
    }

    /// Runs the search. None: an assumption failed, and the search must start again.
    pub(crate) fn run(&mut self, plan: &mut SearchPlan) -> Option<End> {
        let first = match self.expander.model.start() {
            Ok(state) => self.expander.settled(state),
            Err(stop) => Err((stop, Vec::new())),
        };
        let finish = match first {
            Err(halt) => Finish::Halt(None, halt),
            Ok(_) if !self.progress.is_new() => self.explore(plan, *plan.limits),
            Ok(successors) => {
                let mut output = Output::default();
                self.expander
                    .encode(successors, &mut output.found, &mut output.bytes);
                self.progress.begin(&output);
                self.explore_and_prove(plan)
            }
        };
        plan.results.extend(self.progress.results.iter().cloned());
        self.can_go_on = matches!(finish, Finish::Unfinished(_)) && self.progress.is_whole();
        match finish {
            Finish::Restart => None,
            Finish::Unfinished(reason) => Some(End::Unfinished(reason)),
            Finish::Halt(number, halt) => self.halted(number, halt),
            Finish::Complete => {
                if self.proof.is_some() || !self.model().automata.has_cycle() {
                    // Every run ends, and none in a deadlock.
                    return Some(End::Kept);
                }
                match self.progress.stranded() {
                    Ok(None) => Some(End::Kept),
                    Ok(number) => self.halted(number, (Violation::Livelock.into(), Vec::new())),
                    Err(error) => Some(End::Unfinished(reason(&error))),
                }
            }
        }
    }

    /// Explores all states. If there are many, tries a proof.
    fn explore_and_prove(&mut self, plan: &mut SearchPlan) -> Finish {
        let most = plan.limits.states.unwrap_or(usize::MAX);
        let few = Limits {
            states: Some(most.min(plan.few)),
            ..*plan.limits
        };
        let finish = self.explore(plan, few);
        if !matches!(finish, Finish::Unfinished(LIMIT_OF_STATES)) || most <= plan.few {
            return finish;
        }
        match self.prove(plan) {
            Outcome::Proven => Finish::Complete,
            Outcome::Open => self.explore(plan, *plan.limits),
            Outcome::Restart => Finish::Restart,
        }
    }

    /// Tries to prove with merged histories that no run breaks a promise.
    fn prove(&mut self, plan: &mut SearchPlan) -> Outcome {
        let model = &mut self.expander.model;
        let Some(origin) = plan.origin else {
            return Outcome::Open;
        };
        if model.config.memory != Memory::C11 || model.config.staleness.is_some() || !self.reduce {
            return Outcome::Open;
        }
        let happened = (model.events, model.covered.clone());
        model.histories = Histories::Merged;
        let used = self.progress.coverage().memory;
        let proof = Proof::new(plan.limits, used, plan.begin);
        let expander = &mut self.expander;
        let others = thread::scope(|scope| {
            proof.begin(expander);
            let workers: Vec<_> = (1..plan.limits.threads)
                .map(|_| {
                    let log = Arc::clone(expander.model.automata.log());
                    let findings = expander.model.findings.clone();
                    let proof = &proof;
                    scope.spawn(move || {
                        let seen = help::<N>(origin, true, log, findings, |expander| {
                            expander.model.histories = Histories::Merged;
                            proof.work(expander, &mut || {});
                        });
                        if seen.restart {
                            proof.finish(Outcome::Restart);
                        }
                        seen
                    })
                })
                .collect();
            let mut shown = Instant::now();
            let local_states = expander.model.automata.locals.len();
            proof.work(expander, &mut || {
                if shown.elapsed() > BETWEEN_SHOWS {
                    (plan.progress)(&Coverage {
                        local_states,
                        ..proof.coverage()
                    });
                    shown = Instant::now();
                }
            });
            workers.into_iter().map(joined).collect::<Vec<Seen>>()
        });
        self.expander.model.histories = Histories::Ordered;
        if self.learn_from(others) {
            return Outcome::Restart;
        }
        let coverage = proof.coverage();
        let outcome = proof.outcome();
        // States stand for more than runs reach: of what they do, only what none does is sure.
        let model = &mut self.expander.model;
        model.events = happened.0;
        if outcome == Outcome::Proven {
            self.proof = Some(Coverage {
                memory: coverage.memory + used,
                ..coverage
            });
        } else {
            model.covered = happened.1;
        }
        outcome
    }

    /// Adds what others have seen, and returns whether an assumption failed.
    fn learn_from(&mut self, others: Vec<Seen>) -> bool {
        let model = &mut self.expander.model;
        // Others may have learned something that this model relied on not to be.
        let mut restart = matches!(model.catch_up(), Err(Stop::Restart));
        for seen in others {
            restart |= seen.restart;
            model.add_seen(&seen.covered, seen.events, seen.cut);
            model.findings.add(&seen.findings);
            for local in seen.relied_on {
                model.automata.rely_on(local);
            }
        }
        restart
    }

    /// Explores all states.
    fn explore(&mut self, plan: &mut SearchPlan, limits: Limits) -> Finish {
        let progress = std::mem::replace(&mut self.progress, Progress::new());
        let shared = Shared::new(progress, limits, plan.begin);
        let others = thread::scope(|scope| {
            let _guard = shared.end_on_panic();
            let mut workers = Vec::new();
            let mut output = Output::default();
            let mut shown = plan.begin;
            while let Some(job) = shared.next_job() {
                if shown.elapsed() > BETWEEN_SHOWS {
                    (plan.progress)(&completed(shared.coverage(), &self.expander.model));
                    shown = Instant::now();
                }
                let many = job.first > MANY;
                output = work(&mut self.expander, job, output, &shared);
                if let Some(origin) = plan.origin
                    && workers.is_empty()
                    && many
                {
                    let model = &self.expander.model;
                    let reduce = self.reduce;
                    workers = (1..plan.limits.threads)
                        .map(|_| {
                            let log = Arc::clone(model.automata.log());
                            let findings = model.findings.clone();
                            let shared = &shared;
                            scope.spawn(move || {
                                let _guard = shared.end_on_panic();
                                let seen = help::<N>(origin, reduce, log, findings, |expander| {
                                    let mut output = Output::default();
                                    while let Some(job) = shared.next_job() {
                                        output = work(expander, job, output, shared);
                                    }
                                });
                                if seen.restart {
                                    shared.finish(Finish::Restart);
                                }
                                seen
                            })
                        })
                        .collect();
                }
            }
            workers.into_iter().map(joined).collect::<Vec<Seen>>()
        });
        if self.learn_from(others) {
            shared.finish(Finish::Restart);
        }
        let (progress, finish) = shared.into_parts();
        self.progress = progress;
        finish
    }

    /// The end of the search that follows from a halt in state `number`; None: before the first.
    fn halted(&mut self, number: Option<u32>, (stop, last): Halt) -> Option<End> {
        match stop {
            Stop::Restart => None,
            Stop::TooLarge(reason) => Some(End::Unfinished(reason)),
            Stop::Violation(found) => Some(match self.run_to(number, &last, found) {
                Ok((steps, violation)) => End::Broken(Broken {
                    violation,
                    steps,
                    shortest: false,
                }),
                Err(error) => End::Unfinished(reason(&error)),
            }),
        }
    }
}

/// A coverage with what the model knows.
fn completed<const N: usize>(coverage: Coverage, model: &Model<N>) -> Coverage {
    Coverage {
        local_states: model.automata.locals.len(),
        cut: model.cut,
        ..coverage
    }
}

/// The reason for which a search ends when the disk fails.
fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "memory and disk are full; TMPDIR chooses another disk"
        }
        _ => "the directory for temporary files cannot be used; TMPDIR chooses another",
    }
}

fn joined(worker: ScopedJoinHandle<'_, Seen>) -> Seen {
    worker
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Explores the states of a job, and adds what they lead to. Returns an output whose memory can be used
/// again.
fn work<const N: usize>(
    expander: &mut Expander<N>,
    job: Job,
    output: Output,
    shared: &Shared,
) -> Output {
    explored(expander, job, output).map_or_else(
        |finish| {
            shared.finish(finish);
            Output::default()
        },
        |output| shared.add(output),
    )
}

/// What the states of a job lead to.
fn explored<const N: usize>(
    expander: &mut Expander<N>,
    job: Job,
    mut output: Output,
) -> Result<Output, Finish> {
    expander.model.catch_up().map_err(|stop| match stop {
        Stop::TooLarge(reason) => Finish::Unfinished(reason),
        _ => Finish::Restart,
    })?;
    output.clear(job.first);
    for (state, known) in job.states() {
        let expanded = match known {
            Some(number) => expand::Expanded::Known(number),
            None => expander.expand(state, &mut output.found, &mut output.bytes),
        };
        if matches!(expanded, expand::Expanded::Halt((Stop::Restart, _))) {
            return Err(Finish::Restart);
        }
        let halts = matches!(expanded, expand::Expanded::Halt(_));
        output.expanded.push(expanded);
        if halts {
            break;
        }
    }
    Ok(output)
}

/// Does `work` on another OS thread, with a model of its own.
fn help<const N: usize>(
    origin: Origin,
    reduce: bool,
    log: Arc<Log>,
    mut findings: Findings,
    work: impl FnOnce(&mut Expander<N>),
) -> Seen {
    let mut check = Check::new(origin.config, origin.mutation).expect("there is such a check");
    check.symmetric = origin.symmetric;
    let mut model = check.model::<N>(&mut findings, check.automata(log));
    model.number_cells_in_order();
    let begun = model.start();
    let mut expander = Expander::new(model, reduce);
    if begun.is_ok() {
        work(&mut expander);
    }
    let mut model = expander.model;
    let restart = [begun.map(|_| ()), model.catch_up()]
        .iter()
        .any(|end| matches!(end, Err(Stop::Restart)));
    Seen {
        restart,
        covered: model.covered,
        events: model.events,
        cut: model.cut,
        relied_on: model.automata.relied_on(),
        findings: model.findings.clone(),
    }
}
