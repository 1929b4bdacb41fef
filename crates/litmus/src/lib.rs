//! Judges litmus tests by the axioms of memory models.
//!
//! A litmus test is a small program of a few threads, in a file. All its candidate executions are
//! built: each read sees some write of its value, and the writes of each location have some order.
//! A memory model is a set of axioms, which allow a candidate or do not. What the allowed ones end
//! with is then compared with the condition of the test.

mod arm;
mod c11;
mod candidates;
mod error;
mod execution;
mod in_c;
mod judge;
mod lexer;
mod lkmm;
mod memory;
mod parser;
mod plain;
mod primitives;
mod rcu;
mod relation;
mod riscv;
mod sc;
mod syntax;
#[cfg(test)]
mod tests;
mod thread;
mod tso;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use error::LitmusError;
pub use execution::{BrokenAxiom, Event, Execution, Fence, Kind, Mark};
pub use in_c::{InC, Room};
pub use memory::Memory;
pub use relation::Relation;

impl Memory {
    /// The findings in an execution that the model allows; its flags only if they are asked for.
    fn judge(self, x: &Execution, flags: bool) -> Result<Flags, BrokenAxiom> {
        let mut found = Flags::default();
        match self {
            Self::Sc => sc::check(x)?,
            Self::Tso => tso::check(x)?,
            Self::Arm => arm::check(x)?,
            Self::Riscv => riscv::check(x)?,
            Self::C11 => {
                let c11 = c11::C11::of(x);
                c11.check()?;
                found.race = flags && c11.has_race();
            }
            Self::Lkmm | Self::Lkmm62 => {
                let lkmm = lkmm::Lkmm::of(x, self == Self::Lkmm);
                lkmm.check()?;
                found.race = flags && lkmm.has_race();
                found.mixed = flags && lkmm.has_mixed_accesses();
            }
        }
        Ok(found)
    }
}

/// The parts of allowed executions that are reported.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    race: bool,
    mixed: bool,
}

/// Whether a model allows an execution.
///
/// # Errors
/// An axiom that it breaks, with the events of a cycle.
pub fn is_allowed(model: Memory, x: &Execution) -> Result<(), BrokenAxiom> {
    model.judge(x, false).map(|_| ())
}

/// Whether plain accesses of an execution race.
pub fn has_race(model: Memory, x: &Execution) -> bool {
    model.judge(x, true).is_ok_and(|flags| flags.race)
}

/// How often the condition of a test holds in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Verdict {
    /// In no final state.
    Never,
    /// In some.
    Sometimes,
    /// In all.
    Always,
    /// There is no final state: threads wait for ever, or a filter leaves nothing.
    Deadlock,
}

impl Verdict {
    /// The verdict for so many final states in which a condition holds, and so many others.
    pub fn of(satisfying: usize, others: usize) -> Self {
        match (satisfying, others) {
            (0, 0) => Self::Deadlock,
            (0, _) => Self::Never,
            (_, 0) => Self::Always,
            (_, _) => Self::Sometimes,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::Never => "Never",
            Self::Sometimes => "Sometimes",
            Self::Always => "Always",
            Self::Deadlock => "Deadlock",
        })
    }
}

impl FromStr for Verdict {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        let all = [Self::Never, Self::Sometimes, Self::Always, Self::Deadlock];
        let mut found = all.into_iter();
        found
            .find(|verdict| verdict.to_string().eq_ignore_ascii_case(word))
            .ok_or(())
    }
}

/// The final states of a test that a model allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowed {
    /// The number of final states in which the condition holds.
    pub satisfying: usize,
    /// The number of other final states.
    pub others: usize,
    /// Whether plain accesses race.
    pub has_race: bool,
    /// Whether a thread has plain writes and marked accesses of one variable without a barrier.
    pub has_mixed_accesses: bool,
    /// The final states, by the values that the condition observes, and whether it holds.
    pub states: BTreeMap<Vec<i64>, bool>,
    /// An execution that ends in a state in which the condition holds.
    pub witness: Vec<WitnessRow>,
}

/// An event of an execution.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct WitnessRow {
    /// The number of its thread.
    pub thread: usize,
    /// Its line in the file.
    pub line: usize,
    /// Its action.
    pub event: String,
    /// The write that it reads from.
    pub reads_from: Option<String>,
}

impl Allowed {
    /// How often the condition holds.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.satisfying, self.others)
    }
}

/// A litmus test of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LitmusFile {
    file: String,
    test: syntax::Test,
}

impl LitmusFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// If something is not understood, in one line.
    pub fn parse(text: &str, file: &str) -> Result<Self, LitmusError> {
        match parser::parse(text) {
            Ok(test) => Ok(Self {
                file: file.to_owned(),
                test,
            }),
            Err(refusal) => Err(error(file, refusal)),
        }
    }

    /// The file, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The name of the test.
    pub fn name(&self) -> &str {
        &self.test.name
    }

    /// The model that the file is written for: that of the kernel, or C11 if it has functions of C11.
    pub fn usual_model(&self) -> Memory {
        match self.test.c11 {
            Some(_) => Memory::C11,
            None => Memory::Lkmm,
        }
    }

    /// Builds all candidate executions, and judges them by a model.
    ///
    /// # Errors
    /// If the model does not have all that the test has, the test has too many executions, or an
    /// execution that the model allows has no meaning, as an access to no variable has none.
    pub fn judge(&self, model: Memory) -> Result<Allowed, LitmusError> {
        judge::judge(&self.test, model).map_err(|refusal| error(&self.file, refusal))
    }

    /// The test in C for the search in a model.
    ///
    /// # Errors
    /// The search has not all that it takes: what not.
    pub fn in_c(&self, model: Memory, room: Room) -> Result<InC, &'static str> {
        InC::of(&self.test, model, room)
    }

    /// The final state of a run of the search, by the values that the condition observes, and whether
    /// the condition holds. None: the run does not count.
    ///
    /// # Errors
    /// The run ends with what cannot be reported.
    pub fn final_state(
        &self,
        in_c: &InC,
        results: &[u64],
    ) -> Result<Option<(Vec<i64>, bool)>, &'static str> {
        let Some(state) = in_c.state(results)? else {
            return Ok(None);
        };
        let value = |part| state.value(part);
        let filter = self.test.filter.as_ref();
        if filter.is_some_and(|filter| !filter.holds(&value)) {
            return Ok(None);
        }
        let observed = self.test.observed();
        let values = observed.into_iter().map(value).collect();
        Ok(Some((values, self.test.condition.holds(&value))))
    }

    /// The result that a comment documents: `Result: Never`, which is by the usual model of the file, and
    /// others in parentheses: `Result: Never (arm: Sometimes, sc: Never)`.
    pub fn documented(&self, model: Memory) -> Option<Verdict> {
        let results = &self.test.results;
        let (first, others) = results.split_once('(').unwrap_or((results, ""));
        let others = others.split(')').next().unwrap_or_default();
        let mut others = others.split(',').filter_map(|other| other.split_once(':'));
        let found = others.find(|(name, _)| name.trim() == model.name());
        let word = match found {
            Some((_, verdict)) => verdict,
            None if model == self.usual_model() => first,
            None if model.is_kernel() && self.usual_model().is_kernel() => first,
            None => return None,
        };
        let mut words = word.split(|c: char| !c.is_alphabetic());
        words.find(|word| !word.is_empty())?.parse().ok()
    }
}

fn error(file: &str, refusal: error::Refusal) -> LitmusError {
    LitmusError {
        file: file.to_owned(),
        line: refusal.line,
        what: lexer::plain(&refusal.what),
    }
}
