//! `lockworks sweep` from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{assert_fits_terminals, assert_refused, json, lockworks, output, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with a plan and its store.
struct Sweep {
    directory: TempDir,
}

impl Sweep {
    fn new(plan: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let sweep = Self { directory };
        sweep.write("plan.toml", plan);
        sweep
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    fn command(&self, more: &[&str]) -> std::process::Command {
        let mut command = lockworks(&[&["sweep"], more].concat());
        command.current_dir(&self.directory);
        command
    }

    /// Runs `lockworks sweep` with these arguments in the directory.
    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command runs")
    }

    /// Runs the plan, and returns its summary.
    #[track_caller]
    fn summary(&self, more: &[&str]) -> Value {
        let ended = self.run(&[&["plan.toml", "--json"], more].concat());
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        json(&ended)
    }
}

/// Six short simulations and two checks.
const SMALL: &str = r#"
[[sweep]]
machines = ["oracle-x5-4"]
locks = ["qspinlock", "cna"]
threads = [1, 4]
seeds = 1
ms = 0.2

[[sweep]]
locks = "cna"
threads = 4
ms = 0.2
tune.hqlock_fairness_threshold = 10
set.machine.rmw_cycles = [10, 30]

[[sweep]]
kind = "check"
locks = ["tas", "ticket"]
"#;

fn counts(summary: &Value) -> [u64; 4] {
    ["points", "stored", "run", "failed"].map(|key| summary[key].as_u64().expect("a number"))
}

#[test]
fn nothing_runs_twice_and_a_plan_can_be_extended() {
    let sweep = Sweep::new(SMALL);
    let intent = sweep.run(&["plan.toml", "--dry-run"]);
    assert_eq!(
        text(&intent.stdout),
        "8 points: 0 in plan.results.jsonl, 8 to run\n"
    );
    assert!(!sweep.path("plan.results.jsonl").exists());
    assert_eq!(counts(&sweep.summary(&[])), [8, 0, 8, 0]);
    assert_eq!(
        counts(&sweep.summary(&["--output", "one.csv"])),
        [8, 8, 0, 0]
    );

    sweep.write(
        "plan.toml",
        &SMALL.replace("seeds = 1\n", "seeds = \"1..3\"\n"),
    );
    assert_eq!(counts(&sweep.summary(&["--dry-run"])), [16, 8, 8, 0]);
    assert_eq!(counts(&sweep.summary(&["--jobs", "1"])), [16, 8, 8, 0]);
    assert_eq!(
        counts(&sweep.summary(&["--output", "two.csv"])),
        [16, 16, 0, 0]
    );

    // The same points in a store of their own have the same results.
    let fresh = ["--store", "fresh.jsonl", "--output", "fresh.csv"];
    assert_eq!(counts(&sweep.summary(&fresh)), [16, 0, 16, 0]);
    assert_eq!(text(&sweep.read("two.csv")), text(&sweep.read("fresh.csv")));
}

#[test]
fn a_point_has_the_result_of_the_command_that_repeats_it() {
    let sweep = Sweep::new(
        "[[sweep]]\nlocks = \"hq\"\nthreads = 4\nms = 0.2\nseeds = 7\nplacements = \"spread\"\n\
         odd_priority = true\ntune.hqlock_fairness_threshold = 10\nset.machine.rmw_cycles = 30\n",
    );
    sweep.summary(&["--output", "results.json"]);
    let results: Value = serde_json::from_slice(&sweep.read("results.json")).unwrap();
    let repeated = output(&[
        "sim",
        "--lock",
        "hq",
        "--threads",
        "4",
        "--ms",
        "0.2",
        "--seed",
        "7",
        "--seeds",
        "1",
        "--placement",
        "spread",
        "--odd-priority",
        "--tune",
        "hqlock_fairness_threshold=10",
        "--set",
        "machine.rmw_cycles=30",
        "--json",
    ]);
    let row = &json(&repeated)["rows"][0];
    assert_eq!(
        results[0]["operations_per_second"],
        row["operations_per_second"]
    );
    assert_eq!(results[0]["engine.events"], row["engine"]["events"]);
    assert_eq!(results[0]["set.machine.rmw_cycles"], 30.0);
    assert_eq!(results[0]["tune.hqlock_fairness_threshold"], 10);
}

