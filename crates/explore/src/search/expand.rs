//! The successors of a state: one step of a thread, and all local steps that follow.

use xxhash_rust::xxh3::xxh3_128;

use crate::model::{Model, Stop};

/// The most local steps in a row. Further ones are taken as steps of others are, which finds out if the thread
/// never stops.
const MOST_LOCAL_STEPS: usize = 1000;

/// A thread, and its choice in a state.
pub(super) type Move<M> = (u8, <M as Model>::Choice);

/// A state after one step of a thread and all local steps that follow.
pub struct Successor<M: Model> {
    pub(super) state: M::State,
    pub(super) moves: Vec<Move<M>>,
    /// The moves need no old values, interruptions or spurious wake-ups.
    pub(super) is_progress: bool,
}

/// The reason why the expansion of a state stopped, and the moves up to there.
pub type Halt<M> = (Stop<<M as Model>::Violation>, Vec<Move<M>>);

/// A successor as bytes.
pub struct Encoded {
    pub(super) hash: u128,
    /// Its bytes end here, and begin where those of the one before end.
    pub end: usize,
    pub(super) is_progress: bool,
}

/// The states that a state leads to.
pub enum Expanded<H> {
    /// It was known under this number.
    Known(u32),
    /// All threads have ended, with these results.
    End(Vec<u64>),
    /// So many successors.
    Successors(usize),
    /// The expansion stopped.
    Halt(H),
}

/// Finds the successors of states.
pub struct Expander<M: Model> {
    /// The model of the states.
    pub model: M,
    /// Take local steps at once, without a choice between threads.
    reduce: bool,
    state: Option<M::State>,
    pub(super) buffer: Vec<u8>,
    spare: Spare<M>,
}

/// Objects that are no longer needed, kept for their memory.
struct Spare<M: Model> {
    states: Vec<M::State>,
    moves: Vec<Vec<Move<M>>>,
    choices: Vec<Vec<M::Choice>>,
    found: Vec<Successor<M>>,
}

impl<M: Model> Spare<M> {
    fn copy(&mut self, state: &M::State) -> M::State {
        match self.states.pop() {
            Some(mut copy) => {
                copy.clone_from(state);
                copy
            }
            None => state.clone(),
        }
    }

    fn moves(&mut self, moves: &[Move<M>]) -> Vec<Move<M>> {
        let mut copy = self.moves.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(moves);
        copy
    }
}

impl<M: Model> Expander<M> {
    /// `reduce`: take local steps at once, without a choice between threads.
    pub fn new(model: M, reduce: bool) -> Self {
        Self {
            model,
            reduce,
            state: None,
            buffer: Vec::new(),
            spare: Spare {
                states: Vec::new(),
                moves: Vec::new(),
                choices: Vec::new(),
                found: Vec::new(),
            },
        }
    }

    /// Finds out what a state leads to, and appends its successors to `found` and their bytes to `bytes`.
    pub fn expand(
        &mut self,
        state: &[u8],
        found: &mut Vec<Encoded>,
        bytes: &mut Vec<u8>,
    ) -> Expanded<Halt<M>> {
        let mut decoded = self.state.take().unwrap_or_else(M::empty);
        self.model.decode(state, &mut decoded);
        let expanded = self.expand_decoded(&decoded, found, bytes);
        self.state = Some(decoded);
        expanded
    }

    fn expand_decoded(
        &mut self,
        state: &M::State,
        found: &mut Vec<Encoded>,
        bytes: &mut Vec<u8>,
    ) -> Expanded<Halt<M>> {
        if self.model.is_over(state) {
            return match self.model.check_end(state) {
                Ok(()) => Expanded::End(self.model.results(state)),
                Err(violation) => Expanded::Halt((violation.into(), Vec::new())),
            };
        }
        match self.successors(state) {
            Ok(successors) if successors.iter().any(|s| s.is_progress) => {
                let count = successors.len();
                self.encode(successors, found, bytes);
                Expanded::Successors(count)
            }
            Ok(_) => Expanded::Halt((self.model.deadlock(state).into(), Vec::new())),
            Err(halt) => Expanded::Halt(halt),
        }
    }

