//! Random runs of a check, for more threads than a search can explore.
//!
//! A run takes one of the steps that a search explores in each state: first each thread that can go on
//! has the same chance, then each of its choices. The promises are those of a search, except that a
//! livelock cannot be told from a run that is long. Runs that keep all promises prove nothing.
//!
//! Schedules with few preemptions, and with few old values, were tried too. They found the mistakes of
//! the queued spinlock, MCS, CNA and HQ no sooner.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::{IteratorRandom, SliceRandom};
use rand_pcg::Pcg64;
use serde::Serialize;

use crate::cells::Findings;
use crate::check::{Check, by_view};
use crate::model::{Choice, Model, Stop};
use crate::results::{Broken, Event, Step};
use crate::site::Site;
use crate::state::State;

/// The most steps of a run for each acquisition of each thread.
const MOST_STEPS: usize = 1000;

/// The number and the seed of random runs.
#[derive(Clone, Copy, Debug)]
pub struct RandomRuns {
    /// The number of runs.
    pub runs: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// The time after which no run begins.
    pub time: Option<Duration>,
}

/// The result of random runs.
#[derive(Clone, Debug, Serialize)]
pub struct RandomOutcome {
    /// The promise that a run broke: the first such run by number.
    #[serde(skip)]
    pub broken: Option<Broken>,
    /// The number of runs that were made.
    pub runs: u64,
    /// The number of those that were cut, because they had not ended after the most steps.
    #[serde(rename = "cut_runs")]
    pub cut: u64,
    /// The number of steps of all runs.
    pub steps: u64,
    /// The duration.
    #[serde(skip)]
    pub time: Duration,
    /// For each operation, by the number of its site: whether any run performed it.
    #[serde(skip)]
    pub covered: Vec<bool>,
    /// The events that the lock counted.
    #[serde(skip)]
    pub events: Vec<Event>,
}

/// The probability of an old value, an interruption or a spurious wake-up, where there is one.
const RARE: f64 = 0.5;

/// A run: its steps so far, and the source of those that follow.
pub(crate) struct Run {
    pub(crate) steps: Vec<Step>,
    random: Pcg64,
}

impl Run {
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self {
            steps: Vec::new(),
            random: Pcg64::new(seed.into(), number.into()),
        }
    }

    /// Makes the run, beginning with the steps that it has already. Returns whether all threads have
    /// ended.
    pub(crate) fn make<const N: usize>(&mut self, model: &mut Model<N>) -> Result<bool, Stop> {
        let config = model.config;
        let most = MOST_STEPS * config.threads * config.acquisitions as usize;
        let mut state = model.start()?;
        let mut choices = Vec::new();
        for step in &self.steps {
            match model.choice(&state, *step, &mut choices)? {
                Some(choice) => model.step(&mut state, step.0.into(), choice)?,
                // The steps mean something else since an assumption has failed.
                None => return Ok(false),
            }
        }
        while !model.is_over(&state) {
            if self.steps.len() >= most {
                return Ok(false);
            }
            let (thread, number) = self.choose(model, &state, &mut choices)?;
            self.steps.push((thread as u8, number as u16));
            model.step(&mut state, thread, choices[number])?;
        }
        model.check_end(&state)?;
        Ok(true)
    }

    /// The thread that goes on, and the number of its choice among its `choices`.
    pub(crate) fn choose<const N: usize>(
        &mut self,
        model: &mut Model<N>,
        state: &State<N>,
        choices: &mut Vec<Choice>,
    ) -> Result<(usize, usize), Stop> {
        let mut order: Vec<usize> = (0..state.threads.len()).collect();
        order.shuffle(&mut self.random);
        // A thread that can go on only by a rare choice. It does so only if another one could go on
        // without: else this is a deadlock.
        let mut rare = None;
        for thread in order {
            model.choices(state, thread, choices)?;
            match self.pick(choices) {
                Some(number) if choices[number].is_progress() => {
                    return match rare {
                        None => Ok((thread, number)),
                        Some((thread, number)) => {
                            model.choices(state, thread, choices)?;
                            Ok((thread, number))
                        }
                    };
                }
                Some(number) if choices.iter().any(|choice| choice.is_progress()) => {
                    return Ok((thread, number));
                }
                Some(number) => rare = rare.or(Some((thread, number))),
                None => {}
            }
        }
        Err(model.deadlock(state).into())
    }

    /// The number of one of a thread's choices. None: it does not go on now.
    fn pick(&mut self, choices: &[Choice]) -> Option<usize> {
        let rare = self.random.random_bool(RARE);
        let mut one_of = |progress: bool| {
            let numbers = 0..choices.len();
            numbers
                .filter(|number| choices[*number].is_progress() == progress)
                .choose(&mut self.random)
        };
        let first = if rare { one_of(false) } else { None };
        first.or_else(|| one_of(true))
    }
}