/// Starts a sweep, and interrupts it when it has stored a result more. Returns its messages, which
/// nobody reads if they are `unread`.
#[track_caller]
fn interrupted(sweep: &Sweep, signal: Signal, unread: bool) -> String {
    let stored = || counts(&sweep.summary(&["--dry-run"]))[1];
    let before = stored();
    let mut child = sweep
        .command(&["plan.toml", "--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    if unread {
        drop(child.stderr.take());
    }
    while stored() == before {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the sweep ended by itself"
        );
        thread::sleep(Duration::from_millis(20));
    }
    let pid = Pid::from_raw(child.id() as i32);
    kill(pid, signal).expect("the process is there");
    let interrupted = child.wait_with_output().expect("the command ends");
    assert_eq!(interrupted.status.code(), Some(130));
    text(&interrupted.stderr).to_owned()
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let plan = "[[sweep]]\nlocks = [\"qspinlock\", \"cna\"]\nthreads = 36\nseeds = \"1..100\"\n";
    let sweep = Sweep::new(plan);
    interrupted(&sweep, Signal::SIGTERM, true);
    let messages = interrupted(&sweep, Signal::SIGINT, false);
    assert!(messages.contains("the same command goes on"));

    let kept = counts(&sweep.summary(&["--dry-run"]))[1];
    assert!((2..200).contains(&kept), "{kept}");
    let rest = sweep.summary(&["--output", "results.csv"]);
    assert_eq!(counts(&rest), [200, kept, 200 - kept, 0]);
    assert_eq!(text(&sweep.read("results.csv")).lines().count(), 201);
}

#[test]
fn a_store_is_put_together_from_those_of_parts() {
    let sweep = Sweep::new(SMALL);
    let parts = [
        ("1/3", "one.jsonl"),
        ("2/3", "two.jsonl"),
        ("3/3", "three.jsonl"),
    ];
    let stores = parts.map(|(part, store)| {
        let summary = sweep.summary(&["--part", part, "--store", store]);
        assert_eq!(summary["stored"], 0);
        sweep.read(store)
    });
    sweep.write("plan.results.jsonl", text(&stores.concat()));
    assert_eq!(
        counts(&sweep.summary(&["--output", "here.csv"])),
        [8, 8, 0, 0]
    );
    sweep.summary(&["--store", "other.jsonl", "--output", "there.csv"]);
    assert_eq!(
        text(&sweep.read("here.csv")),
        text(&sweep.read("there.csv"))
    );
    for part in ["0/3", "4/3", "1", "x/2"] {
        assert_refused(&sweep.run(&["plan.toml", "--part", part]), &["give K/N"]);
    }
}

/// The lines that the command prints with this file as standard input.
#[track_caller]
fn lines_from(sweep: &Sweep, args: &[&str], input: &str) -> Vec<String> {
    let ended = with_input(sweep, args, input);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    text(&ended.stdout).lines().map(str::to_owned).collect()
}

/// Runs the command with this text as standard input.
fn with_input(sweep: &Sweep, args: &[&str], input: &str) -> Output {
    sweep.write("input", input);
    let input = fs::File::open(sweep.path("input")).expect("a file");
    let mut command = sweep.command(args);
    command.stdin(input).output().expect("the command runs")
}

