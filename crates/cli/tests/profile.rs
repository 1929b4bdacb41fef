//! `lockworks profile` from outside. The library that it preloads is built by `make lib`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{self, assert_fails, assert_fits_terminals, text, two_cpus};
use serde_json::Value;

/// A topology in which all CPUs are of one node, whatever machine runs the test.
const ONE_NODE: &str = "0-4095";

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

__attribute__((noinline)) static void at_hot(void)
{
	pthread_mutex_lock(&hot); /* hot line */
	usleep(100);
	pthread_mutex_unlock(&hot);
}

__attribute__((noinline)) static void at_cold(void)
{
	pthread_mutex_lock(&cold);
	pthread_mutex_unlock(&cold);
}

/* Threads are numbered in the order in which they begin. */
static int begun, woken, turn = -1;
static pid_t tids[4];

/* All wait for the mutex once. After that they acquire it in turn, and never have to wait. */
static void *heat(void *arg)
{
	int self = __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&tids[self], gettid(), __ATOMIC_RELAXED);
	at_hot();
	__atomic_fetch_add(&woken, 1, __ATOMIC_RELEASE);
	for (int i = 1; i < 200; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != self)
			usleep(20);
		at_hot();
		__atomic_store_n(&turn, (self + 1) % 4, __ATOMIC_RELEASE);
	}
	return arg;
}

/* Waits until a thread sleeps. After it has written its ID it can only sleep for the mutex. */
static void await_sleep(pid_t *tid)
{
	char path[64], state = 0;

	while (state != 'S') {
		FILE *file;

		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
			 __atomic_load_n(tid, __ATOMIC_RELAXED));
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(file);
	}
}

/* Lets the four threads wait for the mutex, 0.1 s at least, and then take turns. */
static void *hold(void *arg)
{
	pthread_t threads[4];

	pthread_mutex_lock(&hot);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, heat, NULL);
	for (int i = 0; i < 4; i++)
		await_sleep(&tids[i]);
	usleep(100000);
	pthread_mutex_unlock(&hot);
	while (__atomic_load_n(&woken, __ATOMIC_ACQUIRE) < 4)
		usleep(1000);
	/* So that the thread whose turn is first does not follow itself. */
	pthread_mutex_lock(&hot);
	pthread_mutex_unlock(&hot);
	__atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return arg;
}

/* Threads compete for the mutex at every acquisition. */
static void *compete(void *arg)
{
	for (int i = 0; i < 200; i++)
		at_hot();
	return arg;
}

static void all_run(void *(*run)(void *), int n)
{
	pthread_t threads[8];

	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

__attribute__((noinline)) static void at_recursion(void)
{
	pthread_mutex_lock(&again);
	pthread_mutex_lock(&again);
	pthread_mutex_unlock(&again);
	usleep(1000);
	pthread_mutex_unlock(&again);
}

__attribute__((noinline)) static void at_wait(void)
{
	struct timespec soon;

	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++;
	pthread_mutex_lock(&cold);
	pthread_cond_timedwait(&never, &cold, &soon);
	pthread_mutex_unlock(&cold);
}

static int cpus[2];

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *move(void *arg)
{
	on_cpu(cpus[1]);
	at_cold();
	on_cpu(cpus[0]);
	at_cold();
	return arg;
}

static void *take(void *arg)
{
	__atomic_store_n(&tids[0], gettid(), __ATOMIC_RELAXED);
	at_hot();
	return arg;
}

/* Ends while a thread waits for a mutex. */
static void end_waiting(int by_signal)
{
	pthread_t thread;

	pthread_mutex_lock(&hot);
	pthread_create(&thread, NULL, take, NULL);
	await_sleep(&tids[0]);
	usleep(50000);
	if (by_signal)
		kill(getpid(), SIGTERM);
	exit(3);
}

static void *take_crosswise(void *arg)
{
	pthread_mutex_lock(arg ? &hot : &cold);
	__atomic_add_fetch(&woken, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&woken, __ATOMIC_ACQUIRE) < 2)
		usleep(1000);
	pthread_mutex_lock(arg ? &cold : &hot);
	return arg;
}

