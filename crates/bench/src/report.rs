//! The results, as tables for people and JSON for programs.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table as Grid, presets};
use serde::Serialize;

use crate::checker::Proof;
use crate::host::Host;
use crate::lock::Lock;
use crate::programs::Served;
use crate::reproduction::Reproduction;
use crate::series::{Range, Series};
use crate::simulator::Simulation;

/// Everything that was measured.
#[derive(Serialize)]
pub struct Report {
    /// Of Lockworks.
    pub version: &'static str,
    /// Where.
    pub machine: Host,
    /// A short run, whose figures mean little.
    pub quick: bool,
    /// What to know about this run.
    pub notes: Vec<String>,
    /// The locks side by side.
    pub sections: Vec<Section>,
    /// The simulator's speed and memory.
    pub simulator: Vec<Simulation>,
    /// The simulator against the published tables.
    pub reproduction: Vec<Reproduction>,
    /// The model checker's speed and memory.
    pub checker: Vec<Proof>,
    /// Programs of others under locks of Lockworks.
    pub programs: Vec<Served>,
}

/// Locks side by side in one situation.
#[derive(Serialize)]
pub struct Section {
    name: String,
    title: String,
    threads: usize,
    /// How often every lock was measured.
    rounds: usize,
    /// The lock that ratios are to.
    reference: &'static str,
    rows: Vec<Row>,
    requirements: Vec<Requirement>,
}

#[derive(Serialize)]
struct Row {
    lock: &'static str,
    origin: &'static str,
    order: &'static str,
    million_per_second: Range,
    /// Taken round by round, as all ratios.
    ratio: Range,
    /// What the busier half of the threads did, of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    fairness: Option<f64>,
}

/// What a lock must reach.
#[derive(Clone, Debug, Serialize)]
pub struct Requirement {
    lock: &'static str,
    /// The lock that it is compared with.
    than: &'static str,
    /// The least ratio.
    limit: f64,
    /// Is the limit itself not enough?
    above: bool,
    /// None if one of the two has not been measured.
    ratio: Option<f64>,
    met: Option<bool>,
}

impl Requirement {
    /// `lock` must reach `limit` times `than`.
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

    /// `lock` must be faster than `than`.
    pub fn ahead(lock: &'static str, than: &'static str) -> Self {
        Self {
            above: true,
            ..Self::at_least(lock, than, 1.0)
        }
    }