#[test]
fn points_that_run_elsewhere_have_the_results_that_they_have_here() {
    let sweep = Sweep::new(SMALL);
    let pending = lines_from(&sweep, &["plan.toml", "--pending"], "");
    assert_eq!(pending.len(), 8);
    assert!(!sweep.path("plan.results.jsonl").exists());

    let points = pending.join("\n") + "\n";
    let results = lines_from(&sweep, &["--points", "-", "--jobs", "1"], &points);
    assert_eq!(results.len(), 8);
    let some = results[..3].join("\n") + "\n";
    lines_from(&sweep, &["plan.toml", "--import", "-"], &some);
    assert_eq!(text(&sweep.read("plan.results.jsonl")), some);
    let rest = lines_from(&sweep, &["plan.toml", "--pending"], "");
    assert_eq!(rest, pending[3..]);

    // Each result is added once.
    sweep.write("results.jsonl", &(results.join("\n") + "\n"));
    for _ in 0..2 {
        lines_from(&sweep, &["plan.toml", "--import", "results.jsonl"], "");
    }
    assert_eq!(
        sweep.read("plan.results.jsonl"),
        sweep.read("results.jsonl")
    );
    assert_eq!(
        counts(&sweep.summary(&["--output", "there.csv"])),
        [8, 8, 0, 0]
    );
    sweep.summary(&["--store", "other.jsonl", "--output", "here.csv"]);
    assert_eq!(
        text(&sweep.read("here.csv")),
        text(&sweep.read("there.csv"))
    );
}

#[test]
fn points_and_results_of_other_versions_or_plans_are_refused() {
    let sweep = Sweep::new(SMALL);
    let points = lines_from(&sweep, &["plan.toml", "--pending"], "").join("\n") + "\n";
    let results = lines_from(&sweep, &["--points", "-"], &points).join("\n") + "\n";
    let run: (&[&str], &str) = (&["--points", "-"], &points);
    let import: (&[&str], &str) = (&["plan.toml", "--import", "-"], &results);
    for (args, lines) in [run, import] {
        let other = lines.replacen("\"version\":\"", "\"version\":\"9.", 1);
        let words = ["line 1 is of version 9.", "but this is lockworks "];
        assert_refused(&with_input(&sweep, args, &other), &words);
        let other = lines.replace("\"ms\":0.2", "\"ms\":0.3");
        let words = ["line 1: the key is not that of the point"];
        assert_refused(&with_input(&sweep, args, &other), &words);
        assert_refused(
            &with_input(&sweep, args, "{}\n"),
            &["line 1 is no ", " of a sweep"],
        );
    }
    sweep.write("plan.toml", &SMALL.replace("ms = 0.2", "ms = 0.1"));
    assert_refused(
        &with_input(&sweep, import.0, import.1),
        &["line 1: no point of the plan has the key "],
    );
    assert_eq!(text(&sweep.read("plan.results.jsonl")), "");
    for (args, words) in [
        (&["--points", "none"][..], "cannot read none; give a file"),
        (&["plan.toml", "--points", "-"], "cannot be used with"),
        (&["plan.toml", "--memory-limit", "1"], "cannot be used with"),
        (
            &["plan.toml", "--engine", "desk"],
            "[possible values: local, dask]",
        ),
        (&["plan.toml", "--scheduler", "x"], "add --engine dask"),
    ] {
        assert_refused(&sweep.run(args), &[words]);
    }
    let mut without = sweep.command(&["plan.toml", "--engine", "dask"]);
    without.env("LOCKWORKS_PYTHON", "/bin/false");
    let words = ["/bin/false has no engine dask; type: pip install 'lockworks[dask]'"];
    assert_refused(&without.output().expect("the command runs"), &words);
    without.env("LOCKWORKS_PYTHON", "/none");
    let words = ["cannot run /none; set LOCKWORKS_PYTHON"];
    assert_refused(&without.output().expect("the command runs"), &words);
}

#[test]
fn a_check_of_points_may_be_given_a_limit_of_memory() {
    let sweep = Sweep::new("[[sweep]]\nkind = \"check\"\nlocks = \"cna\"\nthreads = 3\n");
    let points = lines_from(&sweep, &["plan.toml", "--pending"], "").join("\n");
    let limited = ["--points", "-", "--memory-limit", "1"];
    let results = lines_from(&sweep, &limited, &points);
    assert!(results[0].contains("not complete: "), "{results:?}");
    assert!(!results[0].contains("memory-limit"), "{results:?}");
}

