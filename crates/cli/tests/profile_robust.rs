//! `lockworks profile` of programs that are limited, killed, in the background, or not measured as a whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{self, text};
use serde_json::Value;

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *lock(void *arg)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

/* Locks as many mutexes, once each. */
static void lock_many(int n)
{
	pthread_mutex_t *many = calloc(n, sizeof(*many));

	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&many[i]);
		pthread_mutex_unlock(&many[i]);
	}
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "lock")) {
		lock(NULL);
	} else if (!strcmp(argv[1], "many")) {
		lock_many(atoi(argv[2]));
		lock(NULL);
	} else if (!strcmp(argv[1], "_Fork")) {
		if (_Fork() == 0) {
			lock(NULL);
			_exit(0);
		}
		wait(NULL);
		lock(NULL);
	}
	return argc - argc;
}
"#;

fn compile(directory: &Path) -> PathBuf {
    let (file, program) = (directory.join("test.c"), directory.join("test"));
    fs::write(&file, PROGRAM).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-O1", "-g", "-o"]);
    let compiled = compiler.args([&program, &file]).status();
    assert!(compiled.expect("a C compiler").success());
    program
}

/// Profiles a script of the shell, in which $0 is the program. Returns the report and what was said besides.
fn script(words: &str) -> (Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path());
    let program = program.to_str().expect("a path");
    let report = directory.path().join("report.json");
    let file = report.to_str().expect("a path");
    let output = support::output(&[
        "profile", "--json", "-o", file, "--", "sh", "-c", words, program,
    ]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{words}: {said}");
    let report = fs::read_to_string(report).expect("a report");
    (serde_json::from_str(&report).expect("JSON"), said)
}

fn acquisitions(report: &Value) -> u64 {
    let rows = report["mutexes"].as_array().expect("rows").iter();
    rows.map(|row| row["acquisitions"].as_u64().expect("a number"))
        .sum()
}

fn unmeasured(report: &Value) -> u64 {
    let reasons = report["unmeasured"].as_object().expect("reasons").values();
    reasons.map(|n| n.as_u64().expect("a number")).sum()
}

#[test]
fn limits_of_resources_are_respected() {
    for limit in ["-f 0", "-f 1000", "-n 10", "-c 0", "-v 400000"] {
        let (report, said) = script(&format!("ulimit {limit}; exec \"$0\" lock"));
        assert_eq!(said, "", "{limit}");
        assert_eq!(acquisitions(&report), 100, "{limit}");
        assert_eq!(unmeasured(&report), 0, "{limit}");
    }
    // There is no room for the record.
    let (report, said) = script("ulimit -v 20000; exec \"$0\" lock");
    assert_eq!(said, "");
    assert_eq!(unmeasured(&report), 1);
    assert_eq!(report["advice"]["rule"], "not_measured");
    assert!(report["try_it"].is_string());
}

#[test]
fn children_that_are_killed_as_they_start_cost_nothing_else() {
    let kill = "for i in $(seq 300); do \"$0\" lock & kill -9 $!; done; wait; \"$0\" lock";
    let (report, said) = script(kill);
    assert_eq!(said, "");
    assert!(acquisitions(&report) >= 100);
    assert_eq!(unmeasured(&report), 0);
}

#[test]
fn the_child_of_an_unnoticed_fork_has_a_record() {
    let (report, _) = script("exec \"$0\" _Fork");
    assert_eq!(
        report["processes"],
        2 + 1,
        "the child, its parent and that as the shell"
    );
    let rows = report["mutexes"].as_array().expect("rows").iter();
    let counts: Vec<_> = rows.map(|row| row["acquisitions"].clone()).collect();
    assert_eq!(counts, [100, 100]);
}

/// Without room in the file system, a process that writes to its record would be killed.
#[test]
fn records_without_room_are_counted_as_lost() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path());
    let run = |size: &str| -> Option<Output> {
        let script = format!("mount -t tmpfs -o size={size} none /dev/shm && exec \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script, "sh"]);
        command.arg(crate::COMMAND);
        command.args(["profile", "--json", "--"]).arg(&program);
        let output = command
            .args(["many", "3000"])
            .env("TMPDIR", "/dev/shm")
            .output();
        output.ok().filter(|output| {
            !text(&output.stderr).contains("mount:") && !text(&output.stderr).contains("unshare:")
        })
    };
    let Some(output) = run("200k") else {
        eprintln!("no file system can be mounted: not tested");
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lost = report["lost"].as_u64().expect("a number");
    assert!(lost > 0);
    assert_eq!(acquisitions(&report) + lost, 3100);

    // One page has the header only.
    let output = run("4k").expect("as before");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["lost"], 3100);
}
