//! `lockworks profile` says why waits took long. In the program, slow.c, one thread waits for a lock
//! while the holder does something that takes time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{self, assert_fits_terminals, assert_refused, json, text, two_cpus};

const PROGRAM: &str = include_str!("slow.c");

/// The exit status of the program where the machine cannot do what it asks for.
const CANNOT: i32 = 77;

fn compile(directory: &Path) -> PathBuf {
    let (file, program) = (directory.join("slow.c"), directory.join("slow"));
    fs::write(&file, PROGRAM).expect("a file");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-pthread", "-O2", "-g", "-o"])
        .args([&program, &file]);
    assert!(compiler.status().expect("a C compiler").success());
    program
}

/// The number of the line of the program with this comment, after its file.
fn line(comment: &str) -> String {
    let mut lines = PROGRAM.lines();
    let at = lines.position(|line| line.contains(&format!("/* {comment} */")));
    format!("slow.c:{}", at.expect("a line") + 1)
}

/// The report on the program with these arguments. None: this machine cannot do that.
fn profile(args: &[&str]) -> Option<Value> {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path());
    let output = support::lockworks(&["profile", "--json", "--"])
        .arg(program)
        .args(args)
        .output()
        .expect("the command runs");
    let status = output.status.code();
    if status == Some(CANNOT) {
        eprintln!("this machine cannot do it: {args:?} not tested");
        return None;
    }
    assert_eq!(status, Some(0), "{}", text(&output.stderr));
    Some(json(&output))
}

/// The slow waits in a function.
fn slow<'a>(report: &'a Value, function: &str) -> &'a Value {
    let rows = ["places", "rwlock_places"].map(|table| report[table].as_array().expect("rows"));
    let mut rows = rows.into_iter().flatten();
    let row = rows.find(|row| row["places"][0]["function"] == function);
    &row.unwrap_or_else(|| panic!("no {function} in {report:#}"))["slow"]
}

fn causes(slow: &Value) -> impl Iterator<Item = &Value> {
    slow["causes"].as_array().expect("rows").iter()
}

/// The share of slow waits in which the holder, or the waiter, did this.
fn share(slow: &Value, what: &str) -> f64 {
    let those = causes(slow).filter(|cause| cause["what"] == what);
    those
        .map(|cause| cause["share"].as_f64().expect("a share"))
        .sum()
}

/// The cause that took most of the time of one slow wait in a function must be this.
#[track_caller]
fn assert_main_cause<'a>(report: &'a Value, function: &str, what: &str) -> &'a Value {
    let slow = slow(report, function);
    assert_eq!(slow["waits"], 1, "{slow:#}");
    assert!(share(slow, what) > 0.5, "{slow:#}");
    let mut those = causes(slow).filter(|cause| cause["what"] == what);
    those.next().expect("a cause")
}

