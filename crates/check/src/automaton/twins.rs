//! Tests that local states which differ only in dead values behave alike.

use std::cell::Cell;

use hashbrown::HashMap;
use lockworks_explore::LocalId;
use lockworks_litmus::Memory;

use crate::config::Config;
use crate::{Check, Limits};

use super::{Automata, Local};

/// The most twins that are kept of a local state.
const MOST: usize = 3;

/// Local states that were found equal to another, but whose stacks differ from it.
#[derive(Default)]
pub(super) struct Twins {
    /// By the local state that stands for them. With each, the number of its steps compared so far.
    of: HashMap<LocalId, Vec<(Local, usize)>>,
}

impl Twins {
    pub(super) fn add(&mut self, known: &Local, twin: Local) {
        let twins = self.of.entry(twin.representative).or_default();
        let differs = |other: &Local| other.stack != twin.stack;
        if twins.len() < MOST && differs(known) && twins.iter().all(|(other, _)| differs(other)) {
            twins.push((twin, 0));
        }
    }
}

thread_local! {
    /// The numbers of steps of twins that did, and did not, what the known step does; None: twins are not
    /// compared, which takes time.
    static COMPARED: Cell<Option<[usize; 2]>> = const { Cell::new(None) };
}

/// Whether this thread compares twins.
pub(super) fn are_compared() -> bool {
    COMPARED.get().is_some()
}

impl Automata {
    /// Lets the twins of a local state take the steps that are known of it.
    pub(super) fn compare_twins(&mut self, thread: usize, local: LocalId) {
        let (Some(mut counts), Some(twins)) = (COMPARED.get(), self.twins.of.remove(&local)) else {
            return;
        };
        let mut compared = Vec::new();
        for (twin, done) in twins {
            let steps = self.locals[local as usize].next.len();
            for step in done..steps {
                let (answer, known) = self.locals[local as usize].next[step].clone();
                twin.resume_in(&self.machine, answer);
                let next = self.arrive(thread);
                let [one, other] = [&next, &known].map(|next| &self.locals[next.local as usize]);
                let alike = one.request == other.request
                    && one.attributes == other.attributes
                    && (&next.effects, next.events) == (&known.effects, known.events);
                counts[usize::from(!alike)] += 1;
                // Values that were dead may be left over where the analysis takes all to be live. So
                // these two are to behave alike too.
                if alike && next.local != known.local {
                    let twin = Local {
                        context: one.context.clone(),
                        stack: one.stack.clone(),
                        next: Vec::new(),
                        images: Box::default(),
                        representative: known.local,
                        ..*one
                    };
                    self.twins.add(&self.locals[known.local as usize], twin);
                }
            }
            compared.push((twin, steps));
        }
        COMPARED.set(Some(counts));
        self.twins.of.insert(local, compared);
    }
}

/// The steps of twins that did, and did not, what the known step does, in checks of all locks.
fn compared() -> [usize; 2] {
    COMPARED.set(Some([0; 2]));
    for lock in crate::lock_types().filter(|lock| lock.name() != "busted") {
        for cancel in [false, true] {
            let config = Config {
                cancel,
                memory: Memory::Sc,
                spurious: 0,
                ..Config::new(lock.name())
            };
            let Ok(check) = Check::new(&config, None) else {
                continue; // the waits of this lock cannot be cancelled
            };
            let limits = Limits {
                states: Some(20_000),
                ..Limits::NONE
            };
            check.run(&limits, &mut |_| {});
        }
    }
    COMPARED.get().expect("set above")
}

#[test]
fn states_that_differ_in_dead_values_behave_alike() {
    let [alike, different] = compared();
    assert_eq!(different, 0);
    assert!(cfg!(not(target_arch = "x86_64")) || alike > 100, "{alike}");
}

/// The comparison finds live values that are taken to be dead.
#[cfg(target_arch = "x86_64")]
#[test]
fn live_values_taken_to_be_dead_are_found() {
    crate::liveness::BLIND.set(true);
    let [_, different] = compared();
    assert!(different > 0);
}
