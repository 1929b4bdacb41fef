//! Tests of `lockworks-maintain bench --quick`: its JSON, its tables, its files and its errors.

use std::process::Output;

use crate::support::{assert_refused, output};
use serde_json::Value;

fn bench(args: &[&str]) -> Output {
    output(&[&["bench"], args].concat())
}

fn names(rows: &Value, key: &str) -> Vec<String> {
    let rows = rows.as_array().expect("rows");
    rows.iter()
        .map(|row| row[key].as_str().expect("a name").to_string())
        .collect()
}

#[test]
fn quick_run_has_all_rows() {
    let done = bench(&["--quick", "--json"]);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");

    let sections = report["sections"].as_array().expect("sections");
    let uncontended = &sections[0];
    assert_eq!(uncontended["name"], "uncontended");
    let locks = names(&uncontended["rows"], "lock");
    for lock in [
        "bare",
        "lw_qspinlock",
        "lw_cna",
        "lw_hq",
        "lw_mutex",
        "lw_pv",
        "lw_unfair",
        "lw_tas",
        "lw_ticket",
        "lw_mcs",
        "pthread_spin",
        "pthread_mutex",
        "std_mutex",
        "parking_lot",
        "spin",
    ] {
        assert!(locks.iter().any(|name| name == lock), "{lock}");
    }
    for row in uncontended["rows"].as_array().expect("rows") {
        let million = &row["million_per_second"];
        assert!(million["median"].as_f64().expect("a figure") > 0.0);
        assert!(row["ratio"]["median"].as_f64().expect("a ratio") > 0.0);
    }
    let of_bare = uncontended["requirements"]
        .as_array()
        .expect("requirements")
        .iter()
        .filter(|requirement| requirement["than"] == "bare" && requirement["limit"] == 0.95)
        .count();
    assert_eq!(of_bare, 3);

    // The busier half makes half of the operations at least.
    let contended = sections.iter().filter(|s| s["threads"].as_u64() > Some(1));
    for section in contended.clone() {
        for row in section["rows"].as_array().expect("rows") {
            let fairness = row["fairness"].as_f64().expect("a factor");
            assert!((0.5..=1.0).contains(&fairness), "{row}");
        }
    }
    assert!(contended.count() >= 3);

    let references = sections
        .iter()
        .filter(|section| section["reference"] == "atomic");
    for section in references.clone() {
        let names = names(&section["rows"], "lock");
        for name in ["lw_lockref_cna", "lw_cna + count", "pthread_mutex + count"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        let requirements = section["requirements"].as_array().expect("requirements");
        assert_eq!(requirements.len(), 6);
    }
    assert!(references.count() >= 2);

    let simulator = &report["simulator"];
    assert_eq!(
        names(simulator, "lock"),
        ["qspinlock", "cna", "qspinlock", "cna"]
    );
    for run in simulator.as_array().expect("runs") {
        assert!(run["acquisitions_per_second"].as_f64() > Some(0.0));
        assert!(run["memory_mib"].as_f64() > Some(0.0));
    }
}

#[test]
fn tables_and_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("report.txt");
    let path = path.to_str().expect("a path in UTF-8");
    let done = bench(&["--quick", "--only", "uncontended", "-o", path]);
    assert!(done.status.success());
    assert!(done.stdout.is_empty());
    let text = std::fs::read_to_string(path).expect("the report");
    assert!(text.contains("lw_qspinlock"));
    assert!(text.contains("Requirements: "));
    assert!(!text.contains("oracle-x5-4"));

    let done = bench(&["--quick", "--only", "uncontended", "-o", "/dev/null"]);
    assert!(done.status.success());
    let null = std::fs::metadata("/dev/null").expect("the device was not removed");
    assert!(!null.is_file());
}

#[test]
fn refuses_what_it_cannot_do() {
    assert_refused(
        &bench(&["--only", "nothing"]),
        &["'nothing'", "uncontended"],
    );
    let refused = bench(&["--quick", "-o", "/nonexistent/report.txt"]);
    assert_refused(&refused, &["no directory /nonexistent"]);
}
