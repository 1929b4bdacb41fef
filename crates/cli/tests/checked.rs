//! `lockworks check` from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{self, text};
use serde_json::Value;

fn output(args: &[&str]) -> Output {
    support::output(&[&["check"], args].concat())
}

/// Runs a command that must end with this status; returns its output.
#[track_caller]
fn json(args: &[&str], status: i32) -> Value {
    let output = output(&[args, &["--json"]].concat());
    assert_eq!(
        output.status.code(),
        Some(status),
        "{}",
        text(&output.stderr)
    );
    support::json(&output)
}

#[track_caller]
fn assert_refused(args: &[&str], words: &[&str]) {
    support::assert_refused(&output(args), words);
}

#[test]
fn readers_are_checked_where_there_are_any() {
    let three = [
        "--lock",
        "rwlock",
        "--threads",
        "3",
        "--acquisitions",
        "1",
        "--never-park",
    ];
    let found = json(&three, 0);
    assert_eq!(found["readers"], 2);
    assert_eq!(found["complete"], true);
    assert_refused(
        &["--lock", "mutex", "--readers", "1"],
        &["'mutex' has no readers", "ask for 0"],
    );
    assert_refused(
        &["--lock", "rwlock", "--readers", "3"],
        &["3 readers of 2 threads", "0 to 2"],
    );
}

