//! A check: a configuration and a mutation, as a model that a search can explore.

use std::rc::Rc;
use std::time::Instant;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use crate::automaton::{Automata, Surroundings};
use crate::cells::{Findings, VIEWS};
use crate::config::{Config, ConfigError, Memory, Subject};
use crate::headers::{Client, LitmusTest};
use crate::hooks;
use crate::layout;
use crate::model::{Model, Stop};
use crate::mutation::{self, Change, Mutation};
use crate::results::{Broken, CheckOutcome, Coverage, End, Event};
use crate::search::{Limits, Search, SearchPlan};
use crate::symmetry::Symmetry;

/// The number of random runs before a search.
const REHEARSALS: u64 = 1000;
/// The most steps of each random run.
const REHEARSED_STEPS: usize = 1000;

/// A check that can be run.
pub struct Check<'a> {
    pub(crate) config: &'a Config,
    pub(crate) subject: Subject,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) program: unsafe extern "C" fn(*const Client, u32),
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
                Subject::Lock(_) => hooks::lw_check_thread,
                Subject::Lockref(_) => hooks::lw_check_lockref_thread,
                Subject::Cond(_) => hooks::lw_check_cond_thread,
            },
            litmus: std::ptr::null(),
            // The threads of a lockref, and of a condition variable, behave differently.
            symmetric: matches!(subject, Subject::Lock(_)),
        })
    }

    /// The ways in which threads may change places.
    fn symmetry(&self) -> Rc<Symmetry> {
        let config = self.config;
        Symmetry::new(config.threads, |one, other| {
            let alike = |of: &dyn Fn(usize) -> bool| of(one) == of(other);
            self.symmetric
                && config.node(one) == config.node(other)
                && alike(&|thread| config.has_slot(thread))
                && alike(&|thread| config.priority.contains(&thread))
                // Every other thread begins with a trylock.
                && (!config.trylock || alike(&|thread| thread % 2 == 0))
        })
    }

    /// Makes random runs before the search, which yield most of the findings that it relies on.
    /// None: views need more entries.
    pub(crate) fn rehearse<const N: usize>(&self, findings: &mut Findings) -> Option<Automata> {
        let mut random = Pcg32::seed_from_u64(REHEARSALS);
        let mut automata = Automata::new(self.surroundings(), self.symmetry());
        let mut choices = Vec::new();
        for _ in 0..REHEARSALS {
            let mut model = self.model::<N>(findings, automata);
            let mut run = || -> Result<(), Stop> {
                let mut state = model.start()?;
                for _ in 0..REHEARSED_STEPS {
                    let thread = random.random_range(0..state.threads.len());
                    model.choices(&state, thread, &mut choices)?;
                    if let Some(choice) = choices.choose(&mut random) {
                        model.apply(&mut state, thread, *choice)?;
                    }
                }
                Ok(())
            };
            // The search finds a violation too.
            _ = run();
            automata = model.automata;
            if findings.view != N {
                return None;
            }
        }
        Some(automata)
    }

    /// The check's model, on automata of this check.
    pub(crate) fn model<'f, const N: usize>(
        &self,
        findings: &'f mut Findings,
        automata: Automata,
    ) -> Model<'f, N>
    where
        'a: 'f,
    {
        Model::new(self.config, self.subject, self.mutation, findings, automata)
    }

    /// The first assumptions of a search.
    pub(crate) fn findings(&self) -> Findings {
        Findings::new(match self.config.memory {
            Memory::Weak => VIEWS[0],
            Memory::Sc => 0,
        })
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let config = self.config;
        let inverted = self
            .mutation
            .is_some_and(|m| m.change == Change::InvertPriority);
        Surroundings {
            client: Client {
                lock: self.subject.lock(),
                locks: std::array::from_fn(layout::lock),
                data: std::array::from_fn(layout::data),
                threads: config.threads as u32,
                acquisitions: config.acquisitions,
                two_locks: config.locks == 2,
                trylock: config.trylock,
                cancel: config.cancel,
                lockref: match self.subject {
                    Subject::Lock(_) | Subject::Cond(_) => std::ptr::null(),
                    Subject::Lockref(lockref) => lockref,
                },
                object: layout::variables(),
                litmus: self.litmus,
                variables: layout::variables(),
            },
            has_slot: (0..config.threads).map(|t| config.has_slot(t)).collect(),
            numa_nodes: (0..config.threads).map(|t| config.node(t)).collect(),
            priority: (0..config.threads)
                .map(|t| config.priority.contains(&t) != inverted)
                .collect(),
            tunables: mutation::tunables(self.mutation, config.tunables),
            split_release: config.split_release,
            mutation: self.mutation,
            tail_word: self.subject.lock().has_tail_word(),
            program: self.program,
        }
    }

    /// Explores all states, and calls `progress` from time to time.
    pub fn run(&self, limits: &Limits, progress: &mut dyn FnMut(&Coverage)) -> CheckOutcome {
        self.search(limits, true, &mut |_| {}, progress)
    }

    /// Searches for the shortest run that breaks a promise, where one that does is known.
    pub fn shorten(&self, limits: &Limits, broken: Broken) -> Broken {
        let outcome = self.search(limits, false, &mut |_| {}, &mut |_| {});
        match outcome.end {
            End::Broken(shorter) => Broken {
                shortest: true,
                ..shorter
            },
            _ => broken,
        }
    }

    pub(crate) fn search(
        &self,
        limits: &Limits,
        reduce: bool,
        ended: &mut dyn FnMut(Vec<u64>),
        progress: &mut dyn FnMut(&Coverage),
    ) -> CheckOutcome {
        let begin = Instant::now();
        let mut findings = self.findings();
        let mut plan = SearchPlan {
            limits,
            reduce,
            begin,
            ended,
            progress,
        };
        loop {
            let outcome = match findings.view {
                0 => self.attempt::<0>(&mut findings, &mut plan),
                32 => self.attempt::<32>(&mut findings, &mut plan),
                64 => self.attempt::<64>(&mut findings, &mut plan),
                _ => self.attempt::<128>(&mut findings, &mut plan),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// Searches with views of N entries. None: N is too small.
    fn attempt<const N: usize>(
        &self,
        findings: &mut Findings,
        plan: &mut SearchPlan,
    ) -> Option<CheckOutcome> {
        let mut automata = self.rehearse::<N>(findings)?;
        while findings.view == N {
            let mut search = Search::new(self.model::<N>(findings, automata), plan.reduce);
            if let Some(end) = search.run(plan) {
                return Some(CheckOutcome {
                    end,
                    coverage: search.coverage(),
                    time: plan.begin.elapsed(),
                    events: Event::of(search.model.events),
                    covered: search.model.covered,
                });
            }
            automata = search.model.automata;
        }
        None
    }
}
