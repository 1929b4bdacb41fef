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

/// A suite that cannot fail shows nothing: one outcome more or less is a difference.
#[test]
fn a_wrong_expectation_is_noticed() {
    for test in litmus_tests() {
        let right = test.run(Memory::Weak);
        let mut more = right.clone();
        more.expected.insert("9".to_owned());
        assert!(!more.agrees(), "{} allows too much", test.name());
        let mut less = right;
        less.expected.pop_last();
        assert!(!less.agrees(), "{} allows too little", test.name());
    }
}