#[test]
fn json_has_it_all() {
    let cna = json(
        &[
            "--lock",
            "cna",
            "--threads",
            "3",
            "--acquisitions",
            "1",
            "--nodes",
            "2",
        ],
        0,
    );
    assert_eq!(cna["lock"], "cna");
    assert_eq!(cna["threads"], 3);
    assert_eq!(cna["acquisitions"], 1);
    assert_eq!(cna["memory"], "c11");
    assert_eq!(cna["nodes"], 2);
    assert_eq!(cna["complete"], true);
    assert_eq!(cna["violations"], 0);
    assert_eq!(cna["cut"], false);
    for key in ["states", "transitions", "depth", "memory_bytes"] {
        assert!(cna[key].as_u64() > Some(0), "{key}");
    }
    assert!(cna["seconds"].is_f64());
    for key in ["staleness", "limit", "violation", "token", "shortest"] {
        assert_eq!(cna.get(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(cna["trace"], serde_json::json!([]));
    let uncovered = cna["uncovered"].as_array().unwrap();
    let of = |file: &str| uncovered.iter().any(|site| site["file"] == file);
    assert!(!of("client.c") && !of("mcs.h"), "{uncovered:?}");
    assert!(of("cna.c"), "{uncovered:?}");

    let tas = json(&["--lock", "tas"], 0);
    assert_eq!(tas["uncovered"][0]["function"], "lw_tas_trylock");
    let tas = json(&["--lock", "tas", "--trylock"], 0);
    assert_eq!(tas["uncovered"], serde_json::json!([]));
}

/// All good locks are checked where none is named, and keep their promises.
#[track_caller]
fn assert_all_keep_their_promises(more: &[&str]) {
    let all = json(&[&["--acquisitions", "1"], more].concat(), 0);
    let all = all.as_array().unwrap();
    assert!(all.iter().all(|check| check["complete"] == true));
    let names: Vec<&str> = all.iter().map(|c| c["lock"].as_str().unwrap()).collect();
    assert!(names.contains(&"cna") && !names.contains(&"busted"));
}

#[test]
fn all_good_locks_keep_their_promises() {
    assert_all_keep_their_promises(&["--memory", "sc"]);
}

#[test]
#[ignore = "wide"]
fn all_good_locks_keep_their_promises_with_trylocks_and_interruptions() {
    for more in [&["--trylock"][..], &["--nesting", "1"]] {
        assert_all_keep_their_promises(more);
    }
}

#[test]
fn lockrefs_are_no_pair_of_locks() {
    let names = |locks: &str| -> Vec<String> {
        let all = json(&["--acquisitions", "1", "--locks", locks], 0);
        let name = |check: &Value| check["lock"].as_str().unwrap().to_owned();
        all.as_array().unwrap().iter().map(name).collect()
    };
    let is_alone = |name: &String| name.starts_with("lockref-") || name == "cond";
    let (mut one, two) = (names("1"), names("2"));
    assert!(one.iter().any(is_alone));
    one.retain(|name| !is_alone(name));
    assert_eq!(two, one);
}

#[test]
fn a_broken_lock_is_shown_to_be() {
    let found = json(&["--lock", "busted", "--threads", "2"], 1);
    assert_eq!(found["violations"], 1);
    assert_eq!(found["complete"], false);
    assert_eq!(found["shortest"], true);
    assert_eq!(found["violation"]["name"], "mutual_exclusion");
    let trace = found["trace"].as_array().unwrap();
    assert_eq!(trace.len(), 2);
    assert!(trace[0]["place"].as_str().unwrap().starts_with("busted.c:"));

    let token = found["token"].as_str().unwrap();
    let again = json(&["--replay", token], 1);
    for key in ["lock", "threads", "violation", "trace", "token", "shortest"] {
        assert_eq!(again[key], found[key], "{key}");
    }

    let shown = output(&["--lock", "busted", "--threads", "2"]);
    assert_eq!(shown.status.code(), Some(1));
    let replayed = output(&["--replay", token]);
    assert_eq!(replayed.status.code(), Some(1));
    assert_eq!(text(&shown.stdout), text(&replayed.stdout));
    for words in ["VIOLATION: mutual exclusion", "lw_busted_lock", token] {
        assert!(text(&shown.stdout).contains(words), "{words}");
    }
}

#[test]
fn one_broken_lock_among_others_counts() {
    let all = json(&["--lock", "tas,busted"], 1);
    assert_eq!(all[0]["violations"], 0);
    assert_eq!(all[1]["violations"], 1);
}

#[test]
fn limits_end_a_check() {
    let large = ["--lock", "cna", "--threads", "4", "--nodes", "2"];
    for (limit, why) in [
        (&["--seconds", "0.000001"][..], "the time limit is reached"),
        (
            &["--memory-limit", "0", "--disk-limit", "0"],
            "the memory limit is reached",
        ),
        (
            &["--memory-limit", "0", "--disk-limit", "1"],
            "the disk limit is reached",
        ),
    ] {
        let check = json(&[&large[..], limit].concat(), 3);
        assert_eq!(check["complete"], false);
        assert_eq!(check["violations"], 0);
        assert_eq!(check["limit"], why);
        let shown = output(&[&large[..], limit].concat());
        assert_eq!(shown.status.code(), Some(3));
        let shown = text(&shown.stdout);
        assert!(shown.contains(&format!("not complete: {why}")), "{shown}");
    }
}

/// The configurations of a lock's file, so that a change to a lock is tried out in seconds.
#[test]
fn a_quick_check_runs_the_configurations_of_the_lock() {
    let checks = json(&["--quick", "--lock", "cna,busted"], 1);
    let checks = checks.as_array().unwrap();
    let of = |lock: &'static str| checks.iter().filter(move |check| check["lock"] == lock);
    let is = |key: &str, value: Value| of("cna").any(|check| check[key] == value);
    assert!(is("threads", 3.into()) && is("memory", "sc".into()) && is("nesting", 1.into()));
    for check in of("cna") {
        assert_eq!(check["violations"], 0, "{check}");
        let limit = check["limit"].as_str();
        assert!(
            limit.is_none_or(|limit| limit.contains("limit of states")),
            "{check}"
        );
    }
    // A broken lock has no file, so that the usual configurations are run.
    assert!(of("busted").count() > 2);
    assert!(of("busted").all(|check| check["violations"] == 1));

    // A check that ends at the limit of states is no failure.
    let mutex37 = json(&["--quick", "--lock", "mutex37"], 0);
    let is_cut = |check: &Value| check["complete"] == false;
    assert!(mutex37.as_array().unwrap().iter().any(is_cut));

    let shown = output(&["--quick", "--lock", "tas"]);
    let shown = text(&shown.stdout);
    let is_kept = |line: &str| line.starts_with("tas ") && line.contains("complete, no violation");
    assert!(shown.lines().all(is_kept), "{shown}");
}

#[test]
fn a_staleness_bound_is_said_where_it_cut() {
    let check = json(&["--lock", "tas", "--staleness", "0"], 0);
    assert_eq!(check["staleness"], 0);
    assert_eq!(check["cut"], true);
    let shown = output(&["--lock", "tas", "--staleness", "0"]);
    assert!(text(&shown.stdout).contains("complete within staleness 0, no violation"));
    assert_eq!(
        json(&["--lock", "tas", "--staleness", "200"], 0)["cut"],
        false
    );
}

/// Dekker's lock, whose store may come after the test of the other flag, with loads between the two.
fn dekker(loads: usize) -> String {
    let loads = "(void)atomic_load_explicit(&l->pad, memory_order_acquire);\n".repeat(loads);
    format!(
        "#include <stdatomic.h>
         struct dek {{ atomic_int flag[2]; atomic_int pad; }};
         void dek_lock(struct dek *l, int me) {{
             for (;;) {{
                 atomic_store_explicit(&l->flag[me], 1, memory_order_release);
                 {loads}
                 if (!atomic_load_explicit(&l->flag[1 - me], memory_order_acquire))
                     return;
                 atomic_store_explicit(&l->flag[me], 0, memory_order_release);
             }}
         }}
         void dek_unlock(struct dek *l, int me) {{
             atomic_store_explicit(&l->flag[me], 0, memory_order_release);
         }}"
    )
}

#[test]
fn a_bound_on_delayed_operations_is_said_where_it_cut() {
    let options = ["--memory", "tso", "--acquisitions", "1"];
    check_file("dekker.c", &dekker(0), &options, 1);
    let (check, _) = check_file("dekker.c", &dekker(7), &options, 0);
    assert_eq!(check["delays_cut"], true);
    let directory = tempfile::tempdir().unwrap();
    let path = source(directory.path(), "dekker", &dekker(7));
    let shown = output(&[&[path.as_str()], &options[..]].concat());
    let shown = text(&shown.stdout);
    let within = "complete within 6 delayed operations, no violation";
    assert!(shown.contains(within), "{shown}");
}

#[test]
fn options_are_what_is_checked() {
    let args = [
        "--lock",
        "cna",
        "--acquisitions",
        "1",
        "--numa",
        "off",
        "--no-shuffle-reduction",
        "--time",
        "late",
        "--priority",
        "0,1",
    ];
    let check = json(&args, 0);
    assert_eq!(check["tunables"]["numa_aware"], false);
    assert_eq!(check["tunables"]["shuffle_reduction"], false);
    assert_eq!(check["time"], "late");
    assert_eq!(check["priority"], serde_json::json!([0, 1]));
}

#[test]
fn an_hq_spinlock_says_what_happened() {
    let args = [
        "--lock",
        "hq",
        "--locks",
        "2",
        "--mode",
        "plain",
        "--tune",
        "hqlock_fairness_threshold=0",
    ];
    let check = json(&args, 0);
    assert_eq!(check["locks"], 2);
    assert_eq!(check["mode"], "plain");
    assert_eq!(check["tunables"]["by_name"]["hqlock_fairness_threshold"], 0);
    let events = check["events"].as_array().unwrap();
    let pending = events.iter().find(|e| e["name"] == "pending_acquisitions");
    assert_eq!(pending.map(|e| &e["empty"]), Some(&Value::Bool(true)));
    assert!(events.iter().all(|e| e["name"] != "node_queues_taken"));
    let numa = json(&["--lock", "hq"], 0);
    let taken = numa["events"].as_array().unwrap();
    let taken = taken.iter().find(|e| e["name"] == "node_queues_taken");
    assert_eq!(taken.map(|e| &e["queued"]), Some(&Value::Bool(true)));
    let shown = output(&args);
    let shown = text(&shown.stdout);
    assert!(shown.contains("hq 2x2 c11, 2 locks, 2 nodes"), "{shown}");
    assert!(shown.contains("happened: pending_acquisitions"), "{shown}");
}

/// The orders of Linux do not suffice in C11, so that a queue is seen. A page has the steps in rows, the
/// threads in columns, and the queue as a picture.
#[test]
fn a_broken_promise_is_written_as_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.html");
    let args = [
        "--variant",
        "linux-qspinlock",
        "--trace",
        path.to_str().unwrap(),
    ];
    let check = json(&args, 1);
    let steps = check["trace"].as_array().unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(page.matches("<td class=\"step\">").count(), steps.len());
    assert!(
        page.contains("<th>thread 0</th><th>thread 1</th>"),
        "{page}"
    );
    assert!(
        page.contains("<svg") && page.contains("aria-label=\"t0; t1\""),
        "{page}"
    );
    assert!(page.contains("lockworks check --replay "), "{page}");
    assert_refused(
        &["--lock", "busted", "--trace", "run.txt"],
        &["run.txt", ".html", ".pftrace"],
    );
    assert_refused(
        &["--variant", "nobody"],
        &["nobody", "linux-cna13, linux-qspinlock"],
    );
}

/// The example is complete; a relaxed acquire in it is found, and the run is repeated from its token.
#[test]
fn a_lock_in_a_source_is_compiled_and_checked() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/check/mylock.c");
    let check = json(&["--source", example], 0);
    assert_eq!(check["lock"], "mylock");
    assert_eq!(check["complete"], true);

    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, from: &str, to: &str| {
        let source = fs::read_to_string(example).unwrap();
        assert!(source.contains(from), "{from}");
        let path = directory.path().join(format!("{name}.c"));
        fs::write(&path, source.replace(from, to).replace("mylock", name)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let broken = write("unordered", "mine, acquire", "mine, relaxed");
    let found = json(&["--source", &broken], 1);
    assert_eq!(found["violation"]["name"], "data_race");
    let token = found["token"].as_str().unwrap();
    let again = json(&["--source", &broken, "--replay", token], 1);
    assert_eq!(again["trace"], found["trace"]);
    assert_refused(&["--replay", token], &["cannot replay"]);

    let refused = output(&[
        "--source",
        &write("misspelt", "lw_fetch_add", "lw_fetch_ad"),
    ]);
    let lines = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        lines.contains("misspelt.c:16:") && !lines.contains("prelude"),
        "{lines}"
    );
    let nameless = write(
        "nameless",
        "LW_DESCRIBE(mylock, struct lw_mylock",
        "LW_DESCRIBE_OPS(other, int, , true, ",
    );
    // Behind the compiler's warnings about functions that nothing calls.
    let refused = output(&["--source", &nameless]);
    support::assert_fails(&refused, 2, &["describes no lock 'nameless'"]);
    assert_refused(&["--source", "/none.c"], &["cannot read '/none.c'"]);
    let rust = directory.path().join("lock.rs").display().to_string();
    fs::write(&rust, "pub struct Lock;\n").unwrap();
    assert_refused(
        &["--source", &rust],
        &["lock.rs' is in Rust; only C and C++"],
    );
}

/// It is compiled with the headers of the checkout, and takes the place of the built one.
#[test]
fn a_lock_of_a_checkout_is_checked_without_a_build() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = tempfile::tempdir().unwrap();
    for part in ["locks", "worlds/check"] {
        let to = copy.path().join(part);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let copied = Command::new("cp")
            .arg("-R")
            .arg(root.join(part))
            .arg(&to)
            .status();
        assert!(copied.unwrap().success());
    }
    let source = copy.path().join("locks/ticket.c").display().to_string();
    let found = json(&["--source", &source, "--trylock"], 0);
    assert_eq!(
        (&found["lock"], &found["complete"]),
        (&"ticket".into(), &true.into())
    );

    assert_eq!(
        found["uncovered"].as_array().map(Vec::len),
        Some(0),
        "{found}"
    );
    let mutants = json(&["mutants", "--source", &source], 0);
    assert!(mutants["caught"].as_u64() >= Some(8), "{mutants}");

    let header = copy.path().join("locks/ticket.h");
    let text = fs::read_to_string(&header).unwrap();
    assert!(text.contains("1), release"), "{text}");
    fs::write(&header, text.replace("1), release", "1), relaxed")).unwrap();
    let found = json(&["--source", &source], 1);
    assert_eq!(found["lock"], "ticket");

    // Beside a file, without a checkout around it.
    let beside = tempfile::tempdir().unwrap();
    let file = beside.path().join("ticket.c");
    fs::copy(&source, &file).unwrap();
    fs::copy(&header, beside.path().join("ticket.h")).unwrap();
    let found = json(&["--source", file.to_str().unwrap()], 1);
    assert_eq!(found["violation"]["name"], "data_race");
    let parts = beside.path().join("parts");
    fs::create_dir(&parts).unwrap();
    fs::write(parts.join("lock_word.h"), "").unwrap();
    assert_refused(
        &["--source", file.to_str().unwrap()],
        &["lock_word.h' is not as it was"],
    );

    let rwlock = copy.path().join("locks/rwlock.c").display().to_string();
    assert_refused(&["--source", &rwlock], &["give --lock rwlock"]);
    let layout = copy.path().join("locks/parts/queue_node.h");
    let text = fs::read_to_string(&layout).unwrap();
    fs::write(&layout, text + "/* changed */\n").unwrap();
    assert_refused(&["--source", &source], &["queue_node.h' is not as it was"]);
}

/// Writes a lock of this name and body to a directory.
fn source(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(format!("{name}.c"));
    fs::write(&path, text.replace("NAME", name)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A lock whose functions do nothing, with the traits and members that tell tools how to use it.
const EMPTY: &str = r#"#include "lock_type.h"
#include "surroundings.h"
struct lw_NAME { lw_atomic(uint32_t) word; };
static inline bool limited(void *lock, const struct lw_wait_limit *limit) { return lock && limit; }
static inline void read(void *lock) { (void)lock; }
static inline bool try_read(void *lock) { return lock; }
LW_DESCRIBE_OPS(NAME, struct lw_NAME, (void)lock, true, (void)lock, .summary = "", .origin = "",
"#;

#[test]
fn an_empty_lock_is_found_out_whatever_its_type_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let header = fs::read_to_string(root.join("locks/registry/lock_type.h")).unwrap();
    let (_, traits) = header.split_once("enum lw_lock_trait {").unwrap();
    let (traits, _) = traits.split_once("};").unwrap();
    let traits = traits.lines().filter_map(|line| {
        let (name, _) = line.trim().split_once(" = ")?;
        name.starts_with("LW_").then_some(name)
    });
    let directory = tempfile::tempdir().unwrap();
    let mut made = 0;
    for traits in traits {
        let text = format!("{EMPTY}.traits = {traits});");
        let path = source(directory.path(), &traits.to_lowercase(), &text);
        match traits {
            "LW_RESILIENT" => {
                let refused = output(&["--source", &path]);
                support::assert_fails(&refused, 2, &["lw_lw_resilient_acquire, which it does not"]);
                let text = format!(
                    "{EMPTY}.traits = LW_RESILIENT);\nint lw_NAME_acquire(struct lw_NAME *lock) {{ return !lock; }}"
                );
                let path = source(directory.path(), "resilient", &text);
                let found = json(&["--source", &path], 1);
                let name = found["violation"]["name"].as_str().unwrap();
                assert!(["mutual_exclusion", "promise"].contains(&name), "{found}");
            }
            _ => {
                let found = json(&["--source", &path], 1);
                assert_eq!(found["violation"]["name"], "mutual_exclusion", "{traits}");
            }
        }
        made += 1;
    }
    assert!(made > 8, "{made}");

    let readers = ".read_lock = read, .read_trylock = try_read, .read_unlock = read";
    let limits = ".lock_limited = limited";
    let text = format!("{EMPTY}{readers}, {limits}, .read_lock_limited = limited);");
    let path = source(directory.path(), "readers", &text);
    for options in [&[][..], &["--readers", "0"], &["--trylock"], &["--cancel"]] {
        let found = json(&[&["--source", &path], options].concat(), 1);
        assert_eq!(
            found["violation"]["name"], "mutual_exclusion",
            "{options:?}"
        );
        let uncovered = found["uncovered"].as_array().unwrap();
        assert!(uncovered.is_empty(), "{found}");
    }
    let readers_only = json(&["--source", &path, "--readers", "2"], 0);
    assert_eq!(readers_only["complete"], true);
}

/// A lock may have any size, and no memory behind it.
#[test]
fn a_lock_in_a_source_has_the_memory_of_its_size() {
    let directory = tempfile::tempdir().unwrap();
    let with = |name: &str, last: usize, size: usize| {
        let text = format!(
            r#"#include "lock_type.h"
struct lw_NAME {{ lw_atomic(uint32_t) words[{size}]; }};
static bool lw_NAME_trylock(struct lw_NAME *lock)
{{
	return !lw_xchg(&lock->words[{last}], 1, acquire);
}}
static void lw_NAME_lock(struct lw_NAME *lock)
{{
	while (!lw_NAME_trylock(lock))
		lw_await_eq(&lock->words[{last}], ~0u, 0, relaxed);
}}
static void lw_NAME_unlock(struct lw_NAME *lock)
{{
	lw_store(&lock->words[{last}], 0, release);
}}
LW_DESCRIBE(NAME, struct lw_NAME, .summary = "", .traits = LW_SPINS, .origin = "");
"#
        );
        source(directory.path(), name, &text)
    };
    let beyond = json(&["--source", &with("beyond", 2, 2)], 1);
    assert_eq!(beyond["violation"]["name"], "no_memory");
    let text = beyond["violation"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("lock->words[2] (beyond.c:5)"), "{beyond}");
    let large = with("large", 144, 145);
    for options in [["--nesting", "1"], ["--locks", "2"]] {
        let found = json(&[&["--source", &large][..], &options].concat(), 0);
        assert_eq!(found["complete"], true, "{options:?}");
    }
    assert_refused(
        &["--source", &with("huge", 5000, 5001)],
        &["'huge' is 20004 bytes", "up to 16384"],
    );
}

/// Lock code that gets a signal, or goes on without an operation, is named in one line.
#[test]
fn lock_code_that_does_not_come_back_ends_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let with = |name: &str, lock: &str, unlock: &str| {
        let text = format!(
            r#"#include <stdatomic.h>
#include <stdlib.h>
#include "lock_type.h"
struct lw_NAME {{ lw_atomic(uint32_t) word; atomic_uint other; }};
LW_DESCRIBE_OPS(NAME, struct lw_NAME, {lock}, true, {unlock}, .summary = "", .origin = "");
"#
        );
        source(directory.path(), name, &text)
    };
    let own = "struct lw_NAME *own = lock";
    let exchange = format!("{own}; atomic_exchange(&own->other, 1)");
    for (name, lock, unlock, violation) in [
        (
            "foreign",
            exchange.as_str(),
            "(void)lock",
            "mutual_exclusion",
        ),
        ("aborts", "(void)lock", "abort()", "promise"),
        (
            "null",
            "(void)lock",
            "*(volatile int *)NULL = 1",
            "no_memory",
        ),
    ] {
        let found = json(&["--source", &with(name, lock, unlock)], 1);
        assert_eq!(found["violation"]["name"], violation, "{name}");
    }
    let traps = with("traps", "(void)lock", "__builtin_trap()");
    assert_refused(&["--source", &traps], &["SIGILL"]);
    let far = with("far", "(void)lock", "*(volatile int *)(1ul << 44) = 1");
    assert_refused(
        &["--source", &far],
        &["accesses 0x100000000000, where no memory is"],
    );

    let endless =
        format!("{own}; lw_store(&own->word, 0, release); for (volatile int i = 0;;) (void)i");
    let endless = with("endless", "(void)lock", &endless);
    let ended = output(&["--source", &endless]);
    support::assert_fails(
        &ended,
        3,
        &[
            "after store own->word (endless.c:5, lw_endless_type_unlock)",
            "lw_pause(1)",
        ],
    );
}

/// A lock in C11, as anybody writes one.
const SPIN: &str = r#"#include <stdatomic.h>
#include <stdbool.h>
typedef struct { atomic_int held; long owner; } spin_t;
void spin_lock(spin_t *lock, int me)
{
	while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		;
	lock->owner = me;
}
bool spin_trylock(spin_t *lock)
{
	return !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}
void spin_unlock(spin_t *lock)
{
	lock->owner = -1;
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}
"#;

/// Runs a check of the lock in a file of this name and text, in its directory.
fn check_file(
    name: &str,
    text: &str,
    options: &[&str],
    status: i32,
) -> (serde_json::Value, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), text).unwrap();
    let mut check = support::lockworks(&[&["check", name, "--json"], options].concat());
    let output = check.current_dir(directory.path()).output().unwrap();
    let errors = self::text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    (
        serde_json::from_slice(&output.stdout).unwrap_or_default(),
        errors.to_owned(),
    )
}