#[test]
fn a_result_that_was_cut_short_is_run_again() {
    let sweep = Sweep::new(SMALL);
    sweep.summary(&["--jobs", "1"]);
    let store = sweep.read("plan.results.jsonl");
    sweep.write("plan.results.jsonl", text(&store[..store.len() - 10]));
    assert_eq!(counts(&sweep.summary(&["--dry-run"])), [8, 7, 1, 0]);
    assert_eq!(counts(&sweep.summary(&[])), [8, 7, 1, 0]);
    assert_eq!(text(&sweep.read("plan.results.jsonl")).lines().count(), 8);
}

/// Threads acquire two locks, in any order.
const DEADLOCK: &str = r#"
name = "two-locks"
title = "two locks in any order"
placement = "compact"

[[memory]]
name = "one"
kind = "lock"
bytes = 64

[[memory]]
name = "two"
kind = "lock"
bytes = 64

[thread]
loop = [
    { branch = [
        { weight = 1, steps = [{ lock = "one", steps = [{ lock = "two", steps = [{ compute = 100 }] }] }] },
        { weight = 1, steps = [{ lock = "two", steps = [{ lock = "one", steps = [{ compute = 100 }] }] }] },
    ] },
    "operation",
]
"#;

#[test]
fn a_failure_is_recorded_and_loses_nothing_else() {
    let plan = "[[sweep]]\nworkloads = [\"./two-locks.toml\", \"locktorture-old\"]\nlocks = \"ticket\"\n\
                threads = 2\nms = 0.2\n\
                [[sweep]]\nkind = \"check\"\nlocks = \"busted\"\n";
    let sweep = Sweep::new(plan);
    sweep.write("two-locks.toml", DEADLOCK);
    let ended = sweep.run(&["plan.toml"]);
    let (results, failures) = (text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(1), "{failures}");
    assert!(results.contains("locktorture"), "{results}");
    for words in [
        "2 of 3 points failed",
        "deadlock of ticket",
        "lockworks sim --lock ticket --ms 0.2 --threads 2 --workload /",
        "VIOLATION: ",
        "lockworks check --lock busted",
    ] {
        assert!(failures.contains(words), "no {words:?} in {failures}");
    }

    // Each command that is listed fails in the same way.
    let commands = failures.lines().filter(|line| line.contains("lockworks "));
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let repeated = output(&words);
        let printed = [text(&repeated.stdout), text(&repeated.stderr)].concat();
        assert_eq!(repeated.status.code(), Some(1), "{command}: {printed}");
        let same = printed.contains("deadlock of ticket") || printed.contains("VIOLATION: ");
        assert!(same, "{command}: {printed}");
    }

    let again = sweep.run(&["plan.toml", "--json"]);
    assert_eq!(again.status.code(), Some(1));
    let summary = json(&again);
    assert_eq!(counts(&summary), [3, 3, 0, 2]);
    assert_eq!(summary["failures"].as_array().map(Vec::len), Some(2));
    let intent = sweep.run(&["plan.toml", "--dry-run", "--retry"]);
    assert_eq!(
        text(&intent.stdout),
        "3 points: 1 in plan.results.jsonl, 2 to run\n"
    );
    let retried = json(&sweep.run(&["plan.toml", "--json", "--retry"]));
    assert_eq!(counts(&retried), [3, 1, 2, 2]);

    // The content of a file is part of the point: the corrected workload is another one.
    let wrong = r#"lock = "two", steps = [{ lock = "one""#;
    let right = r#"lock = "one", steps = [{ lock = "two""#;
    sweep.write("two-locks.toml", &DEADLOCK.replace(wrong, right));
    let corrected = json(&sweep.run(&["plan.toml", "--json"]));
    assert_eq!(counts(&corrected), [3, 2, 1, 1]);
}

