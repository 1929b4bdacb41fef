//! Workload files: all of them are listed, and wrong ones are refused in one line that helps.

use std::collections::BTreeSet;

use lockworks_machine::Machine;
use lockworks_properties::mistakes;

use super::{brief, lock};
use crate::{Scenario, Workload};

pub(super) const SMALL: &str = r#"name = "small"
title = "two locks"
placement = "compact"
[constants]
think_ns = { value = 100, mark = "I", source = "test" }
[[memory]]
name = "first"
kind = "lock"
bytes = 8
[[memory]]
name = "many"
kind = "lock"
count = 4
bytes = 8
[thread]
loop = [
    { compute = "think_ns" },
    { lock = "first", steps = [{ write = "first" }] },
    { lock = "many", which = "random", steps = [{ increment = "many" }] },
    "operation",
]
"#;

/// The error after replacing `from` by `to`. The description must contain `from`.
fn broken(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    let workload = Workload::parse(&SMALL.replacen(from, to, 1), "x.toml");
    let machine = Machine::find("oracle-x5-4").unwrap();
    let error = workload.and_then(|workload| workload.check(&machine, 2));
    let error = error.expect_err(to).to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn every_file_is_listed() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/workloads");
    let files: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let listed: BTreeSet<String> = Workload::all()
        .unwrap()
        .into_iter()
        .map(|workload| format!("{}.toml", workload.name))
        .collect();
    assert_eq!(listed, files);
    assert!(!listed.is_empty());
}

#[test]
fn a_file_is_run_step_by_step() {
    let workload = Workload::parse(SMALL, "small.toml").unwrap();
    let scenario = Scenario::new(Machine::find("oracle-x5-4").unwrap(), workload);
    for name in ["tas", "mcs", "hq", "mutex37"] {
        let outcome = brief(&scenario, lock(name), 8).run().unwrap();
        let operations: u64 = outcome.operations.iter().sum();
        assert_eq!(outcome.violations, 0);
        assert!(operations > 100, "{name}: {operations}");
        // Two acquisitions in each operation. The warm-up is a tenth of the measured time.
        let least = 2 * operations;
        let most = least * 5 / 4 + 16;
        assert!(
            (least..=most).contains(&(outcome.acquisitions + 16)),
            "{name}: {} of {operations}",
            outcome.acquisitions
        );
    }
    let busted = brief(&scenario, lock("busted"), 8).run().unwrap();
    assert!(busted.violations > 0);
}

#[test]
fn time_goes_on_in_a_loop_that_almost_never_takes_time() {
    for rarely in ["{ compute = 1 }", "{ increment = \"first\" }"] {
        let body = format!("{{ one_in = 4000000000, steps = [{rarely}] }}, \"operation\"");
        let text = SMALL.replace("{ compute = \"think_ns\" },", "");
        let start = text.find("loop = [").unwrap();
        let text = format!("{}loop = [{body}]\n", &text[..start]);
        let workload = Workload::parse(&text, "idle.toml").unwrap();
        let scenario = Scenario::new(Machine::find("oracle-x5-4").unwrap(), workload);
        let outcome = brief(&scenario, lock("tas"), 3).run().unwrap();
        assert!(outcome.operations.iter().all(|operations| *operations > 0));
    }
}

#[test]
fn distributions_have_their_means() {
    let mean = |distribution: &str| {
        let text = SMALL.replacen("\"think_ns\"", distribution, 1);
        let text = text.replace("{ lock = \"first\"", "{ lock = \"many\", which = \"own\"");
        let text = text.replace("{ write = \"first\" }", "{ write = \"many\" }");
        let workload = Workload::parse(&text, "x.toml").unwrap();
        let scenario = Scenario::new(Machine::find("oracle-x5-4").unwrap(), workload);
        let mut run = brief(&scenario, lock("tas"), 1);
        run.seconds = 20e-3;
        let outcome = run.run().unwrap();
        1e9 * outcome.seconds / outcome.operations[0] as f64
    };
    let constant = mean("4000");
    for same in [
        "{ uniform = [3000, 5000] }",
        "{ around = 4000 }",
        "{ exponential = 4000 }",
    ] {
        let off = mean(same) / constant - 1.0;
        assert!(off.abs() < 0.05, "{same}: {off}");
    }
    assert!(mean("6000") > 1.3 * constant);
}