#[test]
fn a_lock_in_c_or_cpp_is_checked_as_it_stands() {
    let (checks, _) = check_file("spin.c", SPIN, &[], 0);
    let checks = checks.as_array().unwrap();
    let tried: Vec<_> = checks
        .iter()
        .map(|check| check["trylock"] == true)
        .collect();
    assert_eq!(tried, [false, true]);
    for check in checks {
        assert_eq!(
            (&check["lock"], &check["complete"]),
            (&"spin".into(), &true.into())
        );
    }
    for (from, to, violation) in [
        (
            "0, memory_order_release",
            "0, memory_order_relaxed",
            "data_race",
        ),
        (
            "while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))\n\t\t;",
            "",
            "mutual_exclusion",
        ),
        (
            "\tlock->owner = -1;\n",
            "\t(void)*(volatile long *)&lock->owner;\n",
            "",
        ),
        ("\tlock->owner = me;\n", "\t*(int *)0 = me;\n", "no_memory"),
        (
            "\tlock->owner = me;\n",
            "\tlock[1].owner = me;\n",
            "no_memory",
        ),
        ("return !", "return !!", "mutual_exclusion"),
    ] {
        assert!(SPIN.contains(from), "{from}");
        let status = i32::from(!violation.is_empty());
        let (checks, _) = check_file("spin.c", &SPIN.replace(from, to), &[], status);
        let checks = checks.as_array().unwrap();
        let mut found = checks
            .iter()
            .filter_map(|check| check["violation"]["name"].as_str());
        assert_eq!(found.next_back().unwrap_or_default(), violation, "{from}");
    }
    let builtins = "static int held; static long by;
        void g_lock(void) { while (__sync_lock_test_and_set(&held, 1)) while (*(volatile int *)&held) ; by++; }
        void g_unlock(void) { by--; __sync_lock_release(&held); }";
    let (check, _) = check_file("global.c", builtins, &[], 0);
    assert_eq!(check["complete"], true);
    let (check, _) = check_file(
        "global.c",
        &builtins.replace("by++; }", "} long f(void) { return by; }"),
        &[],
        0,
    );
    assert_eq!(check["complete"], true);
    let outside = builtins.replace("{ while", "{ by++; while");
    let (check, _) = check_file("global.c", &outside, &[], 1);
    assert_eq!(check["violation"]["name"], "data_race");
    let cpp = "#include <atomic>
        class ticket { std::atomic<unsigned> next{0}, owner{0}; public:
        void lock() { auto me = next++; while (owner.load(std::memory_order_acquire) != me) ; }
        void unlock() { owner.store(owner.load() + 1, std::memory_order_release); } };";
    let (check, _) = check_file("ticket.cc", cpp, &[], 0);
    assert_eq!(
        (&check["lock"], &check["complete"]),
        (&"ticket".into(), &true.into())
    );
    let (check, _) = check_file(
        "ticket.cc",
        &cpp.replace("order_release", "order_relaxed"),
        &[],
        1,
    );
    assert_eq!(check["violation"]["name"], "data_race");
}

