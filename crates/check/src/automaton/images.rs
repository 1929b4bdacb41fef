//! The images of local states: what one becomes when two threads that behave alike are swapped.

use std::rc::Rc;

use lockworks_explore::{LocalId, Naming, Renaming, Symmetry};

use crate::machine::Answer;
use crate::names::{self, Names};
use crate::site::Request;

use super::{Automata, Next, UNKNOWN};

impl Automata {
    /// Learns the same step for all threads that behave alike.
    pub(super) fn mirror(&mut self, thread: usize, local: LocalId, answer: Answer, next: Next) {
        let symmetry = Rc::clone(&self.symmetry);
        let mut open = vec![(thread, local, answer, next)];
        while let Some((thread, local, answer, next)) = open.pop() {
            for (number, swap) in symmetry.swaps.iter().enumerate() {
                let thread = swap.thread(thread);
                let answer = self.renamed_answer(swap, local, answer);
                let local = self.locals[local as usize].images[number];
                let image = match self.known(local, answer) {
                    Some(image) => image.clone(),
                    None => {
                        let image = self.learn(thread, local, answer);
                        open.push((thread, local, answer, image.clone()));
                        image
                    }
                };
                if !self.pair(number, &next, &image) {
                    return;
                }
            }
        }
    }

    /// Notes the local state that another becomes when two threads are swapped. Returns false if the
    /// two do not behave alike; then all threads are taken to be different from now on.
    pub(super) fn pair(&mut self, swap: usize, one: &Next, other: &Next) -> bool {
        let [a, b] = [one, other].map(|next| next.local as usize);
        let [known_a, known_b] =
            [(a, b), (b, a)].map(|(at, image)| match self.locals[at].images[swap] {
                UNKNOWN => None,
                known => Some(known as usize == image),
            });
        let alike = match (known_a, known_b) {
            (None, None) => {
                self.locals[a].images[swap] = other.local;
                self.locals[b].images[swap] = one.local;
                let representative = self.locals[a]
                    .representative
                    .min(self.locals[b].representative);
                self.locals[a].representative = representative;
                self.locals[b].representative = representative;
                self.is_image(&self.symmetry.swaps[swap], a, b)
            }
            (Some(true), Some(true)) => true,
            _ => false,
        };
        let alike = alike && one.effects == other.effects && one.events == other.events;
        if !alike {
            self.symmetry = Symmetry::none(self.machine.surroundings.has_slot.len());
        }
        alike
    }

    /// Whether the operations of two local states are the same after a renaming.
    fn is_image(&self, swap: &Renaming, one: usize, other: usize) -> bool {
        let mutation = self.machine.surroundings.mutation;
        let mutated = |request: Request| mutation.map_or(request, |m| m.apply(request));
        let [one, other] = [one, other].map(|local| &self.locals[local]);
        one.attributes == other.attributes
            && match (one.request, other.request) {
                (Some(a), Some(b)) => {
                    let renamed = |request| names::request(swap, self.names(&a), request);
                    renamed(a) == b && renamed(mutated(a)) == mutated(b)
                }
                (None, None) => true,
                _ => false,
            }
    }

    /// The way in which the values of an operation name threads.
    fn names(&self, request: &Request) -> Names {
        let surroundings = &self.machine.surroundings;
        Names::at(
            request.address,
            request.site.size.into(),
            surroundings.has_slot.len(),
            surroundings.has_tail_word,
        )
    }

    fn renamed_answer(&self, swap: &Renaming, local: LocalId, answer: Answer) -> Answer {
        match answer {
            Answer::Value(value) => Answer::Value(self.renamed_result(swap, local, value)),
            Answer::Interruption | Answer::Fork => answer,
        }
    }

    /// The result of a local state's operation when threads are renamed.
    pub(crate) fn renamed_result(&self, by: &Renaming, local: LocalId, result: u64) -> u64 {
        match self.locals[local as usize].request {
            Some(request) if request.site.kind.is_access() => {
                self.names(&request).renamed(by, result)
            }
            _ => result,
        }
    }

    /// Whether it is known what a local state becomes by each swap that there still is.
    pub(crate) fn has_images(&self, local: LocalId) -> bool {
        let images = &self.locals[local as usize].images;
        !images[..self.symmetry.swaps.len()].contains(&UNKNOWN)
    }

    /// The local state that another becomes by these swaps.
    pub(crate) fn image(&self, local: LocalId, swaps: &[usize]) -> LocalId {
        swaps.iter().fold(local, |local, swap| {
            self.locals[local as usize].images[*swap]
        })
    }
}
