//! The command from outside: its exit status, the one line of an error, and where results are
//! written.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::{
    self, assert_fits_terminals, assert_refused, json, lockworks, on_terminal, output, text,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Runs a short torture.
fn torture(more: &[&str]) -> Output {
    let brief = ["torture", "--seconds", "0.05", "--rounds", "1"];
    output(&[&brief, more].concat())
}

#[test]
fn unknown_locks_have_a_nearest_one() {
    for args in [
        &["torture", "--lock", "qspinlok"][..],
        &["locks", "qspinlok"],
    ] {
        let output = output(args);
        assert_refused(
            &output,
            &["unknown lock 'qspinlok'; did you mean 'qspinlock'?"],
        );
        assert_eq!(text(&output.stderr).lines().count(), 1);
    }
}

/// A message of one line names the option, the value and what is allowed.
#[test]
fn bad_options_are_refused() {
    for (args, words) in [
        ("--rounds 0", &["'--rounds <N>'", "'0'", "1..=1000"][..]),
        ("--rounds -1", &["'--rounds <N>'", "'-1'", "1..=1000"]),
        ("--rounds many", &["'--rounds <N>'", "'many'"]),
        ("--threads 1,two", &["'--threads <N>'", "'two'"]),
        ("--threads 0", &["'--threads <N>'", "'0'", "1..=65535"]),
        (
            "--threads 99999999999999999999",
            &["'--threads <N>'", "99999999999999999999"],
        ),
        ("--readers 101", &["--readers", "'101'", "0 to 100"]),
        ("--threshold 0", &["--threshold", "'0'", "1"]),
        ("--threshold 101", &["--threshold", "'101'", "100"]),
        (
            "--seconds -1",
            &["--seconds", "'-1'", "a number from 0.001 to 86400"],
        ),
        (
            "--seconds nan",
            &["--seconds", "'nan'", "a number from 0.001 to 86400"],
        ),
        (
            "--seconds 1,5",
            &["--seconds", "'1,5'", "a number from 0.001 to 86400"],
        ),
        (
            "--preset locktortur",
            &[
                "--preset",
                "'locktortur'",
                "plain, locktorture-new",
                "tip: ",
            ],
        ),
        ("--rounds", &["a value is required for '--rounds <N>'"]),
        (
            "--second 1",
            &["'--second'", "a similar argument exists: '--seconds'"],
        ),
        ("tas", &["unexpected argument 'tas'"]),
        (
            "--preset locktorture-new --think 5",
            &["--critical, --think and --readers are for the preset plain only"],
        ),
    ] {
        let args: Vec<&str> = ["torture"].into_iter().chain(args.split(' ')).collect();
        assert_refused(&output(&args), words);
    }
    for (args, words) in [
        (
            &["tortur"][..],
            &["unrecognized subcommand 'tortur'", "'torture'"][..],
        ),
        (&["run"], &["not provided: <PROGRAM>..."]),
        (&["compare", "--lower-is-better", "true"], &["--metric"]),
    ] {
        assert_refused(&output(args), words);
    }
}

#[test]
fn help_fits_the_terminal() {
    let commands = [
        "torture",
        "locks",
        "machines",
        "check",
        "kernel",
        "sim",
        "sweep",
        "regret",
        "reproduce",
        "run",
        "compare",
        "profile",
        "top",
        "report",
    ];
    for command in commands {
        for help in ["--help", "--help-all"] {
            assert_fits_terminals(&[command, help], &["Usage: lockworks"]);
        }
    }
    assert_fits_terminals(
        &["--help"],
        &["Usage: lockworks", "Exit status", "Examples:"],
    );
}