    fn judge(&mut self, ratio: Option<f64>) {
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

    /// In a table's row of `lock`, what it says there.
    fn text_for(&self, lock: &str) -> Option<String> {
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
}

/// A section being put together.
pub struct Table {
    locks: Vec<&'static Lock>,
    figures: Vec<Series>,
    reference: &'static str,
    requirements: Vec<Requirement>,
    /// Fairness factors, where there was contention.
    pub fairness: Option<Vec<Series>>,
}

impl Table {
    /// From what was measured of each lock, in millions a second.
    pub fn new(locks: &[&'static Lock], figures: Vec<Series>, reference: &'static str) -> Self {
        Self {
            locks: locks.to_vec(),
            figures,
            reference,
            requirements: Vec::new(),
            fairness: None,
        }
    }

    fn figures_of(&self, lock: &str) -> Option<&Series> {
        let index = self.locks.iter().position(|other| other.name() == lock)?;
        Some(&self.figures[index])
    }

    /// Judges a requirement and adds it.
    pub fn require(&mut self, mut requirement: Requirement) {
        let figures = self
            .figures_of(requirement.lock)
            .zip(self.figures_of(requirement.than));
        requirement.judge(figures.map(|(lock, than)| lock.ratio(than).range().median));
        self.requirements.push(requirement);
    }

    /// The finished section.
    pub fn section(self, name: &str, title: String, threads: usize) -> Section {
        let reference = self
            .figures_of(self.reference)
            .expect("the reference is measured wherever it is one");
        let rows = self
            .locks
            .iter()
            .enumerate()
            .map(|(index, lock)| Row {
                lock: lock.name(),
                origin: lock.origin(),
                order: lock.order.name(),
                million_per_second: self.figures[index].range(),
                ratio: self.figures[index].ratio(reference).range(),
                fairness: self
                    .fairness
                    .as_ref()
                    .map(|series| series[index].range().median),
            })
            .collect();
        Section {
            name: name.to_string(),
            title,
            threads,
            rounds: self.figures[0].len(),
            reference: self.reference,
            rows,
            requirements: self.requirements,
        }
    }
}

impl Section {
    /// One that could not be measured; the title says why.
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

    fn write(&self, text: &mut String) {
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
        for column in 3..=5 {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{grid}\n");
    }
}

impl Report {
    /// As tables.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Lockworks {} on {} CPUs of {}\n",
            self.version,
            self.machine.cpus.len(),
            self.machine.processor
        );
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text.push('\n');
        for section in &self.sections {
            section.write(&mut text);
        }
        if !self.simulator.is_empty() {
            self.write_simulator(&mut text);
        }
        if !self.reproduction.is_empty() {
            self.write_reproduction(&mut text);
        }
        if !self.checker.is_empty() {
            self.write_checker(&mut text);
        }
        if !self.programs.is_empty() {
            self.write_programs(&mut text);
        }
        self.write_verdict(&mut text);
        text
    }

    fn write_simulator(&self, text: &mut String) {
        let _ = writeln!(text, "The simulator, on one core");
        let mut grid = grid(&[
            "machine",
            "threads",
            "lock",
            "acquisitions/s",
            "CPU seconds",
            "transfers each",
            "memory MiB",
            "required",
        ]);
        for run in &self.simulator {
            grid.add_row(run.cells());
        }
        for column in [1, 3, 4, 5, 6] {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{grid}\n");
    }

    fn write_checker(&self, text: &mut String) {
        let _ = writeln!(text, "The model checker, on one core");
        let mut grid = grid(&[
            "check",
            "states",
            "transitions",
            "CPU seconds",
            "memory MiB",
            "required",
        ]);
        for proof in &self.checker {
            grid.add_row(proof.cells());
        }
        for column in [1, 2, 3, 4] {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{grid}\n");
    }

    fn write_programs(&self, text: &mut String) {
        let _ = writeln!(text, "Programs, unmodified, by the lock in their mutexes");
        let mut grid = grid(&[
            "program",
            "clients",
            "lock",
            "operations/s",
            "min..max",
            "of glibc",
            "required",
        ]);
        for served in &self.programs {
            grid.add_row(served.cells());
        }
        for column in [1, 3, 4, 5] {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{grid}\n");
    }

    fn write_reproduction(&self, text: &mut String) {
        let _ = writeln!(text, "The simulator against the published tables");
        let mut grid = grid(&[
            "table",
            "rows",
            "error %",
            "fitted %",
            "wall seconds",
            "required",
        ]);
        for table in &self.reproduction {
            grid.add_row(table.cells());
        }
        for column in [1, 2, 3, 4] {
            if let Some(column) = grid.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{grid}\n");
    }

    fn write_verdict(&self, text: &mut String) {
        let mut met = 0;
        let mut failures = Vec::new();
        let mut missing = 0;
        for section in &self.sections {
            for requirement in &section.requirements {
                match requirement.met {
                    Some(true) => met += 1,
                    None => missing += 1,
                    Some(false) => failures.push(format!(
                        "{}: {} is {} of {}, not {}{}",
                        section.name,
                        requirement.lock,
                        requirement.ratio.map_or(String::new(), ratio),
                        requirement.than,
                        if requirement.above {
                            "above "
                        } else {
                            "at least "
                        },
                        requirement.limit,
                    )),
                }
            }
        }
        let others = (self.simulator.iter().map(Simulation::judged))
            .chain(self.reproduction.iter().map(Reproduction::judged))
            .chain(self.checker.iter().map(Proof::judged))
            .chain(self.programs.iter().filter_map(Served::judged));
        for judged in others {
            match judged {
                Ok(()) => met += 1,
                Err(failure) => failures.push(failure),
            }
        }
        let _ = writeln!(
            text,
            "Requirements: {met} met, {} not met, {missing} not measured.",
            failures.len()
        );
        for failure in failures {
            let _ = writeln!(text, "  not met: {failure}");
        }
    }
}

/// An empty table in the style of the `lockworks` command.
fn grid(header: &[&str]) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    grid
}

/// Three digits that count.
fn figure(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

fn ratio(value: f64) -> String {
    if value >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_judged() {
        let mut least = Requirement::at_least("a", "b", 0.95);
        least.judge(Some(0.95));
        assert_eq!(least.met, Some(true));
        let mut ahead = Requirement::ahead("a", "b");
        ahead.judge(Some(1.0));
        assert_eq!(ahead.met, Some(false));
        ahead.judge(None);
        assert_eq!((ahead.met, ahead.verdict()), (None, "not measured"));
    }
}
