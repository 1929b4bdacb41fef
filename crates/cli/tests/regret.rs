//! `lockworks regret` from outside.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{assert_fits_terminals, assert_refused, json, lockworks, output, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

const SMALL: [&str; 8] = [
    "--machine",
    "kunpeng-920",
    "--workload",
    "locktorture-new,open1_threads",
    "--threads",
    "1,8,96",
    "--ms",
    "0.5",
];

fn command(directory: &TempDir, more: &[&str]) -> std::process::Command {
    let mut command = lockworks(&[&["regret"], &SMALL[..], more].concat());
    command.current_dir(directory);
    command
}

fn regret(directory: &TempDir, more: &[&str]) -> Output {
    command(directory, more).output().expect("the command runs")
}

fn stored(directory: &TempDir) -> usize {
    let store = fs::read_to_string(directory.path().join("regret.results.jsonl"));
    store.map_or(0, |text| text.lines().count())
}

/// Operations a second and fairness of each lock in each cell, by `lockworks sim`.
fn simulated(locks: &str) -> Vec<BTreeMap<String, [f64; 2]>> {
    let mut cells = Vec::new();
    for workload in ["locktorture-new", "open1_threads"] {
        let args = ["sim", "--machine", "kunpeng-920", "--workload", workload];
        let more = [
            "--lock",
            locks,
            "--threads",
            "1,8,96",
            "--ms",
            "0.5",
            "--seeds",
            "1",
            "--json",
        ];
        let rows = json(&output(&[&args[..], &more].concat()))["rows"].clone();
        for threads in [1, 8, 96] {
            let rows = rows.as_array().expect("rows").iter();
            let rows = rows.filter(|row| row["threads"] == threads);
            let figures = rows.map(|row| {
                let figure = |name: &str| row[name].as_f64().expect("a number");
                let lock = row["lock"].as_str().expect("a name").to_owned();
                (lock, [figure("operations_per_second"), figure("fairness")])
            });
            cells.push(figures.collect());
        }
    }
    cells
}

#[test]
fn shares_are_those_of_the_simulations() {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = [
        "--lock",
        "mutex,cna",
        "--against",
        "qspinlock,tas",
        "--json",
        "--cells",
        "6",
    ];
    let report = json(&regret(&directory, &asked));
    let cells = simulated("mutex,cna,qspinlock,tas");
    assert_eq!(report["cells"], 6);
    assert_eq!(report["locks"].as_array().map(Vec::len), Some(2));
    for verdict in report["locks"].as_array().expect("verdicts") {
        let lock = verdict["lock"].as_str().expect("a name");
        let share = |cell: &BTreeMap<String, [f64; 2]>| {
            let fair = cell.values().filter(|[_, fairness]| *fairness <= 0.70);
            let best = fair.map(|[rate, _]| *rate).fold(0.0, f64::max);
            cell[lock][0] / best
        };
        let mut shares: Vec<f64> = cells.iter().map(share).collect();
        shares.sort_by(f64::total_cmp);
        let listed = verdict["worst"].as_array().expect("cells").iter();
        let listed: Vec<f64> = listed.map(|cell| cell["share"].as_f64().unwrap()).collect();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            listed.iter().zip(&shares).all(|(a, b)| close(*a, *b)),
            "{lock}"
        );
        let product: f64 = shares.iter().product();
        let mean = verdict["geometric_mean"].as_f64().expect("a number");
        assert!(close(mean, product.powf(1.0 / 6.0)), "{lock}: {mean}");
        let of_stock = cells
            .iter()
            .map(|cell| cell[lock][0] / cell["qspinlock"][0]);
        let worst = of_stock.fold(f64::INFINITY, f64::min);
        assert!(close(
            verdict["worst_of_stock"].as_f64().expect("a number"),
            worst
        ));
        let unfair = cells.iter().filter(|cell| cell[lock][1] > 0.70).count();
        assert_eq!(verdict["unfair_cells"], unfair);
    }
    let answer = report["answer"].as_str().expect("a text");
    assert!(answer.contains("take mutex"), "{answer}");
}