#[test]
fn wrong_files_say_where_and_what() {
    let wrong = r#"
-title
+titel
2: unknown field `titel`, expected
-[constants]
+[constant]
4: unknown field `constant`, expected
-compact
+compakt
3: unknown placement 'compakt'; did you mean 'compact'?
+gather
3: placement `gather` needs the number of threads in a group; add gather = 4
-placement = "compact"
+placement = "gather"
+gather = 1.5
4: gather cannot be 1.5; give a whole number
-kind = "lock"
+kind = "look"
8: unknown variant `look`, expected
-{ compute =
+{ compuet =
17: unknown field `compuet`, expected
-"operation"
+"operatoin"
20: unknown variant `operatoin`, expected
+{ repeat = 0, steps = ["operation"] }
16: no thread ever reaches "operation"; check each `repeat` and `weight`
+{ repeat = "floor(threads / 9)", steps = ["operation"] }
16: no thread ever reaches "operation"
+{ branch = [{ weight = 0, steps = ["operation"] }, { weight = 1, steps = [] }] }
16: no thread ever reaches "operation"
-    "operation",
-
+
16: no step of the loop completes an operation
-"think_ns" }
+"thnik_ns" }
17: unknown name `thnik_ns`; did you mean `think_ns`?
-lock = "first"
+lock = "fist"
18: unknown memory `fist`; did you mean `first`?
-, which = "random"
+
19: there are several `many`; say which
-name = "many"
+name = "first"
10: a second `first`; choose another name
-{ compute = "think_ns" }
+{ }
17: a step needs an action
+{ compute = 1, sleep = 2 }
17: a step has one action, not `compute` and `sleep`
+{ compute = 1, at = 2 }
17: `compute` takes no `at`
+{ repeat = 3 }
17: `repeat` needs `steps`
+3
17: invalid type: integer `3`, expected a step
+{ compute = -1 }
17: a time in ns cannot be -1; it must be from 0
+{ compute = nan }
17: NaN is not a finite number
+{ compute = inf }
17: inf is not a finite number
+{ compute = "1 / 0" }
17: a time in ns cannot be inf
+{ compute = "50 - think_ns" }
17: a time in ns cannot be -50
+{ compute = "1 +" }
17: "1 +": the expression ends too early
+{ compute = { uniform = [5, 2] } }
17: the low end 5 is above the high end 2
+{ compute = { uniform = [-5, 2] } }
17: the low end in ns cannot be -5
+{ compute = { exponential = -5 } }
17: a mean in ns cannot be -5
+{ compute = { uniform = [1] } }
17: uniform = [low, high] takes two times, not 1
+{ compute = { uniform = [1, 2, 3] } }
17: uniform = [low, high] takes two times, not 3
+{ branch = [] }
17: the list is empty; add an entry
+{ compute = { unifrom = [5, 2] } }
17: unknown field `unifrom`, expected
+{ compute = { around = 1, exponential = 1 } }
17: give one of uniform
+{ branch = [{ weight = 0, steps = [] }] }
17: all weights are 0
+{ branch = [{ weight = -1, steps = [] }] }
17: a weight cannot be -1
+{ one_in = 0, steps = [] }
17: one_in cannot be 0; it must be from 1
+{ load = "first", at = 8 }
17: bytes 8 to 15 of `first`, which has 8 bytes
+{ load = "first", at = 4 }
17: at = 4 is not a multiple of the 8 bytes
+{ load = "first", bytes = 3 }
17: bytes cannot be 3
+{ get = "first" }
17: `first` is a lock; this step needs a lockref
+{ repeat = 2.5, steps = [] }
17: repeat cannot be 2.5; give a whole number
+{ write = "first", value = 0.5 }
17: a value cannot be 0.5; give a whole number
+{ atomic_add = "first", value = 0.5 }
17: a value cannot be 0.5; give a whole number
-[thread]
+[[thread]]
15: invalid type: sequence, expected a
-which = "random"
+which = { weights = [0, 0, 0, 0] }
19: all weights are 0
+which = { weights = [1] }
19: `which` has 1 weights, and there are 4 of `many`; give 4 weights
+which = { zipf = -1 }
19: the exponent cannot be -1
+which = "rendom"
19: unknown variant `rendom`, expected
-{ lock = "first", steps = [{ write = "first" }] }
+{ lock = "first", steps = [{ lock = "first" }] }
18: `first` is locked by an enclosing step
-count = 4
+count = 0
13: count cannot be 0; it must be from 1
+count = 1.5
13: count cannot be 1.5; give a whole number
+syscall_ns = 4
13: a lock has no `syscall_ns`
-value = 100
+value = -1
5: value -1 must be a number above 0
"#;
    for (from, to, error) in mistakes(wrong.trim()) {
        let got = broken(&from, &to);
        assert!(
            got.starts_with(&format!("x.toml:{error}")),
            "\n got {got}\nwant {error}"
        );
    }
}

#[test]
fn a_loop_that_takes_no_time_is_refused() {
    let start = SMALL.find("loop = [").unwrap();
    let machine = Machine::find("oracle-x5-4").unwrap();
    let checked = |steps: &str| {
        let text = format!("{}loop = [{steps}\"operation\"]\n", &SMALL[..start]);
        Workload::parse(&text, "x.toml").and_then(|workload| workload.check(&machine, 2))
    };
    for nothing in [
        "",
        "\"ticks\", ",
        "{ compute = 0 }, ",
        "{ compute = 0.0001 }, ",
        "{ compute = { uniform = [0, 1] } }, ",
        "{ repeat = 0, steps = [{ compute = 9 }] }, ",
        "{ one_in = 2, steps = [\"operation\"] }, ",
        "{ system_call = [] }, ",
        "{ branch = [{ weight = 1, steps = [] }, { weight = 0, steps = [{ sleep = 9 }] }] }, ",
    ] {
        let error = checked(nothing).expect_err(nothing).to_string();
        assert!(
            error.starts_with("x.toml:16: the loop of thread 0 takes no time and uses no memory;"),
            "{error}"
        );
    }
    let error = checked("{ compute = \"9 - 9 * thread\" }, ").unwrap_err();
    assert!(
        error.to_string().contains("the loop of thread 1 takes"),
        "{error}"
    );
    for something in [
        "{ compute = 1 }, ",
        "{ compute = { uniform = [0, 2] } }, ",
        "{ lock = \"first\" }, ",
        "{ one_in = 2, steps = [{ load = \"first\" }] }, ",
        "{ system_call = [{ repeat = 2, steps = [{ sleep = { around = 5 } }] }] }, ",
    ] {
        assert!(checked(something).is_ok(), "{something}");
    }
}

#[test]
fn a_workload_without_locks_is_refused() {
    let text = SMALL.replace("kind = \"lock\"\n", "");
    let start = text.find("loop = [").unwrap();
    let text = format!("{}loop = [\"operation\"]\n", &text[..start]);
    let error = Workload::parse(&text, "x.toml").unwrap_err().to_string();
    assert!(error.contains("no memory is a lock"), "{error}");
}
