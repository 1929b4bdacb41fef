//! `lockworks profile` of programs that are limited, killed, in the background, or not measured as a whole.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::{self, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
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

/* Locks a recursive mutex that is in the place of one which is gone, but was not unlocked. */
static void lock_in_place_of_another(void)
{
	static const pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	static pthread_mutex_t place;

	for (int i = 0; i < 3; i++) {
		place = recursive;
		pthread_mutex_lock(&place);
		pthread_mutex_lock(&place);
		pthread_mutex_unlock(&place);
	}
}

static mtx_t of_c11;
static cnd_t changed;
static int ready, waiting, woken;

static void lock_c11(void)
{
	struct timespec past = {0, 0};

	mtx_init(&of_c11, mtx_plain);
	cnd_init(&changed);
	mtx_lock(&of_c11);
	if (mtx_trylock(&of_c11) != thrd_busy || mtx_timedlock(&of_c11, &past) != thrd_timedout ||
	    cnd_timedwait(&changed, &of_c11, &past) != thrd_timedout)
		exit(1);
	mtx_unlock(&of_c11);
	if (mtx_trylock(&of_c11) != thrd_success)
		exit(1);
	mtx_unlock(&of_c11);
}

/* All wait for a condition, which is signalled by a thread that then keeps the mutex. */
static void *wait_for_condition(void *arg)
{
	pthread_mutex_lock(&mutex);
	waiting++;
	while (!ready) {
		pthread_cond_wait((pthread_cond_t *)&changed, &mutex);
		woken++;
	}
	pthread_mutex_unlock(&mutex);
	return arg;
}

static void *lock_once(void *arg)
{
	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

/* Keeps the mutex while all eight threads wait. */
static void hold_up(void *(*run)(void *), int after_condition)
{
	pthread_t threads[8];

	if (!after_condition)
		pthread_mutex_lock(&mutex);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	while (__atomic_load_n(&waiting, __ATOMIC_RELAXED) < 8)
		usleep(1000);
	usleep(20000);
	if (after_condition) {
		pthread_mutex_lock(&mutex);
		ready = 1;
		pthread_cond_broadcast((pthread_cond_t *)&changed);
	}
	usleep(300000);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

/* Wakes a thread at least twice before what it waits for is true. */
static void wake_for_nothing(void)
{
	pthread_t thread;
	int enough = 0;

	pthread_create(&thread, NULL, wait_for_condition, NULL);
	while (!enough) {
		pthread_mutex_lock(&mutex);
		enough = ready = woken >= 2;
		pthread_cond_signal((pthread_cond_t *)&changed);
		pthread_mutex_unlock(&mutex);
		usleep(1000);
	}
	pthread_join(thread, NULL);
}

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;

static void *lock_hot(void *arg)
{
	pthread_mutex_lock(&hot);
	usleep(50000);
	pthread_mutex_unlock(&hot);
	return arg;
}

void lock_and_unlock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

/* A lock is no cancellation point, also where the code that locks is new. */
static void *lock_while_cancelled(void *arg)
{
	void (*in_library)(void) = (void (*)(void))dlsym(arg, "lock_and_unlock");

	pthread_cancel(pthread_self());
	in_library();
	ready = 1;
	return arg;
}

/* Locks the mutex of each of as many libraries. */
static void lock_in_libraries(const char *path, int n)
{
	char name[4096];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s-%d", path, i);
		((void (*)(void))dlsym(dlopen(name, RTLD_NOW), "lock_and_unlock"))();
	}
}

static void *spin_once(void *arg)
{
	pthread_spin_lock(arg);
	pthread_spin_unlock(arg);
	return arg;
}

static void *lock_hot_within(void *arg)
{
	pthread_mutex_lock(&mutex);
	lock_hot(arg);
	pthread_mutex_unlock(&mutex);
	return arg;
}

/* Holds the mutex while there are no events, and lets another thread on after that, again and again. */
static void wait_for_events(int has_work)
{
	for (int i = 0; i < 5; i++) {
		pthread_t thread;

		pthread_mutex_lock(&mutex);
		pthread_create(&thread, NULL, has_work ? lock_hot_within : lock_once, NULL);
		poll(NULL, 0, 100);
		pthread_mutex_unlock(&mutex);
		pthread_join(thread, NULL);
	}
}

static void *contend(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&hot);
		for (volatile int n = 0; n < 2000; n++)
			;
		pthread_mutex_unlock(&hot);
	}
	return arg;
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "lock")) {
		lock(NULL);
	} else if (!strcmp(argv[1], "many")) {
		lock_many(atoi(argv[2]));
		lock(NULL);
	} else if (!strcmp(argv[1], "many, then hot")) {
		pthread_t threads[4];

		lock_many(100000);
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, lock_hot, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(argv[1], "daemon")) {
		if (daemon(1, 1))
			exit(1);
		usleep(400000);
		hold_up(lock_once, 0);
	} else if (!strcmp(argv[1], "server") || !strcmp(argv[1], "in front")) {
		if (!strcmp(argv[1], "server"))
			daemon(1, 1);
		lock(NULL);
		puts("serves");
		fflush(stdout);
		pause();
	} else if (!strcmp(argv[1], "spin")) {
		pthread_t threads[1];
		pthread_spinlock_t spin;

		pthread_spin_init(&spin, 0);
		pthread_spin_lock(&spin);
		pthread_create(&threads[0], NULL, spin_once, (void *)&spin);
		usleep(100000);
		pthread_spin_unlock(&spin);
		pthread_join(threads[0], NULL);
	} else if (!strcmp(argv[1], "contend")) {
		pthread_t threads[4];

		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, contend, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(argv[1], "idle") || !strcmp(argv[1], "busy")) {
		wait_for_events(!strcmp(argv[1], "busy"));
	} else if (!strcmp(argv[1], "libraries")) {
		lock_in_libraries(argv[2], atoi(argv[3]));
	} else if (!strcmp(argv[1], "cancelled")) {
		pthread_t thread;

		pthread_create(&thread, NULL, lock_while_cancelled, dlopen(argv[2], RTLD_NOW));
		pthread_join(thread, NULL);
		return !ready;
	} else if (!strcmp(argv[1], "C11")) {
		lock_c11();
	} else if (!strcmp(argv[1], "in place")) {
		lock_in_place_of_another();
	} else if (!strcmp(argv[1], "for nothing")) {
		wake_for_nothing();
	} else if (!strcmp(argv[1], "condition")) {
		hold_up(wait_for_condition, 1);
	} else if (!strcmp(argv[1], "hold up")) {
		hold_up(lock_once, 0);
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
    compile_as(directory, "test", &[])
}

