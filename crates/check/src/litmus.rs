//! Litmus tests: small programs whose possible outcomes are known. They check the checker.
//!
//! The programs and their expected outcomes are in worlds/check/litmus.c.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::sync::Arc;

use lockworks_explore::Limits;
use lockworks_litmus::Memory;

use crate::check::Check;
use crate::config::{Config, Subject};
use crate::headers::LitmusTest;
use crate::locks;
use crate::mutation::Mutation;
use crate::results::{CheckOutcome, End};

/// A litmus test.
#[derive(Clone, Copy)]
pub struct Litmus(&'static LitmusTest);

/// All litmus tests.
pub fn litmus_tests() -> impl Iterator<Item = Litmus> {
    locks::litmus_tests().map(Litmus)
}

/// The result of a litmus test.
#[derive(Clone, Debug, PartialEq)]
pub struct LitmusResult {
    /// All expected outcomes, or the expected violation.
    pub expected: BTreeSet<String>,
    /// The outcomes found, or the violation.
    pub seen: BTreeSet<String>,
    /// The number of states explored.
    pub states: usize,
}

impl LitmusResult {
    /// Whether exactly the expected outcomes were found.
    pub fn agrees(&self) -> bool {
        self.expected == self.seen
    }
}

impl Litmus {
    /// The name of the test.
    pub fn name(&self) -> &'static str {
        text(self.0.name).expect("a test has a name")
    }

    /// A few words on what the test shows.
    pub fn summary(&self) -> &'static str {
        text(self.0.summary).expect("a test has a summary")
    }

    /// All expected outcomes in this memory, or the expected violation.
    pub fn expected(&self, memory: Memory) -> BTreeSet<String> {
        let test = self.0;
        let kernel = text(test.kernel);
        let own = match memory {
            Memory::C11 => None,
            Memory::Sc => text(test.sc),
            Memory::Tso => text(test.tso).or(text(test.sc)),
            Memory::Arm => text(test.arm),
            Memory::Riscv => text(test.riscv).or(text(test.arm)),
            Memory::Lkmm => kernel,
            Memory::Lkmm62 => text(test.kernel62).or(kernel),
        };
        let expected = own.unwrap_or_else(|| text(test.c11).expect("a test expects something"));
        expected.split_whitespace().map(str::to_owned).collect()
    }

    /// Explores all runs of the test.
    pub fn run(&self, memory: Memory) -> LitmusResult {
        self.search(memory, None, true).0
    }

    fn search(
        &self,
        memory: Memory,
        mutation: Option<Mutation>,
        reduce: bool,
    ) -> (LitmusResult, CheckOutcome) {
        let lock = locks::lock_types().next().expect("there are locks");
        let config = Config {
            threads: self.0.threads.iter().flatten().count(),
            memory,
            ..Config::new(lock.name())
        };
        let check = Check {
            shared: Arc::default(),
            config: &config,
            subject: Subject::Lock(lock),
            mutation,
            program: locks::lw_litmus_thread,
            litmus: self.0,
            // Outcomes list results by thread.
            symmetric: false,
        };
        let (outcome, results) = check.search(&Limits::NONE, reduce, &mut |_| {});
        let mut seen: BTreeSet<String> = results.iter().map(|r| digits_of(r)).collect();
        match &outcome.end {
            End::Kept => {}
            End::Broken(broken) => seen = [broken.violation.name().to_owned()].into(),
            End::Unfinished(reason) => seen = [(*reason).to_owned()].into(),
        }
        // A test without results has no outcomes.
        seen.remove("");
        let result = LitmusResult {
            expected: self.expected(memory),
            seen,
            states: outcome.coverage.states,
        };
        (result, outcome)
    }
}

/// The outcome of a run: the digits of each thread that has any.
fn digits_of(results: &[u64]) -> String {
    let digits = |result: u64| -> String {
        (0..u64::BITS / 4)
            .rev()
            .filter_map(|i| (result >> (4 * i) & 0xf).checked_sub(1))
            .map(|digit| digit.to_string())
            .collect()
    };
    let threads: Vec<String> = results
        .iter()
        .map(|result| digits(*result))
        .filter(|digits| !digits.is_empty())
        .collect();
    threads.join(",")
}

fn text(text: *const c_char) -> Option<&'static str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a string literal.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_str().expect("source text is ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::Change;
    use crate::site::{Order, Site};

    fn test(name: &str) -> Litmus {
        litmus_tests()
            .find(|test| test.name() == name)
            .unwrap_or_else(|| panic!("no test {name}"))
    }

    #[test]
    fn reduction_leaves_no_outcome_out() {
        for test in litmus_tests() {
            for memory in Memory::ALL {
                let (result, _) = test.search(memory, None, false);
                assert!(result.agrees(), "{} {memory}: {result:?}", test.name());
            }
        }
    }

    /// In tests that need every memory order, weakening any of them changes the outcomes.
    #[test]
    fn a_weakened_order_is_noticed() {
        for name in [
            "sb+sc",
            "sb+sc-fences",
            "sb+rmws",
            "mp+rel+acq",
            "mp+rel+dependency",
            "mp+fences",
            "mp+rel+await-acq",
            "iriw+sc-fences",
            "wrc+rel+acq",
            "isa2+rel+acq",
            "2+2w+sc",
            "s+rel+acq",
            "r+sc-fences",
            "release-sequence+fence",
            "field+mp",
            "field+word-load+rel+relaxed",
            "plain+mp+rel+acq",
            "lockref+put+put",
        ] {
            let test = test(name);
            let (_, outcome) = test.search(Memory::C11, None, true);
            let done = Site::all().iter().zip(outcome.covered);
            let mut weakened = 0;
            for (site, _) in done.filter(|(site, covered)| *covered && needed(site)) {
                let mutation = Mutation::at(site, Change::Order(Order::Relaxed));
                let (result, _) = test.search(Memory::C11, Some(mutation), true);
                assert!(!result.agrees(), "{name}: {site:?} relaxed");
                weakened += 1;
            }
            assert!(weakened > 0, "{name}");
        }
    }

    /// Whether the test needs the order. The one of `done` only makes the last writes visible.
    fn needed(site: &Site) -> bool {
        site.order != Order::Relaxed && site.operand() != "m->done"
    }
}
