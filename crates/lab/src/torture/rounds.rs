//! The rounds that a guest reports, put together from its messages.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{LocktorturePlan, TortureSubject};
use crate::complaint::{Complaint, ComplaintKind};
use crate::locktorture::{TortureFigures, fairness_bound};

/// A round of one lock.
#[derive(Clone, Debug, Serialize)]
pub struct TortureRound {
    /// The figures of the module.
    #[serde(flatten)]
    pub figures: TortureFigures,
    /// The upper bound of the fairness factor.
    pub fairness: Option<f64>,
    /// The kernel's lock events in this round.
    pub counters: BTreeMap<String, u64>,
}

/// The rounds that a guest has reported so far.
pub(super) struct RoundsSoFar {
    writers: u32,
    pub(super) release: String,
    pub(super) subjects: Vec<(TortureSubject, Vec<TortureRound>)>,
    current: String,
    log: Vec<String>,
    counters: BTreeMap<String, u64>,
}

impl RoundsSoFar {
    pub(super) fn new(plan: &LocktorturePlan) -> Self {
        Self {
            writers: plan.writers,
            release: String::new(),
            subjects: plan.subjects.iter().map(|s| (*s, Vec::new())).collect(),
            current: String::new(),
            log: Vec::new(),
            counters: BTreeMap::new(),
        }
    }

    /// Takes a message of the guest.
    pub(super) fn note(&mut self, word: &str, rest: &str) {
        match word {
            "up" => self.release = rest.to_owned(),
            "round" => {
                self.log.clear();
                self.counters.clear();
                self.current = rest.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            "log" => self.log.push(rest.to_owned()),
            "counter" => self.counters.extend(counter(rest)),
            "measured" => self.measured(),
            _ => {}
        }
    }

    /// A complaint about rounds without figures.
    pub(super) fn missing(&self, planned: u32) -> Option<Complaint> {
        let lines: Vec<String> = self
            .subjects
            .iter()
            .filter(|(_, rounds)| rounds.len() != planned as usize)
            .map(|(subject, rounds)| {
                let (name, told) = (subject.name(), rounds.len());
                format!("figures of {told} rounds on {name}, not of {planned}")
            })
            .collect();
        (!lines.is_empty()).then_some(Complaint {
            kind: ComplaintKind::Task,
            lines,
        })
    }

    /// A complaint about rounds with broken mutual exclusion or an unsuccessful end.
    pub(super) fn bad(&self) -> Option<Complaint> {
        let mut lines = Vec::new();
        for (subject, rounds) in &self.subjects {
            for (round, TortureRound { figures, .. }) in (1..).zip(rounds) {
                if !figures.is_good() {
                    let (name, fail) = (subject.name(), figures.fail);
                    let end = figures.end.as_deref().unwrap_or("none");
                    lines.push(format!("round {round} of {name}: fail {fail}, end {end}"));
                }
            }
        }
        (!lines.is_empty()).then_some(Complaint {
            kind: ComplaintKind::Violation,
            lines,
        })
    }

    fn measured(&mut self) {
        let Some(figures) = TortureFigures::read(self.log.iter().map(String::as_str)) else {
            return;
        };
        let round = TortureRound {
            fairness: fairness_bound(&figures, self.writers),
            figures,
            counters: std::mem::take(&mut self.counters),
        };
        let current = self.subjects.iter_mut();
        for (_, rounds) in current.filter(|(subject, _)| subject.name() == self.current) {
            rounds.push(round.clone());
        }
    }
}

/// Whether a counter is reported even if it is 0: the locks count it in every world.
fn is_ours(name: &str) -> bool {
    lockworks::statistics().get(name).is_some()
}

/// A lock event and its count, if it is to be reported.
pub(crate) fn counter(told: &str) -> Option<(String, u64)> {
    let (name, count) = told.split_once(' ')?;
    let count = count.parse().ok()?;
    (count > 0 || is_ours(name)).then(|| (name.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{BOTH, plan};
    use super::*;

    #[test]
    fn rounds_are_put_together() {
        let mut rounds = RoundsSoFar::new(&plan(&BOTH));
        for said in [
            "up 6.12.0",
            "round 1 cna",
            "counter local_handoffs 0",
            "counter lock_slowpath 7",
            "counter rwsem_sleep_reader 0",
            "log [    7.9] Writes:  Total: 10  Max/Min: 6/4   Fail: 0 ",
            "log spin_lock-torture:--- End of test: SUCCESS: a=1",
            "measured",
            "round 1 stock",
            "measured",
            "round 2 cna",
            "log [   17.9] Writes:  Total: 10  Max/Min: 6/4   Fail: 0 ",
            "measured",
        ] {
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            rounds.note(word, rest);
        }
        let (stock, cna) = (&rounds.subjects[0].1, &rounds.subjects[1].1);
        assert!(stock.is_empty(), "the module reported nothing");
        let missing = rounds.missing(2).unwrap();
        assert_eq!(missing.lines, ["figures of 0 rounds on stock, not of 2"]);
        let bad = rounds.bad().unwrap();
        assert_eq!(bad.lines, ["round 2 of cna: fail 0, end none"]);
        assert_eq!(cna[0].figures.operations, 10);
        assert_eq!(cna[0].fairness, Some(0.6));
        let counters: Vec<_> = cna[0]
            .counters
            .iter()
            .map(|(n, c)| (n.as_str(), *c))
            .collect();
        assert_eq!(counters, [("local_handoffs", 0), ("lock_slowpath", 7)]);
    }
}