/// No lock may be advised, and the cause must be named.
#[track_caller]
fn assert_advice(report: &Value, cause: &str, words: &[&str]) {
    let advice = &report["advice"];
    assert_eq!(advice["rule"], "long_holds");
    assert_eq!(advice["cause"], cause);
    let text = advice["text"].as_str().expect("words");
    for words in words {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert_eq!(report["try_it"], Value::Null);
}

#[test]
fn a_holder_that_sleeps_is_told_by_its_system_call() {
    for (how, call) in [("sleeps", "clock_nanosleep"), ("reads", "read")] {
        let report = profile(&[how]).expect("any machine can");
        let cause = assert_main_cause(&report, "wait_for_mutex", "slept");
        assert_eq!(cause["system_call"], call);
        let section = format!("Take {call} out of the critical section that begins at hold");
        assert_advice(&report, "slept", &[&section]);
    }
}

#[test]
fn places_have_the_functions_that_they_are_inlined_into() {
    let report = profile(&["sleeps"]).expect("any machine can");
    let cause = assert_main_cause(&report, "wait_for_mutex", "slept");
    let held = &cause["held_at"];
    assert_eq!(held["function"], "hold");
    assert_eq!(held["line"], line("holder's line"));
    assert_eq!(held["inlined_into"][0]["function"], "main");
    let into = held["inlined_into"][0]["line"].as_str();
    assert!(into.is_some_and(|line| line.starts_with("slow.c:")));
}

/// Other programs may take the CPU from it, but it does not sleep.
#[test]
fn a_holder_that_runs_is_told_apart() {
    let report = profile(&["runs"]).expect("any machine can");
    let slow = slow(&report, "wait_for_mutex");
    assert!(share(slow, "ran") > 0.0, "{slow:#}");
    let awake = ["ran", "preempted", "throttled", "late", "in_turn"].map(|what| share(slow, what));
    assert!(awake.iter().sum::<f64>() > 0.5, "{slow:#}");
}

#[test]
fn a_holder_without_a_cpu_is_preempted() {
    let Some(cpus) = two_cpus() else {
        eprintln!("the waiter needs a CPU of its own: not tested");
        return;
    };
    let [holder, waiter] = cpus.map(|cpu| cpu.to_string());
    let report = profile(&["preempted", &holder, &waiter]).expect("any machine can");
    assert_main_cause(&report, "wait_for_mutex", "preempted");
    assert_advice(&report, "preempted", &["Run fewer threads"]);
}

/// A control group with 2 % of a CPU.
struct Group(PathBuf);

impl Group {
    /// None: this machine has no such groups, or this user may not make one.
    fn new() -> Option<Self> {
        let name = format!("lockworks-test-{}", std::process::id());
        let quotas = [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "2000"),
            ("/sys/fs/cgroup", "cpu.max", "2000 100000"),
        ];
        quotas.into_iter().find_map(|(hierarchy, file, quota)| {
            if !Path::new(hierarchy).join("cgroup.procs").exists() {
                return None;
            }
            let group = Path::new(hierarchy).join(&name);
            fs::create_dir(&group).ok()?;
            let group = Self(group);
            fs::write(group.0.join(file), quota).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

#[test]
fn a_holder_whose_quota_is_used_up_is_throttled() {
    let Some(group) = Group::new() else {
        eprintln!("no control group with a CPU quota can be made: not tested");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path());
    let enter = format!(
        "echo $$ >{}/cgroup.procs && exec {} runs",
        group.0.display(),
        program.display()
    );
    let report = json(&support::output(&[
        "profile", "--json", "--", "sh", "-c", &enter,
    ]));
    assert_main_cause(&report, "wait_for_mutex", "throttled");
    assert_advice(&report, "throttled", &["Raise the CPU quota"]);
}

#[test]
fn a_holder_in_a_page_fault_is_told_by_the_instruction() {
    let Some(report) = profile(&["faults"]) else {
        return;
    };
    let cause = assert_main_cause(&report, "wait_for_mutex", "faulted");
    assert_eq!(cause["at"]["function"], "fault");
    assert_eq!(cause["at"]["line"], line("fault's line"));
    assert_advice(&report, "faulted", &["at fault slow.c:"]);
}

#[test]
fn a_holder_that_waits_for_another_lock_is_told_by_its_call() {
    let report = profile(&["nests"]).expect("any machine can");
    let cause = assert_main_cause(&report, "wait_for_mutex", "nested");
    assert_eq!(cause["at"]["function"], "nest");
    assert_eq!(cause["at"]["line"], line("inner line"));
    let cause = assert_main_cause(&report, "nest", "slept");
    assert_eq!(cause["held_at"]["function"], "hold_inner");
}

#[test]
fn holders_of_rwlocks_are_seen() {
    for (how, waiter) in [
        ("read held", "wait_to_write"),
        ("write held", "wait_to_read"),
    ] {
        let report = profile(&[how]).expect("any machine can");
        let cause = assert_main_cause(&report, waiter, "slept");
        assert_eq!(cause["held_at"]["function"], "hold_rwlock");
        assert_advice(&report, "slept", &["clock_nanosleep"]);
    }
}

#[test]
fn timed_waits_end_in_time_and_are_seen() {
    let report = profile(&["in vain"]).expect("any machine can");
    assert_main_cause(&report, "wait_in_vain", "slept");
}

#[test]
fn holders_in_other_processes_are_not_known() {
    let report = profile(&["shared"]).expect("any machine can");
    let cause = assert_main_cause(&report, "wait_for_mutex", "unseen");
    assert_eq!(cause["held_at"], Value::Null);
    assert_eq!(cause["error"], "another process may hold it");
}

#[test]
fn the_table_fits_the_terminal_and_names_places() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path());
    let args = ["profile", program.to_str().expect("a path"), "nests"];
    let inner = format!("holder waited for a lock at nest {}", line("inner line"));
    let held = format!("hold {} in main slow.c:", line("holder's line"));
    let output = support::output(&args);
    for words in ["slow waits at", &inner, &held] {
        assert!(text(&output.stdout).contains(words), "no {words:?}");
    }
    assert_fits_terminals(&args, &["slow waits at", "share"]);
}

#[test]
fn the_limit_of_slow_waits_can_be_set() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path());
    let args = ["profile", "--json", "--slow", "10000000"];
    let output = support::lockworks(&args)
        .arg(program)
        .arg("sleeps")
        .output();
    let report = json(&output.expect("the command runs"));
    assert_eq!(slow(&report, "wait_for_mutex")["waits"], 0);
    for limit in ["0", "-1", "long", "1000000001"] {
        let option = format!("--slow={limit}");
        assert_refused(&support::output(&["profile", &option, "true"]), &["--slow"]);
    }
}