#[test]
fn one_more_lock_runs_only_that_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let two = ["--lock", "mutex,cna", "--against", "qspinlock"];
    assert_eq!(regret(&directory, &two).status.code(), Some(0));
    assert_eq!(stored(&directory), 6 * 3);
    let three = [
        "--lock",
        "mutex,cna,hq",
        "--against",
        "qspinlock",
        "--csv",
        "cells.csv",
        "--plot",
        "map.svg",
    ];
    assert_eq!(regret(&directory, &three).status.code(), Some(0));
    assert_eq!(stored(&directory), 6 * 4);
    let file = |name: &str| fs::read_to_string(directory.path().join(name)).expect("a file");
    assert_eq!(file("cells.csv").lines().count(), 1 + 6 * 4);
    let map = file("map.svg");
    for words in ["kunpeng-920 open1_threads", "hq", "96"] {
        assert!(map.contains(&format!(">{words}<")), "{words}");
    }
    // A square for each cell and lock, that of --against included.
    assert_eq!(map.matches("stroke=\"#ffffff\"").count(), 6 * 4);
    assert_eq!(stored(&directory), 6 * 4);
}

#[test]
fn more_threads_than_cpus_are_cells_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = [
        "--lock",
        "mutex,unfair",
        "--against",
        "mutex",
        "--oversubscribed",
        "--json",
    ];
    let report = json(&regret(&directory, &asked));
    assert_eq!(report["cells"], 2 * (3 + 4));
    // Threads that take turns are not asked to be fair.
    assert!(report["answer"].as_str().unwrap().contains("take mutex"));
    let command = regret(
        &directory,
        &[&asked[..4], &["--oversubscribed", "--csv", "cells.csv"]].concat(),
    );
    assert_eq!(command.status.code(), Some(0));
    let cells = fs::read_to_string(directory.path().join("cells.csv")).expect("a file");
    assert!(
        cells.contains("kunpeng-920,open1_threads,128,32,unfair,"),
        "{cells}"
    );
}

#[test]
fn an_interrupted_run_shows_what_is_finished_and_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let long = [
        "--lock",
        "mutex,qspinlock",
        "--against",
        "mutex",
        "--seeds",
        "40",
        "--jobs",
        "1",
    ];
    let mut child = command(&directory, &long)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // A cell has 80 points.
    while stored(&directory) < 81 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("the process is there");
    let interrupted = child.wait_with_output().expect("the command ends");
    assert_eq!(interrupted.status.code(), Some(130));
    let (shown, said) = (text(&interrupted.stdout), text(&interrupted.stderr));
    assert!(
        shown.contains("are not finished") && shown.contains("mutex"),
        "{shown}"
    );
    assert!(said.contains("the same command goes on"), "{said}");
    let kept = stored(&directory);
    assert!((81..480).contains(&kept), "{kept}");
    let ended = regret(&directory, &[&long[..], &["--json"]].concat());
    assert_eq!(json(&ended)["cells"], 6);
    assert_eq!(stored(&directory), 480);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused: [(&[&str], &[&str]); 7] = [
        (&["--lock", "mutx"], &["'mutx'", "mutex"]),
        (&["--against", "hqq"], &["'hqq'", "hq"]),
        (&["--fair", "0.3"], &["0.5 to 1"]),
        (&["--seeds", "0"], &["--seeds"]),
        (&["--plot", "map.png"], &[".svg"]),
        (
            &["--csv", "no/such/cells.csv"],
            &["cannot write no/such/cells.csv"],
        ),
        (&["--store", "."], &["--store"]),
    ];
    for (more, words) in refused {
        assert_refused(&regret(&directory, more), words);
    }
    let unknown = |args: &[&str], words: &[&str]| {
        assert_refused(&output(&[&["regret"], args].concat()), words);
    };
    unknown(&["--machine", "kunpeng"], &["'kunpeng'", "kunpeng-920"]);
    unknown(
        &["--machine", "kunpeng-920", "--workload", "open1"],
        &["'open1'", "open1_threads"],
    );
}

#[test]
fn the_report_fits_terminals() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("store.jsonl").display().to_string();
    let more = ["--lock", "mutex,cna", "--cells", "2", "--store", &store];
    let args = [&["regret"], &SMALL[..], &more].concat();
    assert_fits_terminals(&args, &["mutex", "cna", "worst"]);
    let report: Value = json(&output(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["planned"], report["cells"]);
}
