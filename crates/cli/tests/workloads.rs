//! `lockworks sim` with workload files: the list, the example, files of the user.

use std::fs;

use crate::support::{assert_refused, json, output, text};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/workloads/cache.toml"
);

#[test]
fn all_workloads_are_listed() {
    let table = output(&["sim", "--workloads"]);
    assert_eq!(table.status.code(), Some(0));
    let listed = json(&output(&["sim", "--workloads", "--json"]));
    let listed = listed.as_array().unwrap();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/workloads");
    assert_eq!(listed.len(), fs::read_dir(files).unwrap().count());
    for workload in listed {
        for key in ["name", "title"] {
            let words = workload[key].as_str().unwrap();
            assert!(text(&table.stdout).contains(words), "{words}");
        }
    }
}

#[test]
fn the_example_runs() {
    let run = |workload: &str| {
        let how = ["--lock", "qspinlock,mcs", "--threads", "1,18", "--ms", "2"];
        output(&[&["sim", "--workload", workload, "--json"], &how[..]].concat())
    };
    let simulated = run(EXAMPLE);
    assert_eq!(
        simulated.status.code(),
        Some(0),
        "{}",
        text(&simulated.stderr)
    );
    let results = json(&simulated);
    assert_eq!(results["workload"], "cache");
    let rows = results["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["violations"], 0);
        assert!(row["operations_per_second"].as_f64() > Some(1e5), "{row}");
    }
    let value = |key: &str| {
        let values = results["values"].as_array().unwrap();
        values.iter().any(|value| value["key"] == key)
    };
    assert!(value("workload.request_ns"));
}

#[test]
fn constants_of_a_file_can_be_set() {
    let rate = |request_ns: &str| {
        let set = format!("workload.request_ns={request_ns}");
        let how = [
            "--lock",
            "tas",
            "--threads",
            "1",
            "--ms",
            "2",
            "--set",
            &set,
        ];
        let results = json(&output(
            &[&["sim", "--workload", EXAMPLE, "--json"], &how[..]].concat(),
        ));
        results["rows"][0]["operations_per_second"]
            .as_f64()
            .unwrap()
    };
    assert!(rate("500") > 2.0 * rate("5000"));
}

#[test]
fn wrong_files_are_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let path = path.to_str().unwrap();
    let good = fs::read_to_string(EXAMPLE).unwrap();
    for (from, to, words) in [
        (
            "exponential",
            "exponentail",
            &["unknown field `exponentail`", "`exponential`"][..],
        ),
        (
            "[0, \"request_ns\"]",
            "[\"request_ns\", 0]",
            &["3000", "above the high end 0"],
        ),
        ("weight = 9", "weight = -9", &["a weight cannot be -9"]),
        ("count = 16", "count = 0.5", &["count cannot be 0.5"]),
    ] {
        assert!(good.contains(from), "{from}");
        let at = good.lines().position(|line| line.contains(from)).unwrap() + 1;
        fs::write(path, good.replacen(from, to, 1)).unwrap();
        let refused = output(&["sim", "--workload", path, "--ms", "0.1"]);
        assert_refused(
            &refused,
            &[&[&*format!("mine.toml:{at}: ")], words].concat(),
        );
    }
    let missing = output(&["sim", "--workload", "./no-such.toml"]);
    assert_refused(
        &missing,
        &["no-such.toml", "cannot read the description of a workload"],
    );
    let negative = ["--set", "workload.request_ns=-1"];
    assert_refused(
        &output(&[&["sim", "--workload", EXAMPLE], &negative[..]].concat()),
        &["not negative"],
    );
}

#[test]
fn numbers_are_asked_for_in_words() {
    for (option, value, words) in [
        ("--threads", "many", "a whole number that is not negative"),
        ("--vcpus", "-3", "a whole number that is not negative"),
        ("--seed", "x", "a whole number that is not negative"),
        ("--cpus", "1.5", "a whole number that is not negative"),
        ("--threshold", "0", "a whole number from 1 to 100"),
    ] {
        let argument = format!("{option}={value}");
        assert_refused(&output(&["sim", &argument]), &[words, value]);
    }
}