/* Two threads wait for each other. */
static void deadlock(void *(*take)(void *))
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, take, i ? &woken : NULL);
	usleep(200000);
	exit(3);
}

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER, rare = PTHREAD_RWLOCK_INITIALIZER;

__attribute__((noinline)) static void at_read(void)
{
	pthread_rwlock_rdlock(&table);
}

__attribute__((noinline)) static void at_write(void)
{
	pthread_rwlock_wrlock(&table);
}

__attribute__((noinline)) static void at_rare(void)
{
	pthread_rwlock_wrlock(&rare);
	pthread_rwlock_unlock(&rare);
}

static void *write_later(void *arg)
{
	__atomic_store_n(&tids[0], gettid(), __ATOMIC_RELAXED);
	at_write(); /* write line */
	pthread_rwlock_unlock(&table);
	return arg;
}

/* Reads an rwlock twice at once and fails to write, while a writer waits; and writes another three times. */
static void use_rwlocks(void)
{
	pthread_t thread;

	at_read();
	pthread_rwlock_tryrdlock(&table);
	pthread_create(&thread, NULL, write_later, NULL);
	await_sleep(&tids[0]);
	usleep(20000);
	pthread_rwlock_trywrlock(&table);
	pthread_rwlock_unlock(&table);
	pthread_rwlock_unlock(&table);
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++)
		at_rare();
}

/* Threads read the same rwlock at two places at the same time. */
static void *read_much(void *arg)
{
	for (int i = 0; i < 100000; i++) {
		if (i % 10)
			at_read();
		else
			pthread_rwlock_tryrdlock(&table);
		pthread_rwlock_unlock(&table);
	}
	return arg;
}

/* Ends while a writer waits for a reader. */
static void end_reading(void)
{
	pthread_t thread;

	at_read();
	pthread_create(&thread, NULL, write_later, NULL);
	await_sleep(&tids[0]);
	usleep(50000);
	exit(3);
}

static void *write_crosswise(void *arg)
{
	if (arg)
		pthread_mutex_lock(&hot);
	else
		at_write();
	__atomic_add_fetch(&woken, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&woken, __ATOMIC_ACQUIRE) < 2)
		usleep(1000);
	if (arg)
		at_read();
	else
		pthread_mutex_lock(&hot);
	return arg;
}

/* The child of a fork inherits a read, and releases it. */
static void fork_reading(void)
{
	at_read();
	usleep(50000);
	if (fork() == 0) {
		pthread_rwlock_unlock(&table);
		at_write();
		pthread_rwlock_unlock(&table);
		_exit(0);
	}
	wait(NULL);
	pthread_rwlock_unlock(&table);
}

static void use_shared_rwlock(void)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&table, &attr);
	at_read();
	pthread_rwlock_unlock(&table);
}

/* Threads compete for a mutex that other processes could share. */
static void use_shared(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&hot, &attr);
	all_run(compete, 4);
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "hot")) {
		for (int i = 0; i < 100; i++)
			at_cold();
		all_run(hold, 1);
	} else if (!strcmp(argv[1], "race")) {
		all_run(compete, 4);
	} else if (!strcmp(argv[1], "kinds")) {
		at_recursion();
		at_wait();
	} else if (!strcmp(argv[1], "exits") || !strcmp(argv[1], "ended")) {
		end_waiting(!strcmp(argv[1], "ended"));
	} else if (!strcmp(argv[1], "deadlock")) {
		deadlock(take_crosswise);
	} else if (!strcmp(argv[1], "rwlocks")) {
		use_rwlocks();
	} else if (!strcmp(argv[1], "read much")) {
		all_run(read_much, 4);
	} else if (!strcmp(argv[1], "end reading")) {
		end_reading();
	} else if (!strcmp(argv[1], "fork reading")) {
		fork_reading();
	} else if (!strcmp(argv[1], "deadlocked writer")) {
		deadlock(write_crosswise);
	} else if (!strcmp(argv[1], "shared rwlock")) {
		use_shared_rwlock();
	} else if (!strcmp(argv[1], "shared")) {
		use_shared();
	} else if (!strcmp(argv[1], "nodes")) {
		cpus[0] = atoi(argv[2]);
		cpus[1] = atoi(argv[3]);
		on_cpu(cpus[0]);
		at_cold();
		all_run(move, 1);
		all_run(move, 1);
	} else {
		if (fork() == 0) {
			at_cold();
			_exit(0);
		}
		wait(NULL);
		at_hot();
		kill(getpid(), SIGKILL);
	}
	return argc + 1;
}
"#;

