//! The results, as tables for people and JSON for programs.

use std::fmt::Write;

use serde::Serialize;

use crate::checker::CheckedConfig;
use crate::comparison::Comparison;
use crate::host::Host;
use crate::programs::ProgramUnderLock;
use crate::reproduction::Reproduction;
use crate::simulator::Simulation;
use crate::tables::{Row, write_rows};

/// Everything that was measured.
#[derive(Serialize)]
pub struct BenchmarkReport {
    /// The version of Lockworks.
    pub version: &'static str,
    /// The machine that everything was measured on.
    pub machine: Host,
    /// Whether this was a short run, whose figures mean little.
    pub quick: bool,
    /// Sentences that a reader needs to understand the figures.
    pub notes: Vec<String>,
    /// The comparisons of locks.
    pub sections: Vec<Comparison>,
    /// The simulator's speed and memory.
    pub simulator: Vec<Simulation>,
    /// The simulator's error in the published tables.
    pub reproduction: Vec<Reproduction>,
    /// The model checker's speed and memory.
    pub checker: Vec<CheckedConfig>,
    /// Unmodified programs with locks of Lockworks in their mutexes.
    pub programs: Vec<ProgramUnderLock>,
}

impl BenchmarkReport {
    /// The report as tables.
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
        write_rows(&mut text, &self.simulator);
        write_rows(&mut text, &self.reproduction);
        write_rows(&mut text, &self.checker);
        write_rows(&mut text, &self.programs);
        self.write_verdict(&mut text);
        text
    }

    fn write_verdict(&self, text: &mut String) {
        let compared: Vec<_> = self
            .sections
            .iter()
            .flat_map(Comparison::outcomes)
            .collect();
        let missing = compared.iter().filter(|outcome| outcome.is_none()).count();
        let judged: Vec<Result<(), String>> = (compared.into_iter().flatten())
            .chain(self.simulator.iter().filter_map(Row::judged))
            .chain(self.reproduction.iter().filter_map(Row::judged))
            .chain(self.checker.iter().filter_map(Row::judged))
            .chain(self.programs.iter().filter_map(Row::judged))
            .collect();
        let failures: Vec<&String> = judged.iter().filter_map(|j| j.as_ref().err()).collect();
        let _ = writeln!(
            text,
            "Requirements: {} met, {} not met, {missing} not measured.",
            judged.len() - failures.len(),
            failures.len()
        );
        for failure in failures {
            let _ = writeln!(text, "  not met: {failure}");
        }
    }
}
