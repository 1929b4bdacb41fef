//! A check: a configuration and a mutation, as a model that a search can explore.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use lockworks_explore::{
    Coverage, Keeper, Kept, KeptError, Limits, Run, Search, SearchPlan, Symmetry,
};
use lockworks_litmus::Memory;
use xxhash_rust::xxh3::Xxh3;

use crate::automaton::{Automata, Log};
use crate::cells::{Findings, VIEWS};
use crate::config::{Config, ConfigError, Subject};
use crate::headers::{Client, LitmusTest};
use crate::layout;
use crate::locks;
use crate::machine::{Shared, Surroundings};
use crate::model::{Model, Seen, Stop};
use crate::mutation::{self, Change, Mutation};
use crate::results::{Broken, CheckOutcome, End, Event};
use crate::source::{Kind, loaded_files};

/// The number of states after which a search tries a proof by states with merged histories.
const BEFORE_PROOF: usize = 1_000_000;

/// The number of states from which on several OS threads search.
const MANY: u32 = if cfg!(test) { 100 } else { 20_000 };

/// The most steps of a random run for each acquisition of each thread.
const MOST_STEPS: usize = 1000;

/// The most random runs before a search.
const REHEARSALS: u64 = 1000;
/// The most threads of which some may change places: with more, a search cannot end anyway.
const MOST_SYMMETRIC: usize = 8;
/// The most steps of all of them.
const REHEARSED_STEPS: usize = 30_000;

/// Calls a method of a check with views of so many entries.
macro_rules! by_view {
    ($view:expr, $check:ident.$method:ident($($argument:expr),*)) => {
        match $view {
            0 => $check.$method::<0>($($argument),*),
            32 => $check.$method::<32>($($argument),*),
            64 => $check.$method::<64>($($argument),*),
            128 => $check.$method::<128>($($argument),*),
            256 => $check.$method::<256>($($argument),*),
            _ => $check.$method::<1024>($($argument),*),
        }
    };
}
pub(crate) use by_view;

/// A check that can be run.
pub struct Check<'a> {
    pub(crate) config: &'a Config,
    pub(crate) subject: Subject,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) program: unsafe extern "C" fn(*const Client, u32),
    /// Set by the first automata.
    pub(crate) shared: Arc<OnceLock<Shared>>,
    /// NULL if the check is no litmus test.
    pub(crate) litmus: *const LitmusTest,
    /// Threads that behave alike may change places.
    pub(crate) symmetric: bool,
}

