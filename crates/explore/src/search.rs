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

use std::collections::BTreeSet;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::limits::{LIMIT_OF_STATES, Limits, reason};
use crate::model::{Model, Stop};
use crate::results::{Broken, Coverage, End};

pub use expand::{Encoded, Expanded, Expander, Halt};
pub use kept::{Keeper, Kept, KeptError};
use progress::{Finish, Job, Output, Progress, Shared};
pub use proof::{Outcome, Proof};

/// The time between two calls of a search's callback.
const BETWEEN_SHOWS: Duration = Duration::from_millis(100);

/// The options and callbacks of a search.
pub struct SearchPlan<'a> {
    /// Its limits.
    pub limits: &'a Limits,
    /// Take local steps at once, without a choice between threads.
    pub reduce: bool,
    /// The number of states after which it tries a proof by states with merged histories.
    pub few: usize,
    /// The number of states from which on several OS threads search.
    pub many: u32,
    /// When it began.
    pub begin: Instant,
    /// The results of each run's end.
    pub results: BTreeSet<Vec<u64>>,
    /// Called from time to time.
    pub progress: &'a mut dyn FnMut(&Coverage),
}

/// Makes another model of the check, on another OS thread. None: a single OS thread searches.
pub type More<'a, M> = Option<&'a (dyn Fn(<M as Model>::Seed) -> M + Sync)>;

/// The findings of an OS thread, and whether an assumption failed.
type Helped<M> = (<M as Model>::Seen, bool);

/// A search through all states of a model.
pub struct Search<M: Model> {
    expander: Expander<M>,
    progress: Progress,
    /// The search can go on: a limit ended it, and no state was lost.
    can_go_on: bool,
    /// The extent of a proof that has ended the search.
    proof: Option<Coverage>,
}

impl<M: Model> Search<M> {
    /// `reduce`: take local steps at once, without a choice between threads.
    pub fn new(model: M, reduce: bool) -> Self {
        Self {
            expander: Expander::new(model, reduce),
            progress: Progress::new(),
            can_go_on: false,
            proof: None,
        }
    }

    /// Goes on with a search.
    pub fn go_on_with(&mut self, kept: Kept<M::Seen>) {
        self.expander.model.add_seen(kept.seen);
        self.progress = kept.progress;
    }

    /// Keeps the search in a file if it can go on. Removes the file if it has come to its end.
    ///
    /// # Errors
    /// See [`KeptError`].
    pub fn keep(&mut self, keeper: &Keeper, end: &End<M::Violation>) -> Result<(), KeptError> {
        match end {
            End::Unfinished(_) if self.can_go_on => {
                kept::save(&mut self.progress, &self.expander.model, keeper)
            }
            // An older state of the search, if one was kept, is better than none.
            End::Unfinished(_) => Ok(()),
            End::Kept | End::Broken(_) => keeper.remove(),
        }
    }

    /// The model, with all that it has found.
    pub fn into_model(self) -> M {
        self.expander.model
    }

    /// The extent of the search.
    pub fn coverage(&self) -> Coverage {
        let coverage = self.proof.unwrap_or_else(|| self.progress.coverage());
        completed(coverage, &self.expander.model)
    }

    /// Runs the search. None: an assumption failed, and the search must start again.
    pub fn run(&mut self, plan: &mut SearchPlan, more: More<M>) -> Option<End<M::Violation>> {
        let first = match self.expander.model.start() {
            Ok(state) => self.expander.settled(state),
            Err(stop) => Err((stop, Vec::new())),
        };
        let finish = match first {
            Err(halt) => Finish::Halt(None, halt),
            Ok(_) if !self.progress.is_new() => self.explore(plan, more, *plan.limits),
            Ok(successors) => {
                let (mut found, mut bytes) = (Vec::new(), Vec::new());
                self.expander.encode(successors, &mut found, &mut bytes);
                self.progress.begin(&found, &bytes);
                self.explore_and_prove(plan, more)
            }
        };
        plan.results.extend(self.progress.results.iter().cloned());
        self.can_go_on = matches!(finish, Finish::Unfinished(_)) && self.progress.is_whole();
        match finish {
            Finish::Restart => None,
            Finish::Unfinished(reason) => Some(End::Unfinished(reason)),
            Finish::Halt(number, halt) => self.halted(number, halt),
            Finish::Complete => {
                if self.proof.is_some() || !self.expander.model.has_cycle() {
                    // Every run ends, and none in a deadlock.
                    return Some(End::Kept);
                }
                match self.progress.stranded() {
                    Ok(None) => Some(End::Kept),
                    Ok(number) => self.halted(number, (M::livelock().into(), Vec::new())),
                    Err(error) => Some(End::Unfinished(reason(&error))),
                }
            }
        }
    }

    /// Explores all states. If there are many, tries a proof.
    fn explore_and_prove(&mut self, plan: &mut SearchPlan, more: More<M>) -> Finish<Halt<M>> {
        let most = plan.limits.states.unwrap_or(usize::MAX);
        let few = Limits {
            states: Some(most.min(plan.few)),
            ..*plan.limits
        };
        let finish = self.explore(plan, more, few);
        if !matches!(finish, Finish::Unfinished(LIMIT_OF_STATES)) || most <= plan.few {
            return finish;
        }
        match self.prove(plan, more) {
            Outcome::Proven => Finish::Complete,
            Outcome::Open => self.explore(plan, more, *plan.limits),
            Outcome::Restart => Finish::Restart,
        }
    }

