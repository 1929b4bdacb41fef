//! `lockworks compare` from outside. The library that it preloads is built by `make lib`.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{self, assert_fails, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn command(args: &[&str]) -> Command {
    support::lockworks(&[&["compare"], args].concat())
}

fn compare(args: &[&str]) -> Output {
    command(args).output().expect("the command runs")
}

fn json(args: &[&str]) -> Value {
    let output = compare(&[&["--json", "--warmup", "0"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Lines of a script that pretend that its mutexes are served.
const SERVED: &str = "[ -z \"$LOCKWORKS_SERVED_FILE\" ] || echo > \"$LOCKWORKS_SERVED_FILE\";";

/// A script that prints the figure that `figures` has for the lock, or 1000 for all other locks.
fn prints(figures: &str) -> String {
    format!(
        "{SERVED}
        case $LD_PRELOAD in *liblockworks-preload.so) lock=$LOCKWORKS_LOCK;; *) lock=glibc;; esac
        case $lock in {figures} *) n=1000;; esac; echo first 7; echo rate $n"
    )
}

const METRIC: [&str; 2] = ["--metric", "rate ([0-9]+)"];

#[test]
fn the_best_is_named_and_those_level_with_it() {
    let script = prints("mutex) n=2000;; pv) n=2000;; unfair) n=500;;");
    let command = ["--rounds", "8", "--", "sh", "-c", &script];
    let more = json(&[&METRIC[..], &command].concat());
    let names = more["locks"].as_array().expect("rows").iter();
    let names: Vec<&str> = names.filter_map(|row| row["lock"].as_str()).collect();
    assert_eq!(names, ["glibc", "mutex", "pv", "unfair"]);
    assert_eq!(more["locks"][0]["value"]["median"], 1000.0);
    assert_eq!(more["locks"][1]["ratio"]["median"], 2.0);
    assert_eq!(more["locks"][1]["beside_glibc"], "better");
    assert_eq!(more["locks"][3]["beside_glibc"], "worse");
    let best = more["best"].as_str().expect("a lock");
    let level = more["level_with_best"][0].as_str().expect("a lock");
    assert!([("mutex", "pv"), ("pv", "mutex")].contains(&(best, level)));

    let script = prints("mutex) n=2000;; pv) n=500;; unfair) n=250;;");
    let command = ["--rounds", "8", "--", "sh", "-c", &script];
    let less = json(&[&METRIC[..], &["--lower-is-better"], &command].concat());
    assert_eq!(less["best"], "unfair");
    assert_eq!(less["level_with_best"], serde_json::json!([]));
}

#[test]
fn a_change_within_the_noise_is_no_difference() {
    let script = prints("mutex) n=1000;;");
    let command = ["--lock", "mutex", "--", "sh", "-c", &script];
    let same = json(&[&METRIC[..], &command].concat());
    assert_eq!(same["verdict"], "No difference beyond the noise.");
    let caution = same["caution"].as_str().expect("a run takes a moment");
    assert!(caution.contains("give it more to do"), "{caution}");
    let script = prints("mutex) n=9000;;");
    let command = [
        "--lock", "mutex", "--rounds", "5", "--", "sh", "-c", &script,
    ];
    let few = json(&[&METRIC[..], &command].concat());
    assert_eq!(few["best"], Value::Null);
    assert!(
        few["verdict"]
            .as_str()
            .expect("text")
            .contains("--rounds 6")
    );
}

#[test]
fn time_on_cpus_is_counted_for_the_run_alone() {
    // glibc's run comes first. If the lock's time included glibc's, it would be the longer of the
    // two, however busy the machine is.
    let spin = "import os, time\n\
                least = 0.3 if 'LOCKWORKS_LOCK' in os.environ else 1.5\n\
                while time.process_time() < least: pass";
    let one = [
        "--lock", "mutex", "--rounds", "1", "--", "python3", "-c", spin,
    ];
    let results = json(&one);
    let cpu = |row: usize| results["locks"][row]["cpu_s"].as_f64().expect("a time");
    let wall = |row: usize| results["locks"][row]["value"]["median"].as_f64();
    assert!(cpu(0) >= 1.5 && wall(0) >= Some(1.5), "{results}");
    assert!(
        (0.3..1.5).contains(&cpu(1)) && wall(1) >= Some(0.3),
        "{results}"
    );
}

#[test]
fn the_lock_under_which_the_program_fails_is_named() {
    let script = format!("{SERVED} echo said; test \"$LOCKWORKS_LOCK\" != pv");
    let output = compare(&[
        "--lock", "pv,mutex", "--rounds", "1", "--", "sh", "-c", &script,
    ]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert_eq!(
        message,
        "lockworks: FAIL: pv: exit status 1; it printed:\n  said\n"
    );
    assert!(text(&output.stdout).contains("FAILED"));
    let script = "test \"$LOCKWORKS_LOCK\" || exit 0; kill -11 $$";
    let output = compare(&["--rounds", "1", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("mutex: killed by signal 11; it printed nothing"));
}

#[test]
fn locks_that_serve_nothing_are_told_of_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, program) = (directory.path().join("sem.c"), directory.path().join("sem"));
    let source = "\
        #include <pthread.h>\n\
        #include <semaphore.h>\n\
        static sem_t sem;\n\
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n\
        static void *wait(void *locks) {\n\
            sem_wait(&sem);\n\
            if (locks)\n\
                pthread_mutex_lock(&mutex);\n\
            return 0;\n\
        }\n\
        int main(int argc, char **argv) {\n\
            int step = argc > 1 ? argv[1][0] : 0;\n\
            pthread_t thread;\n\
            sem_init(&sem, 0, 1);\n\
            if (step == 'a' || step == 'b')\n\
                pthread_mutex_lock(&mutex);\n\
            if (step == 'a')\n\
                return 0;\n\
            pthread_create(&thread, 0, wait, step == 'c' ? &sem : 0);\n\
            return pthread_join(thread, 0);\n\
        }\n";
    std::fs::write(&file, source).expect("a file");
    let compiled = Command::new("cc")
        .arg("-pthread")
        .arg("-o")
        .args([&program, &file])
        .status();
    assert!(compiled.expect("a C compiler").success());
    let program = program.to_str().expect("a path");
    let said = |rest: &[&str]| {
        let output = compare(&[&["--rounds", "1", "--lock", "mutex,pv", "--"], rest].concat());
        let said = [&output.stdout, &output.stderr];
        said.map(|stream| text(stream).replace('\n', " "))
    };
    let [results, early] = said(&[program]);
    let told = "no lock of Lockworks served it; it uses semaphores";
    assert_eq!(results.matches(told).count(), 1, "{results}");
    let none = "No lock served the program";
    assert!(!results.contains(none), "said twice: {results}");
    assert_eq!(early.matches(none).count(), 1, "{early}");

    // A process without threads that locks a mutex does not count, such as a client of a server.
    let [results, early] = said(&[program, "alone"]);
    assert!(results.contains(none) && early.contains(none), "{results}");
    let [results, early] = said(&["sh", "-c", &format!("{program} before")]);
    assert!(
        !results.contains(none) && !early.contains(none),
        "{results}"
    );
    let [results, early] = said(&[program, "created first"]);
    assert!(
        !results.contains(none) && !early.contains(none),
        "{results}"
    );
}

#[test]
fn an_interruption_leaves_the_complete_rounds() {
    let marks = tempfile::NamedTempFile::new().expect("a file");
    let script = format!("echo run >> {}", marks.path().display());
    let options = [
        "--json", "--lock", "mutex", "--warmup", "0", "--rounds", "1000",
    ];
    let mut running = command(&[&options[..], &["--", "sh", "-c", &script]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    while std::fs::read_to_string(&marks)
        .expect("marks")
        .lines()
        .count()
        < 5
    {
        assert!(
            running.try_wait().expect("it is ours").is_none(),
            "it ended by itself"
        );
        thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGINT).expect("it is there");
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let made = results["rounds_made"].as_u64().expect("a number");
    assert!((2..1000).contains(&made), "{made}");
    for row in results["locks"].as_array().expect("rows") {
        assert_eq!(
            row["by_round"].as_array().map(Vec::len),
            Some(made as usize)
        );
        assert_eq!(row["failed"], Value::Null);
    }
}

#[test]
fn a_run_that_takes_far_longer_than_glibc_is_given_up() {
    let script = "case \"$LD_PRELOAD\" in *lockworks*) sleep 3600 & wait;; esac";
    let args = [
        "--lock", "mutex", "--rounds", "2", "--warmup", "0", "--json",
    ];
    let output = compare(&[&args[..], &["--give-up", "2", "sh", "-c", script]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(results["locks"][1]["failed"], "given up after 10 s");
    assert_eq!(results["locks"][0]["failed"], Value::Null);
    assert_eq!(results["verdict"], "The program failed under every lock.");
    assert!(text(&output.stderr).contains("FAIL: mutex: given up after 10 s"));
}

#[test]
fn impossible_comparisons_are_refused() {
    let refused =
        |args: &[&str], status, words: &[&str]| assert_fails(&compare(args), status, words);
    let output = command(&["true"])
        .env("LD_PRELOAD", "/nowhere/liblockworks-preload.so")
        .output();
    let output = output.expect("the command runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("LD_PRELOAD has liblockworks-preload.so already"));
    refused(&["no-such-program"], 127, &["'no-such-program' not found"]);
    refused(
        &["--lock", "mcs", "true"],
        2,
        &["'mcs' cannot be in a mutex"],
    );
    refused(&["--lower-is-better", "true"], 2, &["--metric"]);
    refused(&["--metric", "x", "true"], 2, &["no group"]);
    refused(&["--metric", "(x", "true"], 2, &["unclosed group"]);
    let silent = ["--metric", "(x)", "echo", "said"];
    refused(&silent, 2, &["matches nothing", "it printed:\n  said"]);
    let word = ["--metric", "said (.*)", "echo", "said no"];
    refused(&word, 2, &["'no', which is no number"]);
    refused(
        &["--lock", "pv", "false"],
        2,
        &["the program fails with glibc's locks too: exit status 1"],
    );
    let none = ["--lock", "mutex", "-o", "/nowhere/file", "echo"];
    refused(&none, 2, &["cannot write /nowhere/file"]);
}

/// A run that prints no figure above 0 does not cost the rounds before it.
#[test]
fn rounds_before_a_run_that_cannot_be_evaluated_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let runs = directory.path().join("runs");
    let script = format!(
        "echo >> {0}; if [ $(wc -l < {0}) = 6 ]; then echo rate 0; else echo rate 5; fi",
        runs.display()
    );
    let rounds = [
        "compare", "--lock", "mutex", "--warmup", "0", "--rounds", "9",
    ];
    let output = support::output(&[&rounds[..], &METRIC, &["sh", "-c", &script]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stdout).contains("rounds: 2 of 9"),
        "{}",
        text(&output.stdout)
    );
    assert!(text(&output.stderr).contains("only figures above 0 can be compared"));
}

#[test]
fn a_plan_is_compared_with_glibc() {
    let plan = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(plan.path(), "lockworks plan 1\nmutex nowhere 00 0x1\n").expect("written");
    let path = plan.path().to_str().expect("a path");
    let script = "n=1000; [ -z \"$LOCKWORKS_PLAN\" ] || n=2000; echo rate $n";
    let rest = ["--rounds", "6", "--plan", path, "--", "sh", "-c", script];
    let result = json(&[&METRIC[..], &rest].concat());
    let names = result["locks"].as_array().expect("rows").iter();
    let names: Vec<&str> = names.filter_map(|row| row["lock"].as_str()).collect();
    assert_eq!(names, ["glibc", "plan"]);
    assert_eq!(result["locks"][1]["ratio"]["median"], 2.0);

    let rest = ["--lock", "pv", "--plan", path, "--", "sh", "-c", script];
    let result = json(&[&METRIC[..], &rest].concat());
    assert_eq!(result["locks"][1]["lock"], "pv");
    assert_eq!(result["locks"][1]["value"]["median"], 1000.0);
    assert_eq!(result["locks"][2]["value"]["median"], 2000.0);

    std::fs::write(plan.path(), "no plan\n").expect("written");
    let output = compare(&["--plan", path, "--", "true"]);
    assert_fails(&output, 2, &["it is no plan"]);
}
