//! Local states that differ in nothing that matters any more.
//!
//! A stack and registers also hold what the code will never read again, and that tells local states
//! apart which do alike whatever happens: they are bisimilar. In a large search such states of one
//! thread are merged. That they do alike is assumed of those about to do the same operation that
//! have not been seen to differ. It is not taken on trust: an answer that is given to one is given to
//! all that it is merged with. If they then differ, the search begins anew with what it has learned.

use std::mem;

use hashbrown::HashMap;

use super::{Answer, Automata, LocalId, Next};

impl Automata {
    /// Merges the local states that do alike, as far as is known.
    pub(crate) fn merge(&mut self) {
        self.merged = true;
        self.differ = false;
        let mut classes = self.partition();
        while self.complete(&classes) {
            classes = self.partition();
        }
        for members in classes {
            let first = *members.iter().min().expect("no class is empty");
            self.form(first, members);
        }
    }

    fn form(&mut self, first: LocalId, members: Vec<LocalId>) {
        let like = members.iter().map(|m| self.local(*m).like).min();
        for member in &members {
            self.local_mut(*member).same = first;
        }
        let local = self.local_mut(first);
        local.like = like.expect("a class has members");
        local.agreed.clear();
        local.members = members;
    }

    /// The classes of a coarsest partition of which nothing is known to be wrong.
    fn partition(&self) -> Vec<Vec<LocalId>> {
        let mut numbers = HashMap::new();
        let key = |local: &super::Local| (local.thread, local.attributes, local.operation());
        let mut class: Vec<usize> = self
            .locals
            .iter()
            .map(|local| {
                let next = numbers.len();
                *numbers.entry(key(local)).or_insert(next)
            })
            .collect();
        let mut count = numbers.len();
        loop {
            let mut members = vec![Vec::new(); count];
            for (local, class) in class.iter().enumerate() {
                members[*class].push(local as LocalId);
            }
            let finer: Vec<_> = members
                .into_iter()
                .flat_map(|members| self.divide(members, &class))
                .collect();
            if finer.len() == count {
                return finer;
            }
            count = finer.len();
            for (number, members) in finer.iter().enumerate() {
                for member in members {
                    class[*member as usize] = number;
                }
            }
        }
    }

    /// Divides locals so that those together go on alike by all answers that are known of both.
    fn divide(&self, mut locals: Vec<LocalId>, class: &[usize]) -> Vec<Vec<LocalId>> {
        let mut parts: Vec<(Vec<LocalId>, HashMap<Answer, Next>)> = Vec::new();
        // Of whom most is known first.
        locals.sort_by_key(|local| usize::MAX - self.local(*local).next.len());
        for local in locals {
            let ways = self.local(local).next.iter().map(|(answer, next)| {
                let local = class[next.local as usize] as LocalId;
                (
                    *answer,
                    Next {
                        local,
                        ..next.clone()
                    },
                )
            });
            let fits = |known: &HashMap<Answer, Next>| {
                let mut ways = ways.clone();
                ways.all(|(answer, next)| known.get(&answer).is_none_or(|other| *other == next))
            };
            match parts.iter_mut().find(|(_, known)| fits(known)) {
                Some((members, known)) => {
                    members.push(local);
                    known.extend(ways);
                }
                None => parts.push((vec![local], ways.collect())),
            }
        }
        parts.into_iter().map(|(members, _)| members).collect()
    }

    /// Gives each answer that is known of one member of a class to all; false if all knew all.
    fn complete(&mut self, classes: &[Vec<LocalId>]) -> bool {
        let before = self.learned;
        for members in classes {
            let ways = members.iter().flat_map(|member| &self.local(*member).next);
            let mut answers: Vec<_> = ways.map(|(answer, _)| *answer).collect();
            answers.sort_unstable();
            answers.dedup();
            for member in members {
                for answer in &answers {
                    self.taken(*member, *answer);
                }
            }
        }
        self.learned > before
    }

    /// Where all that are merged with `local` get by `answer`.
    #[cold]
    pub(super) fn agree(&mut self, local: LocalId, answer: Answer) -> Next {
        let mut open = vec![(local, answer)];
        while let Some((local, answer)) = open.pop() {
            let first = self.local(local).same;
            let members = self.local(first).members.clone();
            let agreed = self.taken(members[0], answer);
            for member in &members[1..] {
                let next = self.taken(*member, answer);
                let alike = next.effects == agreed.effects && next.events == agreed.events;
                if !alike || !self.unite(agreed.local, next.local, &mut open) {
                    self.differ = true;
                    return agreed;
                }
            }
            if self.local(first).members != members {
                open.push((local, answer));
                continue;
            }
            let ways = &mut self.local_mut(first).agreed;
            match ways.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, next)) => *next = agreed,
                None => ways.push((answer, agreed)),
            }
        }
        self.taken(local, answer)
    }

    /// Merges two local states and all that each is merged with; what was agreed on by either is
    /// to be agreed on by all. False if they differ.
    fn unite(&mut self, one: LocalId, other: LocalId, open: &mut Vec<(LocalId, Answer)>) -> bool {
        let [one, other] = [one, other].map(|local| self.local(local).same);
        if one == other {
            return true;
        }
        let [a, b] = [one, other].map(|local| self.local(local));
        if a.attributes != b.attributes || a.operation() != b.operation() {
            return false;
        }
        let (first, second) = (one.min(other), one.max(other));
        let mut members = mem::take(&mut self.local_mut(first).members);
        members.append(&mut self.local_mut(second).members);
        for local in [first, second] {
            let ways = mem::take(&mut self.local_mut(local).agreed);
            open.extend(ways.into_iter().map(|(answer, _)| (first, answer)));
        }
        self.form(first, members);
        true
    }
}