    /// Tries to prove with merged histories that no run breaks a promise.
    fn prove(&mut self, plan: &mut SearchPlan, more: More<M>) -> Outcome {
        let Some(more) = more else {
            return Outcome::Open;
        };
        if !self.expander.model.can_merge() || !plan.reduce {
            return Outcome::Open;
        }
        let before = self.expander.model.seen();
        self.expander.model.merge_histories();
        let used = self.progress.coverage().memory;
        let proof = Proof::new(plan.limits, used, plan.begin);
        let expander = &mut self.expander;
        let others = thread::scope(|scope| {
            proof.begin(expander);
            let workers: Vec<_> = (1..plan.limits.threads)
                .map(|_| {
                    let seed = expander.model.seed();
                    let proof = &proof;
                    scope.spawn(move || {
                        let (seen, restart) = help(more(seed), true, |expander| {
                            expander.model.merge_histories();
                            proof.work(expander, &mut || {});
                        });
                        if restart {
                            proof.finish(Outcome::Restart);
                        }
                        (seen, restart)
                    })
                })
                .collect();
            let mut shown = Instant::now();
            let local_states = expander.model.local_states();
            proof.work(expander, &mut || {
                if shown.elapsed() > BETWEEN_SHOWS {
                    (plan.progress)(&Coverage {
                        local_states,
                        ..proof.coverage()
                    });
                    shown = Instant::now();
                }
            });
            workers.into_iter().map(joined).collect::<Vec<_>>()
        });
        let restart = self.learn_from(others);
        let coverage = proof.coverage();
        let outcome = match restart {
            true => Outcome::Restart,
            false => proof.outcome(),
        };
        let is_proven = outcome == Outcome::Proven;
        self.expander.model.end_proof(before, is_proven);
        self.proof = is_proven.then_some(Coverage {
            memory: coverage.memory + used,
            ..coverage
        });
        outcome
    }

    /// Adds what others have seen, and returns whether an assumption failed.
    fn learn_from(&mut self, others: Vec<Helped<M>>) -> bool {
        let model = &mut self.expander.model;
        // Others may have learned something that this model relied on not to be.
        let mut restart = matches!(model.catch_up(), Err(Stop::Restart));
        for (seen, failed) in others {
            restart |= failed;
            model.add_seen(seen);
        }
        restart
    }

    /// Explores all states.
    fn explore(&mut self, plan: &mut SearchPlan, more: More<M>, limits: Limits) -> Finish<Halt<M>> {
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
                let many = job.first > plan.many;
                output = work(&mut self.expander, job, output, &shared);
                if let Some(more) = more
                    && workers.is_empty()
                    && many
                {
                    let model = &self.expander.model;
                    let reduce = plan.reduce;
                    workers = (1..plan.limits.threads)
                        .map(|_| {
                            let seed = model.seed();
                            let shared = &shared;
                            scope.spawn(move || {
                                let _guard = shared.end_on_panic();
                                let (seen, restart) = help(more(seed), reduce, |expander| {
                                    let mut output = Output::default();
                                    while let Some(job) = shared.next_job() {
                                        output = work(expander, job, output, shared);
                                    }
                                });
                                if restart {
                                    shared.finish(Finish::Restart);
                                }
                                (seen, restart)
                            })
                        })
                        .collect();
                }
            }
            workers.into_iter().map(joined).collect::<Vec<_>>()
        });
        if self.learn_from(others) {
            shared.finish(Finish::Restart);
        }
        let (progress, finish) = shared.into_parts();
        self.progress = progress;
        finish
    }

    /// The end of the search that follows from a halt in state `number`; None: before the first.
    fn halted(&mut self, number: Option<u32>, (stop, last): Halt<M>) -> Option<End<M::Violation>> {
        match stop {
            Stop::Restart => None,
            Stop::TooLarge(reason) => Some(End::Unfinished(reason)),
            Stop::Violation(found) => Some(match self.run_to(number, &last, found) {
                Ok((run, violation)) => End::Broken(Broken {
                    violation,
                    run,
                    shortest: false,
                }),
                Err(error) => End::Unfinished(reason(&error)),
            }),
        }
    }
}

/// A coverage with what the model knows.
fn completed<M: Model>(coverage: Coverage, model: &M) -> Coverage {
    Coverage {
        local_states: model.local_states(),
        cut: model.is_cut(),
        delays_cut: model.is_cut_by_window(),
        ..coverage
    }
}

fn joined<T>(worker: ScopedJoinHandle<'_, T>) -> T {
    worker
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Explores the states of a job, and adds what they lead to. Returns an output whose memory can be used
/// again.
fn work<M: Model>(
    expander: &mut Expander<M>,
    job: Job,
    output: Output<Halt<M>>,
    shared: &Shared<Halt<M>>,
) -> Output<Halt<M>> {
    explored(expander, job, output).map_or_else(
        |finish| {
            shared.finish(finish);
            Output::default()
        },
        |output| shared.add(output),
    )
}

/// The states to which those of a job lead.
fn explored<M: Model>(
    expander: &mut Expander<M>,
    job: Job,
    mut output: Output<Halt<M>>,
) -> Result<Output<Halt<M>>, Finish<Halt<M>>> {
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

/// Does `work` on another OS thread, with a model of its own. Returns what that has seen, and whether an
/// assumption failed.
fn help<M: Model>(mut model: M, reduce: bool, work: impl FnOnce(&mut Expander<M>)) -> Helped<M> {
    let begun = model.start();
    let mut expander = Expander::new(model, reduce);
    if begun.is_ok() {
        work(&mut expander);
    }
    let mut model = expander.model;
    let ends = [begun.map(|_| ()), model.catch_up()];
    let restart = ends.iter().any(|end| matches!(end, Err(Stop::Restart)));
    (model.seen(), restart)
}
