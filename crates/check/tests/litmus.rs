//! Litmus tests: the checker finds exactly the expected outcomes.

use std::collections::BTreeSet;

use lockworks_check::{Memory, litmus_tests};

#[test]
fn all_agree_in_weak_memory() {
    all_agree(Memory::Weak);
}

#[test]
fn all_agree_in_sequentially_consistent_memory() {
    all_agree(Memory::Sc);
}

fn all_agree(memory: Memory) {
    for test in litmus_tests() {
        let result = test.run(memory);
        assert!(result.agrees(), "{} in {memory}: {result:?}", test.name());
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = litmus_tests().map(|test| test.name()).collect();
    assert_eq!(names.len(), litmus_tests().count());
}