fn compile(directory: &Path, options: &[&str]) -> PathBuf {
    let (file, program) = (directory.join("test.c"), directory.join("test"));
    fs::write(&file, PROGRAM).expect("a file");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-pthread", "-O1", "-g", "-o"])
        .args([&program, &file]);
    assert!(
        compiler
            .args(options)
            .status()
            .expect("a C compiler")
            .success()
    );
    program
}

fn profile(args: &[&str]) -> Command {
    support::lockworks(&[&["profile"], args].concat())
}

/// Profiles the program, and returns the report.
fn json(mut command: Command, status: i32) -> Value {
    let Output { stdout, stderr, .. } = {
        let output = command.output().expect("the command runs");
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}",
            text(&output.stderr)
        );
        output
    };
    assert_eq!(text(&stderr), "");
    serde_json::from_slice(&stdout).expect("JSON")
}

fn place<'a>(profile: &'a Value, function: &str) -> &'a Value {
    let places = profile["places"].as_array().expect("places");
    let place = places
        .iter()
        .find(|row| row["places"][0]["function"] == function);
    place.unwrap_or_else(|| panic!("no {function} in {profile:#}"))
}

fn number(row: &Value, name: &str) -> u64 {
    row[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// How often the holder before was the same thread, on the same node, on another node.
fn from(row: &Value) -> [u64; 3] {
    ["from_same_thread", "from_same_node", "from_other_node"].map(|name| number(row, name))
}

#[test]
fn the_hot_place_is_first_and_all_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let mut command = profile(&["--json", "--", program, "hot"]);
    command.env("LOCKWORKS_TOPOLOGY", ONE_NODE);
    let seen = json(command, 3);
    let hot = &seen["places"][0];
    assert_eq!(hot, place(&seen, "at_hot"));
    let line = PROGRAM
        .lines()
        .position(|line| line.contains("hot line"))
        .unwrap()
        + 1;
    assert_eq!(hot["places"][0]["line"], format!("test.c:{line}"));
    assert_eq!(number(hot, "threads"), 4);
    assert_eq!(number(hot, "acquisitions"), 800);
    assert_eq!(number(hot, "contended"), 4);
    let (waited, held) = (number(hot, "waited_ns"), number(hot, "held_ns"));
    assert!(held >= 800 * 100_000, "{held}");
    let wall = (seen["wall_s"].as_f64().expect("a time") * 1e9) as u64;
    assert!((4 * 100_000_000..4 * wall).contains(&waited), "{waited}");
    assert!(held < wall);
    assert!(number(hot, "held_max_ns") >= 100_000);
    assert!((100_000_000..=waited).contains(&number(hot, "waited_max_ns")));
    assert_eq!(from(hot), [0, 800, 0]);

    let cold = place(&seen, "at_cold");
    assert_eq!(number(cold, "threads"), 1);
    assert_eq!(number(cold, "acquisitions"), 100);
    assert_eq!(
        (number(cold, "contended"), number(cold, "waited_ns")),
        (0, 0)
    );
    assert_eq!(from(cold), [99, 0, 0]);

    assert_eq!(seen["mutexes"].as_array().expect("rows").len(), 2);
    assert_eq!(seen["mutexes"][0]["places"][0]["function"], "at_hot");
    assert_eq!(seen["mutexes"][0]["variable"], "hot");
    assert_eq!(number(&seen, "threads"), 6);
    assert_eq!(number(&seen, "lost"), 0);

    let output = profile(&["--top", "1", "--", program, "hot"])
        .output()
        .unwrap();
    let tables = text(&output.stdout);
    assert!(
        tables.contains("at_hot test.c:") && !tables.contains("at_cold"),
        "{tables}"
    );
    assert!(!tables.contains("Try:"), "{tables}");
}

#[test]
fn racing_threads_are_counted_and_get_advice() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let seen = json(profile(&["--json", program.to_str().unwrap(), "race"]), 3);
    let hot = place(&seen, "at_hot");
    assert_eq!(number(hot, "threads"), 4);
    assert_eq!(number(hot, "acquisitions"), 800);
    assert_eq!(from(hot).iter().sum::<u64>(), 799); // one was the first
    assert_eq!(number(&seen, "lost"), 0);
    assert_eq!(seen["advice"]["rule"], "long_holds");
    assert_eq!(seen["try_it"], Value::Null);
}

