//! Random runs of a check, for more threads than a search can explore.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockworks_explore::Run;
use serde::Serialize;

use crate::cells::Findings;
use crate::check::{Check, by_view};
use crate::model::{Model, Stop};
use crate::results::{Broken, Event};
use crate::site::Site;

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

/// State that the threads that make runs share.
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
                        run: run.steps,
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
            let mut model = self.model::<N>(known, automata);
            while let Some((number, mut run)) = next.take() {
                let end = run.make(&mut model, self.most_steps());
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
            (known, automata) = (model.findings, model.automata);
            if !again {
                known = findings.clone();
            }
        }
        findings.view = known.view;
    }
}
