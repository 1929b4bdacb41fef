//! `lockworks plan` chooses locks for hot mutexes, and writes a plan only if the program is better with it.

use std::fs;
use std::process::Command;

use crate::support::{assert_fails, json, output};

/// A program whose threads compute with a mutex, and that prints how often in a second.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static long count;
static void spin(long n) { for (volatile long i = 0; i < n; i++) { } }
static void *run(void *arg)
{
	while (!over) {
		pthread_mutex_lock(&hot);
		count++;
		spin(2000);
		pthread_mutex_unlock(&hot);
		spin(4000);
	}
	pthread_mutex_lock(&cold);
	pthread_mutex_unlock(&cold);
	return arg;
}
int main(void)
{
	const struct timespec pause = {0, 100000000};
	pthread_t thread[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	nanosleep(&pause, NULL);
	over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("%ld turns\\n", count);
	return 0;
}
"#;

#[test]
fn a_plan_is_written_only_if_the_program_is_better_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (directory.path().join("p.c"), directory.path().join("p"));
    fs::write(&source, PROGRAM).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-O1", "-Wl,--build-id", "-o"]);
    compiler.args([&program, &source]);
    assert!(compiler.status().expect("a C compiler").success());
    let plan = directory.path().join("p.plan");
    let [program, path] = [&program, &plan].map(|path| path.to_str().expect("a path"));
    // Whatever this machine does meanwhile, the end agrees with what was compared.
    let metric = "([0-9]+) turns";
    let planning = [
        "plan", "--anyway", "--json", "--rounds", "7", "--metric", metric, "-o", path, "--",
        program,
    ];
    let ran = output(&planning);
    assert!(ran.status.success(), "{ran:?}");
    let results = json(&ran);
    let lines = results["choices"]["lines"].as_array().expect("choices");
    assert!(
        lines.iter().all(|line| line["comment"] != "cold"),
        "{lines:?}"
    );
    let is_better = results["compared"]["best"] == "plan";
    assert_eq!(plan.exists(), is_better, "{results}");
    assert_eq!(results["written"].is_string(), is_better);
    if is_better {
        let text = fs::read_to_string(&plan).expect("a plan");
        assert!(text.contains("# hot"), "{text}");
        let ran = output(&["run", "--plan", path, "--", program]);
        assert!(ran.status.success(), "{ran:?}");
    }
}

#[test]
fn a_program_that_fails_or_has_no_locks_has_no_plan() {
    // What only the comparison needs is refused before the program runs, in one line.
    let ran = output(&["plan", "--rounds", "x", "--", "/nonexistent"]);
    assert_fails(&ran, 2, &["invalid value 'x' for '--rounds <N>'"]);
    assert_fails(&output(&["plan", "--", "true"]), 2, &["nothing is written"]);
    assert_fails(
        &output(&["plan", "--", "/nonexistent"]),
        127,
        &["nonexistent"],
    );
}

#[test]
fn a_page_about_a_program_without_locks_has_no_prediction_and_is_no_failure() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("p.html");
    let path = page.to_str().expect("a path");
    let ran = output(&["report", "-o", path, "--", "true"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("No plan") && page.contains("No replay"));
}