#[test]
fn tables_fit_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let args = ["profile", program.to_str().unwrap(), "hot"];
    assert_fits_terminals(&args, &["at_hot test.c:", "before: same", "held"]);
    let args = ["profile", program.to_str().unwrap(), "rwlocks"];
    assert_fits_terminals(&args, &["table, write_later", "write", "longest", "held"]);
}

#[test]
fn held_twice_is_held_once_and_a_wait_for_a_condition_holds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let seen = json(profile(&["--json", program.to_str().unwrap(), "kinds"]), 3);
    let recursion = place(&seen, "at_recursion");
    assert_eq!(number(recursion, "acquisitions"), 1);
    assert!(number(recursion, "held_ns") >= 1_000_000);
    let waits = seen["mutexes"].as_array().expect("rows").iter();
    let mut waits = waits.filter(|row| row["places"][0]["function"] == "at_wait");
    let wait = waits.next().expect("a mutex");
    assert_eq!(number(wait, "acquisitions"), 2);
    assert_eq!(
        (number(wait, "after_condition"), number(wait, "contended")),
        (1, 0)
    );
    assert_eq!(number(wait, "waited_ns"), 0);
    assert!(number(wait, "held_ns") < 1_000_000_000);
}

#[test]
fn hand_offs_are_told_apart_by_node() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let Some([a, b]) = two_cpus().map(|cpus| cpus.map(|cpu| cpu.to_string())) else {
        eprintln!("one CPU cannot be two nodes: not tested");
        return;
    };
    let mut command = profile(&["--json", program.to_str().unwrap(), "nodes", &a, &b]);
    command.env("LOCKWORKS_TOPOLOGY", format!("{a}:{b}"));
    let seen = json(command, 5);
    assert_eq!(number(&seen, "nodes"), 2);
    let cold = place(&seen, "at_cold");
    assert_eq!(number(cold, "acquisitions"), 5);
    assert_eq!(number(cold, "from_same_thread"), 2); // it has moved meanwhile
    assert_eq!(number(cold, "from_same_node"), 0);
    assert_eq!(number(cold, "from_other_node"), 2);
}

#[test]
fn children_and_killed_processes_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let seen = json(
        profile(&["--json", program.to_str().unwrap(), "killed"]),
        137,
    );
    assert_eq!(number(&seen, "processes"), 2);
    for function in ["at_hot", "at_cold"] {
        assert_eq!(number(place(&seen, function), "acquisitions"), 1);
    }
    let pids = |function| place(&seen, function)["locks"][0][0].clone();
    assert_ne!(pids("at_hot"), pids("at_cold"));
}

