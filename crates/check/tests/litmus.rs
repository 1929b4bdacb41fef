//! Litmus tests: the checker finds exactly the expected outcomes.

use std::collections::BTreeSet;

use lockworks_check::{Memory, litmus_tests};

#[test]
fn all_agree_in_all_models() {
    for test in litmus_tests() {
        for memory in Memory::ALL {
            let result = test.run(memory);
            assert!(result.agrees(), "{} in {memory}: {result:?}", test.name());
        }
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = litmus_tests().map(|test| test.name()).collect();
    assert_eq!(names.len(), litmus_tests().count());
}
