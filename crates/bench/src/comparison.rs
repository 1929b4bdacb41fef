//! Locks side by side in one situation: their figures, ratios and requirements.

use std::fmt::Write;

use lockworks_measurements::Range;
use serde::Serialize;

use crate::lock::Lock;
use crate::requirement::Requirement;
use crate::series::Series;
use crate::tables::{align_right, figure, grid, ratio};

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

/// The figures that a [`Comparison`] is made from.
pub struct Figures {
    locks: Vec<&'static Lock>,
    per_second: Vec<Series>,
    reference: &'static str,
    requirements: Vec<Requirement>,
    /// The fairness factors of each lock, if there was contention.
    pub fairness: Option<Vec<Series>>,
}

impl Figures {
    /// Begins with the rate of each lock, in millions of acquisitions a second.
    pub fn new(locks: &[&'static Lock], per_second: Vec<Series>, reference: &'static str) -> Self {
        Self {
            locks: locks.to_vec(),
            per_second,
            reference,
            requirements: Vec::new(),
            fairness: None,
        }
    }

    fn figures_of(&self, lock: &str) -> Option<&Series> {
        let index = self.locks.iter().position(|other| other.name() == lock)?;
        Some(&self.per_second[index])
    }

    /// Judges a requirement and adds it.
    pub fn require(&mut self, mut requirement: Requirement) {
        let figures = self
            .figures_of(requirement.lock)
            .zip(self.figures_of(requirement.than));
        requirement.judge(figures.map(|(lock, than)| lock.ratio(than).range().median));
        self.requirements.push(requirement);
    }

    /// Makes the comparison.
    pub fn compare(self, name: &str, title: String, threads: usize) -> Comparison {
        let reference = self
            .figures_of(self.reference)
            .expect("the reference is one of the locks");
        let rows = self
            .locks
            .iter()
            .enumerate()
            .map(|(index, lock)| ComparedLock {
                lock: lock.name(),
                origin: lock.origin(),
                order: lock.order.name(),
                million_per_second: self.per_second[index].range(),
                ratio: self.per_second[index].ratio(reference).range(),
                fairness: self
                    .fairness
                    .as_ref()
                    .map(|series| series[index].range().median),
            })
            .collect();
        Comparison {
            name: name.to_string(),
            title,
            threads,
            rounds: self.per_second[0].len(),
            reference: self.reference,
            rows,
            requirements: self.requirements,
        }
    }
}

impl Comparison {
    /// A comparison that could not be made. The title says why.
    pub fn skipped(name: &str, title: &str) -> Self {
        Self {
            name: name.to_string(),
            title: title.to_string(),
            threads: 0,
            rounds: 0,
            reference: "",
            rows: Vec::new(),
            requirements: Vec::new(),
        }
    }

    /// Appends the comparison as a table.
    pub fn write(&self, text: &mut String) {
        let _ = writeln!(text, "{}", self.title);
        if self.rows.is_empty() {
            text.push('\n');
            return;
        }
        let against = format!("of {}", self.reference);
        let fair = self.rows.iter().any(|row| row.fairness.is_some());
        let judged = !self.requirements.is_empty();
        let mut header = vec!["lock", "from", "order", "million/s", "min..max", &against];
        if fair {
            header.push("fairness");
        }
        if judged {
            header.push("required");
        }
        let mut grid = grid(&header);
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
            if let Some(fairness) = row.fairness {
                cells.push(format!("{fairness:.2}"));
            }
            if judged {
                let texts: Vec<String> = self
                    .requirements
                    .iter()
                    .filter_map(|requirement| requirement.text_for(row.lock))
                    .collect();
                cells.push(texts.join("\n"));
            }
            grid.add_row(cells);
        }
        align_right(&mut grid, 3..=5);
        let _ = writeln!(text, "{grid}\n");
    }

    /// The outcome of each requirement. It is `None` for a requirement that was not measured.
    pub fn outcomes(&self) -> impl Iterator<Item = Option<Result<(), String>>> + '_ {
        self.requirements
            .iter()
            .map(|requirement| requirement.outcome(&self.name))
    }
}
