//! `lockworks sweep` from outside. crates/sweep tests what functions show.

#[path = "../../sweep/tests/planned/mod.rs"]
mod planned;

use std::fs;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{assert_fits_terminals, assert_refused, json, lockworks, output, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use planned::{SMALL, Sweep};
use serde_json::Value;

impl Sweep {
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

fn counts(summary: &Value) -> [u64; 4] {
    ["points", "stored", "run", "failed"].map(|key| summary[key].as_u64().expect("a number"))
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
    assert_eq!(ended.status.code(), Some(1), "{failures}");
    assert!(
        failures.contains("not complete: the time limit is reached"),
        "{failures}"
    );

    sweep.write("plan.toml", &plan.replace("tas", "busted"));
    let ended = sweep.run(&["plan.toml", "--output", "results.csv"]);
    assert_eq!(text(&ended.stdout), "");
    assert!(
        text(&ended.stderr).contains("VIOLATION: "),
        "{}",
        text(&ended.stderr)
    );
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
