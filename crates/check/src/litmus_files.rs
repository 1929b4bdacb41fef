//! Litmus files in the search: they are translated to C, compiled, loaded, and run like locks.
//!
//! The axioms judge the same files independently, so each of the two is a test of the other.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use lockworks_explore::Limits;
use lockworks_litmus::Memory;
use lockworks_litmus::{Allowed, InC, LitmusFile, Room, Verdict};

use crate::check::Check;
use crate::config::{Config, Subject};
use crate::headers::{LW_LITMUS_THREADS, LitmusTest};
use crate::layout;
use crate::locks;
use crate::results::End;
use crate::source::{self, SourceError};
use crate::violation::Violation;

/// A search of more states ends unfinished. Files are small: most have a few hundred.
const MOST_STATES: usize = 2_000_000;

/// The most variables and values that the search has room for.
const ROOM: Room = Room {
    threads: LW_LITMUS_THREADS,
    variables: layout::LITMUS_VARIABLES,
    address: layout::variables(),
};

/// Litmus files that the search can run, in each of some models.
pub struct CompiledFiles<'a> {
    files: &'a [LitmusFile],
    programs: Vec<Program>,
    tests: &'static [LitmusTest],
}

/// A file for a model.
struct Program {
    file: usize,
    model: Memory,
    /// The translation, and its number among the tests of the library; or why there is none.
    translation: Result<(InC, usize), &'static str>,
}

/// The final states that the search finds of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Searched {
    /// The search came to an end.
    States {
        /// The final states, by the values that the condition observes, and whether it holds.
        states: BTreeMap<Vec<i64>, bool>,
        /// The bound on delayed operations may have left out others.
        within: bool,
    },
    /// Plain accesses race.
    Race,
    /// The search cannot run the file, or not to the end, for this reason.
    Refused(&'static str),
}

impl Searched {
    /// How often the condition holds.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::States { states, .. } => {
                let satisfying = states.values().filter(|holds| **holds).count();
                Some(Verdict::of(satisfying, states.len() - satisfying))
            }
            Self::Race | Self::Refused(_) => None,
        }
    }

    /// Whether the axioms find the same final states, or a race as well. None: the search finds nothing.
    pub fn agrees(&self, allowed: &Allowed) -> Option<bool> {
        match self {
            Self::States { states, .. } => Some(!allowed.has_race && *states == allowed.states),
            Self::Race => Some(allowed.has_race),
            Self::Refused(_) => None,
        }
    }

    /// The number of final states that only the search finds, and of those that only the axioms allow.
    pub fn differences(&self, allowed: &Allowed) -> (usize, usize) {
        let Self::States { states: found, .. } = self else {
            return (0, 0);
        };
        let only = |one: &BTreeMap<Vec<i64>, bool>, other: &BTreeMap<Vec<i64>, bool>| {
            one.keys()
                .filter(|state| !other.contains_key(*state))
                .count()
        };
        (only(found, &allowed.states), only(&allowed.states, found))
    }
}

impl<'a> CompiledFiles<'a> {
    /// Compiles files for the search, each in its models, all at once.
    ///
    /// # Errors
    /// If there is no C compiler.
    ///
    /// # Panics
    /// If files or a lock have been compiled before.
    pub fn compile(
        files: &'a [LitmusFile],
        models: impl Fn(&LitmusFile) -> Vec<Memory>,
    ) -> Result<Self, SourceError> {
        let mut distinct: Vec<InC> = Vec::new();
        let mut programs = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let first = distinct.len();
            for model in models(file) {
                let translation = file.in_c(model, ROOM).map(|in_c| {
                    let mut known = distinct.iter().skip(first);
                    let known = known.position(|other| *other == in_c);
                    let test = known.map_or(distinct.len(), |known| first + known);
                    if test == distinct.len() {
                        distinct.push(in_c.clone());
                    }
                    (in_c, test)
                });
                programs.push(Program {
                    file: number,
                    model,
                    translation,
                });
            }
        }
        let tests = match distinct.is_empty() {
            true => &[],
            false => load(&distinct)?,
        };
        Ok(Self {
            files,
            programs,
            tests,
        })
    }

    /// Explores all runs of a file, by its number, in a model that it was compiled for.
    ///
    /// # Panics
    /// If it was not.
    pub fn search(&self, file: usize, model: Memory) -> Searched {
        let mut programs = self.programs.iter();
        let program = programs
            .find(|program| program.file == file && program.model == model)
            .expect("the file was compiled for the model");
        match &program.translation {
            Ok((in_c, number)) => search(&self.files[file], in_c, &self.tests[*number], model),
            Err(word) => Searched::Refused(word),
        }
    }
}