#[test]
fn a_check_that_ends_at_a_limit_is_a_failure_until_the_limit_is_raised() {
    let plan = "[[sweep]]\nkind = \"check\"\nlocks = \"cna\"\nthreads = 3\nmemory_limit = 1\n";
    let sweep = Sweep::new(plan);
    let ended = sweep.run(&["plan.toml"]);
    assert_eq!(ended.status.code(), Some(1));
    let failures = text(&ended.stderr);
    assert!(failures.contains("not complete: "), "{failures}");
    assert!(failures.contains("--memory-limit 1"), "{failures}");
    sweep.write(
        "plan.toml",
        &plan.replace("memory_limit = 1", "memory_limit = 2000"),
    );
    assert_eq!(counts(&sweep.summary(&["--retry"])), [1, 0, 1, 0]);
}

/// A check at random is no search, and its seed is one of its arguments. A limit makes no other point.
#[test]
fn random_runs_are_points_and_limits_are_not() {
    let plan = "[[sweep]]\nkind = \"check\"\nlocks = \"tas\"\nthreads = 6\nrandom = 100\nseeds = \"1..2\"\n";
    let sweep = Sweep::new(plan);
    let summary = sweep.summary(&["--output", "results.json"]);
    assert_eq!(counts(&summary), [2, 0, 2, 0]);
    let results: Value = serde_json::from_slice(&sweep.read("results.json")).unwrap();
    for (result, seed) in results.as_array().unwrap().iter().zip([1, 2]) {
        assert_eq!(
            (&result["random"], &result["seed"]),
            (&100.into(), &seed.into())
        );
        assert_eq!(
            (&result["runs"], &result["complete"]),
            (&100.into(), &false.into())
        );
        let alone = output(&[
            "check",
            "--lock",
            "tas",
            "--threads",
            "6",
            "--random",
            "100",
            "--seed",
            &seed.to_string(),
            "--json",
        ]);
        assert_eq!(result["steps"], json(&alone)["steps"]);
    }
    assert_ne!(results[0]["steps"], results[1]["steps"]);
    sweep.write("plan.toml", &format!("{plan}seconds = 1000\n"));
    assert_eq!(counts(&sweep.summary(&[])), [2, 2, 0, 0]);
    sweep.write(
        "plan.toml",
        &format!("{plan}seconds = 0.000001\n").replace("100", "1000000"),
    );
    let ended = sweep.run(&["plan.toml"]);
    let failures = text(&ended.stderr);
    assert!(
        failures.contains("not complete: the time limit is reached"),
        "{failures}"
    );

    sweep.write("plan.toml", &plan.replace("tas", "busted"));
    let ended = sweep.run(&["plan.toml"]);
    assert!(
        text(&ended.stderr).contains("VIOLATION: "),
        "{}",
        text(&ended.stderr)
    );
}

/// The rows of a CSV file.
fn csv_rows(bytes: &[u8]) -> Vec<csv::StringRecord> {
    csv::Reader::from_reader(bytes)
        .into_records()
        .collect::<Result<_, _>>()
        .expect("CSV")
}