/// A class template is checked as the instance that the file names.
#[test]
fn an_instance_of_a_class_template_is_checked() {
    let text = "#include <atomic>
        namespace a { template <class T> class spin { std::atomic<T> w{0}; public:
        void lock() { while (w.exchange(1, std::memory_order_acquire)) ; }
        void unlock() { w.store(0, std::memory_order_release); } }; ";
    let (check, _) = check_file(
        "spin.cc",
        &format!("{text} template class spin<int>; }}"),
        &[],
        0,
    );
    assert_eq!(check["complete"], true);
    let weak = text.replace("order_release", "order_relaxed");
    check_file(
        "spin.cc",
        &format!("{weak} typedef spin<int> own; }}"),
        &[],
        1,
    );
    let (_, errors) = check_file("spin.cc", &format!("{text} }}"), &[], 2);
    assert!(
        errors.contains("template class spin<ARGUMENTS>;"),
        "{errors}"
    );
}

/// What `init` takes beside the lock is 0.
#[test]
fn an_init_with_more_parameters_gets_zeros() {
    let init =
        "struct opts { int a; }; void spin_init(spin_t *l, const char *name, int on, struct opts o)
        { atomic_store(&l->held, name || on || o.a); }";
    let (checks, _) = check_file("spin.c", &format!("{SPIN}{init}"), &[], 0);
    assert_eq!(checks.as_array().unwrap().len(), 2);
    let held = init.replace("name ||", "1 ||");
    check_file("spin.c", &format!("{SPIN}{held}"), &[], 1);
}

/// Its writers exclude readers, and each other.
#[test]
fn a_file_with_readers_is_checked_with_writers_alone_too() {
    let text = "#include <stdatomic.h>
        struct rw { atomic_int readers, writers; };
        void rw_read_lock(struct rw *l) { for (;;) { l->readers++; if (!l->writers) return; l->readers--; } }
        void rw_read_unlock(struct rw *l) { l->readers--; }
        void rw_write_lock(struct rw *l) { l->writers++; while (l->readers) ; }
        void rw_write_unlock(struct rw *l) { l->writers--; }";
    let (checks, _) = check_file("rw.c", text, &[], 1);
    let found: Vec<_> = checks
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (&c["readers"], c["violations"] == 1))
        .collect();
    // One reader, none, and two beside one writer.
    assert_eq!(
        found,
        [(&1.into(), false), (&0.into(), true), (&2.into(), false)]
    );
    // A reader that releases for all readers does no harm alone.
    let text = "#include <stdatomic.h>
        struct rw { atomic_int readers, writer; };
        void rw_read_lock(struct rw *l)
        { for (;;) { while (l->writer) ; l->readers++; if (!l->writer) return; l->readers--; } }
        void rw_read_unlock(struct rw *l) { l->readers = 0; }
        void rw_write_lock(struct rw *l) { while (atomic_exchange(&l->writer, 1)) ; while (l->readers) ; }
        void rw_write_unlock(struct rw *l) { l->writer = 0; }";
    let (checks, _) = check_file("rw.c", text, &[], 1);
    let checks = checks.as_array().unwrap().iter();
    let broken: Vec<_> = checks.map(|c| c["violations"] == 1).collect();
    assert_eq!(broken, [false, false, true]);
    // The mistakes that are planted in it are looked for with readers too.
    let sound = text.replace("l->readers = 0", "l->readers--");
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rw.c"), sound).unwrap();
    let mut check = support::lockworks(&["check", "mutants", "--source", "rw.c", "--json"]);
    let output = check.current_dir(directory.path()).output().unwrap();
    let mutants = self::text(&output.stdout);
    assert!(mutants.contains("rw_read_lock"), "{mutants}");
    let semaphore = "struct sem { int n; }; void sem_init(struct sem *s) { s->n = 1; }
        void sem_down(struct sem *s) { for (;;) { int n = __atomic_load_n(&s->n, __ATOMIC_RELAXED);
            if (n && __atomic_compare_exchange_n(&s->n, &n, n - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return; } }
        void sem_up(struct sem *s) { __atomic_fetch_add(&s->n, 1, __ATOMIC_RELEASE); }";
    let (check, _) = check_file("sem.c", semaphore, &[], 0);
    assert_eq!(check["complete"], true);
}

/// A semaphore keeps all of its tokens.
#[test]
fn a_semaphore_that_loses_tokens_is_found() {
    let text = "#include <stdatomic.h>
        typedef struct { atomic_int n; } S;
        void S_init(S *s, int n) { s->n = n; }
        void S_P(S *s) { for (;;) { int n = s->n;
            if (n > 0 && atomic_compare_exchange_strong(&s->n, &n, n - 1)) return; } }
        void S_V(S *s) { s->n++; }";
    assert_eq!(found_in(text, &[]), ["none", "none"]);
    let lost = text.replace("s->n++", "s->n = 1");
    assert_eq!(found_in(&lost, &[]), ["none", "livelock"]);
    let untold = text.replace("s->n = n; }", "s->n = n > 0; }");
    assert_eq!(found_in(&untold, &[]), ["none", "livelock"]);
    // As many threads as tokens would wait for nothing.
    let open = text.replace("n > 0", "n >= 0");
    assert_eq!(
        found_in(&open, &["--tokens", "3", "--acquisitions", "1"]),
        ["tokens"]
    );
    let without = text.replace("void S_init(S *s, int n) { s->n = n; }", "");
    let (_, errors) = check_file("s.c", &without, &[], 2);
    assert!(errors.contains("nothing gives the semaphore"), "{errors}");
    let two = text.replace("int n) { s->n = n; }", "int a, int b) { s->n = a + b; }");
    let (_, errors) = check_file("s.c", &two, &[], 2);
    assert!(
        errors.contains("S_init() of 's.c' has several numbers"),
        "{errors}"
    );
}

/// What a class of its own declares, and one function that releases readers and writers.
#[test]
fn nodes_of_classes_and_common_releases_are_found() {
    let text = "#include <atomic>
        class Mcs {
            struct Node { std::atomic<Node *> next; std::atomic<bool> waits; };
            std::atomic<Node *> tail{nullptr};
        public:
            void lock(Node &me) {
                me.next = nullptr; me.waits = true;
                Node *before = tail.exchange(&me);
                if (before) { before->next = &me; while (me.waits) ; }
            }
            void unlock(Node &me) {
                Node *self = &me;
                if (!me.next && tail.compare_exchange_strong(self, nullptr)) return;
                while (!me.next) ;
                me.next.load()->waits = false;
            }
        };";
    let public = text.replace("class Mcs {", "class Mcs { public:");
    let (check, _) = check_file("mcs.cpp", &public, &[], 0);
    assert_eq!(check["complete"], true);
    let rw = "#include <stdatomic.h>
        struct rw { atomic_int n; };
        void rw_wrlock(struct rw *l) { int no = 0; while (!atomic_compare_exchange_strong(&l->n, &no, -1)) no = 0; }
        void rw_rdlock(struct rw *l) { for (;;) { int n = l->n;
            if (n >= 0 && atomic_compare_exchange_strong(&l->n, &n, n + 1)) return; } }
        void rw_unlock(struct rw *l) { if (l->n < 0) l->n = 0; else l->n--; }";
    let (checks, _) = check_file("rw.c", rw, &[], 0);
    assert_eq!(checks[0]["readers"], 1);
    let (_, errors) = check_file("rw.c", &rw.replace("rw_unlock", "rw_wrunlock"), &[], 2);
    assert!(errors.contains("read_unlock=NAME"), "{errors}");
}

/// Its acquisitions may fail, but only for a reason that there is.
#[test]
fn a_resilient_lock_is_checked_from_its_source() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../locks/rqspinlock.c");
    let text = fs::read_to_string(path).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rqspinlock.c");
    let check = |text: &str, options: &[&str], status: i32| {
        fs::write(&file, text).unwrap();
        let source = ["--memory", "sc", "--source", file.to_str().unwrap()];
        let found = json(&[&source, options].concat(), status);
        let name = found["violation"]["name"].as_str();
        name.unwrap_or("none").to_owned()
    };
    let looks = "if (!lw_held_before(held, lock))\n\t\tresult = lw_rq_pending";
    assert!(text.contains(looks));
    let blind = text.replace(looks, "result = lw_rq_pending");
    assert_eq!(check(&text, &[], 0), "none");
    assert_eq!(check(&blind, &[], 1), "promise");
    assert_eq!(
        check(&text, &["--locks", "2", "--acquisitions", "1"], 0),
        "none"
    );
}

/// For each check of a file, the promise that is broken, or `none`.
fn found_in(file: &str, options: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("own.c"), file).unwrap();
    let mut check = support::lockworks(&[&["check", "own.c", "--json"], options].concat());
    let output = check.current_dir(directory.path()).output().unwrap();
    let checks: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let checks = match checks {
        Value::Array(checks) => checks,
        one => vec![one],
    };
    let name = |check: &Value| {
        assert!(
            check["complete"] == true || check["violations"] == 1,
            "{check}"
        );
        check["violation"]["name"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    checks.iter().map(name).collect()
}

/// As many threads pass it as `init` says, and a thread that waits is woken.
#[test]
fn a_semaphore_is_checked_with_one_token_and_with_two() {
    let text = "#include <stdatomic.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n#include <linux/futex.h>
        struct sem { atomic_uint n; };
        void sem_init(struct sem *s, int shared, unsigned n) { (void)shared; s->n = n; }
        void sem_wait(struct sem *s)
        {
            for (;;) {
                unsigned n = s->n;
                if (n == 0) syscall(SYS_futex, &s->n, FUTEX_WAIT, 0, 0, 0, 0);
                else if (atomic_compare_exchange_strong(&s->n, &n, n - 1)) return;
            }
        }
        void sem_post(struct sem *s) { s->n++; syscall(SYS_futex, &s->n, FUTEX_WAKE, 1, 0, 0, 0); }";
    assert_eq!(found_in(text, &[]), ["none", "none"]);
    assert_eq!(
        found_in(
            text,
            &["--tokens", "3", "--threads", "4", "--acquisitions", "1"]
        ),
        ["none"]
    );
    let looks_first = "else if (atomic_compare_exchange_strong(&s->n, &n, n - 1)) return;";
    let races = text.replace(looks_first, "else { s->n--; return; }");
    assert_eq!(found_in(&races, &[]), ["tokens", "tokens"]);
    let wakes = "s->n++; syscall(SYS_futex, &s->n, FUTEX_WAKE, 1, 0, 0, 0);";
    assert_eq!(
        found_in(&text.replace(wakes, "s->n++;"), &[]),
        ["deadlock", "deadlock"]
    );
    let one_more = text.replace("s->n = n;", "s->n = n + (n == 2);");
    assert_eq!(found_in(&one_more, &[]), ["none", "tokens"]);
    // A count that the file gives.
    let own = text.replace(
        "struct sem *s, int shared, unsigned n) { (void)shared; s->n = n; }",
        "struct sem *s) { s->n = 2; }",
    );
    assert_eq!(found_in(&own, &["--threads", "3"]), ["tokens"]);
    assert_eq!(
        found_in(&own, &["--threads", "3", "--tokens", "2"]),
        ["none"]
    );
    let other = text
        .replace("sem_wait", "P")
        .replace("sem_post", "V")
        .replace("sem_init", "begin");
    let named = ["--functions", "init=begin"];
    assert_eq!(found_in(&other, &named), ["none", "none"]);
    assert_refused(
        &["--lock", "mcs", "--tokens", "2"],
        &["mcs", "no semaphore"],
    );
    let cpp = "#include <atomic>
        class semaphore { std::atomic<int> n; public: explicit semaphore(int n) : n(n) {}
        void acquire() { for (;;) { int was = n; if (was > 0 && n.compare_exchange_strong(was, was - 1)) return; } }
        void release() { n++; } };";
    let (checks, _) = check_file("semaphore.cc", cpp, &[], 0);
    assert_eq!(checks.as_array().unwrap().len(), 2);
    check_file("semaphore.cc", &cpp.replace("n(n)", "n(n + 1)"), &[], 1);
}

/// A reader accepts no write of which it has seen a part.
#[test]
fn a_seqlock_is_checked_with_a_writer_and_readers() {
    let text = "#include <stdatomic.h>
        struct seq { atomic_uint n; };
        void seq_write_begin(struct seq *s)
        {
            unsigned n = atomic_load_explicit(&s->n, memory_order_relaxed);
            atomic_store_explicit(&s->n, n + 1, memory_order_relaxed);
            atomic_thread_fence(memory_order_release);
        }
        void seq_write_end(struct seq *s)
        {
            unsigned n = atomic_load_explicit(&s->n, memory_order_relaxed);
            atomic_store_explicit(&s->n, n + 1, memory_order_release);
        }
        unsigned seq_read_begin(const struct seq *s)
        {
            unsigned n;
            while ((n = atomic_load_explicit(&s->n, memory_order_acquire)) & 1) ;
            return n;
        }
        int seq_read_retry(const struct seq *s, unsigned n)
        {
            atomic_thread_fence(memory_order_acquire);
            return atomic_load_explicit(&s->n, memory_order_relaxed) != n;
        }";
    assert_eq!(found_in(text, &[]), ["none", "none"]);
    for (from, to) in [
        ("atomic_thread_fence(memory_order_release);", ""),
        ("atomic_thread_fence(memory_order_acquire);", ""),
        ("n + 1, memory_order_release", "n + 1, memory_order_relaxed"),
        (
            "while ((n = atomic_load_explicit(&s->n, memory_order_acquire)) & 1) ;",
            "n = s->n;",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(
            found_in(&text.replace(from, to), &[]),
            ["promise"; 2],
            "{from}"
        );
    }
    // It has no lock between writers; one that has is checked with writers alone, too.
    assert_eq!(found_in(text, &["--readers", "0"]), ["mutual_exclusion"]);
    let named = "write_begin=w,write_end=x,read_begin=r,read_retry=!s";
    let other = text
        .replace("seq_write_begin", "w")
        .replace("seq_write_end", "x")
        .replace("seq_read_begin", "r")
        .replace("seq_read_retry", "s")
        .replace("!= n", "== n");
    assert_eq!(found_in(&other, &["--functions", named]), ["none"; 2]);
    let linux = "#include <linux/atomic.h>
        struct seq { unsigned n; atomic_t held; };
        void write_seqlock(struct seq *s)
        { while (atomic_xchg_acquire(&s->held, 1)) cpu_relax(); WRITE_ONCE(s->n, s->n + 1); smp_mb(); }
        void write_sequnlock(struct seq *s)
        { smp_store_release(&s->n, s->n + 1); atomic_set_release(&s->held, 0); }
        unsigned read_seqbegin(struct seq *s)
        { unsigned n; while ((n = smp_load_acquire(&s->n)) & 1) cpu_relax(); return n; }
        int read_seqretry(struct seq *s, unsigned n) { smp_mb(); return READ_ONCE(s->n) != n; }";
    assert_eq!(found_in(linux, &[]), ["none"; 3]);
    let unlocked = linux.replace("while (atomic_xchg_acquire(&s->held, 1)) cpu_relax();", "");
    assert_eq!(found_in(&unlocked, &[])[1], "data_race");
}

/// No wake-up is lost, all are woken by a broadcast, and a waiter returns with the mutex.
#[test]
fn a_condition_variable_is_checked_with_its_mutex() {
    let text = "#include <stdatomic.h>\n#include <limits.h>\n#include <unistd.h>
        #include <sys/syscall.h>\n#include <linux/futex.h>
        #define FUTEX(...) syscall(SYS_futex, &c->n, __VA_ARGS__, 0, 0, 0)
        typedef struct { atomic_int held; } mutex_t;
        typedef struct { atomic_uint n; } cond_t;
        void mutex_init(mutex_t *m) { m->held = 0; }
        void cond_init(cond_t *c) { c->n = 7; }
        void mutex_lock(mutex_t *m) { while (atomic_exchange(&m->held, 1)) ; }
        void mutex_unlock(mutex_t *m) { atomic_store(&m->held, 0); }
        void cond_wait(cond_t *c, mutex_t *m)
        {
            unsigned n = c->n;
            mutex_unlock(m);
            FUTEX(FUTEX_WAIT, n);
            mutex_lock(m);
        }
        void cond_signal(cond_t *c) { c->n++; FUTEX(FUTEX_WAKE, 1); }
        void cond_broadcast(cond_t *c) { c->n++; FUTEX(FUTEX_WAKE, INT_MAX); }";
    assert_eq!(found_in(text, &[]), ["none", "none"]);
    for (from, to, found) in [
        // It looks too late.
        (
            "unsigned n = c->n;\n            mutex_unlock(m);",
            "mutex_unlock(m); unsigned n = c->n;",
            "deadlock",
        ),
        (
            "FUTEX(FUTEX_WAKE, INT_MAX);",
            "FUTEX(FUTEX_WAKE, 1);",
            "deadlock",
        ),
        (
            "FUTEX(FUTEX_WAIT, n);\n            mutex_lock(m);",
            "FUTEX(FUTEX_WAIT, n);",
            "mutual_exclusion",
        ),
        ("mutex_unlock(m);\n            FUTEX", "FUTEX", "livelock"),
    ] {
        assert!(text.contains(from), "{from}");
        let broken = found_in(&text.replace(from, to), &[]);
        assert_eq!(broken.last().unwrap(), found, "{from}");
    }
    let other = text
        .replace("cond_wait", "doze")
        .replace("cond_signal", "one")
        .replace("cond_broadcast", "all");
    let named = [
        "--functions",
        "wait=doze,signal=one,broadcast=all,lock=mutex_lock",
    ];
    assert_eq!(found_in(&other, &named), ["none", "none"]);
    assert_eq!(
        found_in(text, &["--functions", "lock=mutex_lock"]),
        ["none"]
    );
    let error = |text: &str, options: &[&str]| check_file("own.c", text, options, 2).1;
    let unlocked = text.replace(
        "mutex_lock(mutex_t *m) { while (atomic_exchange(&m->held, 1)) ; }",
        "mutex_grab(mutex_t *m) {}",
    );
    let unlocked = unlocked.replace("mutex_lock(m);", "");
    let found = error(&unlocked, &[]);
    assert!(
        found.contains("cond_wait()") && found.contains("'mutex_t *'"),
        "{found}"
    );
    let found = error(text, &["--nesting", "1"]);
    assert!(found.contains("ask for nesting 0"), "{found}");
    let found = error(
        text,
        &["--functions", "lock=mutex_lock,read_begin=cond_init"],
    );
    assert!(
        found.contains("read_begin=cond_init is no function of a lock"),
        "{found}"
    );
}

/// The operations of Linux, whose plain initialisation of a node is no race, and a node that a function makes.
#[test]
fn a_lock_in_the_operations_of_linux_is_checked() {
    let text = "#include <linux/atomic.h>
        struct node { struct node *next; int waits; };
        void k_lock(struct node **lock, struct node *node)
        {
            struct node *prev;
            node->next = NULL; node->waits = 1;
            prev = xchg(lock, node);
            if (!prev) return;
            WRITE_ONCE(prev->next, node);
            smp_cond_load_acquire(&node->waits, !VAL);
        }
        void k_unlock(struct node **lock, struct node *node)
        {
            struct node *next = READ_ONCE(node->next);
            if (!next) {
                if (cmpxchg_release(lock, node, NULL) == node) return;
                while (!(next = READ_ONCE(node->next))) cpu_relax();
            }
            smp_store_release(&next->waits, 0);
        }";
    for memory in ["lkmm", "arm"] {
        let (check, _) = check_file("k.c", text, &["--memory", memory], 0);
        assert_eq!(check["complete"], true, "{memory}");
        let weak = text.replace(
            "smp_store_release(&next->waits, 0)",
            "WRITE_ONCE(next->waits, 0)",
        );
        check_file("k.c", &weak, &["--memory", memory], 1);
    }
}

/// What cannot be checked is named, in one line that says what to do.
#[test]
fn a_file_that_cannot_be_checked_is_refused_with_its_line() {
    let refused = |name: &str, text: &str, options: &[&str], words: &[&str]| {
        let (_, errors) = check_file(name, text, options, 2);
        let line = errors.lines().last().unwrap_or_default().to_owned();
        for word in words {
            assert!(line.contains(word), "{word}: {errors}");
        }
    };
    let body = |body: &str| SPIN.replace("lock->owner = me;", body);
    refused(
        "none.c",
        "int f(void) { return 0; }",
        &[],
        &["'none.c' has no lock", "--functions lock=NAME,unlock=NAME"],
    );
    let two = format!("{SPIN} void tas_acquire(spin_t *l) {{}} void tas_release(spin_t *l) {{}}");
    refused(
        "two.c",
        &two,
        &[],
        &["--functions lock=spin_lock or --functions lock=tas_acquire"],
    );
    check_file("two.c", &two, &["--functions", "lock=tas_acquire"], 1);
    refused(
        "spin.c",
        SPIN,
        &["--functions", "lock=none"],
        &["no function 'none'", "spin_trylock"],
    );
    refused("spin.c", SPIN, &["--functions", "none"], &["lock=my_lock"]);
    refused(
        "asm.c",
        &body("__asm__ volatile(\"incl %0\" : \"+m\"(lock->held));"),
        &[],
        &["asm.c:8 has inline assembly"],
    );
    refused(
        "call.c",
        &format!("void g(void);\n{}", body("g();")),
        &[],
        &["call.c:9 calls g()"],
    );
    // Futexes are the only system calls, and without sets of bits.
    let headers = "#include <unistd.h>\n#include <sys/syscall.h>\n#include <linux/futex.h>\n";
    for (call, word) in [
        (
            "SYS_membarrier, &lock->held, FUTEX_WAKE, 1, 0, 0, 0",
            "other than a futex",
        ),
        (
            "SYS_futex, &lock->held, FUTEX_WAKE_BITSET, 1, 0, 0, 2",
            "with bits",
        ),
        (
            "SYS_futex, &lock->held, FUTEX_WAKE_OP, 1, 0, 0, 0",
            "this operation",
        ),
    ] {
        let text = format!(
            "{headers}{}",
            body(&format!("lock->owner = me; syscall({call});"))
        );
        refused("futex.c", &text, &[], &["futex.c:11: ", word]);
    }
    // Static variables that C++ makes when they are first used.
    refused(
        "guard.cc",
        "#include <atomic>
        struct T { std::atomic<int> x; T() : x(1) {} };
        static T &t() { static T one; return one; }
        class l { std::atomic<int> w{0}; public:
        void lock() { if (t().x) while (w.exchange(1)) ; }
        void unlock() { w = 0; } };",
        &[],
        &["guard.cc:3 calls __cxa_guard_"],
    );
    // The order of a compare-and-swap that fails, too.
    let varies = "__attribute__((noinline, noclone)) static void look(spin_t *l, int order)
        { int e = 5; atomic_compare_exchange_strong_explicit(&l->held, &e, 6, memory_order_acq_rel, order); }";
    let look =
        "lock->owner = me; look(lock, me > 9 ? memory_order_acquire : memory_order_relaxed);";
    refused(
        "order.c",
        &body(look).replace("void spin_lock", &format!("{varies}\nvoid spin_lock")),
        &[],
        &["order.c:5: the memory order is no constant"],
    );
    let shared = "static spin_t *_Atomic first; spin_t own; atomic_store(&first, &own);";
    refused(
        "own.c",
        &body(shared),
        &[],
        &["shares a local variable of its own", "own.c:8"],
    );
    let harmless = body("__asm__ volatile(\"pause\" ::: \"memory\");");
    check_file(
        "pause.c",
        &harmless,
        &[],
        i32::from(cfg!(not(target_arch = "x86_64"))),
    );
}

/// Warnings of the compiler are shown, and it may be called by several words.
#[test]
fn a_source_is_compiled_as_by_a_makefile() {
    let directory = tempfile::tempdir().unwrap();
    let lock = format!("{EMPTY}.traits = LW_SPINS);\nstatic int unused;\n");
    let path = source(directory.path(), "warned", &lock);
    let mut check = support::lockworks(&["check", "--source", &path]);
    // As clang, which does not have all options of gcc.
    let other = directory.path().join("other-cc");
    let script = "case \"$*\" in *-fno-move-loop-invariants*) exit 1 ;; esac\nexec cc \"$@\"\n";
    fs::write(&other, script).unwrap();
    let words = format!("env sh {} -DNDEBUG", other.display());
    let found = check.env("CC", words).output().unwrap();
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    assert!(
        text(&found.stderr).contains("-Wunused"),
        "{}",
        text(&found.stderr)
    );
}

/// Each operation of the example is needed.
#[test]
fn mutants_of_a_source_are_derived_and_caught() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/check/mylock.c");
    let found = json(&["mutants", "--source", example], 0);
    assert_eq!(found["mutants"], 7);
    assert_eq!(found["caught"], 7);

    let directory = tempfile::tempdir().unwrap();
    let empty = source(
        directory.path(),
        "empty",
        &format!("{EMPTY}.traits = LW_SPINS);"),
    );
    assert_refused(
        &["mutants", "--source", &empty],
        &[
            "breaks a promise",
            &format!("`lockworks check --source {empty}`"),
        ],
    );
}

#[test]
fn orders_that_are_too_strong_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/check/mylock.c");
    let text = fs::read_to_string(example).unwrap();
    let file = source(
        directory.path(),
        "mylock",
        &text.replace("mine, acquire)", "mine, seq_cst)"),
    );
    let found = json(&["--source", &file, "--optimize"], 0);
    let weaker = found["weaker"].as_array().unwrap();
    assert_eq!(weaker.len(), 1, "{found}");
    assert_eq!(weaker[0]["operation"], "await_eq lock->served");
    assert_eq!(weaker[0]["weaker"], "acquire");
    assert_eq!(found["tried"], 3);

    // Each of these orders is needed.
    let found = json(&["--lock", "mcs", "--optimize"], 0);
    assert_eq!(found["weaker"], serde_json::json!([]));
    assert_refused(
        &["--lock", "busted", "--optimize"],
        &["busted 2x2 c11 breaks a promise as it is"],
    );
    for memory in ["sc", "tso"] {
        assert_refused(
            &["--lock", "tas", "--optimize", "--memory", memory],
            &[
                memory,
                "does not check that the lock orders the protected data",
            ],
        );
    }
}

/// Peterson's lock stores that it wants the lock, and then looks whether the other thread does.
const PETERSON: &str = r#"#include "lock_type.h"
#include "surroundings.h"
struct lw_NAME { lw_atomic(uint32_t) wants[2], turn, owner; };
static void lw_NAME_lock(struct lw_NAME *lock)
{
	uint32_t slot = (uint32_t)lw_slot_enter(), me = slot & 1;

	lw_store(&lock->wants[me], 1, relaxed);
	lw_store(&lock->turn, !me, release);
	lw_fence(acq_rel);
	while (lw_load(&lock->wants[!me], acquire) && lw_load(&lock->turn, acquire) != me)
		lw_pause(1);
	lw_store(&lock->owner, slot, relaxed);
}
static bool lw_NAME_trylock(struct lw_NAME *lock) { return (void)lock, false; }
static void lw_NAME_unlock(struct lw_NAME *lock)
{
	uint32_t slot = lw_load(&lock->owner, relaxed);

	lw_store(&lock->wants[slot & 1], 0, release);
	lw_slot_leave(slot);
}
LW_DESCRIBE(NAME, struct lw_NAME, .summary = "", .traits = LW_SPINS, .origin = "");
"#;

#[test]
fn a_buffer_of_stores_breaks_a_lock_without_a_full_fence() {
    let directory = tempfile::tempdir().unwrap();
    let weak = source(directory.path(), "peterson", PETERSON);
    for memory in ["tso", "riscv"] {
        let found = json(&["--source", &weak, "--memory", memory], 1);
        assert_eq!(found["violation"]["name"], "mutual_exclusion", "{memory}");
    }
    // A fence that acquires and releases is a full one on Arm.
    for memory in ["sc", "arm"] {
        let found = json(&["--source", &weak, "--memory", memory], 0);
        assert_eq!(found["complete"], true, "{memory}");
    }
    let full = PETERSON.replace("lw_fence(acq_rel)", "lw_fence(seq_cst)");
    let strong = source(directory.path(), "peterson", &full);
    for memory in ["tso", "riscv"] {
        let found = json(&["--source", &strong, "--memory", memory], 0);
        assert_eq!(found["complete"], true, "{memory}");
    }
}

#[test]
fn a_broken_promise_is_written_in_sarif_at_the_order_that_is_too_weak() {
    let directory = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/check/mylock.c");
    let text = fs::read_to_string(example).unwrap();
    let weak = text.replace("mine, acquire)", "mine, relaxed)");
    let file = source(directory.path(), "mylock", &weak);
    let sarif = directory.path().join("found.sarif");
    let found = json(&["--source", &file, "--sarif", sarif.to_str().unwrap()], 1);
    let line = 1 + weak
        .lines()
        .position(|line| line.contains("mine, relaxed)"))
        .unwrap();
    assert_eq!(found["stronger"][0]["line"], line);
    assert_eq!(found["stronger"][0]["order"], "acquire");
    let read = |path: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let log = read(&sarif);
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "data_race");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], line);
    assert_eq!(place["artifactLocation"]["uri"], file.as_str());
    let flows = result["codeFlows"][0]["threadFlows"].as_array().unwrap();
    assert_eq!(flows.len(), 2, "{result}");
    // No promise is broken, and nothing is left from the file before.
    json(&["--lock", "tas", "--sarif", sarif.to_str().unwrap()], 0);
    assert_eq!(read(&sarif)["runs"][0]["results"], serde_json::json!([]));
}