#[test]
fn waits_that_the_end_of_the_program_cuts_short_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    for (how, status) in [("exits", 3), ("ended", 143)] {
        let seen = json(profile(&["--json", program, how]), status);
        let hot = place(&seen, "at_hot");
        let counts = ["acquisitions", "still_waiting"].map(|name| number(hot, name));
        assert_eq!(counts, [0, 1], "{how}");
        let wall = (seen["wall_s"].as_f64().expect("a time") * 1e9) as u64;
        let waited = number(hot, "waited_ns");
        assert!((50_000_000..wall).contains(&waited), "{how}: {waited}");
        assert_eq!(
            seen["signal"].as_str(),
            (status == 143).then_some("SIGTERM")
        );
        assert_eq!(seen["deadlock"].as_array().expect("rows").len(), 0);
        assert_eq!(seen["advice"]["rule"], "still_waiting");
        assert_eq!(seen["try_it"], Value::Null);
    }
    let output = profile(&[program, "ended"]).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(
        said.contains("Still waiting at the end: 1 thread at at_hot test.c:")
            && said
                .replace('\n', " ")
                .contains("held since end_waiting test.c:"),
        "{said}"
    );
}

#[test]
fn a_deadlock_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "deadlock"]), 3);
    let circle = seen["deadlock"].as_array().expect("rows");
    let row = |row: &Value| ["thread", "held_by"].map(|key| number(row, key)).to_vec();
    let threads: Vec<Vec<u64>> = circle.iter().map(row).collect();
    assert_eq!(threads, [[1, 2], [2, 1]]);
    let mut waited_for: Vec<&str> = circle
        .iter()
        .filter_map(|row| row["waits_for"].as_str())
        .collect();
    waited_for.sort_unstable();
    assert_eq!(waited_for, ["cold", "hot"]);
    assert_eq!(seen["advice"]["rule"], "deadlock");
    assert_eq!(seen["try_it"], Value::Null);
    for row in circle {
        let place = row["held_since"].as_str().expect("a place");
        assert!(place.starts_with("take_crosswise test.c:"), "{place}");
    }
    let output = profile(&[program, "deadlock"]).output().expect("it runs");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(
        said.contains("Deadlock: thread 1 waits at take_crosswise"),
        "{said}"
    );
    assert!(said.contains("in the same order everywhere"), "{said}");
}

/// The first row of a table in the report where these words are the name of a function or a variable.
fn rwlock<'a>(profile: &'a Value, table: &str, name: &str) -> &'a Value {
    let rows = profile[table].as_array().expect("rows");
    let is_named = |row: &&Value| row["variable"] == name || row["places"][0]["function"] == name;
    let row = rows.iter().find(is_named);
    row.unwrap_or_else(|| panic!("no {name} in {profile:#}"))
}

/// How often readers and writers acquired an rwlock, and how often each had to wait.
fn by_mode(row: &Value) -> [[u64; 2]; 2] {
    ["reads", "writes"]
        .map(|mode| ["acquisitions", "contended"].map(|name| number(&row[mode], name)))
}

#[test]
fn rwlocks_are_told_apart_with_reads_and_writes() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "rwlocks"]), 3);
    assert_eq!(seen["mutexes"].as_array().map(Vec::len), Some(0));
    assert_eq!(seen["rwlocks"].as_array().map(Vec::len), Some(2));
    let table = &seen["rwlocks"][0];
    assert_eq!(table["variable"], "table");
    assert_eq!(by_mode(table), [[2, 0], [1, 1]]);
    assert_eq!(number(table, "threads"), 2);
    assert!(number(&table["writes"], "waited_ns") >= 20_000_000);
    assert_eq!(number(&table["reads"], "waited_ns"), 0);
    assert!(number(&table["reads"], "held_ns") >= 40_000_000);
    assert!(number(&table["writes"], "held_ns") < 20_000_000);
    let rare = rwlock(&seen, "rwlocks", "rare");
    assert_eq!(by_mode(rare), [[0, 0], [3, 0]]);
    assert_eq!(from(rare), [2, 0, 0]);

    assert_eq!(seen["rwlock_places"].as_array().map(Vec::len), Some(4));
    let hottest = &seen["rwlock_places"][0];
    let line = PROGRAM.lines().position(|line| line.contains("write line"));
    let line = format!("test.c:{}", line.expect("a line") + 1);
    assert_eq!(hottest["places"][0]["function"], "write_later");
    assert_eq!(hottest["places"][0]["line"], line);
    assert_eq!(by_mode(hottest), [[0, 0], [1, 1]]);
    let read = rwlock(&seen, "rwlock_places", "use_rwlocks");
    assert_eq!(by_mode(read), [[1, 0], [0, 0]]);

    let output = profile(&[program, "rwlocks"]).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(said.contains("locked 2 rwlocks at 4 places"), "{said}");
    let line = |name: &str, mode| {
        let mut lines = said.lines().filter(|line| line.contains(name));
        lines.find(|line| line.split_whitespace().any(|word| word == mode))
    };
    assert!(line("table, write_later", "read").is_some_and(|line| line.contains("0.0 %")));
    assert!(line("table, write_later", "write").is_some_and(|line| line.contains("100.0 %")));
    assert!(line("rare, at_rare", "read").is_none(), "{said}");
}

