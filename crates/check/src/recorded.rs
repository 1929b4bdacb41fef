//! Runs of the search, recorded as executions that the axioms judge.
//!
//! A random run of a litmus test or a lock is written down as events in program order, each with the
//! memory order that stands in the source, the writes that reads have seen, and the order of the writes
//! of each place in memory. The axioms of the same model must allow that, or one of the two is wrong.
//!
//! The record is weaker than the run, so the axioms may allow what the search should not have
//! done. Dependencies are not recorded. The pieces of a word are places of their own, which one
//! operation reads one after the other and then writes. A queue node is another place after each release.

mod execution;
mod recorder;
mod tests;

use lockworks_explore::{Model as _, Run};
use lockworks_litmus::Execution;
use recorder::Recorder;

use crate::cells::Findings;
use crate::check::{Check, by_view};
use crate::model::{Model, Stop};

/// The seed of all runs.
const SEED: u64 = 1;

/// Makes random runs of a check, and calls `judge` with each that ends and keeps all promises.
fn record(check: &Check, runs: u64, mut judge: impl FnMut(Execution)) {
    let mut findings = check.findings();
    let mut next = 0;
    while next < runs {
        let judge = &mut judge;
        by_view!(
            findings.view,
            check.record_with(&mut findings, runs, &mut next, judge)
        );
        findings = Findings::new(findings.view);
    }
}

impl Check<'_> {
    /// Makes runs up to the last one, as long as views need no more than N entries.
    fn record_with<const N: usize>(
        &self,
        findings: &mut Findings,
        runs: u64,
        next: &mut u64,
        judge: &mut dyn FnMut(Execution),
    ) {
        let Some(mut automata) = self.rehearse::<N>(findings) else {
            return;
        };
        while *next < runs && findings.view == N {
            let mut model = self.model::<N>(std::mem::take(findings), automata);
            while *next < runs {
                match recorded(&mut model, *next) {
                    Ok(Some(execution)) => judge(execution),
                    // The run was cut, or it broke a promise.
                    Ok(None) | Err(Stop::Violation(_) | Stop::TooLarge(_)) => {}
                    Err(Stop::Restart) => break,
                }
                *next += 1;
            }
            (*findings, automata) = (model.findings, model.automata);
        }
    }
}

/// Makes a run. None: it has not ended.
fn recorded<const N: usize>(model: &mut Model<N>, number: u64) -> Result<Option<Execution>, Stop> {
    const MOST_STEPS: usize = 400;
    let mut run = Run::new(SEED, number);
    let mut state = model.start()?;
    let mut recorder = Recorder::new(state.threads.len());
    let mut choices = Vec::new();
    for _ in 0..MOST_STEPS {
        if model.is_over(&state) {
            return Ok(Some(recorder.execution(model.config.memory)));
        }
        let (thread, number) = run.choose(model, &state, &mut choices)?;
        let choice = choices[number];
        recorder.before(model, &state, thread, choice);
        // Unlike `Model::step`, this forgets no writes.
        model.apply(&mut state, thread, choice)?;
        recorder.after(model, &state);
    }
    Ok(None)
}