fn compile_as(directory: &Path, name: &str, options: &[&str]) -> PathBuf {
    let (file, program) = (directory.join("test.c"), directory.join(name));
    fs::write(&file, PROGRAM).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(options).args(["-pthread", "-O1", "-g", "-o"]);
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
fn few_open_files_suffice_or_the_limit_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path());
    let program = program.to_str().expect("a path");
    for files in 4..12 {
        let words = format!(
            "ulimit -n {files}; exec {} profile --json -- {program} lock",
            crate::COMMAND
        );
        let output = Command::new("sh").args(["-c", &words]).output();
        let output = output.expect("a shell");
        let said = text(&output.stderr);
        if output.status.success() {
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(acquisitions(&report), 100, "{files}: {said}");
        } else {
            // With too few, the system's loader does not start the command.
            let is_said = ["ulimit -n 1024", "loading shared libraries"];
            let is_said = is_said.iter().any(|words| said.contains(words));
            assert!(is_said, "{files}: {said}");
        }
    }
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

#[test]
fn contended_locks_have_room_beside_many_others() {
    let (report, _) = script("exec \"$0\" 'many, then hot'");
    assert!(report["lost"].as_u64().expect("a number") > 0);
    assert_eq!(report["mutexes"][0]["variable"], "hot");
    assert!(
        report["mutexes"][0]["contended"]
            .as_u64()
            .expect("a number")
            >= 3
    );
    assert_ne!(report["advice"]["rule"], "not_contended");
}

#[test]
fn mutexes_of_c11_are_measured() {
    let (report, _) = script("exec \"$0\" C11");
    let places = report["places"].as_array().expect("rows");
    assert!(
        places
            .iter()
            .all(|row| row["places"][0]["function"] == "lock_c11")
    );
    let counts = ["acquisitions", "after_condition"].map(|name| report["mutexes"][0][name].clone());
    assert_eq!(counts, [3, 1]);
    let condition = &report["conditions"][0];
    assert_eq!(condition["place"]["function"], "lock_c11");
    assert_eq!(
        (&condition["waits"], &condition["timed_out"]),
        (&1.into(), &1.into())
    );
}

