//! The model as a search explores it.

use std::rc::Rc;
use std::sync::Arc;

use lockworks_explore::{Histories, LocalId, Model as Explored, Renaming, State, Thread, merged};
use lockworks_litmus::Memory;

use crate::automaton::Log;
use crate::cells::Findings;
use crate::site::OperationKind;
use crate::violation::Violation;

use super::{Choice, Model, Seen, Stop, ThreadKey, woken};

impl<const N: usize> Explored for Model<'_, N> {
    type State = State<N>;
    type Choice = Choice;
    type Violation = Violation;
    type Seen = Seen;
    type Seed = (Arc<Log>, Findings);

    fn threads(&self) -> usize {
        self.config.threads
    }

    fn empty() -> State<N> {
        State::empty()
    }

    fn choices(
        &mut self,
        state: &State<N>,
        thread: usize,
        choices: &mut Vec<Choice>,
    ) -> Result<(), Stop> {
        self.find_choices(state, thread, choices)
    }

    fn is_progress(choice: Choice) -> bool {
        matches!(
            choice,
            Choice::Operate { newest: true, .. }
                | Choice::Late { newest: true, .. }
                | Choice::Forward { .. }
                | Choice::Barrier
                | Choice::TimeOut
        )
    }

    fn is_local(&self, state: &State<N>, thread: usize) -> bool {
        self.is_local_step(state, thread)
    }

    fn is_over(&self, state: &State<N>) -> bool {
        (0..state.threads.len()).all(|t| !self.is_live(state, t))
    }

    fn check_end(&self, state: &State<N>) -> Result<(), Violation> {
        self.check_nothing_is_left(state)
    }

    fn results(&self, state: &State<N>) -> Vec<u64> {
        self.final_results(state)
    }

    fn deadlock(&self, state: &State<N>) -> Violation {
        if let (Some(_), Some(thread)) = (self.config.idle, self.idle_head(state)) {
            return Violation::Idle {
                thread,
                operations: None,
            };
        }
        let threads = (0..state.threads.len())
            .filter(|t| self.is_live(state, *t))
            .collect();
        Violation::Deadlock { threads }
    }

    fn livelock() -> Violation {
        Violation::Livelock
    }

    fn in_run(&self, found: Violation, last: &State<N>) -> Violation {
        match found {
            Violation::Deadlock { .. } => self.deadlock(last),
            found => found,
        }
    }

    fn has_cycle(&self) -> bool {
        self.automata.has_cycle()
    }

    fn start(&mut self) -> Result<State<N>, Stop> {
        self.automata.forget_surprise();
        let locals = self.automata.start();
        self.check_symmetry()?;
        let siblings = Rc::clone(&self.siblings);
        let mut state = State::new(locals.iter().copied(), siblings);
        state.histories = self.histories;
        for (thread, local) in locals.into_iter().enumerate() {
            self.find_cells(thread, local)?;
        }
        self.grow(&mut state);
        Ok(state)
    }

    fn step(&mut self, state: &mut State<N>, thread: usize, choice: Choice) -> Result<(), Stop> {
        self.apply(state, thread, choice)?;
        if self.weak() && state.is_crowded() {
            let live = self.live(state);
            state.forget_half_of_full_cells(live);
            state.normalise(live);
        }
        Ok(())
    }

    fn apply(&mut self, state: &mut State<N>, thread: usize, choice: Choice) -> Result<(), Stop> {
        match self.config.idle {
            None => self.make(state, thread, choice),
            Some(bound) => {
                let counts = self.counts_as_idle(state, thread, choice);
                self.make(state, thread, choice)?;
                self.note_idle(state, counts, bound)
            }
        }
    }

    fn decode(&self, bytes: &[u8], state: &mut State<N>) {
        let threads = self.config.threads;
        match self.histories {
            Histories::Ordered => state.decode(threads, &self.shared, &self.siblings, bytes),
            Histories::Merged => state.decode_merged(threads, &self.shared, &self.siblings, bytes),
        }
        for thread in &mut state.threads {
            if !thread.window.is_empty() {
                thread.local = self.standing(&thread.window);
            }
        }
        self.grow(state);
    }

    fn encode(&mut self, state: &mut State<N>, bytes: &mut Vec<u8>) -> usize {
        self.normalise(state);
        let symmetry = Rc::clone(&self.symmetry);
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.extend(state.threads.iter().map(|thread| self.thread_key(thread)));
        let mut sorting = symmetry.sorting(&keys);
        let mut best = sorting.next().expect("threads can be sorted");
        self.encode_renamed(state, best, bytes);
        for other in sorting {
            let mut trial = std::mem::take(&mut self.renamed.1);
            self.encode_renamed(state, other, &mut trial);
            if trial < *bytes {
                std::mem::swap(&mut trial, bytes);
                best = other;
            }
            self.renamed.1 = trial;
        }
        self.keys = keys;
        best
    }

    fn normalise(&self, state: &mut State<N>) {
        self.grow(state);
        if self.weak() {
            state.normalise(self.live(state));
        }
    }

    fn renaming(&self, number: usize) -> &Renaming {
        &self.symmetry.renamings[number].renaming
    }

    fn renamed_choice(
        &self,
        state: &State<N>,
        thread: usize,
        choice: Choice,
        renaming: &Renaming,
    ) -> Choice {
        let request = self.request(state, thread);
        match choice {
            Choice::Operate { mut picks, newest }
                if request.is_some_and(|r| self.kind(&r) == OperationKind::Unpark) =>
            {
                if let Some(woken) = woken(&picks) {
                    picks[0] = renaming.thread(woken) as u8 + 1;
                }
                Choice::Operate { picks, newest }
            }
            _ => choice,
        }
    }

    fn catch_up(&mut self) -> Result<(), Stop> {
        self.automata.catch_up();
        self.check_symmetry()?;
        if self.automata.is_surprised() {
            return Err(Stop::Restart);
        }
        self.find_cells_in_order()
    }

    fn seed(&self) -> Self::Seed {
        (Arc::clone(self.automata.log()), self.findings.clone())
    }

    fn seen(&self) -> Seen {
        Seen {
            findings: self.findings.clone(),
            steps: self.automata.log().steps().clone(),
            relied_on: self.automata.relied_on(),
            covered: self.covered.clone(),
            events: self.events,
            cut: self.cut,
            cut_by_window: self.cut_by_window,
        }
    }

    fn add_seen(&mut self, seen: Seen) {
        for (all, other) in self.covered.iter_mut().zip(seen.covered) {
            *all |= other;
        }
        for (all, other) in self.events.iter_mut().zip(seen.events) {
            *all |= other;
        }
        self.cut |= seen.cut;
        self.cut_by_window |= seen.cut_by_window;
        self.findings.add(&seen.findings);
        for local in seen.relied_on {
            self.automata.rely_on(local);
        }
    }

    fn local_states(&self) -> usize {
        self.automata.locals.len()
    }

    fn is_cut(&self) -> bool {
        self.cut
    }

    fn is_cut_by_window(&self) -> bool {
        self.cut_by_window
    }

    fn can_merge(&self) -> bool {
        self.config.memory == Memory::C11 && self.config.staleness.is_none()
    }

    fn merge_histories(&mut self) {
        self.histories = Histories::Merged;
    }

    fn end_proof(&mut self, before: Seen, is_proven: bool) {
        self.histories = Histories::Ordered;
        self.events = before.events;
        if !is_proven {
            self.covered = before.covered;
        }
    }

    fn key(bytes: &[u8]) -> &[u8] {
        merged::key(bytes)
    }

    fn unite(&self, one: &mut State<N>, other: &mut State<N>, united: &mut Vec<u8>) -> bool {
        let fits = one.unite(other);
        if fits {
            one.encode(&self.shared, united);
        }
        fits
    }
}

impl<const N: usize> Model<'_, N> {
    fn thread_key(&self, thread: &Thread<N>) -> ThreadKey {
        let representative = |local: LocalId| self.local(local).representative;
        (
            representative(thread.local),
            thread.parked,
            thread.exposed,
            thread
                .deferred
                .map(|(local, due)| (representative(local), due)),
            thread.bypassed,
        )
    }

    fn encode_renamed(&mut self, state: &State<N>, number: usize, bytes: &mut Vec<u8>) {
        let composed = &self.symmetry.renamings[number];
        if composed.swaps.is_empty() {
            state.encode(&self.shared, bytes);
            return;
        }
        let mut windows = std::mem::take(&mut self.windows);
        windows.clear();
        windows.extend(
            state
                .threads
                .iter()
                .map(|thread| self.renamed_window(&thread.window, composed)),
        );
        self.renamed.0.rename_from(
            state,
            &composed.renaming,
            &self.renamed_cells[number],
            &self.names,
            |local| self.automata.image(local, &composed.swaps),
            &windows,
        );
        self.windows = windows;
        self.renamed.0.encode(&self.shared, bytes);
    }
}