/// Compiles and loads tests.
fn load(tests: &[InC]) -> Result<&'static [LitmusTest], SourceError> {
    let directory = tempfile::tempdir().map_err(SourceError::Headers)?;
    let path = directory.path().join("litmus_files.c");
    let mut text = String::new();
    let mut rows = String::new();
    for (number, test) in tests.iter().enumerate() {
        let mut threads = Vec::new();
        for (thread, body) in test.threads.iter().enumerate() {
            let name = format!("test{number}_{thread}");
            writeln!(
                text,
                "static void {name}(struct lw_litmus_memory *m)\n{{\n{body}}}"
            )
            .expect("a string takes all text");
            threads.push(name);
        }
        let initial: Vec<String> = test
            .initial
            .iter()
            .map(|value| format!("(uint64_t)INT64_C({value})"))
            .collect();
        writeln!(
            text,
            "static const uint64_t initial{number}[] = {{{}}};",
            initial.join(", ")
        )
        .expect("a string takes all text");
        writeln!(
            rows,
            "\t{{\"file\", \"\", \"\", \"\", {{{}}}, .initial = initial{number}, .variables = {}}},",
            threads.join(", "),
            initial.len()
        )
        .expect("a string takes all text");
    }
    writeln!(text, "const struct lw_litmus lw_files[] = {{\n{rows}}};")
        .expect("a string takes all text");
    fs::write(&path, text).map_err(SourceError::Headers)?;
    let prelude = format!(
        "{}extern const struct lw_litmus lw_files[];\n{}",
        InC::prelude(ROOM),
        source::contents_in_c("lw_files")
    );
    let first = source::load(&path, "the C of litmus files", &prelude)?;
    // SAFETY: an array of the library, which has an element for each test.
    Ok(unsafe { std::slice::from_raw_parts(first.cast(), tests.len()) })
}

fn search(file: &LitmusFile, in_c: &InC, test: &LitmusTest, memory: Memory) -> Searched {
    let lock = locks::lock_types().next().expect("there are locks");
    let config = Config {
        threads: in_c.threads.len(),
        memory,
        ..Config::new(lock.name())
    };
    let check = Check {
        shared: Arc::default(),
        config: &config,
        subject: Subject::Lock(lock),
        mutation: None,
        program: locks::lw_litmus_thread,
        litmus: test,
        symmetric: false,
    };
    let limits = Limits {
        states: Some(MOST_STATES),
        ..Limits::NONE
    };
    let mut states = BTreeMap::new();
    let mut refused = None;
    let (outcome, ends) = check.search(&limits, true, &mut |_| {});
    for results in &ends {
        match file.final_state(in_c, results) {
            Ok(None) => {}
            Ok(Some((state, holds))) => _ = states.insert(state, holds),
            Err(word) => refused = Some(word),
        }
    }
    match outcome.end {
        End::Kept => {}
        End::Broken(broken) => match broken.violation {
            Violation::DataRace { .. } => return Searched::Race,
            other => return Searched::Refused(other.name()),
        },
        End::Unfinished(reason) => return Searched::Refused(reason),
    }
    let within = outcome.coverage.delays_cut;
    refused.map_or(Searched::States { states, within }, Searched::Refused)
}