#[test]
fn readers_that_race_are_all_counted_and_get_advice() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "read much"]), 3);
    let table = &seen["rwlocks"][0];
    assert_eq!(by_mode(table), [[400_000, 0], [0, 0]]);
    assert_eq!(number(table, "threads"), 4);
    let places = seen["rwlock_places"].as_array().expect("rows").iter();
    let places: Vec<_> = places
        .map(|row| (row["places"][0]["function"].as_str(), by_mode(row)[0][0]))
        .collect();
    let both = [(Some("read_much"), 360_000), (Some("read_much"), 40_000)];
    assert_eq!(places, both);
    assert_eq!(number(&seen, "lost"), 0);
    assert_eq!(seen["advice"]["rule"], "readers");
    let advice = seen["advice"]["text"].as_str().expect("words");
    assert!(advice.contains("100 % of its acquisitions"), "{advice}");
    let command = format!("lockworks run --lock mutex -- {program} 'read much'");
    assert_eq!(seen["try_it"], command);
}

#[test]
fn waits_for_rwlocks_that_the_end_cuts_short_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "end reading"]), 3);
    let table = &seen["rwlocks"][0];
    assert_eq!(by_mode(table), [[1, 0], [0, 0]]);
    assert_eq!(number(&table["writes"], "still_waiting"), 1);
    assert!(number(&table["writes"], "still_waiting_ns") >= 50_000_000);
    let output = profile(&[program, "end reading"])
        .output()
        .expect("it runs");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(
        said.contains("Still waiting at the end: 1 thread at at_write test.c:"),
        "{said}"
    );
}

#[test]
fn a_deadlock_of_a_writer_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "deadlocked writer"]), 3);
    let circle = seen["deadlock"].as_array().expect("rows").iter();
    let mut waited_for: Vec<&str> = circle.filter_map(|row| row["waits_for"].as_str()).collect();
    waited_for.sort_unstable();
    assert_eq!(waited_for, ["hot", "table"]);
}

#[test]
fn the_child_of_a_fork_counts_its_own_rwlocks() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "fork reading"]), 3);
    let rows = seen["rwlocks"].as_array().expect("rows");
    let of_child = |row: &&Value| by_mode(row) == [[0, 0], [1, 0]];
    let of_parent = |row: &&Value| by_mode(row) == [[1, 0], [0, 0]];
    let held = |is_wanted: &dyn Fn(&&Value) -> bool| {
        let mut rows = rows.iter().filter(is_wanted);
        number(rows.next().expect("a row"), "held_ns")
    };
    assert_eq!(rows.len(), 2);
    assert!(held(&of_parent) >= 50_000_000);
    assert!(held(&of_child) < 50_000_000, "it has released nothing else");
}

#[test]
fn rwlocks_that_processes_share_are_left_to_glibc() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "shared rwlock"]), 3);
    assert_eq!(seen["rwlocks"][0]["left_to_glibc"], "process-shared");
    let output = profile(&[program, "shared rwlock"])
        .output()
        .expect("it runs");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(
        said.contains("leaves 1 process-shared rwlock to glibc, locked once:"),
        "{said}"
    );
}

