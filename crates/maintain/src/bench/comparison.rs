//! Locks side by side in one situation: their figures, ratios and requirements.

use std::fmt::Write;

use lockworks_measurements::Range;
use serde::Serialize;

use super::lock::Lock;
use super::rows::{align_right, figure, ratio};
use lockworks_ui::output;

/// The figures of a lock in one round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figure {
    /// Acquisitions in millions a second.
    pub million_per_second: f64,
    /// The fairness factor, if there was contention.
    pub fairness: Option<f64>,
}

/// Locks side by side in one situation, each with its figures.
#[derive(Serialize)]
pub struct Comparison {
    name: String,
    title: String,
    threads: usize,
    /// The number of measurements of each lock.
    rounds: usize,
    /// The lock to which all ratios are.
    reference: &'static str,
    rows: Vec<ComparedLock>,
    requirements: Vec<Requirement>,
}

/// The figures of one lock.
#[derive(Serialize)]
struct ComparedLock {
    lock: &'static str,
    origin: &'static str,
    order: &'static str,
    million_per_second: Range,
    /// The ratio to the reference within each round.
    ratio: Range,
    /// The fairness factor: the share of the busier half of the threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    fairness: Option<f64>,
}

impl Comparison {
    /// The comparison of locks, of which each round has a figure in the same order.
    ///
    /// # Panics
    ///
    /// If there is no round, or the reference is none of the locks.
    pub fn new(
        name: String,
        title: String,
        threads: usize,
        locks: &[&'static Lock],
        rounds: &[Vec<Figure>],
        reference: &'static str,
        mut requirements: Vec<Requirement>,
    ) -> Self {
        let index = |name: &str| locks.iter().position(|lock| lock.name() == name);
        // Within each round, so that changes between rounds cancel out.
        let ratio = |one: usize, other: usize| {
            let of_round = |round: &Vec<Figure>| {
                round[one].million_per_second / round[other].million_per_second
            };
            Range::of(rounds.iter().map(of_round)).expect("a round")
        };
        for requirement in &mut requirements {
            let indices = index(requirement.lock).zip(index(requirement.than));
            requirement.judge(indices.map(|(one, other)| ratio(one, other).median));
        }
        let of_reference = index(reference).expect("the reference is one of the locks");
        let row = |(index, lock): (usize, &&'static Lock)| ComparedLock {
            lock: lock.name(),
            origin: lock.origin(),
            order: lock.order.name(),
            million_per_second: Range::of(rounds.iter().map(|r| r[index].million_per_second))
                .expect("a round"),
            ratio: ratio(index, of_reference),
            fairness: Range::of(rounds.iter().filter_map(|round| round[index].fairness))
                .map(|range| range.median),
        };
        Self {
            name,
            title,
            threads,
            rounds: rounds.len(),
            reference,
            rows: locks.iter().enumerate().map(row).collect(),
            requirements,
        }
    }

    /// Appends the comparison as a table.
    pub fn write(&self, text: &mut String) {
        let against = format!("of {}", self.reference);
        let fair = self.rows.iter().any(|row| row.fairness.is_some());
        let judged = !self.requirements.is_empty();
        let mut header = vec!["lock", "from", "order", "million/s", "min..max", &against];
        header.extend(fair.then_some("fairness"));
        header.extend(judged.then_some("required"));
        let mut table = output::table(&header);
        for row in &self.rows {
            let million = row.million_per_second;
            let mut cells = vec![
                row.lock.to_string(),
                row.origin.to_string(),
                row.order.to_string(),
                figure(million.median),
                format!("{}..{}", figure(million.min), figure(million.max)),
                ratio(row.ratio.median),
            ];
            cells.extend(row.fairness.map(|fairness| format!("{fairness:.2}")));
            if judged {
                let texts = self
                    .requirements
                    .iter()
                    .filter_map(|r| r.text_for(row.lock));
                cells.push(texts.collect::<Vec<_>>().join("\n"));
            }
            table.add_row(cells);
        }
        align_right(&mut table, 3..=5);
        let _ = writeln!(text, "{}\n{table}\n", self.title);
    }

    /// The outcome of each requirement. It is `None` for a requirement that was not measured.
    pub fn outcomes(&self) -> impl Iterator<Item = Option<Result<(), String>>> + '_ {
        self.requirements
            .iter()
            .map(|requirement| requirement.outcome(&self.name))
    }
}

/// A ratio between two locks that must be reached.
#[derive(Clone, Debug, Serialize)]
pub struct Requirement {
    /// The lock of Lockworks that must be fast enough.
    pub lock: &'static str,
    /// The lock that it is compared with.
    pub than: &'static str,
    /// The least ratio.
    limit: f64,
    /// Whether the ratio must be above the limit, not only reach it.
    above: bool,
    /// The measured ratio. `None` if one of the two locks was not measured.
    ratio: Option<f64>,
    met: Option<bool>,
}

impl Requirement {
    /// Requires that `lock` reaches `limit` times the speed of `than`.
    pub fn at_least(lock: &'static str, than: &'static str, limit: f64) -> Self {
        Self {
            lock,
            than,
            limit,
            above: false,
            ratio: None,
            met: None,
        }
    }

    /// Requires that `lock` is faster than `than`.
    pub fn ahead(lock: &'static str, than: &'static str) -> Self {
        Self {
            above: true,
            ..Self::at_least(lock, than, 1.0)
        }
    }

    /// Compares the ratio with the limit. The ratio is `None` if one of the locks was not measured.
    pub fn judge(&mut self, ratio: Option<f64>) {
        self.ratio = ratio;
        self.met = ratio.map(|ratio| {
            if self.above {
                ratio > self.limit
            } else {
                ratio >= self.limit
            }
        });
    }

    fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "not measured",
        }
    }

    /// The text about this requirement in the row of `lock`. `None` if it belongs to another row.
    pub fn text_for(&self, lock: &str) -> Option<String> {
        let ratio = self.ratio.map_or("-".to_string(), ratio);
        let verdict = self.verdict();
        if self.above && self.than == lock {
            Some(format!("{} {ratio}x: {verdict}", self.lock))
        } else if !self.above && self.lock == lock {
            Some(format!(">= {} {}: {verdict}", self.limit, self.than))
        } else {
            None
        }
    }

    /// The outcome: `Ok` if the requirement is met, `Err` with a sentence if it is not. `None` if it
    /// was not measured.
    pub fn outcome(&self, section: &str) -> Option<Result<(), String>> {
        Some(if self.met? {
            Ok(())
        } else {
            Err(format!(
                "{section}: {} is {} of {}, not {}{}",
                self.lock,
                self.ratio.map_or(String::new(), ratio),
                self.than,
                if self.above { "above " } else { "at least " },
                self.limit,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Requirement;

    #[test]
    fn requirements_are_judged() {
        let mut least = Requirement::at_least("a", "b", 0.95);
        least.judge(Some(0.95));
        assert_eq!(least.met, Some(true));
        let mut ahead = Requirement::ahead("a", "b");
        ahead.judge(Some(1.0));
        assert_eq!(ahead.met, Some(false));
        assert_eq!(
            ahead.outcome("s"),
            Some(Err("s: a is 1.00 of b, not above 1".to_owned()))
        );
        ahead.judge(None);
        assert_eq!(ahead.outcome("s"), None);
        assert_eq!((ahead.met, ahead.verdict()), (None, "not measured"));
    }
}
