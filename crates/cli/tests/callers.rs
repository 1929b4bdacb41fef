//! `lockworks profile` names the functions that use a program's own wrappers of locks, and their callers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{json, output, text};

fn compile(directory: &Path, optimise: &str) -> PathBuf {
    let (file, program) = (directory.join("callers.c"), directory.join("callers"));
    fs::write(&file, include_str!("callers.c")).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-g", optimise, "-o"]);
    compiler.args([&program, &file]);
    assert!(compiler.status().expect("a C compiler").success());
    program
}

/// The functions of the places where mutexes are locked.
fn functions(report: &Value) -> Vec<&str> {
    let places = report["places"].as_array().expect("rows").iter();
    let functions = places.map(|row| row["places"][0]["function"].as_str().unwrap_or("?"));
    let mut functions: Vec<&str> = functions.collect();
    functions.sort_unstable();
    functions
}

#[test]
fn places_are_those_of_the_functions_that_use_a_wrapper() {
    let directory = tempfile::tempdir().expect("a directory");
    for optimise in ["-O0", "-O2"] {
        let program = compile(directory.path(), optimise);
        let program = program.to_str().expect("a path");
        let report = json(&output(&["profile", "--json", "--", program]));
        assert_eq!(
            functions(&report),
            ["unlocks_at_its_end", "unlocks_before_its_end"],
            "{optimise}: {report:#}"
        );
    }
}

/// What each user of a wrapper does with the same lock is not known, so none of them gets what others do.
#[test]
fn a_wrapper_with_several_users_for_a_lock_is_the_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "-O0");
    let program = program.to_str().expect("a path");
    let report = json(&output(&[
        "profile", "--json", "--", program, "share", "it",
    ]));
    assert_eq!(functions(&report), ["wrapper_lock"], "{report:#}");
    assert_eq!(report["places"][0]["acquisitions"], 1001);
}

#[test]
fn depth_shows_callers() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "-O0");
    let program = program.to_str().expect("a path");
    for (depth, callers) in [("0", 0), ("1", 1), ("2", 2)] {
        let args = ["profile", "--json", "--depth", depth, "--", program];
        let report = json(&output(&args));
        let shown = &report["places"][0]["places"][0]["callers"];
        let shown = shown.as_array().expect("callers");
        let names = shown.iter().map(|frame| frame["function"].as_str());
        let names: Vec<_> = names.flatten().collect();
        assert_eq!(names, ["caller", "main"][..callers], "{report:#}");
    }
    let table = output(&["profile", "--depth", "2", "--", program]);
    let table = text(&table.stdout);
    assert!(table.contains("in caller"), "{table}");
}

/// A stack is one line, from the outermost function to the call.
#[test]
fn stacks_are_for_flame_graphs() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "-O0");
    let program = program.to_str().expect("a path");
    let args = ["profile", "--format", "collapsed", "--", program, "wait"];
    let lines = output(&args);
    let lines = text(&lines.stdout);
    let stack = "main;caller;waits;wrapper_lock ";
    assert!(lines.contains(stack), "{lines}");
    let file = directory.path().join("waits.pb.gz");
    let file = file.to_str().expect("a path");
    let args = ["profile", "--format", "pprof", "-o", file, "--", program];
    assert!(output(&args).status.success());
    let contents = fs::read(file).expect("a file");
    assert_eq!(contents[..2], [0x1f, 0x8b], "gzip");
}