#[test]
fn verbose_says_on_standard_error_what_is_run_and_for_how_long() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table");
    let file = file.to_str().unwrap();
    let torture = "torture --seconds 0.02 --rounds 1 --threads 1 --lock tas -o";
    let torture: Vec<&str> = torture.split(' ').chain([file]).collect();
    let simulation = ["sim", "--ms", "0.05", "--threads", "1", "--lock", "tas"];
    let random = "check --lock tas --random 5 --threads 8";
    let random: Vec<&str> = random.split(' ').collect();
    for (args, words) in [
        (&["locks", "tas"][..], &["command=\"", " locks tas"][..]),
        (&torture, &["lock=\"tas\" threads=1", file]),
        (&["machines"], &[" machines"]),
        (&simulation, &[" sim --ms 0.05", "lock=\"tas\" threads=1"]),
        (
            &["check", "--lock", "tas"],
            &["searched config=tas", "states="],
        ),
        (&random, &["config=tas 8x2", "runs=5"]),
    ] {
        let quiet = output(args);
        assert!(
            !text(&quiet.stderr).contains("begins"),
            "{}",
            text(&quiet.stderr)
        );
        for all in [
            [&["--verbose"], args].concat(),
            [args, &["--verbose"]].concat(),
        ] {
            let told = output(&all);
            assert_eq!(told.status.code(), Some(0));
            assert_eq!(
                text(&told.stdout).lines().count(),
                text(&quiet.stdout).lines().count()
            );
            let log = text(&told.stderr);
            assert!(words.iter().all(|word| log.contains(word)), "{log}");
            assert!(log.lines().count() < 20, "of a library: {log}");
            assert!(
                log.contains("begins") && log.contains("ends seconds="),
                "{log}"
            );
        }
    }
}

#[test]
fn an_output_that_cannot_be_written_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing/torture.json");
    let output = torture(&[
        "--lock",
        "tas",
        "--threads",
        "1",
        "-o",
        path.to_str().unwrap(),
    ]);
    assert_refused(&output, &["cannot write", "missing/torture.json"]);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);

    let directory_itself = directory.path().to_str().unwrap();
    let output = torture(&["--lock", "tas", "--threads", "1", "-o", directory_itself]);
    assert_refused(&output, &["cannot write"]);
}

