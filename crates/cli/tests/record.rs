//! `lockworks record` writes all that threads do with locks, however the program ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockworks_preload::plan::Plan;
use lockworks_profile::recording::{Kind, Recording, Site, Step};

use crate::support::{assert_fails, json, output};

fn compile(directory: &Path) -> PathBuf {
    let (file, program) = (directory.join("record.c"), directory.join("record"));
    fs::write(&file, include_str!("record.c")).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-g", "-O2", "-Wl,--build-id", "-o"]);
    compiler.args([&program, &file]);
    assert!(compiler.status().expect("a C compiler").success());
    program
}

fn kinds(steps: &[Step]) -> Vec<Kind> {
    steps.iter().map(|step| step.kind).collect()
}

#[test]
fn all_steps_are_recorded_also_of_a_program_that_is_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path());
    let program = program.to_str().expect("a path");
    let file = directory.path().join("r.lw");
    let path = file.to_str().expect("a path");
    for (arguments, status) in [(&[][..], 0), (&["die"], 128 + 9)] {
        let record = ["record", "--json", "-o", path, "--", program];
        let ran = output(&[&record, arguments].concat());
        assert_eq!(ran.status.code(), Some(status), "{ran:?}");
        let summary = json(&ran);
        assert_eq!(summary["threads"], 4);
        assert_eq!(summary["locks"][0]["lock"], "mutex");
        assert_eq!(summary["lost"], 0);

        let recording = Recording::open(&file).expect("a recording");
        // What an empty section takes was measured, and the steps of that are gone.
        assert!(recording.step_ns.iter().all(|ns| (1..10_000).contains(ns)));
        assert!(recording.machine.is_some());
        let threads: Vec<_> = recording.by_thread().collect();
        let (_, first) = threads[0];
        // The inner acquisition of a recursive mutex is no step.
        let expected = [
            Kind::Begins,
            Kind::Acquires,
            Kind::Releases,
            Kind::Acquires,
            Kind::Acquires,
            Kind::Fails,
            Kind::Broadcasts,
            Kind::Releases,
            Kind::Releases,
        ];
        // Whether a thread waits, and whether a release wakes one, is chance.
        let always = |kind: &Kind| !matches!(kind, Kind::Waits | Kind::Returns);
        let found: Vec<Kind> = kinds(first).into_iter().filter(always).collect();
        assert_eq!(found, expected);
        // It slept for 20 ms with the recursive mutex.
        if recording.knows_away {
            assert!(
                first[2].away_ns >= 20_000_000 && first[2].slept,
                "{first:?}"
            );
        }
        // Time without a CPU is part of the time since the last step; two clocks measure them.
        for (_, steps) in &threads {
            for pair in steps.windows(2) {
                let passed = pair[1].ns - pair[0].ns;
                assert!(pair[1].away_ns <= passed + 1_000_000, "{pair:?}");
            }
        }
        for (thread, steps) in &threads[1..] {
            assert!(
                thread.function.as_ref().expect("known").starts_with("run"),
                "{thread:?}"
            );
            let number = |kind| kinds(steps).iter().filter(|other| **other == kind).count();
            assert_eq!(number(Kind::Awaits), number(Kind::Woken));
            assert_eq!(number(Kind::Acquires), number(Kind::Releases));
            assert_eq!(number(Kind::Acquires), 1001 + number(Kind::Awaits));
            assert_eq!(steps.last().expect("a step").kind, Kind::Ends);
            assert!(steps.is_sorted_by_key(|step| step.ns));
        }
    }
}

#[test]
fn nothing_is_written_without_a_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("r.lw");
    let path = file.to_str().expect("a path");
    assert_fails(
        &output(&["record", "-o", path, "--", "true"]),
        2,
        &["nothing is written"],
    );
    assert!(!file.exists());
}

#[test]
fn plans_find_the_locks_of_a_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path());
    let program = program.to_str().expect("a path");
    let file = directory.path().join("r.lw");
    let path = file.to_str().expect("a path");
    let ran = output(&["record", "-o", path, "--", program]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let recording = Recording::open(&file).expect("a recording");
    let of = |name: &str| {
        let number = recording.objects.iter().position(|object| object == name);
        number.unwrap_or_else(|| panic!("{name} of {:?}", recording.objects))
    };
    let sites = |name: &str| &recording.sites.objects[of(name)];

    let [again, mutex, rwlock] = ["again", "mutex", "rwlock"].map(sites);
    assert!(again.variable.is_some() && again.initialised.is_some());
    assert!(mutex.variable.is_some() && mutex.initialised.is_none());
    let function = |site: &Option<Site>| site.as_ref().map(|site| site.name.clone());
    let first = function(&again.first_locked).expect("it was locked");
    assert!(first.starts_with("main"), "{first}");
    assert_eq!(function(&rwlock.variable).as_deref(), Some("rwlock"));

    // The plan of these lines is obeyed, so glibc serves neither.
    let lines = ["again", "mutex"].map(|name| recording.plan_line(of(name), "pv"));
    let lines = lines.map(|line| line.expect("a variable"));
    let plan = Plan {
        lines: lines.to_vec(),
    };
    let plan_path = directory.path().join("p.plan");
    fs::write(&plan_path, plan.to_string()).expect("a file");
    let plan_path = plan_path.to_str().expect("a path");
    let mut run = crate::support::lockworks(&["run", "--plan", plan_path, "--", program]);
    let ran = run.env("LOCKWORKS_VERBOSE", "1").output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(
        said.matches("locks that 'pv' serves: 1\n").count(),
        2,
        "{said}"
    );

    // So is one that names a call, as for mutexes that are no variables.
    for site in [&again.initialised, &again.first_locked] {
        let mut line = plan.lines[0].clone();
        line.address = site.as_ref().expect("a call").address;
        let plan = Plan { lines: vec![line] };
        fs::write(plan_path, plan.to_string()).expect("a file");
        let ran = run.output().expect("it runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(said.contains("locks that 'pv' serves: 1\n"), "{said}");
    }
}
