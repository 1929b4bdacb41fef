//! The run that leads to a state, made again from the states that the search has kept.

use std::io;

use crate::model::{Model, Stop};
use crate::results::Step;
use crate::symmetry::Renaming;

use super::Search;
use super::expand::Move;

/// A run in which each thread keeps its name.
struct Run<M: Model> {
    steps: Vec<Step>,
    state: M::State,
    /// The names of its threads in the state of the search.
    names: Renaming,
}

impl<M: Model> Search<M> {
    /// The run that first reached a state, followed by the `last` moves, which break a promise; and
    /// the violation in terms of this run.
    pub(super) fn run_to(
        &mut self,
        number: Option<u32>,
        last: &[Move<M>],
        found: M::Violation,
    ) -> io::Result<(Vec<Step>, M::Violation)> {
        let mut way = Vec::new();
        let mut at = number;
        while let Some(number) = at {
            let (from, successor) = self.progress.origin(number)?;
            way.push(successor);
            at = from;
        }
        let Ok(start) = self.expander.model.start() else {
            return Ok((Vec::new(), found));
        };
        let mut run = Run {
            steps: Vec::new(),
            names: Renaming::identity(self.expander.model.threads()),
            state: start.clone(),
        };
        let mut state = None;
        for i in way.into_iter().rev() {
            let successors = match state {
                None => self.expander.settled(start.clone()),
                Some(ref state) => self.expander.successors(state),
            };
            let Ok(successors) = successors else {
                unreachable!("this state was passed before");
            };
            let mut next = successors.into_iter().nth(i).expect("it was found here");
            let broken = self.follow(&mut run, &next.moves);
            assert!(broken.is_none(), "this state was passed before");
            let model = &mut self.expander.model;
            let mut bytes = std::mem::take(&mut self.expander.buffer);
            let renaming = model.encode(&mut next.state, &mut bytes);
            model.normalise(&mut run.state);
            run.names = run.names.then(model.renaming(renaming));
            model.decode(&bytes, &mut next.state);
            self.expander.buffer = bytes;
            state = Some(next.state);
        }
        let violation = match self.follow(&mut run, last) {
            Some(broken) => broken,
            None => self.expander.model.in_run(found, &run.state),
        };
        Ok((run.steps, violation))
    }

    /// Repeats moves in a run, up to a violation.
    fn follow(&mut self, run: &mut Run<M>, moves: &[Move<M>]) -> Option<M::Violation> {
        let mut choices = Vec::new();
        for (thread, choice) in moves {
            let thread = run.names.old(usize::from(*thread));
            let names = run.names.inverse();
            let model = &mut self.expander.model;
            let choice = model.renamed_choice(&run.state, thread, *choice, &names);
            let listed = model.choices(&run.state, thread, &mut choices);
            let step = choices.iter().position(|other| *other == choice);
            let (Ok(()), Some(step)) = (listed, step) else {
                unreachable!("threads that do alike have the same choices");
            };
            run.steps.push((thread as u8, step as u16));
            match model.apply(&mut run.state, thread, choice) {
                Ok(()) => {}
                Err(Stop::Violation(violation)) => return Some(violation),
                Err(_) => unreachable!("this step was made before"),
            }
        }
        None
    }
}
