//! Each key of a workload file matters: a run with another value is another run.

use std::fmt::Write;

use lockworks_machine::Machine;

use super::lock;
use crate::{Placement, Run, Scenario, Sharing, Workload};

/// A workload with every key that a file can have, except for those of placements.
const EVERYTHING: &str = r#"name = "everything"
title = "a value for each key"
placement = "packed"
job_operations = 1000
rare_delay_ns = 20
wait_call_ns = 300
wake_call_ns = 200
shared_core_slowdown = 1.5
[constants]
think_ns = { value = 90, mark = "I", source = "test" }
[values]
work_ns = "2 * think_ns"
[[memory]]
name = "data"
count = 8
bytes = 192
[[memory]]
name = "lock"
kind = "lock"
count = 3
bytes = 200
data_at = 40
[[memory]]
name = "mutex"
kind = "futex_mutex"
syscall_ns = 350
bucket_critical_ns = 110
[[memory]]
name = "reference"
kind = "lockref"
[thread]
start = [{ sleep = { exponential = 700 } }]
loop = [
    { compute = "work_ns" },
    { compute = { uniform = [10, 50] } },
    { compute = { around = 60 } },
    { read = "data", which = { zipf = 1 } },
    { load = "data", which = "own", at = 64 },
    { atomic_add = "data", which = { weights = [1, 2, 3, 4, 5, 6, 7, 8] }, value = 2 },
    { lock = "lock", which = "random", steps = [
        { increment = "lock", at = 152 },
        { write = "lock", value = 3, bytes = 4 },
        { compute = 3000 },
    ] },
    { read_lock = "lock", which = "random", steps = [{ load = "lock" }] },
    { lock = "mutex", steps = [{ compute = 130 }] },
    { put = "reference" },
    { get = "reference" },
    { repeat = 2, steps = [{ compute = 21 }] },
    { one_in = 4, steps = [{ compute = 400 }] },
    { each = "data", steps = [{ read = "data" }] },
    { branch = [{ weight = 3, steps = [] }, { weight = 1, steps = [{ compute = 500 }] }] },
    { system_call = [{ compute = 5000 }] },
    "operation",
    "ticks",
]
"#;

/// The other value of each key, and the text that it replaces.
const CHANGES: &[(&str, &str)] = &[
    ("job_operations = 1000", "job_operations = 2000"),
    ("rare_delay_ns = 20", "rare_delay_ns = 4000"),
    ("wait_call_ns = 300", "wait_call_ns = 3000"),
    ("wake_call_ns = 200", "wake_call_ns = 2000"),
    ("shared_core_slowdown = 1.5", "shared_core_slowdown = 1.9"),
    ("value = 90", "value = 120"),
    ("2 * think_ns", "3 * think_ns"),
    ("bytes = 192", "bytes = 64"),
    ("count = 3", "count = 2"),
    ("bytes = 200", "bytes = 100"),
    ("data_at = 40", "data_at = 300"),
    ("syscall_ns = 350", "syscall_ns = 1350"),
    ("bucket_critical_ns = 110", "bucket_critical_ns = 1110"),
    ("exponential = 700", "exponential = 7000"),
    ("uniform = [10, 50]", "uniform = [10, 90]"),
    ("around = 60", "around = 6000"),
    ("zipf = 1 ", "zipf = 3 "),
    ("\"own\", at = 64", "\"own\", at = 0"),
    ("which = \"own\"", "which = \"random\""),
    ("[1, 2, 3, 4, 5, 6, 7, 8]", "[8, 7, 6, 5, 4, 3, 2, 1]"),
    ("at = 152", "at = 8"),
    ("compute = 130", "compute = 160"),
    ("repeat = 2", "repeat = 3"),
    ("compute = 21", "compute = 31"),
    ("one_in = 4", "one_in = 40"),
    ("weight = 3", "weight = 1"),
    (
        "{ weight = 1, steps = [{ compute = 500 }] }",
        "{ weight = 1, steps = [] }",
    ),
    (
        "{ system_call = [{ compute = 5000 }] }",
        "{ compute = 5000 }",
    ),
    (
        "    \"operation\",\n",
        "    \"operation\",\n    \"operation\",\n",
    ),
    ("    \"ticks\",\n", ""),
    ("{ get = \"reference\" },\n", ""),
    ("{ put = \"reference\" },\n", ""),
    (
        "each = \"data\", steps = [{ read = \"data\" }]",
        "each = \"data\", steps = [{ write = \"data\" }]",
    ),
    ("read_lock", "lock"),
    ("{ load = \"lock\" }", "{ write = \"lock\" }"),
];

/// All that runs of the workload find, or why it is refused: with a CPU for each thread, and with threads that share CPUs.
fn found(text: &str) -> String {
    let workload = Workload::parse(text, "x.toml").unwrap();
    let machine = Machine::find("oracle-x5-4").unwrap();
    if let Err(refused) = workload.check(&machine, 8) {
        return refused.to_string();
    }
    let job = workload.job();
    let scenario = Scenario::new(machine, workload);
    let mut found = format!("{job:?}");
    for (threads, cpus) in [(8, 8), (12, 4)] {
        let run = Run {
            scenario: &scenario,
            lock: lock(if threads > cpus { "mutex" } else { "rwlock" }),
            threads,
            placement: Placement::Packed,
            sharing: (threads > cpus).then_some(Sharing {
                cpus,
                guests: None,
                pinned: false,
            }),
            seconds: if threads > cpus { 20e-3 } else { 1e-3 },
            tunables: crate::Settings::kernel(),
            odd_threads_have_priority: false,
            seed: 1,
        };
        let outcome = run.run().unwrap();
        let rates = (
            outcome.operations_per_second,
            &outcome.operations,
            outcome.engine.transfers,
        );
        write!(found, "; {rates:?}").unwrap();
    }
    found
}

#[test]
fn a_changed_value_changes_a_run() {
    let before = found(EVERYTHING);
    assert_eq!(before, found(EVERYTHING));
    let without_effect: Vec<&str> = CHANGES
        .iter()
        .filter(|(from, to)| {
            assert!(EVERYTHING.contains(from), "{from}");
            found(&EVERYTHING.replacen(from, to, 1)) == before
        })
        .map(|(from, _)| *from)
        .collect();
    assert_eq!(without_effect, Vec::<&str>::new());
}

#[test]
fn the_workload_has_every_key() {
    let places = [
        ("name = \"everything\"", "nokey = 1\nname = \"everything\""),
        ("name = \"data\"", "nokey = 1\nname = \"data\""),
        ("{ weight = 3,", "{ nokey = 1, weight = 3,"),
        ("{ repeat = 2,", "{ nokey = 1, repeat = 2,"),
        ("[thread]\n", "[thread]\nnokey = 1\n"),
    ];
    // Names, and what concerns placements and texts.
    let without_effect = ["name", "title", "ratios_only", "placement", "gather"];
    for (from, to) in places {
        assert!(EVERYTHING.contains(from), "{from}");
        let error = Workload::parse(&EVERYTHING.replacen(from, to, 1), "x.toml").expect_err(to);
        let error = error.to_string();
        let (_, expected) = error.split_once("expected ").expect("the keys are listed");
        for key in expected.split('`').skip(1).step_by(2) {
            let given = [format!("{key} ="), format!("{key}]")];
            assert!(
                without_effect.contains(&key)
                    || given.iter().any(|given| EVERYTHING.contains(given)),
                "{key} is in no test"
            );
        }
    }
}
