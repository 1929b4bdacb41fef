//! Tests of `lockworks kernel` on real kernels, where the command shows more than its functions: what
//! an interruption leaves, and exit statuses. `crates/lab/tests/kernel.rs` has the others.
//!
//! The tests take minutes and need QEMU: `make test-kernel` runs all of them, `make test` the
//! module `quick`.

#[path = "../../lab/tests/kernels/mod.rs"]
mod kernels;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use kernels::{KERNELS, NATIVE, PARAVIRT, succeeds, text};
use serde_json::Value;

fn lockworks(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockworks"))
        .arg("kernel")
        .args(args)
        .output()
        .expect("the command runs")
}

/// Waits for a value. The limit only ends a test that hangs, so it is far beyond what a loaded
/// machine takes.
#[track_caller]
fn wait_for<T>(value: impl Fn() -> Option<T>) -> T {
    for _ in 0..9000 {
        if let Some(value) = value() {
            return value;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("the wait took more than 15 minutes");
}

/// A directory with a program in place of QEMU. Another process writes the program: while this one
/// had it open, a program started by another thread would inherit the open file, and the system
/// refuses to execute a file that somebody can write to.
fn instead_of_qemu(script: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("script");
    fs::write(&source, format!("#!/bin/sh\n{script}")).unwrap();
    succeeds(
        Command::new("install")
            .args(["-m", "755"])
            .args([source, directory.path().join("qemu-system-x86_64")]),
    );
    directory
}

/// A path on which the programs of a directory come first.
fn path_with(directory: &Path) -> String {
    let path = std::env::var("PATH").expect("a path");
    format!("{}:{path}", directory.display())
}

/// The directory in which a kernel is built.
fn build_directory(version: &str, config: &str) -> PathBuf {
    let output = lockworks(&["build", "--version", version, "--config", config]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let image = text(&output.stdout);
    let image = Path::new(image.lines().last().expect("a path"));
    let above = image.ancestors().nth(4).expect("arch/x86/boot/bzImage");
    above.to_owned()
}

/// The tests of `make test`.
mod quick {
    use super::*;

    /// The axioms of our models are those of the kernel's.
    #[test]
    #[ignore = "needs kernel sources; make test-kernel"]
    fn the_kernels_litmus_tests_end_as_it_documents() {
        for (version, config) in KERNELS {
            let tree = build_directory(version, config).join("source");
            let litmus = |directory: &str| -> Vec<PathBuf> {
                // Linux 6.1 has fewer of these directories.
                let Ok(entries) = fs::read_dir(tree.join(directory)) else {
                    return Vec::new();
                };
                let paths = entries.map(|entry| entry.unwrap().path());
                let is_litmus = |path: &PathBuf| path.extension().is_some_and(|e| e == "litmus");
                paths.filter(is_litmus).collect()
            };
            let own = litmus("tools/memory-model/litmus-tests");
            assert!(own.len() >= 34, "{} in {version}", own.len());
            let mut files = own;
            for part in ["atomic", "locking", "rcu"] {
                files.extend(litmus(&format!("Documentation/litmus-tests/{part}")));
            }
            let output = Command::new(env!("CARGO_BIN_EXE_lockworks"))
                .args(["check", "litmus", "--memory", "lkmm,lkmm-6.2"])
                .args(["--search", "--json"])
                .args(&files)
                .output()
                .expect("the command runs");
            let refused = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{version}: {refused}");
            let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let rows = rows.as_array().unwrap();
            assert_eq!(rows.len(), 2 * files.len());
            let documented = rows.iter().filter(|row| row["agrees"] == true);
            assert_eq!(documented.count(), rows.len(), "{version}");
        }
    }

    #[test]
    #[ignore = "boots a kernel; make test-kernel"]
    fn the_command_fails_if_the_guest_fails() {
        let run = |command: &str| lockworks(&["run", "--cpus", "2", "--nodes", "1", "--", command]);
        let failed = run("exit 3");
        let err = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(1), "{err}");
        assert!(err.contains("ended with status 3"), "{err}");
        let panicked = run("echo c >/proc/sysrq-trigger");
        let err = text(&panicked.stderr);
        assert_eq!(panicked.status.code(), Some(1), "{err}");
        assert!(err.contains("Kernel panic"), "{err}");
    }

    #[test]
    #[ignore = "needs a kernel; make test-kernel"]
    fn no_guest_outlives_a_signal() {
        // The kernel to boot must exist.
        build_directory(NATIVE, "native");
        let scratch = tempfile::tempdir().unwrap();
        let pid = scratch.path().join("pid");
        let programs = instead_of_qemu(&format!("echo $$ >{}\nexec sleep 600\n", pid.display()));
        for signal in ["INT", "TERM"] {
            let mut torture = Command::new(env!("CARGO_BIN_EXE_lockworks"))
                .args(["kernel", "torture"])
                .env("PATH", path_with(programs.path()))
                .spawn()
                .expect("the command runs");
            let guest = wait_for(|| {
                fs::read_to_string(&pid)
                    .ok()
                    .filter(|pid| pid.ends_with('\n'))
            });
            fs::remove_file(&pid).unwrap();
            let process = PathBuf::from(format!("/proc/{}", guest.trim()));
            assert!(process.exists());
            succeeds(Command::new("kill").args(["-s", signal, &torture.id().to_string()]));
            assert_eq!(torture.wait().unwrap().code(), Some(130), "{signal}");
            wait_for(|| (!process.exists()).then_some(()));
        }
    }

    /// The first boot ends by a breakpoint, which QEMU makes of an instruction that is patched.
    #[test]
    #[ignore = "boots a kernel; make test-kernel"]
    fn a_fault_of_qemu_is_no_verdict_on_a_lock() {
        build_directory(NATIVE, "native");
        let scratch = tempfile::tempdir().unwrap();
        let booted = scratch.path().join("booted");
        let programs = instead_of_qemu(&format!(
            "if [ -e {0} ]; then PATH=${{PATH#*:}}; exec qemu-system-x86_64 \"$@\"; fi\n\
             touch {0}; echo '[    1.5] Oops: int3: 0000 [#1] SMP'\n",
            booted.display()
        ));
        let args = ["run", "--emulation", "multi", "--cpus", "2", "--nodes", "1"];
        let output = Command::new(env!("CARGO_BIN_EXE_lockworks"))
            .args([&["kernel"], &args[..], &["--", "echo done"]].concat())
            .env("PATH", path_with(programs.path()))
            .output()
            .expect("the command runs");
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(text(&output.stdout).contains("done"), "{err}");
        assert!(err.contains("boot 2 of at most 4 begins"), "{err}");
    }

    #[test]
    #[ignore = "boots kernels; make test-kernel"]
    fn a_comparison_outlives_a_guest() {
        let args = [
            "compare",
            "--version",
            PARAVIRT,
            "--modes",
            "native,byte",
            "--workloads",
            "locktorture",
        ];
        let length = [
            "--cpus",
            "2",
            "--rounds",
            "1",
            "--seconds",
            "1",
            "--timeout",
            "1",
        ];
        // A guest that never comes up, however fast the machine is.
        let programs = instead_of_qemu("exec sleep 600\n");
        let output = Command::new(env!("CARGO_BIN_EXE_lockworks"))
            .args([&["kernel"], &args[..], &length, &["--json"]].concat())
            .env("PATH", path_with(programs.path()))
            .output()
            .expect("the command runs");
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(
            err.contains("FAIL: byte, round 1: the guest hangs"),
            "{err}"
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        for row in report["rows"].as_array().unwrap() {
            assert_eq!((&row["rate"], &row["missing"]), (&Value::Null, &1.into()));
        }
    }

    #[test]
    #[ignore = "boots kernels; make test-kernel"]
    fn a_signal_leaves_the_results_of_complete_rounds() {
        let build = build_directory(PARAVIRT, "paravirt");
        let runs = build.parent().unwrap().join("runs");
        let compare = Command::new(env!("CARGO_BIN_EXE_lockworks"))
            .args([
                "kernel",
                "compare",
                "--version",
                PARAVIRT,
                "--modes",
                "byte",
                "--workloads",
                "locktorture",
            ])
            .args(["--cpus", "2", "--rounds", "100", "--seconds", "1", "--json"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the command runs");
        // Other tests have guests in the same cache. The names of runs tell whose they are.
        let own = format!("-{}-", compare.id());
        wait_for(|| {
            let runs = fs::read_dir(&runs)
                .ok()?
                .filter_map(|run| Some(run.ok()?.path()));
            let channels: Vec<PathBuf> = runs
                .filter(|run| run.to_str().is_some_and(|run| run.contains(&own)))
                .map(|run| run.join("channel"))
                .filter(|channel| channel.exists())
                .collect();
            let ended = |path: &PathBuf| {
                let said = fs::read(path).unwrap_or_default();
                text(&said).contains("@lockworks end")
            };
            (channels.iter().any(ended) && !channels.iter().all(ended)).then_some(())
        });
        succeeds(Command::new("kill").args(["-s", "INT", &compare.id().to_string()]));
        let output = compare.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["interrupted"], true);
        assert!(
            report["rows"][0]["rate"].as_f64().unwrap() > 0.0,
            "{report}"
        );
    }
}

#[test]
#[ignore = "boots a kernel; make test-kernel"]
fn a_signal_leaves_what_a_soak_has_covered() {
    let runs = build_directory(NATIVE, "native")
        .parent()
        .unwrap()
        .join("runs");
    let soak = Command::new(env!("CARGO_BIN_EXE_lockworks"))
        .args([
            "kernel", "torture", "--lock", "cna", "--cpus", "2", "--nodes", "2",
        ])
        .args(["--soak", "60", "--seconds", "1", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command runs");
    // Other tests have guests in the same cache. The names of runs tell whose they are.
    let own = format!("-{}-", soak.id());
    wait_for(|| {
        let runs = fs::read_dir(&runs).ok()?;
        let mut runs = runs.filter_map(|run| Some(run.ok()?.path()));
        let said = |run: PathBuf| text(&fs::read(run.join("channel")).unwrap_or_default());
        let has_measured = |run: PathBuf| {
            run.to_str().is_some_and(|run| run.contains(&own))
                && said(run).matches("measured").count() > 1
        };
        runs.any(has_measured).then_some(())
    });
    succeeds(Command::new("kill").args(["-s", "INT", &soak.id().to_string()]));
    let output = soak.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_ne!(report["rows"][0]["rounds"], 0, "{report}");
}