/// The threads that are woken wait 0.3 s for the mutex.
#[test]
fn waits_for_the_mutex_after_a_condition_are_seen() {
    let (report, _) = script("exec \"$0\" condition");
    let mutex = &report["mutexes"][0];
    let number = |name| mutex[name].as_u64().expect("a number");
    assert_eq!(number("after_condition"), 8);
    assert!(number("contended") >= 7, "{mutex}");
    assert!(number("waited_ns") > 7 * 200_000_000, "{mutex}");
}

#[test]
fn waits_for_conditions_and_their_signals_have_places() {
    let (report, _) = script("exec \"$0\" condition");
    let condition = &report["conditions"][0];
    let expected = json!({
        "conditions": ["changed"],
        "waits": 8,
        "timed_out": 0,
        "for_nothing": 0,
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&condition[name], value, "{condition}");
    }
    assert_eq!(condition["place"]["function"], "wait_for_condition");
    let signals = condition["signals"].as_array().expect("rows");
    assert_eq!(signals.len(), 1, "{condition}");
    assert_eq!(signals[0]["signals"], 1);
}

/// Every wake-up but the last one is followed by another wait.
#[test]
fn wake_ups_for_nothing_are_counted() {
    let (report, _) = script("exec \"$0\" 'for nothing'");
    let number = |name| report["conditions"][0][name].as_u64().expect("a number");
    assert!(number("for_nothing") >= 2);
    assert_eq!(number("for_nothing"), number("waits") - 1);
}

/// One of the waiters looks what the holder does, and the time of all is that of the causes it saw.
#[test]
fn the_waits_of_all_threads_have_the_causes_that_one_of_them_sees() {
    let (report, _) = script("exec \"$0\" 'hold up'");
    let slow = &report["places"][0]["slow"];
    assert_eq!(slow["waits"], 8);
    assert!(
        slow["waited_ns"].as_u64().expect("a number") > 8 * 250_000_000,
        "{slow}"
    );
    let causes = slow["causes"].as_array().expect("rows");
    assert_eq!(causes[0]["what"], "slept", "{slow}");
    assert!(causes[0]["share"].as_f64().expect("a share") > 0.8);
    assert!(causes.iter().all(|cause| cause["what"] != "unwatched"));
}

#[test]
fn to_lock_is_no_cancellation_point() {
    let directory = tempfile::tempdir().unwrap();
    let library = compile_as(directory.path(), "test.so", &["-shared", "-fPIC"]);
    let library = library.to_str().expect("a path");
    let (report, _) = script(&format!("exec \"$0\" cancelled {library}"));
    assert_eq!(acquisitions(&report), 1);
}

/// One that is locked twice counts once, and so does the next one at its address.
#[test]
fn a_recursive_mutex_that_is_freed_while_locked_is_another_one() {
    let (report, _) = script("exec \"$0\" 'in place'");
    assert_eq!(acquisitions(&report), 3);
}

#[test]
fn places_in_hundreds_of_libraries_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let library = compile_as(directory.path(), "test.so", &["-shared", "-fPIC"]);
    let library = library.to_str().expect("a path");
    for number in 0..300 {
        fs::copy(library, format!("{library}-{number}")).expect("a copy");
    }
    let (report, _) = script(&format!("exec \"$0\" libraries {library} 300"));
    let places = report["places"].as_array().expect("rows");
    assert_eq!(places.len(), 300);
    for place in places {
        assert_eq!(place["places"][0]["function"], "lock_and_unlock");
    }
}

#[test]
fn waits_for_spinlocks_are_seen_and_served() {
    let (report, _) = script("exec \"$0\" spin");
    let advice = &report["advice"];
    assert_eq!(advice["rule"], "not_measured");
    let text = advice["text"].as_str().expect("words");
    assert!(text.contains("waited for pthread spinlocks, which `lockworks run` serves"));
    assert!(report["try_it"].is_string());
}

#[test]
fn a_program_that_goes_into_the_background_is_waited_for() {
    let (report, said) = script("exec \"$0\" daemon");
    assert!(said.contains("left process"), "{said}");
    assert_eq!(acquisitions(&report), 9);
    assert_eq!(report["advice"]["rule"], "long_holds");
}