impl<'a> Check<'a> {
    /// A check of `config`'s lock or lockref, changed by `mutation`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn new(config: &'a Config, mutation: Option<Mutation>) -> Result<Self, ConfigError> {
        let subject = config.subject()?;
        Ok(Self {
            config,
            subject,
            mutation,
            program: match subject {
                Subject::Lock(lock) if locks::is_rwlock(lock) => locks::lw_check_rwlock_thread,
                Subject::Lock(lock) if lock.is_resilient() => locks::lw_check_resilient_thread,
                Subject::Lock(lock) => match locks::kind(lock) {
                    Kind::Seqlock => locks::lw_check_seqlock_thread,
                    Kind::Cond => locks::lw_check_cond_thread,
                    Kind::Lock | Kind::Semaphore => locks::lw_check_thread,
                },
                Subject::Lockref(_) => locks::lw_check_lockref_thread,
                Subject::Cond(_) => locks::lw_check_cond_thread,
            },
            shared: Arc::default(),
            litmus: std::ptr::null(),
            // The threads of a lockref, and of a condition variable, behave differently.
            symmetric: matches!(subject, Subject::Lock(lock) if locks::kind(lock) != Kind::Cond),
        })
    }

    /// The ways in which threads may change places.
    fn symmetry(&self) -> Rc<Symmetry> {
        let config = self.config;
        Symmetry::new(config.threads, |one, other| {
            let alike = |of: &dyn Fn(usize) -> bool| of(one) == of(other);
            self.symmetric
                // The child looks at slots in the order of their numbers.
                && !config.fork
                && config.threads <= MOST_SYMMETRIC
                && config.node(one) == config.node(other)
                && alike(&|thread| config.has_slot(thread))
                && alike(&|thread| config.priority.contains(&thread))
                && alike(&|thread| thread < config.threads - config.readers)
                && (config.tokens < 2 || alike(&|thread| thread == 0))
                // Every other thread begins with a trylock, or takes two resilient locks in another order.
                && (!(config.trylock || self.subject.lock().is_resilient() && config.locks > 1) || alike(&|thread| thread % 2 == 0))
        })
    }

    /// Automata that have learned the steps of a log.
    pub(crate) fn automata(&self, log: Arc<Log>) -> Automata {
        let mut automata = Automata::new(self.surroundings(), self.symmetry(), log);
        automata.start();
        automata.catch_up();
        automata
    }

    /// Makes random runs, which yield most of the findings that a search or a run relies on. None: views
    /// need more entries.
    pub(crate) fn rehearse<const N: usize>(&self, findings: &mut Findings) -> Option<Automata> {
        let mut automata = Automata::new(self.surroundings(), self.symmetry(), Log::of(Vec::new()));
        let most = self.most_steps();
        let mut runs = 0;
        let mut steps = 0;
        while runs < REHEARSALS && steps < REHEARSED_STEPS {
            let mut model = self.model::<N>(std::mem::take(findings), automata);
            let mut restart = false;
            while !restart && runs < REHEARSALS && steps < REHEARSED_STEPS {
                let mut run = Run::new(REHEARSALS, runs);
                // Violations do not matter here.
                restart = matches!(run.make(&mut model, most), Err(Stop::Restart));
                runs += 1;
                steps += run.steps.len();
            }
            (*findings, automata) = (model.findings, model.automata);
            if findings.view != N {
                return None;
            }
        }
        Some(automata)
    }

    /// The most steps of a random run.
    pub(crate) fn most_steps(&self) -> usize {
        MOST_STEPS * self.config.threads * self.config.acquisitions as usize
    }

    /// The check's model, on automata of this check.
    pub(crate) fn model<const N: usize>(
        &self,
        findings: Findings,
        automata: Automata,
    ) -> Model<'a, N> {
        let model = Model::new(self.config, self.subject, self.mutation, findings, automata);
        // SAFETY: NULL or a constant.
        let litmus = unsafe { self.litmus.as_ref() };
        model.with_variables(litmus.map_or(&[], LitmusTest::variables))
    }

    /// The first assumptions of a search.
    pub(crate) fn findings(&self) -> Findings {
        Findings::new(match self.config.memory {
            Memory::Sc | Memory::Tso => 0,
            _ => VIEWS[0],
        })
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let config = self.config;
        let inverted = self
            .mutation
            .is_some_and(|m| m.change == Change::InvertPriority);
        self.shared.get_or_init(|| Shared {
            client: Client {
                lock: self.subject.lock(),
                locks: std::array::from_fn(layout::lock),
                data: std::array::from_fn(layout::data),
                threads: config.threads as u32,
                acquisitions: config.acquisitions,
                readers: config.readers as u32,
                lock_count: config.locks as u32,
                trylock: config.trylock,
                cancel: config.cancel,
                lockref: match self.subject {
                    Subject::Lock(_) | Subject::Cond(_) => std::ptr::null(),
                    Subject::Lockref(lockref) => lockref,
                },
                object: layout::variables(),
                litmus: self.litmus,
                variables: layout::variables(),
                functions: locks::own(self.subject.lock())
                    .and_then(|own| own.functions)
                    .map_or(std::ptr::null(), std::ptr::from_ref),
                tokens: config.tokens.into(),
            },
            tunables: mutation::tunables(self.mutation, config.tunables),
        });
        Surroundings {
            shared: Arc::clone(&self.shared),
            has_slot: (0..config.threads).map(|t| config.has_slot(t)).collect(),
            numa_nodes: (0..config.threads).map(|t| config.node(t)).collect(),
            priority: (0..config.threads)
                .map(|t| config.priority.contains(&t) != inverted)
                .collect(),
            // Only programs fork.
            split_release: config.split_release || config.fork,
            never_park: config.never_park,
            memory: config.memory,
            forks: config.fork,
            mutation: self.mutation,
            has_tail_word: self.subject.lock().has_tail_word(),
            program: self.program,
        }
    }

    /// Explores all states, and calls `progress` from time to time.
    pub fn run(&self, limits: &Limits, progress: &mut dyn FnMut(&Coverage)) -> CheckOutcome {
        self.search(limits, true, progress).0
    }

    /// Explores all states, and calls `progress` from time to time. If a limit ends the search, it is
    /// kept in `file`. If the file exists, the search that it holds goes on. Once a search has ended
    /// otherwise, the file is removed.
    ///
    /// # Errors
    /// See [`KeptError`].
    pub fn run_kept(
        &self,
        limits: &Limits,
        file: &Path,
        progress: &mut dyn FnMut(&Coverage),
    ) -> Result<CheckOutcome, KeptError> {
        let keeper = Keeper::new(file, self.identity()?)?;
        let kept = Kept::load(&keeper, limits.memory)?;
        let mut plan = self.plan(limits, true, progress);
        let mut keep = Keep {
            keeper,
            kept,
            result: Ok(()),
        };
        let outcome = self.search_by(&mut plan, Some(&mut keep));
        match (&outcome.end, keep.result) {
            // Only states that were not kept are lost.
            (End::Unfinished(_), Err(error)) => Err(error),
            _ => Ok(outcome),
        }
    }

    /// A hash of the check, of this program, and of the source that it has loaded.
    fn identity(&self) -> io::Result<u128> {
        let mut hash = Xxh3::new();
        hash.update(&fs::read("/proc/self/exe")?);
        for file in loaded_files() {
            hash.update(&fs::read(file)?);
        }
        let check = postcard::to_stdvec(&(self.config, self.mutation));
        hash.update(&check.map_err(io::Error::other)?);
        Ok(hash.digest128())
    }

    /// Searches for the shortest run that breaks a promise, where one that does is known.
    pub fn shorten(&self, limits: &Limits, broken: Broken) -> Broken {
        let (outcome, _) = self.search(limits, false, &mut |_| {});
        match outcome.end {
            End::Broken(shorter) => Broken {
                shortest: true,
                ..shorter
            },
            _ => broken,
        }
    }

    /// Tries a proof after a few states.
    #[cfg(test)]
    fn prove(&self, few: usize, limits: &Limits) -> CheckOutcome {
        let mut progress = |_: &Coverage| {};
        let mut plan = self.plan(limits, true, &mut progress);
        plan.few = few;
        self.search_by(&mut plan, None)
    }

    /// Explores all states. Returns the results of the threads at the ends of runs too.
    pub(crate) fn search(
        &self,
        limits: &Limits,
        reduce: bool,
        progress: &mut dyn FnMut(&Coverage),
    ) -> (CheckOutcome, BTreeSet<Vec<u64>>) {
        let mut plan = self.plan(limits, reduce, progress);
        let outcome = self.search_by(&mut plan, None);
        (outcome, plan.results)
    }

    fn plan<'p>(
        &'p self,
        limits: &'p Limits,
        reduce: bool,
        progress: &'p mut dyn FnMut(&Coverage),
    ) -> SearchPlan<'p> {
        SearchPlan {
            limits,
            reduce,
            few: BEFORE_PROOF,
            many: MANY,
            begin: Instant::now(),
            results: BTreeSet::new(),
            progress,
        }
    }

    fn search_by(&self, plan: &mut SearchPlan, mut keep: Option<&mut Keep>) -> CheckOutcome {
        let kept = keep.as_ref().and_then(|keep| keep.kept.as_ref());
        let mut findings = kept.map_or_else(|| self.findings(), |kept| kept.seen.findings.clone());
        loop {
            let outcome = by_view!(
                findings.view,
                self.attempt(&mut findings, plan, keep.as_deref_mut())
            );
            if let Some(outcome) = outcome {
                return outcome;
            }
            findings = Findings::new(findings.view);
        }
    }

    /// Searches with views of N entries. None: N is too small.
    fn attempt<const N: usize>(
        &self,
        findings: &mut Findings,
        plan: &mut SearchPlan,
        mut keep: Option<&mut Keep>,
    ) -> Option<CheckOutcome> {
        let mut kept = keep.as_mut().and_then(|keep| keep.kept.take());
        let mut automata = match &mut kept {
            Some(kept) => self.automata(Log::of(std::mem::take(&mut kept.seen.steps))),
            None => self.rehearse::<N>(findings)?,
        };
        let (config, mutation, symmetric) = (self.config, self.mutation, self.symmetric);
        let shared = &self.shared;
        let another = move |(log, findings): (Arc<Log>, Findings)| {
            let check = Check {
                shared: Arc::clone(shared),
                symmetric,
                ..Check::new(config, mutation).expect("there is such a check")
            };
            let mut model = check.model::<N>(findings, check.automata(log));
            model.number_cells_in_order();
            model
        };
        let more = self.litmus.is_null().then_some(&another as _);
        while findings.view == N {
            automata.catch_up();
            let mut model = self.model::<N>(std::mem::take(findings), automata);
            model.number_cells_in_order();
            let mut search = Search::new(model, plan.reduce);
            if let Some(kept) = kept.take() {
                search.go_on_with(kept);
            }
            let end = search.run(plan, more);
            if let (Some(end), Some(keep)) = (&end, keep.as_mut()) {
                keep.result = search.keep(&keep.keeper, end);
            }
            let coverage = search.coverage();
            let model = search.into_model();
            if let Some(end) = end {
                return Some(CheckOutcome {
                    end,
                    coverage,
                    time: plan.begin.elapsed(),
                    events: Event::of(model.events),
                    covered: model.covered,
                });
            }
            (*findings, automata) = (model.findings, model.automata);
        }
        None
    }
}

/// A search that is kept in a file, and goes on from there.
struct Keep<'a> {
    keeper: Keeper<'a>,
    /// The search to go on with.
    kept: Option<Kept<Seen>>,
    /// How it went to keep the search.
    result: Result<(), KeptError>,
}

#[cfg(test)]
mod proof_tests;
#[cfg(test)]
mod tests;