/// Runs the steps of action.yml in bash, but for the build and the uploads.
#[test]
fn the_action_checks_all_sources_and_ends_with_the_worst_status() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let action = fs::read_to_string(root.join("action.yml")).unwrap();
    let check = action
        .split_once("run: |\n")
        .expect("the step that checks")
        .1;
    let check: Vec<&str> = check
        .lines()
        .map_while(|line| line.strip_prefix("        "))
        .collect();
    let last = action.rsplit_once("run: ").expect("the last step").1;

    let directory = tempfile::tempdir().unwrap();
    let example = fs::read_to_string(root.join("examples/check/mylock.c")).unwrap();
    let weak = example.replace("mine, acquire)", "mine, relaxed)");
    let weak = source(directory.path(), "mylock", &weak);
    let run = |step: &str, sources: &str, status: &str| {
        Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step])
            .current_dir(directory.path())
            .env("GITHUB_ACTION_PATH", &root)
            .env("RUNNER_TEMP", directory.path())
            .env("GITHUB_OUTPUT", directory.path().join("outputs"))
            .env("GITHUB_STEP_SUMMARY", directory.path().join("summary"))
            .env("GIVEN", env!("CARGO_BIN_EXE_lockworks"))
            .env("SOURCES", sources)
            .env("OPTIONS", "--acquisitions 1")
            .env("STATUS", status)
            .output()
            .unwrap()
    };
    let good = fs::canonicalize(root.join("examples/check/mylock.c")).unwrap();
    let sources = format!("\n  {weak}\n  {}\n", good.display());
    let output = run(&check.join("\n"), &sources, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let outputs = fs::read_to_string(directory.path().join("outputs")).unwrap();
    assert_eq!(outputs, "status=1\n");
    let results = directory.path().join("lockworks");
    for name in ["1-mylock.sarif", "1-mylock.html", "2-mylock.sarif"] {
        assert!(results.join(name).exists(), "{name}");
    }
    assert!(!results.join("2-mylock.html").exists());
    let summary = fs::read_to_string(directory.path().join("summary")).unwrap();
    assert!(summary.contains("VIOLATION: data race"), "{summary}");
    assert!(summary.contains("complete, no violation"), "{summary}");
    assert_eq!(run(last, "", "1").status.code(), Some(1));
    assert_eq!(run(last, "", "0").status.code(), Some(0));
}