/// Each run takes until the process in the background has ended.
#[test]
fn a_comparison_leaves_nothing_in_the_background() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path());
    let program = program.to_str().expect("a path");
    let rounds = ["--rounds", "1", "--warmup", "0", "--lock", "mutex"];
    let output = support::output(
        &[
            &["compare", "--json"][..],
            &rounds,
            &["--", program, "daemon"],
        ]
        .concat(),
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for lock in report["locks"].as_array().expect("rows") {
        assert!(
            lock["by_round"][0]["wall_s"].as_f64().expect("a time") > 0.7,
            "{lock}"
        );
    }
}

/// Profiles the program in the way that `how` says, and sends a signal once it has said something.
fn signalled(how: &str, signal: Signal, terminal: bool) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path());
    let mut command = support::lockworks(&["profile", "--", program.to_str().unwrap(), how]);
    let both = nix::pty::openpty(None, None).expect("a pseudo-terminal");
    if terminal {
        command.stdin(both.slave.try_clone().expect("a descriptor"));
    }
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "serves");
    // The command may wait for the process in the background only after that.
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
    let said = lines.map(|line| line.expect("text")).collect::<Vec<_>>();
    (child.wait().expect("it ends").code(), said.join("\n"))
}

#[test]
fn a_signal_ends_the_program_and_the_report_follows() {
    for (signal, status) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
    ] {
        if signal == Signal::SIGHUP && ignores_hangup("/proc/self/status") {
            eprintln!("it is ignored: not tested");
            continue;
        }
        for terminal in [false, true] {
            let (code, said) = signalled("in front", signal, terminal);
            assert_eq!(code, Some(status), "{said}");
            assert!(said.contains("1 mutex at 1 place"), "{said}");
        }
    }
}

/// Whether SIGHUP is ignored, as a `status` file says.
fn ignores_hangup(status: &str) -> bool {
    let status = fs::read_to_string(status).expect("a file");
    let mut words = status
        .split_whitespace()
        .skip_while(|word| *word != "SigIgn:");
    let mask = words.nth(1).expect("a number");
    u64::from_str_radix(mask, 16).expect("a number") & 1 != 0
}

/// `nohup` starts a command in this way.
#[test]
fn a_hangup_that_is_ignored_stays_so() {
    let directory = tempfile::tempdir().unwrap();
    let status = directory.path().join("status");
    let status = status.to_str().expect("a path");
    for command in ["profile", "run"] {
        let words = format!(
            "trap '' HUP; exec {} {command} -- cp /proc/self/status {status}",
            crate::COMMAND
        );
        let output = Command::new("sh").args(["-c", &words]).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(ignores_hangup(status), "{command}");
    }
}

#[test]
fn a_signal_ends_what_is_left_in_the_background() {
    let (code, said) = signalled("server", Signal::SIGTERM, true);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 mutex at 1 place"), "{said}");
}

/// What `Try:` says works as it is typed, for programs that end, fail, are killed, or go on.
#[test]
fn what_is_advised_can_be_typed() {
    for (words, status, command) in [
        ("\"$0\" contend", 0, "compare"),
        ("\"$0\" contend; exit 3", 3, "run"),
        ("\"$0\" contend; kill -9 $$", 137, "run"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let program = compile(directory.path());
        let program = program.to_str().expect("a path");
        let output = support::output(&["profile", "--json", "--", "sh", "-c", words, program]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let Some(typed) = report["try_it"].as_str() else {
            // With a holder that sleeps, no lock helps.
            assert_eq!(report["advice"]["rule"], "long_holds", "{report}");
            continue;
        };
        let rest = typed.strip_prefix("lockworks ").expect("a command");
        assert!(rest.starts_with(command), "{typed}");
        let again = Command::new("sh")
            .args(["-c", &format!("exec {} {rest}", crate::COMMAND)])
            .output()
            .expect("a shell");
        let ended = again
            .status
            .code()
            .or(again.status.signal().map(|n| 128 + n));
        assert_eq!(ended, Some(status), "{typed}: {}", text(&again.stderr));
    }
}

/// Idle threads that wait for a mutex until there is work are told apart from those that have work.
#[test]
fn waits_without_work_are_told_apart() {
    let (report, _) = script("exec \"$0\" idle");
    assert_eq!(report["advice"]["rule"], "not_contended");
    let text = report["advice"]["text"].as_str().expect("words");
    // A holder that should not wait for events within the critical section looks the same.
    assert!(
        text.contains("If they had work: Take poll out of the critical section"),
        "{text}"
    );
    let (report, _) = script("exec \"$0\" busy");
    assert_eq!(report["advice"]["rule"], "long_holds");
    assert_eq!(report["advice"]["cause"], "slept");
}