#[test]
fn a_file_is_replaced_and_a_device_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("torture.json");
    fs::write(&path, "old").unwrap();
    let path = path.to_str().unwrap();
    let output = torture(&["--lock", "tas", "--threads", "1", "--json", "-o", path]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "");
    let written: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(written["rows"][0]["lock"], "tas");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);

    let output = torture(&["--lock", "tas", "--threads", "1", "-o", "/dev/null"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn json_has_it_all() {
    let output = torture(&[
        "--lock",
        "qspinlock,pthread_mutex",
        "--threads",
        "1,2",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results = json(&output);
    for key in ["cpus", "nodes", "model"] {
        assert!(results["machine"].get(key).is_some(), "{key}");
    }
    assert_eq!(results["preset"], "plain");
    assert_eq!(results["seconds"], 0.05);
    assert_eq!(results["rounds"], 1);
    assert!(results["warnings"].is_array());

    let rows = results["rows"].as_array().unwrap();
    let of: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["threads"].as_u64().unwrap(),
                row["lock"].as_str().unwrap(),
            )
        })
        .collect();
    let (mine, peer) = ("qspinlock", "pthread_mutex");
    assert_eq!(of, [(1, mine), (1, peer), (2, mine), (2, peer)]);
    for row in rows {
        for key in [
            "operations_per_second",
            "operations_per_second_min",
            "operations_per_second_max",
            "fairness",
            "operations",
            "ratio",
            "latency_ns",
            "p999_ratio",
            "local_handoffs",
            "remote_handoffs",
            "reacquisitions",
            "events",
            "involuntary_switches",
            "runqueue_wait_ns",
            "steal_ticks",
        ] {
            assert!(row.get(key).is_some(), "{key}");
        }
        let share = |key: &str| row[key].as_f64().expect("the system reports it");
        assert!((0.0..=1.0).contains(&share("free_share")), "{row}");
        let lost = share("free_share").min(share("idle_share"));
        assert_eq!(share("idle_while_free_share"), lost);
        assert_eq!(row["violations"], 0);
    }
    assert_eq!(rows[0]["fairness"], 0.5);
    for percentile in ["p50", "p99", "p999", "max"] {
        assert!(rows[0]["latency_ns"][percentile].is_u64(), "{percentile}");
    }
    assert!(rows[0]["events"].get("queued_acquisitions").is_some());
    assert_eq!(rows[1]["events"], serde_json::json!({}));
}

/// Peers are tortured as the library's locks are. A peer that is named twice is one row.
#[test]
fn peers_and_ratios() {
    let peers = [
        "pthread_mutex",
        "pthread_mutex",
        "std_mutex",
        "parking_lot",
        "spin",
    ];
    let list = format!("tas,{}", peers.join(","));
    let brief = "torture --seconds 0.05 --rounds 2 --threads 1,3 --reference pthread_spin --json";
    let args: Vec<&str> = brief.split(' ').chain(["--lock", &list]).collect();
    let output = output(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results = json(&output);
    assert_eq!(results["reference"], "pthread_spin");
    let rows = results["rows"].as_array().unwrap();
    let locks: Vec<_> = rows
        .iter()
        .map(|row| row["lock"].as_str().unwrap())
        .collect();
    let once = [
        "tas",
        "pthread_mutex",
        "std_mutex",
        "parking_lot",
        "spin",
        "pthread_spin",
    ];
    assert_eq!(locks, [once, once].concat());
    for row in rows {
        let rounds = row["by_round"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        assert!(rounds[0]["operations_per_second"].is_f64());
        assert!(rounds[0]["latency_ns"]["p999"].is_u64());
        let is_reference = row["lock"] == "pthread_spin";
        for ratio in [&row["ratio"], &row["p999_ratio"]] {
            let [median, min, max] =
                ["median", "min", "max"].map(|key| ratio[key].as_f64().unwrap());
            assert!(min <= median && median <= max, "{row}");
            assert!(!is_reference || (min, max) == (1.0, 1.0), "{row}");
        }
    }
}

#[test]
fn a_lock_that_only_the_benchmark_has_is_refused() {
    for lock in lockworks_torture::ELSEWHERE {
        let output = torture(&["--lock", lock, "--threads", "1"]);
        assert_refused(&output, &[lock, "`make bench`"]);
    }
}

#[test]
fn good_locks_exclude() {
    for preset in ["plain", "locktorture-new", "locktorture-old"] {
        let output = torture(&["--threads", "3", "--preset", preset, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let results = json(&output);
        for row in results["rows"].as_array().unwrap() {
            assert_eq!(row["violations"], 0, "{row}");
            assert_ne!(row["lock"], "busted");
        }
    }
}

#[test]
fn the_broken_lock_is_caught() {
    let output = output(&[
        "torture",
        "--lock",
        "busted",
        "--threads",
        "4",
        "--critical",
        "1000",
        "--rounds",
        "1",
        "--seconds",
        "0.3",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(json(&output)["rows"][0]["violations"].as_u64() > Some(0));
    assert!(text(&output.stderr).contains("VIOLATION: busted with 4 threads"));
}

#[test]
fn a_topology_by_hand_has_two_nodes() {
    let Some([first, second]) = support::two_cpus() else {
        eprintln!("one CPU cannot be two nodes: not tested");
        return;
    };
    let topology = format!("{first}:{second}");
    let both_kinds_of_handoff = || {
        let args = [
            "torture",
            "--lock",
            "cna",
            "--threads",
            "4",
            "--seconds",
            "0.5",
        ];
        let output = lockworks(&args)
            .args(["--rounds", "1", "--pin", "spread", "--json"])
            .env("LOCKWORKS_TOPOLOGY", &topology)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let results = json(&output);
        assert_eq!(results["machine"]["nodes"], 2);
        assert_eq!(results["tunables"]["numa_spinlock"], true);
        let row = &results["rows"][0];
        row["local_handoffs"] != 0 && row["remote_handoffs"] != 0
    };
    // On a busy machine, half a second may pass with hardly any hand-offs.
    assert!((0..10).any(|_| both_kinds_of_handoff()));
}

#[test]
fn hq_tells_of_its_queues() {
    let Some([first, second]) = support::two_cpus() else {
        eprintln!("one CPU cannot be two nodes: not tested");
        return;
    };
    let topology = format!("{first}:{second}");
    let brief = ["--threads", "4", "--seconds", "0.3", "--rounds", "1"];
    let eager = "hqlock_general_handoffs_turn_numa=0,hqlock_remote_handoffs_turn_numa=0";
    let run = |more: &[&str]| {
        let output = lockworks(&["torture", "--lock", "qspinlock", "--lock", "hq"])
            .args(brief)
            .args(["--tune", eager, "--tune", "hqlock_fairness_threshold=7"])
            .args(more)
            .env("LOCKWORKS_TOPOLOGY", &topology)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output
    };
    let queued_by_node = || {
        let results = json(&run(&["--json"]));
        let tunables = &results["tunables"]["by_name"];
        assert_eq!(tunables["hqlock_fairness_threshold"], 7);
        assert_eq!(tunables["hqlock_general_handoffs_turn_numa"], 0);
        assert_eq!(tunables["hqlock_remote_handoffs_keep_numa"], 1);
        let rows = results["rows"].as_array().unwrap();
        let count = |row: usize, event: &str| {
            let count = rows[row]["events"][event].as_u64();
            count.unwrap_or_else(|| panic!("no count of {event}"))
        };
        assert_eq!(rows[0]["lock"], "qspinlock");
        assert_eq!(count(0, "numa_mode_entered"), 0);
        let [entered, taken, released, local, longest] = [
            "numa_mode_entered",
            "node_queues_taken",
            "node_queues_released",
            "local_handoffs",
            "longest_local_run",
        ]
        .map(|event| count(1, event));
        assert_eq!(taken, released);
        assert!(longest <= local, "{longest} of {local}");
        entered > 0 && taken > 0 && longest > 0
    };
    // On a busy machine, a while may pass in which no waiter queues.
    assert!((0..10).any(|_| queued_by_node()));

    let told = || {
        let output = run(&["--verbose"]);
        let table = text(&output.stdout);
        assert!(!table.contains("qspinlock with"), "{table}");
        table.contains("hq with 4 threads: queueing by node entered")
    };
    assert!((0..10).any(|_| told()));
    let off = run(&["--numa", "off", "--verbose"]);
    assert!(!text(&off.stdout).contains("queueing by node"));
}

#[test]
fn bad_tunables_of_hq_are_refused() {
    let highest = i64::MAX.to_string();
    let described = json(&output(&["locks", "hq", "--json"]));
    for tunable in described["tunables"].as_array().unwrap() {
        let name = tunable["name"].as_str().unwrap();
        let (maximum, beyond) = match name {
            "hqlock_probability_of_force_stay_numa" => ("10000", "10001"),
            _ => (highest.as_str(), "9223372036854775808"),
        };
        assert_eq!(tunable["maximum"].to_string(), maximum);
        for value in [beyond, "-1", "many", ""] {
            let refused = torture(&["--lock", "hq", "--tune", &format!("{name}={value}")]);
            let range = format!("{name} cannot be '{value}': it must be 0 to {maximum}");
            assert_refused(&refused, &[&range]);
            assert_eq!(text(&refused.stderr).lines().count(), 1);
        }
    }
}

#[test]
fn tunables_are_set_and_reported_by_name() {
    let unknown = "unknown tunable 'fairness'; did you mean 'hqlock_fairness_threshold'?";
    for command in ["torture", "sim", "check"] {
        let refused = |setting| output(&[command, "--tune", setting]);
        assert_refused(&refused("fairness=1"), &[unknown]);
        assert_refused(
            &refused("spin=1"),
            &[
                "'spin'",
                "pv_spin, unfair_park, unfair_spin, unfair_arrival_spin, unfair_starvation_limit, mutex_spin, mutex_trials",
            ],
        );
        assert_refused(&refused("1"), &["NAME=VALUE"]);
        let args = ["--tune", "hqlock_fairness_threshold=3,pv_kick_ahead=4"];
        let brief: &[&str] = match command {
            "torture" => &["--seconds", "0.05", "--rounds", "1", "--threads", "1"],
            "sim" => &["--ms", "0.05", "--threads", "1"],
            _ => &["--acquisitions", "1"],
        };
        let results = output(&[&[command, "--lock", "tas", "--json"], brief, &args].concat());
        assert_eq!(results.status.code(), Some(0), "{}", text(&results.stderr));
        let tunables = &json(&results)["tunables"]["by_name"];
        assert_eq!(tunables["hqlock_fairness_threshold"], 3);
        assert_eq!(tunables["pv_kick_ahead"], 4);
        // One that is not set has its default, here or in a kernel, or what suits a check.
        let park = match command {
            "sim" => 0,
            _ => 1,
        };
        assert_eq!(tunables["unfair_park"], park);
    }
}

#[test]
fn far_more_threads_than_cpus_come_to_an_end() {
    let output = torture(&["--lock", "ticket", "--threads", "32", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(json(&output)["rows"][0]["violations"], 0);
}

#[test]
fn interruption_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("torture.json");
    let mut child = lockworks(&["torture", "--seconds", "600", "-o", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let catches_interrupt = || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() >> (Signal::SIGINT as u32 - 1) & 1 == 1
    };
    while !catches_interrupt() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn tables_elsewhere_than_on_a_terminal_are_whole() {
    let brief = "torture --seconds 0.02 --rounds 1 --threads 1,8 --lock qspinlock,pthread_mutex";
    let brief: Vec<&str> = brief.split(' ').collect();
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
    assert!(widest(text(&output(&["locks"]).stdout)) > Some(100));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table");
    let to_file = ["-o", file.to_str().unwrap()];
    assert_eq!(
        on_terminal(lockworks(&[&brief, &to_file[..]].concat()), 80),
        ""
    );
    assert!(widest(&fs::read_to_string(&file).unwrap()) > Some(80));
}

#[test]
fn details_name_a_lock_once() {
    let all = json(&output(&["locks", "--json"]));
    for lock in all.as_array().unwrap() {
        let name = lock["name"].as_str().unwrap();
        let detail = output(&["locks", name]);
        let first = text(&detail.stdout).lines().next().unwrap();
        let again = first.strip_prefix(&format!("{name}: ")).unwrap();
        assert!(!again.starts_with(&format!("{name}:")), "{first}");
    }
}

#[test]
fn locks_are_listed() {
    let table = output(&["locks"]);
    assert_eq!(table.status.code(), Some(0));
    let table = text(&table.stdout);
    for words in ["qspinlock", "NUMA-aware", "BROKEN", "throughput collapses"] {
        assert!(table.contains(words), "no {words:?} in {table}");
    }

    let all = json(&output(&["locks", "--json"]));
    let cna = json(&output(&["locks", "cna", "--json"]));
    assert!(all.as_array().unwrap().contains(&cna));
    assert_eq!(cna["bytes"], 4);
    assert_eq!(cna["order"], "NUMA-aware");

    assert_eq!(cna["tunables"], serde_json::json!([]));
    assert_eq!(
        json(&output(&["locks", "hq", "--json"]))["tunables"][0]["name"],
        "hqlock_fairness_threshold"
    );
    let detail = output(&["locks", "hq"]);
    let detail = text(&detail.stdout);
    for words in [
        "0x200 is unlocked",
        "0 to 10000",
        "LOCKWORKS_NAME",
        "local_handoffs_to_increase_remotes",
    ] {
        assert!(detail.contains(words), "no {words:?} in {detail}");
    }

    let detail = output(&["locks", "busted"]);
    assert!(text(&detail.stdout).starts_with("busted: BROKEN"));
}

#[test]
fn lockrefs_are_listed_as_such() {
    let kind = |name: &str| json(&output(&["locks", name, "--json"]))["kind"].clone();
    assert_eq!(kind("hq"), "lock");
    assert_eq!(kind("lockref-hq"), "lockref");
    let all = json(&output(&["locks", "--json"]));
    let hq = json(&output(&["locks", "lockref-hq", "--json"]));
    assert!(all.as_array().unwrap().contains(&hq));
    assert_eq!((&hq["bytes"], &hq["unlocked"]), (&8.into(), &0x200.into()));
    let table = output(&["locks"]);
    let detail = output(&["locks", "lockref-hq"]);
    for shown in [&table, &detail] {
        let shown = text(&shown.stdout);
        assert!(shown.contains("hq and a count of references"), "{shown}");
        assert!(shown.contains("`lockworks check`"), "{shown}");
    }
}

#[test]
fn lockrefs_are_refused_where_locks_are_wanted() {
    for command in ["torture", "sim"] {
        let refused = output(&[command, "--lock", "lockref-cna"]);
        assert_refused(
            &refused,
            &["'lockref-cna' is a lockref", "`lockworks check`"],
        );
        assert_eq!(text(&refused.stderr).lines().count(), 1);
    }
}

#[test]
fn a_quota_withholds_the_cpus() {
    for percent in ["0", "101", "half"] {
        assert_refused(&output(&["torture", "--quota", percent]), &[percent]);
    }
    // These threads use one CPU at least, and a hundredth of the CPUs of most machines is less.
    let limited = output(&[
        "torture",
        "--lock",
        "tas",
        "--threads",
        "2",
        "--seconds",
        "0.5",
        "--rounds",
        "1",
        "--quota",
        "1",
        "--json",
    ]);
    if limited.status.code() == Some(2) {
        // Only root may make control groups, and not in every container.
        let ways = [
            "cannot make a control group with a CPU quota",
            "systemd-run",
        ];
        return assert_refused(&limited, &ways);
    }
    let quota = &json(&limited)["quota"];
    assert_eq!(quota["percent"], 1);
    assert!(quota["throttled_periods"].as_u64() > Some(0), "{quota}");
    assert!(quota["throttled_seconds"].as_f64() > Some(0.0), "{quota}");
}