#[test]
fn a_complete_check_says_what_its_size_finds() {
    let small = output(&["--lock", "cna", "--threads", "3", "--acquisitions", "1"]);
    let shown = text(&small.stdout);
    let expected = "complete for 3x1, which finds 15 of 51 planted mistakes; 3x2 finds 43";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn waits_are_cancelled_where_locks_allow_it() {
    let checks = json(&["--cancel", "--acquisitions", "1"], 0);
    let checks = checks.as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|check| &check["lock"]).collect();
    assert_eq!(names, ["pv", "unfair", "mutex", "rwlock"]);
    for check in checks {
        assert_eq!(check["cancel"], true);
        let events = check["events"].as_array().unwrap();
        assert!(
            events.iter().any(|e| e["name"] == "waits_cancelled"),
            "{check}"
        );
    }
    assert_refused(
        &["--cancel", "--lock", "mcs"],
        &[
            "waits for 'mcs' cannot be cancelled",
            "pv or unfair or mutex",
        ],
    );
    assert_refused(
        &["--cancel", "--lock", "pv", "--nesting", "1"],
        &["one at a time"],
    );
}

#[test]
fn a_later_arrival_acquires_an_unfair_lock_first() {
    let args = ["--lock", "tas", "--threads", "3", "--bypass", "0"];
    let found = json(&args, 1);
    assert_eq!(found["violation"]["name"], "bypassed");
}