#[test]
fn no_lock_is_advised_for_a_mutex_that_is_left_to_glibc() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    let seen = json(profile(&["--json", program, "shared"]), 3);
    assert_eq!(seen["mutexes"][0]["left_to_glibc"], "process-shared");
    assert_eq!(seen["advice"]["rule"], "left_to_glibc");
    assert_eq!(seen["try_it"], Value::Null);
    let output = profile(&[program, "shared"]).output().expect("it runs");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(
        said.contains("leaves 1 process-shared mutex to glibc, locked 800 times"),
        "{said}"
    );
}

/// Runs a tool of the binutils on files of this directory.
fn tool(directory: &Path, words: &str) {
    let mut words = words.split(' ');
    let mut tool = Command::new(words.next().expect("a tool"));
    let status = tool.args(words).current_dir(directory).status();
    assert!(status.expect("binutils").success());
}

#[test]
fn stripped_programs_are_read_with_the_symbols_beside_them() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &[]);
    let program = program.to_str().unwrap();
    tool(
        directory.path(),
        "objcopy --only-keep-debug test test.debug",
    );
    tool(directory.path(), "strip test");
    tool(
        directory.path(),
        "objcopy --add-gnu-debuglink=test.debug test",
    );
    let output = profile(&[program, "race"]).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(said.contains("at_hot test.c:"), "{said}");
    assert!(said.contains(" hot, at_hot"), "{said}");
    assert!(!said.contains("No symbols"), "{said}");
    fs::remove_file(directory.path().join("test.debug")).expect("a file");
    let output = profile(&[program, "race"]).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(!said.contains("at_hot"), "{said}");
    assert!(said.contains("No symbols: test."), "{said}");
}

#[test]
fn places_without_debug_information_are_shown_as_offsets() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &["-s"]);
    let output = profile(&[program.to_str().unwrap(), "hot"])
        .output()
        .unwrap();
    assert!(
        text(&output.stdout).contains(" test+0x"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn programs_that_cannot_be_measured_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &["-static"]);
    for (args, status, words) in [
        (&["no-such-program"][..], 127, "'no-such-program' not found"),
        (
            &[program.to_str().unwrap(), "hot"],
            126,
            "linked statically",
        ),
        (
            &["-o", "/nowhere/file", "true"],
            2,
            "cannot write /nowhere/file",
        ),
        (&["--top", "0", "true"], 2, "--top"),
    ] {
        let output = profile(args).output().expect("the command runs");
        assert_fails(&output, status, &[words]);
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
}

#[test]
fn programs_without_mutexes_are_said_to_have_none() {
    let output = profile(&["true"]).output().expect("it runs");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(said.contains("locked no pthread mutex and no rwlock, so no lock of Lockworks would"));
    assert!(!said.contains("Hardly contended"), "{said}");
    // The command itself is a Rust program.
    let lockworks = env!("CARGO_BIN_EXE_lockworks");
    let output = profile(&[lockworks, "--version"])
        .output()
        .expect("it runs");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(
        said.contains("it uses the mutexes of Rust's standard library"),
        "{said}"
    );
}

#[test]
fn what_the_program_prints_is_not_in_the_json() {
    let output = profile(&["--json", "echo", "said"]).output();
    let output = output.expect("it runs");
    assert_eq!(text(&output.stderr), "said\n");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["command"][0], "echo");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path");
    let output = profile(&["--json", "-o", path, "echo", "said"]).output();
    assert_eq!(text(&output.expect("it runs").stdout), "said\n");
}

/// Records say what a program does, so that no other user may read them.
#[test]
fn records_are_private() {
    const SHOW: &str =
        "umask 0; sh -c 'stat -c %a \"$LOCKWORKS_PROFILE\" \"$LOCKWORKS_PROFILE\"/*' | sort -u >&2";
    let output = support::output(&["profile", "--", "sh", "-c", SHOW]);
    let modes: Vec<_> = text(&output.stderr)
        .lines()
        .filter(|line| line.chars().all(|c| c.is_ascii_digit()))
        .collect();
    assert_eq!(modes, ["600", "700"], "{}", text(&output.stderr));
}
