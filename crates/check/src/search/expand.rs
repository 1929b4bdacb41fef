//! The successors of a state: one step of a thread, and all local steps that follow.

use xxhash_rust::xxh3::xxh3_128;

use crate::model::{Choice, Model, Stop};
use crate::state::State;

/// The most local steps in a row; a thread that takes more is assumed never to stop.
const MOST_LOCAL_STEPS: usize = 1000;

/// A thread, and its choice in a state.
pub(super) type Move = (u8, Choice);

pub(super) struct Successor<const N: usize> {
    pub(super) state: State<N>,
    pub(super) moves: Vec<Move>,
    /// The moves need no old values, interruptions or spurious wake-ups.
    pub(super) is_progress: bool,
}

/// The reason why the expansion of a state stopped, and the moves up to there.
pub(super) type Halt = (Stop, Vec<Move>);

/// A successor as bytes.
pub(super) struct Encoded {
    pub(super) hash: u128,
    /// Its bytes end here, and begin where those of the one before end.
    pub(super) end: usize,
    pub(super) is_progress: bool,
}

/// What a state leads to.
pub(super) enum Expanded {
    /// It was known under this number.
    Known(u32),
    /// All threads have ended, with these results.
    End(Vec<u64>),
    /// So many successors.
    Successors(usize),
    Halt(Halt),
}

/// Finds the successors of states.
pub(super) struct Expander<'a, const N: usize> {
    pub(super) model: Model<'a, N>,
    /// Take local steps at once, without a choice between threads.
    reduce: bool,
    state: Option<State<N>>,
    pub(super) buffer: Vec<u8>,
    spare: Spare<N>,
}

/// Objects that are no longer needed, kept for their memory.
#[derive(Default)]
struct Spare<const N: usize> {
    states: Vec<State<N>>,
    moves: Vec<Vec<Move>>,
    choices: Vec<Vec<Choice>>,
    found: Vec<Successor<N>>,
}

impl<const N: usize> Spare<N> {
    fn copy(&mut self, state: &State<N>) -> State<N> {
        match self.states.pop() {
            Some(mut copy) => {
                copy.copy_from(state);
                copy
            }
            None => state.clone(),
        }
    }

    fn moves(&mut self, moves: &[Move]) -> Vec<Move> {
        let mut copy = self.moves.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(moves);
        copy
    }
}

impl<'a, const N: usize> Expander<'a, N> {
    pub(super) fn new(model: Model<'a, N>, reduce: bool) -> Self {
        Self {
            model,
            reduce,
            state: None,
            buffer: Vec::new(),
            spare: Spare::default(),
        }
    }

    /// Finds out what a state leads to, and appends its successors to `found` and their bytes to `bytes`.
    pub(super) fn expand(
        &mut self,
        state: &[u8],
        found: &mut Vec<Encoded>,
        bytes: &mut Vec<u8>,
    ) -> Expanded {
        let mut decoded = self.state.take().unwrap_or_else(State::empty);
        self.model.decode(state, &mut decoded);
        let expanded = self.expand_decoded(&decoded, found, bytes);
        self.state = Some(decoded);
        expanded
    }

    fn expand_decoded(
        &mut self,
        state: &State<N>,
        found: &mut Vec<Encoded>,
        bytes: &mut Vec<u8>,
    ) -> Expanded {
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
    pub(super) fn encode(
        &mut self,
        mut successors: Vec<Successor<N>>,
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
    pub(super) fn successors(&mut self, state: &State<N>) -> Result<Vec<Successor<N>>, Halt> {
        let mut found = std::mem::take(&mut self.spare.found);
        let mut choices = self.spare.choices.pop().unwrap_or_default();
        for thread in 0..state.threads.len() {
            self.model
                .choices(state, thread, &mut choices)
                .map_err(|stop| (stop, Vec::new()))?;
            for choice in &choices {
                let moves = self.spare.moves(&[(thread as u8, *choice)]);
                let mut next = self.spare.copy(state);
                if let Err(stop) = self.model.apply(&mut next, thread, *choice) {
                    return Err((stop, moves));
                }
                let is_progress = choice.is_progress();
                self.settle(next, moves, is_progress, &mut found)?;
            }
        }
        self.spare.choices.push(choices);
        Ok(found)
    }

    /// The states after all local steps that `state` begins with.
    pub(super) fn settled(&mut self, state: State<N>) -> Result<Vec<Successor<N>>, Halt> {
        let mut found = Vec::new();
        self.settle(state, Vec::new(), true, &mut found)?;
        Ok(found)
    }

    /// Takes all local steps.
    fn settle(
        &mut self,
        mut state: State<N>,
        mut moves: Vec<Move>,
        mut is_progress: bool,
        found: &mut Vec<Successor<N>>,
    ) -> Result<(), Halt> {
        let mut choices = self.spare.choices.pop().unwrap_or_default();
        while self.reduce
            && let Some(thread) = (0..state.threads.len()).find(|t| self.model.is_local(&state, *t))
        {
            if moves.len() > MOST_LOCAL_STEPS {
                let reason = "a thread that never touches what others do";
                return Err((Stop::TooLarge(reason), moves));
            }
            if let Err(stop) = self.model.choices(&state, thread, &mut choices) {
                return Err((stop, moves));
            }
            let last = choices.len() - 1;
            for choice in &choices[..last] {
                let mut next = self.spare.copy(&state);
                let mut moves = self.spare.moves(&moves);
                moves.push((thread as u8, *choice));
                if let Err(stop) = self.model.apply(&mut next, thread, *choice) {
                    return Err((stop, moves));
                }
                let is_progress = is_progress && choice.is_progress();
                self.settle(next, moves, is_progress, found)?;
            }
            is_progress &= choices[last].is_progress();
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