#[test]
fn bad_input_is_refused() {
    assert_refused(
        &["--lock", "cnaa"],
        &["unknown lock 'cnaa'; did you mean 'cna'?"],
    );
    assert_refused(&["--threads", "65"], &["65 threads", "ask for 1 to 64"]);
    assert_refused(&["--threads", "0"], &["0 threads", "ask for 1 to 64"]);
    assert_refused(&["--acquisitions", "17"], &["17 acquisitions", "1 to 16"]);
    assert_refused(&["--locks", "3"], &["3 locks", "1 or 2"]);
    assert_refused(
        &["--lock", "lockref-cna", "--locks", "2"],
        &["checked alone"],
    );
    assert_refused(
        &["--lock", "cond", "--nesting", "1"],
        &["ask for nesting 0"],
    );
    assert_refused(
        &["--memory", "power"],
        &["power", "sc, c11, arm, lkmm, lkmm-6.2, tso, riscv"],
    );
    assert_refused(&["--time", "soon"], &["soon", "any, early, late"]);
    assert_refused(&["--numa", "maybe"], &["maybe", "on, off"]);
    assert_refused(&["--nesting", "3"], &["nesting 3", "0 to 2"]);
    assert_refused(&["--nodes", "0"], &["0 nodes", "1 to 8"]);
    assert_refused(&["--priority", "2"], &["no thread 2", "from 0"]);
    for seconds in ["0", "-1", "nan"] {
        assert_refused(
            &[&format!("--seconds={seconds}")],
            &[seconds, "a number above 0"],
        );
    }
    assert_refused(&["--quick", "--threads", "3"], &["--quick", "--threads"]);
    assert_refused(&["--replay", "cna"], &["no token", "copy all of the word"]);
    assert_refused(&["--replay", "x", "--lock", "cna"], &["--replay", "--lock"]);
    assert_refused(&["-o", "/missing/x"], &["cannot write /missing/x"]);
}

#[test]
fn results_go_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("check.txt");
    let output = output(&["--lock", "tas", "-o", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "");
    let written = fs::read_to_string(path).unwrap();
    assert!(written.starts_with("tas 2x2 c11: complete, no violation; "));
}

/// A litmus file with a result, in a directory of its own.
fn litmus_file(result: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sb.litmus");
    let thread = |number, written, read| {
        format!(
            "P{number}(int *x, int *y) {{ WRITE_ONCE(*{written}, 1); int r0 = READ_ONCE(*{read}); }}\n"
        )
    };
    let threads = thread(0, "x", "y") + &thread(1, "y", "x");
    let head = format!("C sb\n(* Result: {result} *)\n{{}}\n");
    fs::write(&path, head + &threads + "exists (0:r0=0 /\\ 1:r0=0)\n").unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

#[test]
fn litmus_files_are_judged_by_memory_models() {
    let (_directory, file) = litmus_file("Sometimes (arm: Sometimes, c11: Never)");
    let one = json(&["litmus", &file], 0);
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["memory"], "lkmm");
    assert_eq!(one[0]["verdict"], "Sometimes");
    assert_eq!(one[0]["satisfying"], 1);
    assert_eq!(one[0]["others"], 3);
    assert_eq!(one[0]["agrees"], true);
    assert!(one[0].get("witness").is_none());

    let models = ["litmus", &file, "--memory", "lkmm-6.2,arm,sc", "--show"];
    let rows = json(&models, 0);
    let of = |key| -> Vec<&Value> {
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| &row[key])
            .collect()
    };
    assert_eq!(of("verdict"), ["Sometimes", "Sometimes", "Never"]);
    assert_eq!(
        of("agrees"),
        [&Value::Bool(true), &Value::Bool(true), &Value::Null]
    );
    assert_eq!(rows[0]["witness"][1]["reads_from"], "initial value");

    let differs = output(&["litmus", &file, "--memory", "c11"]);
    assert_eq!(differs.status.code(), Some(1));
    assert!(text(&differs.stdout).contains("DIFFERS: Never"));
    let shown = output(&["litmus", &file, "--show"]);
    assert!(text(&shown.stdout).contains("sb in lkmm: the condition holds"));
}

#[test]
fn litmus_files_are_searched_too() {
    let (directory, sb) = litmus_file("Sometimes");
    let write = |name: &str, body: &str| {
        let path = directory.path().join(format!("{name}.litmus"));
        fs::write(&path, format!("C {name}\n{{}}\n{body}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let locked = write(
        "locked",
        "P0(spinlock_t *l, int *x) { spin_lock(l); *x = 1; spin_unlock(l); }\nexists (x=1)",
    );
    let searched = ["litmus", &sb, &locked, "--search", "--memory", "lkmm,c11"];
    let rows = json(&searched, 0);
    let of = |key| -> Vec<&Value> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| &row["search"][key]).collect()
    };
    assert_eq!(
        of("verdict"),
        [
            &serde_json::json!("Sometimes"),
            &serde_json::json!("Sometimes"),
            &Value::Null,
            &serde_json::json!("Always")
        ]
    );
    assert_eq!(
        of("agrees"),
        [
            &serde_json::json!(true),
            &serde_json::json!(true),
            &Value::Null,
            &serde_json::json!(true)
        ]
    );
    assert_eq!(of("refused")[2], "spin locks");
    let searched = output(&searched);
    let shown = text(&searched.stdout);
    assert!(shown.contains("not run: spin locks"), "{shown}");
    assert!(
        shown.contains("4 searches: 3 agree with the axioms, 0 differ, 1 not run"),
        "{shown}"
    );

    // The address is the same whatever is read.
    let differs = write(
        "differs",
        "P0(int *x, int *y) { int r0 = READ_ONCE(*x); WRITE_ONCE(*(y + (r0 ^ r0)), 1); }\n\
         P1(int *x, int *y) { int r0 = READ_ONCE(*y); smp_mb(); WRITE_ONCE(*x, 1); }\n\
         exists (0:r0=1 /\\ 1:r0=1)",
    );
    let differs = output(&["litmus", &differs, "--search", "--memory", "arm"]);
    assert_eq!(differs.status.code(), Some(1));
    let shown = text(&differs.stdout);
    assert!(shown.contains("Sometimes, DIFFERS: 1 more"), "{shown}");
    assert_refused(&["litmus", "sb", "--search"], &["--search", ".litmus"]);
}