    /// Appends successors to `found`, and their bytes to `bytes`.
    pub fn encode(
        &mut self,
        mut successors: Vec<Successor<M>>,
        found: &mut Vec<Encoded>,
        bytes: &mut Vec<u8>,
    ) {
        for mut successor in successors.drain(..) {
            self.model.encode(&mut successor.state, &mut self.buffer);
            bytes.extend_from_slice(&self.buffer);
            found.push(Encoded {
                hash: xxh3_128(&self.buffer),
                end: bytes.len(),
                is_progress: successor.is_progress,
            });
            self.spare.states.push(successor.state);
            self.spare.moves.push(successor.moves);
        }
        self.spare.found = successors;
    }

    /// The states after one step of a thread and all local steps that follow.
    pub(super) fn successors(&mut self, state: &M::State) -> Result<Vec<Successor<M>>, Halt<M>> {
        let mut found = std::mem::take(&mut self.spare.found);
        let mut choices = self.spare.choices.pop().unwrap_or_default();
        for thread in 0..self.model.threads() {
            self.model
                .choices(state, thread, &mut choices)
                .map_err(|stop| (stop, Vec::new()))?;
            for choice in &choices {
                let moves = self.spare.moves(&[(thread as u8, *choice)]);
                let mut next = self.spare.copy(state);
                if let Err(stop) = self.model.apply(&mut next, thread, *choice) {
                    return Err((stop, moves));
                }
                let is_progress = M::is_progress(*choice);
                self.settle(next, moves, is_progress, true, &mut found)?;
            }
        }
        self.spare.choices.push(choices);
        Ok(found)
    }

    /// The states after all local steps that `state` begins with.
    pub fn settled(&mut self, state: M::State) -> Result<Vec<Successor<M>>, Halt<M>> {
        let mut found = Vec::new();
        self.settle(state, Vec::new(), true, true, &mut found)?;
        Ok(found)
    }

    /// Takes all local steps. `is_straight`: each step so far was the only one that its thread could take.
    fn settle(
        &mut self,
        mut state: M::State,
        mut moves: Vec<Move<M>>,
        mut is_progress: bool,
        mut is_straight: bool,
        found: &mut Vec<Successor<M>>,
    ) -> Result<(), Halt<M>> {
        let mut choices = self.spare.choices.pop().unwrap_or_default();
        while self.reduce
            && let Some(thread) =
                (0..self.model.threads()).find(|t| self.model.is_local(&state, *t))
        {
            if moves.len() > MOST_LOCAL_STEPS {
                if is_straight {
                    break;
                }
                let reason = "a thread that never touches what others do";
                return Err((Stop::TooLarge(reason), moves));
            }
            if let Err(stop) = self.model.choices(&state, thread, &mut choices) {
                return Err((stop, moves));
            }
            let last = choices.len() - 1;
            is_straight &= last == 0;
            for choice in &choices[..last] {
                let mut next = self.spare.copy(&state);
                let mut moves = self.spare.moves(&moves);
                moves.push((thread as u8, *choice));
                if let Err(stop) = self.model.apply(&mut next, thread, *choice) {
                    return Err((stop, moves));
                }
                let is_progress = is_progress && M::is_progress(*choice);
                self.settle(next, moves, is_progress, is_straight, found)?;
            }
            is_progress &= M::is_progress(choices[last]);
            moves.push((thread as u8, choices[last]));
            if let Err(stop) = self.model.apply(&mut state, thread, choices[last]) {
                return Err((stop, moves));
            }
        }
        self.spare.choices.push(choices);
        found.push(Successor {
            state,
            moves,
            is_progress,
        });
        Ok(())
    }
}
