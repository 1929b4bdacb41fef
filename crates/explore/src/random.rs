//! A random run, which takes one of the steps that a search explores in each state.
//!
//! First each thread that can go on has the same chance, then each of its choices. The promises are those
//! of a search, except that a livelock cannot be told from a run that is long. Runs that keep all
//! promises prove nothing.
//!
//! Schedules with few preemptions, and with few old values, were tried too. They found the mistakes of
//! the queued spinlock, MCS, CNA and HQ no sooner.

use rand::RngExt;
use rand::seq::{IteratorRandom, SliceRandom};
use rand_pcg::Pcg64;

use crate::model::{Model, Stops};
use crate::results::Step;

/// The probability of an old value, an interruption or a spurious wake-up, where there is one.
const RARE: f64 = 0.5;

/// A run: its steps so far, and the source of those that follow.
pub struct Run {
    /// The steps so far.
    pub steps: Vec<Step>,
    random: Pcg64,
}

impl Run {
    /// The run of this number among those of a seed.
    pub fn new(seed: u64, number: u64) -> Self {
        Self {
            steps: Vec::new(),
            random: Pcg64::new(seed.into(), number.into()),
        }
    }

    /// Makes the run up to `most` steps, beginning with those that it has already. Returns whether all
    /// threads have ended.
    pub fn make<M: Model>(&mut self, model: &mut M, most: usize) -> Stops<bool, M> {
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
    pub fn choose<M: Model>(
        &mut self,
        model: &mut M,
        state: &M::State,
        choices: &mut Vec<M::Choice>,
    ) -> Stops<(usize, usize), M> {
        let mut order: Vec<usize> = (0..model.threads()).collect();
        order.shuffle(&mut self.random);
        // A thread that can go on only by a rare choice. It does so only if another one could go on
        // without: else this is a deadlock.
        let mut rare = None;
        for thread in order {
            model.choices(state, thread, choices)?;
            match self.pick::<M>(choices) {
                Some(number) if M::is_progress(choices[number]) => {
                    return match rare {
                        None => Ok((thread, number)),
                        Some((thread, number)) => {
                            model.choices(state, thread, choices)?;
                            Ok((thread, number))
                        }
                    };
                }
                Some(number) if choices.iter().any(|choice| M::is_progress(*choice)) => {
                    return Ok((thread, number));
                }
                Some(number) => rare = rare.or(Some((thread, number))),
                None => {}
            }
        }
        Err(model.deadlock(state).into())
    }

    /// The number of one of a thread's choices. None: it does not go on now.
    fn pick<M: Model>(&mut self, choices: &[M::Choice]) -> Option<usize> {
        let rare = self.random.random_bool(RARE);
        let mut one_of = |progress: bool| {
            let numbers = 0..choices.len();
            numbers
                .filter(|number| M::is_progress(choices[*number]) == progress)
                .choose(&mut self.random)
        };
        let first = if rare { one_of(false) } else { None };
        first.or_else(|| one_of(true))
    }
}
