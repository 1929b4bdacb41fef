//! `lockworks regret` from outside. crates/sweep tests what functions show.

use std::fs;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{assert_fits_terminals, json, lockworks, output, text};
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
fn the_report_fits_terminals() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("store.jsonl").display().to_string();
    let more = ["--lock", "mutex,cna", "--cells", "2", "--store", &store];
    let args = [&["regret"], &SMALL[..], &more].concat();
    assert_fits_terminals(&args, &["mutex", "cna", "worst"]);
    let report: Value = json(&output(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["planned"], report["cells"]);
}
