//! Unmodified programs with locks of Lockworks in their mutexes, compared with glibc's mutex.
//!
//! A round runs every program with every lock. Each run starts the program anew, and must give the
//! same results as with glibc's mutex.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use lockworks_measurements::Range;
use lockworks_programs::{MEASURED, Program, Runner, Size};
use serde::Serialize;

use super::rows::{Row, verdict};
use super::{Scale, order};

/// The locks in the programs' mutexes. The first, `None`, is glibc's, which the others are compared
/// with.
const LOCKS: [Option<&str>; 4] = [None, Some("mutex"), Some("pv"), Some("unfair")];

/// The lock that must be no worse than glibc's mutex.
const JUDGED: &str = "mutex";
/// The least ratio that is no worse, since runs of the same program differ by that much.
const NO_WORSE: f64 = 0.95;
/// The programs to which the requirement applies.
const JUDGED_PROGRAMS: [&str; 2] = ["memcached", "leveldb readrandom"];

/// A program, its load, and the lock in its mutexes.
#[derive(Serialize)]
pub struct ProgramUnderLock {
    program: &'static str,
    operation: &'static str,
    clients: usize,
    lock: &'static str,
    rounds: usize,
    operations_per_second: Range,
    /// The ratio to glibc's mutex within each round.
    ratio: Range,
    /// The least ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<f64>,
}

/// The loads that can be measured here: each installed program with each number of clients.
pub fn loads() -> Vec<(&'static dyn Program, usize)> {
    let there = MEASURED
        .iter()
        .filter(|program| program.missing().is_empty());
    there
        .flat_map(|&program| {
            let clients = program.clients(Size::Real).iter();
            clients.map(move |&clients| (program, clients))
        })
        .collect()
}

/// One line for each program that cannot be measured here.
pub fn missing() -> Vec<String> {
    let missing = MEASURED.iter().filter_map(|program| {
        let missing = program.missing();
        let first = missing.first()?.display();
        let name = program.name();
        Some(format!(
            "{name} is not measured, since {first} is missing: type `make setup-programs programs`."
        ))
    });
    missing.collect()
}

/// How many runs [`measure`] makes.
pub fn steps(scale: &Scale, loads: &[(&dyn Program, usize)]) -> usize {
    scale.rounds_programs * loads.len() * LOCKS.len()
}

/// Runs every load with every lock `scale.rounds_programs` times.
pub fn measure(
    scale: &Scale,
    loads: &[(&'static dyn Program, usize)],
    step: &dyn Fn(&str),
) -> Result<Vec<ProgramUnderLock>> {
    let this = std::env::current_exe().context("cannot find this program")?;
    // The command that is shipped is built beside this one.
    let lockworks = this.with_file_name("lockworks");
    let mut figures = vec![vec![Vec::new(); LOCKS.len()]; loads.len()];
    let mut results = HashMap::new();
    for round in 0..scale.rounds_programs {
        for (load, &(program, clients)) in loads.iter().enumerate() {
            for lock in order(LOCKS.len(), round) {
                let runner = Runner {
                    lockworks: &lockworks,
                    lock: LOCKS[lock],
                };
                step(&format!("{}: {}", program.name(), runner.name()));
                let outcome = program
                    .run(&runner, clients, Size::Real)
                    .with_context(|| format!("{} under {}", program.name(), runner.name()))?;
                let expected = results.entry(load).or_insert(outcome.results.clone());
                ensure!(
                    outcome.results == *expected,
                    "{} under {} gave the results {}, not {expected} as in the first run",
                    program.name(),
                    runner.name(),
                    outcome.results
                );
                figures[load][lock].push(outcome.per_second);
            }
        }
    }
    let served = loads.iter().zip(&figures).flat_map(|(load, figures)| {
        let locks = LOCKS.iter().zip(figures);
        locks.map(move |(lock, of_lock)| ProgramUnderLock::new(*load, *lock, of_lock, &figures[0]))
    });
    Ok(served.collect())
}

impl ProgramUnderLock {
    fn new(
        (program, clients): (&'static dyn Program, usize),
        lock: Option<&'static str>,
        figures: &[f64],
        glibc: &[f64],
    ) -> Self {
        let judged = lock == Some(JUDGED) && JUDGED_PROGRAMS.contains(&program.name());
        Self {
            program: program.name(),
            operation: program.operation(),
            clients,
            lock: lock.unwrap_or("glibc"),
            rounds: figures.len(),
            operations_per_second: Range::of(figures.iter().copied()).expect("a round"),
            ratio: Range::of(figures.iter().zip(glibc).map(|(one, glibc)| one / glibc))
                .expect("a round"),
            required: judged.then_some(NO_WORSE),
        }
    }
}

impl Row for ProgramUnderLock {
    const TITLE: &'static str = "Programs, unmodified, by the lock in their mutexes";
    const HEADER: &'static [&'static str] = &[
        "program",
        "clients",
        "lock",
        "operations/s",
        "min..max",
        "of glibc",
        "required",
    ];
    const FIGURES: &'static [usize] = &[1, 3, 4, 5];

    fn cells(&self) -> Vec<String> {
        let range = self.operations_per_second;
        vec![
            self.program.to_string(),
            self.clients.to_string(),
            self.lock.to_string(),
            format!("{:.0}", range.median),
            format!("{:.0}..{:.0}", range.min, range.max),
            format!("{:.2}", self.ratio.median),
            match (self.required, self.judged()) {
                (Some(least), Some(judged)) => verdict(&format!(">= {least}"), judged.is_ok()),
                _ => String::new(),
            },
        ]
    }

    fn judged(&self) -> Option<Result<(), String>> {
        let least = self.required?;
        let ratio = self.ratio.median;
        Some(if ratio >= least {
            Ok(())
        } else {
            Err(format!(
                "programs: {} with {} clients reaches {ratio:.2} of its speed under glibc when \
                 it runs under {}, not at least {least}",
                self.program, self.clients, self.lock
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockworks_programs::{Memcached, Redis};

    fn served(program: &'static dyn Program, lock: &'static str, figure: f64) -> ProgramUnderLock {
        ProgramUnderLock::new((program, 4), Some(lock), &[figure], &[1000.0])
    }

    #[test]
    fn a_slower_program_is_reported() {
        assert_eq!(served(&Memcached, "mutex", 950.0).judged(), Some(Ok(())));
        let slow = served(&Memcached, "mutex", 940.0).judged();
        assert!(slow.is_some_and(|judged| judged.is_err()));
        assert_eq!(served(&Memcached, "pv", 1.0).judged(), None);
        assert_eq!(served(&Redis, "mutex", 1.0).judged(), None);
    }
}