/// What the threads that make runs share.
struct Shared<'a> {
    plan: &'a RandomRuns,
    begin: Instant,
    /// The number of the next run.
    next: AtomicU64,
    /// The number of the first run that broke a promise.
    first_broken: AtomicU64,
    /// The sums so far, and the events as bits.
    sum: Mutex<(RandomOutcome, [u64; 2])>,
    progress: &'a (dyn Fn(&RandomOutcome) + Sync),
}

impl<'a> Shared<'a> {
    fn new(plan: &'a RandomRuns, progress: &'a (dyn Fn(&RandomOutcome) + Sync)) -> Self {
        let nothing = RandomOutcome {
            broken: None,
            runs: 0,
            cut: 0,
            steps: 0,
            time: Duration::ZERO,
            covered: vec![false; Site::all().len()],
            events: Vec::new(),
        };
        Self {
            plan,
            begin: Instant::now(),
            next: AtomicU64::new(0),
            first_broken: AtomicU64::new(u64::MAX),
            sum: Mutex::new((nothing, [0; 2])),
            progress,
        }
    }

    /// The result, once all runs have been made.
    fn outcome(self) -> RandomOutcome {
        let (sum, events) = self.sum.into_inner().expect("no run panics");
        RandomOutcome {
            time: self.begin.elapsed(),
            events: Event::of(events),
            ..sum
        }
    }

    /// The next run that is to be made. Runs after one that breaks a promise are not.
    fn next(&self) -> Option<(u64, Run)> {
        let late = self
            .plan
            .time
            .is_some_and(|time| self.begin.elapsed() > time);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let wanted = number < self.plan.runs && number < self.first_broken.load(Ordering::Relaxed);
        (wanted && !late).then(|| (number, Run::new(self.plan.seed, number)))
    }

    fn add(&self, number: u64, run: Run, end: Result<bool, Stop>) {
        let (sum, _) = &mut *self.sum.lock().expect("no run panics");
        sum.runs += 1;
        sum.steps += run.steps.len() as u64;
        match end {
            Ok(true) => {}
            Ok(false) | Err(Stop::TooLarge(_) | Stop::Restart) => sum.cut += 1,
            Err(Stop::Violation(violation)) => {
                if self.first_broken.fetch_min(number, Ordering::Relaxed) > number {
                    sum.broken = Some(Broken {
                        violation,
                        steps: run.steps,
                        shortest: false,
                    });
                }
            }
        }
        (self.progress)(sum);
    }

    /// Adds the operations that the runs of a model performed, and the events that they counted.
    fn add_seen<const N: usize>(&self, model: &Model<N>) {
        let (sum, events) = &mut *self.sum.lock().expect("no run panics");
        for (all, now) in sum.covered.iter_mut().zip(&model.covered) {
            *all |= now;
        }
        for (all, now) in events.iter_mut().zip(model.events) {
            *all |= now;
        }
    }
}

impl Check<'_> {
    /// Makes random runs, several at once, until one breaks a promise. Calls `progress` after each.
    ///
    /// The same seed makes the same runs, and finds the same broken promise.
    pub fn random(
        &self,
        plan: &RandomRuns,
        progress: &(dyn Fn(&RandomOutcome) + Sync),
    ) -> RandomOutcome {
        let (config, mutation) = (self.config, self.mutation);
        let shared = Shared::new(plan, progress);
        rayon::broadcast(|_| {
            let check = Check::new(config, mutation).expect("there is such a check");
            check.some_runs(&shared);
        });
        shared.outcome()
    }

    /// Makes the same runs, one after another on this CPU. So the number of runs before one that breaks a
    /// promise is the same each time.
    pub fn random_alone(&self, plan: &RandomRuns) -> RandomOutcome {
        let shared = Shared::new(plan, &|_| {});
        self.some_runs(&shared);
        shared.outcome()
    }

    /// Makes runs until all have been made.
    fn some_runs(&self, shared: &Shared) {
        let mut next = shared.next();
        let mut findings = self.findings();
        while next.is_some() {
            by_view!(
                findings.view,
                self.some_runs_with(&mut findings, shared, &mut next)
            );
            findings = Findings::new(findings.view);
        }
    }

    /// Makes the `next` and further runs, as long as views need no more than N entries.
    ///
    /// A run whose assumptions fail begins again with what it has found. The run after it does not know
    /// of that, so that no run depends on others.
    fn some_runs_with<const N: usize>(
        &self,
        findings: &mut Findings,
        shared: &Shared,
        next: &mut Option<(u64, Run)>,
    ) {
        let Some(mut automata) = self.rehearse::<N>(findings) else {
            return;
        };
        let mut known = findings.clone();
        let mut again = false;
        while next.is_some() && known.view == N {
            let mut model = self.model::<N>(&mut known, automata);
            while let Some((number, mut run)) = next.take() {
                let end = run.make(&mut model);
                if matches!(end, Err(Stop::Restart)) {
                    *next = Some((number, run));
                    again = true;
                    break;
                }
                shared.add(number, run, end);
                *next = shared.next();
                if std::mem::take(&mut again) {
                    break;
                }
            }
            shared.add_seen(&model);
            automata = model.automata;
            if !again {
                known = findings.clone();
            }
        }
        findings.view = known.view;
    }
}