#[test]
fn both_formats_have_the_same_columns_and_rows() {
    let sweep = Sweep::new(SMALL);
    for file in ["results.csv", "results.json"] {
        let ended = sweep.run(&["plan.toml", "--output", file]);
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        assert_eq!(text(&ended.stdout), "");
    }
    let rows: Value = serde_json::from_slice(&sweep.read("results.json")).unwrap();
    let rows = rows.as_array().expect("a list");
    let names: Vec<&String> = rows[0].as_object().expect("an object").keys().collect();
    for name in [
        "kind",
        "machine",
        "lock",
        "threads",
        "operations_per_second",
        "states",
        "error",
    ] {
        assert!(
            names.iter().any(|known| *known == name),
            "no {name} in {names:?}"
        );
    }

    let bytes = sweep.read("results.csv");
    let header = csv::Reader::from_reader(bytes.as_slice())
        .headers()
        .unwrap()
        .clone();
    assert_eq!(header.iter().collect::<Vec<_>>(), names);

    let mut count = 0;
    for (row, record) in rows.iter().zip(csv_rows(&bytes)) {
        for (name, cell) in names.iter().zip(&record) {
            let written = match &row[name.as_str()] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            assert_eq!(cell, written, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 8);
}

#[test]
fn mistakes_in_a_plan_are_named_with_their_line() {
    for (plan, words) in [
        (
            "[[sweep]]\nlokcs = \"cna\"\n",
            &["plan.toml:2: ", "unknown key `lokcs`", "`locks`"][..],
        ),
        ("[[sweeps]]\n", &["plan.toml:1: ", "did you mean `sweep`?"]),
        (
            "[[sweep]]\n\nlocks = [\"cna\",\n\"qspinlok\"]\n",
            &["plan.toml:4: ", "'qspinlock'?"],
        ),
        (
            "[[sweep]]\nmachines = \"oracle-x5\"\n",
            &["plan.toml:2: ", "'oracle-x5-4'?"],
        ),
        (
            "[[sweep]]\nworkloads = \"locktortur\"\n",
            &["plan.toml:2: ", "'locktorture-"],
        ),
        (
            "[[sweep]]\nworkloads = \"./none.toml\"\n",
            &["plan.toml:2: ", "none.toml: cannot read"],
        ),
        (
            "[[sweep]]\nkind = \"checks\"\n",
            &["plan.toml:2: ", "\"sim\" or \"check\""],
        ),
        (
            "[[sweep]]\nacquisitions = 2\n",
            &["plan.toml:2: ", "unknown key `acquisitions`"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nthreads = 65\n",
            &["plan.toml:3: ", "65 threads"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nlocks = \"mc\"\n",
            &["plan.toml:3: ", "'mcs'?"],
        ),
        (
            "[[sweep]]\nthreads = \"8..1\"\n",
            &["plan.toml:2: ", "\"1..8\""],
        ),
        (
            "[[sweep]]\nthreads = [0]\n",
            &["plan.toml:2: ", "no threads to run"],
        ),
        (
            "[[sweep]]\nthreads = []\n",
            &["plan.toml:2: ", "the list is empty"],
        ),
        (
            "[[sweep]]\ncpus = 1000\n",
            &["plan.toml:2: ", "ask for 1 to 144"],
        ),
        ("[[sweep]]\nms = 0\n", &["plan.toml:2: ", "0.01"]),
        (
            "[[sweep]]\nseeds = -1\n",
            &["plan.toml:2: ", "not negative"],
        ),
        (
            "[[sweep]]\nplacements = \"here\"\n",
            &["plan.toml:2: ", "scatter"],
        ),
        (
            "[[sweep]]\ntune.mutex_spinn = 1\n",
            &["plan.toml:2: ", "'mutex_spin'?"],
        ),
        (
            "[[sweep]]\nset.machine.rmw_cycle = 3\n",
            &["plan.toml:2: ", "rmw_cycles"],
        ),
        (
            "[[sweep]]\nset.machine.rmw_cycles = -1\n",
            &["plan.toml:2: ", "not negative"],
        ),
        (
            "[[sweep]]\nseeds = \"1..900000\"\n",
            &["plan.toml:", "more than 1000000 points"],
        ),
        // A default that does not fit is at the table that has it.
        (
            "[[sweep]]\nthreads = 1\n\n[[sweep]]\nvcpus = 2\nguests = 4000\n",
            &["plan.toml:6: ", "8000 threads are too many"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nkeep = \"search\"\n",
            &[
                "plan.toml:3: ",
                "`keep` does not say what a point is; remove it",
                "`lockworks check`",
            ],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nseeds = 3\n",
            &["plan.toml:3: ", "--random <N>"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nseconds = [1, 2]\n",
            &["plan.toml:3: ", "--seconds is a limit", "give one value"],
        ),
        ("[[sweep]]\nkind = 3\n", &["plan.toml:2: ", "\"check\""]),
        ("[sweep]\n", &["plan.toml:1: ", "[[sweep]]"]),
        ("# empty\n", &["plan.toml:1: ", "no points"]),
    ] {
        let sweep = Sweep::new(plan);
        assert_refused(&sweep.run(&["plan.toml"]), words);
    }
    let sweep = Sweep::new(SMALL);
    assert_refused(
        &sweep.run(&["none.toml"]),
        &["cannot read the plan none.toml"],
    );
    assert_refused(&sweep.run(&[]), &["PLAN"]);
    let words = ["results.txt", ".csv or .json"];
    assert_refused(
        &sweep.run(&["plan.toml", "--output", "results.txt"]),
        &words,
    );
    let unwritable = sweep.run(&["plan.toml", "--output", "none/results.csv"]);
    assert_refused(&unwritable, &["cannot write none/results.csv"]);
}

#[test]
fn files_that_are_no_stores_are_refused() {
    let sweep = Sweep::new(SMALL);
    for other in ["a text that is no store", "[[sweep]]\n", "{\"key\":1}\n"] {
        sweep.write("other.jsonl", other);
        let words = ["other.jsonl:1: no result of a sweep", "--store"];
        assert_refused(&sweep.run(&["plan.toml", "--store", "other.jsonl"]), &words);
        assert_eq!(text(&sweep.read("other.jsonl")), other);
    }
}

#[test]
fn summaries_fit_the_terminal() {
    let sweep = Sweep::new(SMALL);
    let plan = sweep.path("plan.toml");
    let plan = plan.to_str().expect("UTF-8");
    let words = ["oracle-x5-4", "qspinlock", "plan.results.jsonl", "states"];
    assert_fits_terminals(&["sweep", plan], &words);
    assert_fits_terminals(&["sweep", plan, "--dry-run"], &["8 points"]);
}

#[test]
fn a_store_of_100000_results_is_opened() {
    let plan = "[[sweep]]\nlocks = \"cna\"\nthreads = 4\nms = 0.01\nseeds = 2\n";
    let sweep = Sweep::new(plan);
    sweep.summary(&[]);
    let store = sweep.read("plan.results.jsonl");
    let of_seed_2 = text(&store);
    let result: Value = serde_json::from_str(of_seed_2).expect("JSON");
    let version = result["version"].as_str().expect("a version");
    let key = |seed: usize| {
        let point = of_seed_2.find("\"kind\"").expect("a point");
        let end = of_seed_2.find(",\"result\"").expect("a result");
        let point = of_seed_2[point..end].replace("\"seed\":2", &format!("\"seed\":{seed}"));
        let depends_on = format!("[\"{version}\",{{{point}}}]");
        format!(
            "{:032x}",
            xxhash_rust::xxh3::xxh3_128(depends_on.as_bytes())
        )
    };
    let of_2 = key(2);
    assert_eq!(result["key"], of_2.as_str());
    let lines = (2..100_002).map(|seed| of_seed_2.replace(&of_2, &key(seed)));
    sweep.write("plan.results.jsonl", &lines.collect::<String>());
    sweep.write("plan.toml", &plan.replace("= 2\n", "= \"2..100001\"\n"));
    assert_eq!(
        counts(&sweep.summary(&["--dry-run"])),
        [100_000, 100_000, 0, 0]
    );
}

#[test]
fn results_depend_on_all_crates_of_simulator_and_checker() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let hashed = fs::read_to_string(crates.join("sweep/build.rs")).expect("a file");
    for name in ["sim", "check", "lockworks", "machine", "measurements"] {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a file");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        let tables = ["dependencies", "build-dependencies"].map(|key| manifest.get(key));
        let used = tables.into_iter().flatten().filter_map(|t| t.as_table());
        let used = used.flat_map(|table| table.keys());
        let used = used.filter_map(|key| match key.as_str() {
            "lockworks" => Some("lockworks"),
            other => other.strip_prefix("lockworks-"),
        });
        for used in used.chain([name]) {
            let source = format!("\"crates/{used}/src\"");
            assert!(hashed.contains(&source), "build.rs does not hash {source}");
        }
    }
}