#[test]
fn litmus_files_that_cannot_be_judged_are_named_with_their_line() {
    let (directory, file) = litmus_file("Sometimes");
    let bad = directory.path().join("bad.litmus");
    fs::write(&bad, "C bad\n{}\nP0(int *x)\n{\n\tx++;\n}\nexists (x=1)\n").unwrap();
    let bad = bad.to_str().unwrap();
    assert_refused(&["litmus", bad], &[&format!("{bad}:5: "), "'++'"]);
    // The others are judged.
    let both = output(&["litmus", bad, &file]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stdout).contains("1 as documented"));
    assert_refused(
        &["litmus", "/no/such.litmus"],
        &["/no/such.litmus", "cannot read"],
    );
    assert_refused(&["litmus", "sb", &file], &["'sb' is not a .litmus file"]);
    assert_refused(
        &["litmus", "sb", "--memory", "arm"],
        &["--memory", ".litmus"],
    );
    assert_refused(
        &["litmus", &file, "--memory", "power"],
        &["power", "lkmm-6.2"],
    );
}

#[test]
fn the_help_of_litmus_fits_a_screen() {
    for help in ["--help", "--help-all"] {
        let command = support::lockworks(&["check", "litmus", help]);
        let printed = support::on_terminal(command, 80);
        assert!(
            printed.contains("Usage: lockworks check litmus"),
            "{printed}"
        );
        let most = if help == "--help" { 45 } else { 60 };
        assert!(printed.lines().count() <= most, "{printed}");
        assert!(
            printed.lines().all(|line| line.chars().count() <= 80),
            "{printed}"
        );
    }
}

/// Peterson's lock in the operations of Linux, with this fence between a thread's stores and its loads.
fn peterson_of_linux(fence: &str) -> String {
    format!(
        "struct p {{ int wants[2], turn; atomic_t other; }};
        void p_lock(struct p *l, int me)
        {{
            WRITE_ONCE(l->wants[me], 1);
            smp_mb();
            WRITE_ONCE(l->turn, !me);
            {fence};
            while (smp_load_acquire(&l->wants[!me]) && smp_load_acquire(&l->turn) == !me) cpu_relax();
        }}
        void p_unlock(struct p *l, int me) {{ smp_store_release(&l->wants[me], 0); }}"
    )
}

/// A memory model whose fences are all stronger refuses a weak one.
#[test]
fn a_fence_is_not_taken_for_a_stronger_one() {
    let check = |fence: &str, memory: &str, status: i32| {
        let options = ["--memory", memory, "--acquisitions", "1"];
        check_file("p.c", &peterson_of_linux(fence), &options, status).1
    };
    check("smp_mb()", "lkmm", 0);
    check("", "lkmm", 1);
    for (fence, memory) in [
        ("smp_wmb()", "lkmm"),
        ("smp_rmb()", "lkmm-6.2"),
        ("smp_acquire__after_ctrl_dep()", "lkmm"),
        ("__atomic_thread_fence(__ATOMIC_ACQ_REL)", "lkmm"),
        ("smp_wmb()", "arm"),
        ("smp_rmb()", "riscv"),
    ] {
        let errors = check(fence, memory, 2);
        assert!(errors.contains("p.c:7: this fence is weaker"), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
    check("smp_rmb()", "arm", 1);
    // A compare-and-swap that fails orders nothing.
    for memory in ["c11", "lkmm"] {
        check("atomic_cmpxchg(&l->other, 0, 0)", memory, 0);
        check("atomic_cmpxchg(&l->other, 1, 2)", memory, 1);
    }
    for fence in ["smp_wmb()", "smp_rmb()"] {
        check(fence, "c11", 1);
    }
}

/// What a compare-and-swap expects is accessed as any other memory, wherever it is.
#[test]
fn the_expected_value_of_a_compare_and_swap_may_be_in_shared_memory() {
    let lock = |after: &str| {
        format!(
            "#include <stdatomic.h>
            struct c {{ atomic_int w; }};
            static PLACE int expected;
            void c_lock(struct c *l)
            {{
                for (;;) {{
                    expected = 0;
                    if (atomic_compare_exchange_strong_explicit(&l->w, &expected, 1, memory_order_acquire,
                            memory_order_relaxed)) return;
                    {after}
                }}
            }}
            void c_unlock(struct c *l) {{ atomic_store_explicit(&l->w, 0, memory_order_release); }}"
        )
    };
    let check = |text: &str, status: i32| {
        let (check, _) = check_file("c.c", text, &[], status);
        check["violation"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let local = lock("").replace("PLACE", "_Thread_local");
    assert_eq!(check(&local, 0), "");
    // It holds what was found.
    let returns = lock("if (expected == 1) return;").replace("PLACE", "_Thread_local");
    assert_eq!(check(&returns, 1), "mutual_exclusion");
    assert_eq!(check(&lock("").replace("PLACE", ""), 1), "data_race");
}

/// A sleep says how it ended, and a wake-up how many it woke.
#[test]
fn a_futex_returns_what_that_of_the_system_does() {
    let check = |waits: &str, wakes: &str| {
        let text = format!(
            "#include <stdatomic.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n#include <linux/futex.h>
            #include <limits.h>\n#include <time.h>
            #define FUTEX(...) syscall(SYS_futex, &l->w, __VA_ARGS__)
            struct f {{ atomic_uint w; }};
            void f_lock(struct f *l)
            {{
                unsigned c = 0;
                if (atomic_compare_exchange_strong(&l->w, &c, 1)) return;
                while (atomic_exchange(&l->w, 2)) {waits}
            }}
            void f_unlock(struct f *l) {{ if (atomic_exchange(&l->w, 0) == 2) {wakes} }}"
        );
        let options = ["--threads", "3", "--acquisitions", "1"];
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("f.c"), text).unwrap();
        let mut check = support::lockworks(&[&["check", "f.c", "--json"], &options[..]].concat());
        let output = check.current_dir(directory.path()).output().unwrap();
        let found = support::json(&output);
        found["violation"]["name"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    let sleep = "FUTEX(FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, 0, 0, 0);";
    let wake = "FUTEX(FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);";
    assert_eq!(check(sleep, wake), "none");
    // The value differs, or the time is over.
    let differs = "if (FUTEX(FUTEX_WAIT, 2, 0, 0, 0) == -1) return;";
    assert_eq!(check(differs, wake), "mutual_exclusion");
    let by_time =
        "if (FUTEX(FUTEX_WAIT, 2, &(struct timespec) { 1, 0 }, 0, 0) == -1 && l->w == 2) return;";
    assert_eq!(check(by_time, wake), "mutual_exclusion");
    // It sleeps until it is woken, by which the lock is not free.
    let woken = "if (FUTEX(FUTEX_WAIT, 2, 0, 0, 0) == 0 && l->w) return;";
    assert_eq!(check(woken, wake), "mutual_exclusion");
    // Nobody sleeps, or one does.
    let counts =
        |n: &str| format!("if (FUTEX(FUTEX_WAKE, INT_MAX, 0, 0, 0) == {n}) __builtin_abort();");
    for n in ["0", "1", "2"] {
        assert_ne!(check(sleep, &counts(n)), "none", "{n}");
    }
    assert_eq!(check(sleep, ";"), "deadlock");
}

/// The names of Linux' operations in a comment, or defined in a header, are not those of Linux.
#[test]
fn the_operations_of_linux_are_those_that_a_file_does_not_define() {
    let directory = tempfile::tempdir().unwrap();
    let define = "#define READ_ONCE(x) (*(volatile __typeof__(x) *)&(x))\n";
    fs::write(directory.path().join("once.h"), define).unwrap();
    let waits = SPIN.replace(")\n\t\t;", ")\n\t\twhile (READ_ONCE(lock->owner) == me) ;");
    for (text, is_of_linux) in [
        (
            SPIN.replace("lock->owner = me", "/* READ_ONCE(x) */ lock->owner = me"),
            false,
        ),
        (format!("#include \"once.h\"\n{waits}"), false),
        (waits, true),
    ] {
        fs::write(directory.path().join("spin.c"), text).unwrap();
        let mut check = support::lockworks(&["check", "spin.c", "--acquisitions", "1"]);
        let output = check.current_dir(directory.path()).output().unwrap();
        assert_eq!(self::text(&output.stderr), "");
        let has = self::text(&output.stdout).contains("operations of Linux");
        assert_eq!(has, is_of_linux, "{}", self::text(&output.stdout));
    }
}

/// A result of 0 is success for the functions for which the user says so.
#[test]
fn each_trylock_says_what_success_is() {
    let text = "#include <stdatomic.h>
        struct z { atomic_int a; };
        int z_try(struct z *l) { return !atomic_exchange_explicit(&l->a, 1, memory_order_acquire); }
        int z_rtry(struct z *l) { return atomic_exchange_explicit(&l->a, 1, memory_order_acquire); }
        void z_lock(struct z *l) { while (!z_try(l)) ; }
        void z_unlock(struct z *l) { atomic_store_explicit(&l->a, 0, memory_order_release); }
        void z_read_lock(struct z *l) { z_lock(l); }
        void z_read_unlock(struct z *l) { z_unlock(l); }";
    for (functions, status) in [
        ("trylock=z_try,read_trylock=!z_rtry", 0),
        ("trylock=!z_try,read_trylock=z_rtry", 1),
    ] {
        check_file(
            "z.c",
            text,
            &["--trylock", "--functions", functions],
            status,
        );
    }
}
