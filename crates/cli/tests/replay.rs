//! `lockworks replay` does again what a recording says.

use std::path::Path;

use lockworks_machine::Machine;
use lockworks_profile::recording::{Kind, Recording, Step, Thread};

use crate::support::{assert_fails, json, output};

/// The steps of a thread: the time, the kind and the object of each.
type Steps = Vec<(u64, Kind, u32)>;

/// A recording of threads, each with a function and steps: the time, the kind and the object of each.
fn recording(threads: &[(&str, Steps)]) -> Recording {
    let machine = Machine::find("xeon-6138-2").or_else(|_| Machine::find("oracle-x5-4"));
    let steps = threads.iter().enumerate().flat_map(|(thread, (_, steps))| {
        steps.iter().map(move |&(ns, kind, object)| Step {
            ns,
            kind,
            object: kind.has_object().then_some(object),
            place: Some(thread.min(1) as u32),
            away_ns: 0,
            slept: false,
            tried: false,
            mode: 0,
            cpu: Some(thread as u16),
        })
    });
    let steps: Vec<Step> = steps.collect();
    let last = steps.iter().map(|step| step.ns).max().unwrap_or(0);
    Recording {
        command: vec!["program".to_owned()],
        seconds: last as f64 / 1e9,
        cpus: 64,
        knows_away: true,
        step_ns: [0, 0],
        real_time: false,
        other_cpus: 0.0,
        machine: Some(machine.expect("a machine").to_toml()),
        lost: 0,
        other_processes: 0,
        threads: threads
            .iter()
            .map(|(function, steps)| Thread {
                function: Some((*function).to_owned()),
                steps: steps.len(),
            })
            .collect(),
        objects: ["hot", "cond"].map(str::to_owned).to_vec(),
        places: ["lookup (program+0x10)", "wait (program+0x20)"]
            .map(str::to_owned)
            .to_vec(),
        sites: Default::default(),
        steps,
    }
}

/// Sections of a length, with this time in between, from a time on.
fn sections(from: u64, held: u64, apart: u64, number: u64) -> Steps {
    let section = |n: u64| {
        let begin = from + n * (held + apart);
        [
            (begin, Kind::Acquires, 0),
            (begin + held, Kind::Releases, 0),
        ]
    };
    (0..number).flat_map(section).collect()
}

fn written(directory: &Path, recording: &Recording) -> String {
    let file = directory.join("r.lw");
    let mut contents = Vec::new();
    recording.write(&mut contents).expect("written");
    std::fs::write(&file, contents).expect("a file");
    file.to_str().expect("a path").to_owned()
}

/// The operations a second of the first row.
fn rate(arguments: &[&str]) -> f64 {
    let ran = output(
        &[
            &["replay", "--json", "--anyway", "--lock", "glibc"],
            arguments,
        ]
        .concat(),
    );
    assert!(ran.status.success(), "{ran:?}");
    let rate = json(&ran)["rows"][0]["operations_per_second"].as_f64();
    rate.expect("a rate")
}

fn is_near(rate: f64, expected: f64) {
    assert!(
        (rate / expected - 1.0).abs() < 0.06,
        "{rate}, not {expected}"
    );
}

#[test]
fn sections_take_as_long_as_they_did_and_what_ifs_change_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let one = recording(&[("work", sections(0, 3000, 1000, 5000))]);
    let file = written(directory.path(), &one);
    is_near(rate(&[&file]), 250_000.0);
    is_near(rate(&[&file, "--hold", "lookup=-50%"]), 400_000.0);
    let halved = output(&["replay", &file, "--hold", "lookup=-50%", "--json"]);
    let before = &json(&halved)["recording"]["unchanged"][0]["operations_per_second"];
    is_near(before.as_f64().expect("a rate"), 250_000.0);
    // Two copies share the lock, which then is always held.
    let two = ["--threads", "2", "--lock", "hot=mcs"];
    is_near(rate(&[&[file.as_str()], &two[..]].concat()), 333_000.0);
    let split = rate(&[&[&file, "--split", "hot=8"], &two[..]].concat());
    assert!(split > 400_000.0, "{split}");
}

#[test]
fn phases_of_a_program_are_simulated_as_long_as_they_were() {
    let directory = tempfile::tempdir().expect("a directory");
    let slow = sections(0, 1000, 19_000, 25_000);
    let fast = sections(500_000_000, 1000, 1000, 100_000);
    let file = written(
        directory.path(),
        &recording(&[("work", [slow, fast].concat())]),
    );
    let ran = output(&["replay", &file, "--json", "--lock", "glibc"]);
    assert!(ran.status.success(), "{ran:?}");
    let check = &json(&ran)["recording"];
    is_near(1.0 + check["off"].as_f64().expect("a number"), 1.0);
    let measured = &check["measured"]["operations_per_second"];
    is_near(measured.as_f64().expect("a rate"), 125_000.0 / 0.7);
}

#[test]
fn the_time_that_the_recording_took_is_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut one = recording(&[("work", sections(0, 3000, 1000, 5000))]);
    one.step_ns = [1000, 500];
    let file = written(directory.path(), &one);
    is_near(rate(&[&file]), 400_000.0);
}

#[test]
fn a_lock_of_one_thread_is_copied_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let own = sections(0, 3000, 100, 5000);
    let other: Vec<_> = own.iter().map(|&(ns, kind, _)| (ns, kind, 1)).collect();
    let both = recording(&[("work", own), ("work", other)]);
    let file = written(directory.path(), &both);
    is_near(rate(&[&file, "--threads", "8"]), 8.0 / 3100e-9);
}

#[test]
fn threads_with_a_section_each_are_one_after_the_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let thread = |n: u64| {
        let at = n * 4000;
        let steps = vec![
            (at, Kind::Begins, 0),
            (at + 100, Kind::Acquires, 0),
            (at + 3100, Kind::Releases, 0),
            (at + 3900, Kind::Ends, 0),
        ];
        ("work", steps)
    };
    let threads: Vec<_> = (0..2000).map(thread).collect();
    let file = written(directory.path(), &recording(&threads));
    is_near(rate(&[&file]), 250_000.0);
}

#[test]
fn what_a_thread_does_that_always_has_a_lock_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut within = vec![(0, Kind::Acquires, 1)];
    within.extend(sections(1000, 3000, 1000, 5000));
    // The other one waits for nobody, so the replay is off.
    let waits = (0..5000u64).flat_map(|n| {
        let at = n * 4000;
        [
            (at, Kind::Waits, 0),
            (at + 3000, Kind::Acquires, 0),
            (at + 3200, Kind::Releases, 0),
        ]
    });
    let both = recording(&[("holds", within), ("work", waits.collect())]);
    let file = written(directory.path(), &both);
    let ran = output(&["replay", &file]);
    let said = String::from_utf8_lossy(&ran.stdout).replace('\n', " ");
    assert!(
        said.contains("50 % of the acquisitions are left out"),
        "{said}"
    );
    assert!(ran.stdout.ends_with(b"\n"), "{said:?}");
}

/// A thread that signals each 10 us, and one that waits for that and takes 1 us.
#[test]
fn a_wait_for_a_condition_ends_with_its_signal() {
    let directory = tempfile::tempdir().expect("a directory");
    let signals = (0..2000u64).flat_map(|n| {
        let at = n * 10_000 + 9_000;
        [
            (at, Kind::Acquires, 0),
            (at + 100, Kind::Signals, 1),
            (at + 150, Kind::Returns, 0),
            (at + 200, Kind::Releases, 0),
        ]
    });
    let waits = (0..2000u64).flat_map(|n| {
        let at = n * 10_000 + 1_000;
        [
            (at, Kind::Acquires, 0),
            (at + 100, Kind::Awaits, 1),
            (at + 150, Kind::Releases, 0),
            (at + 8_600, Kind::Woken, 1),
            (at + 8_650, Kind::Acquires, 0),
            (at + 9_000, Kind::Releases, 0),
        ]
    });
    let threads: [(&str, Steps); 2] = [("signals", signals.collect()), ("waits", waits.collect())];
    let file = written(directory.path(), &recording(&threads));
    // Each turn has one acquisition of each. A turn takes 10 us and a wake-up; without a wait for the signal,
    // the second thread would have a turn each 2 us.
    let alone = rate(&[&file]);
    assert!((160_000.0..210_000.0).contains(&alone), "{alone}");
    // With four that wait, each signal still lets one of them go on.
    let more = rate(&[&file, "--class", "waits=4"]);
    assert!((160_000.0..210_000.0).contains(&more), "{more}");

    // One that waits with one of several locks gives up that one.
    rate(&[&file, "--split", "hot=3"]);

    // Broadcasts let all go on, so they do not count: each wait ends with the signal that ended it. To
    // wake two takes longer.
    let (signals, waits) = (&threads[0], &threads[1]);
    let all = |&(ns, kind, object): &(u64, Kind, u32)| match kind {
        Kind::Signals => (ns, Kind::Broadcasts, object),
        _ => (ns, kind, object),
    };
    let threads = [
        ("signals", signals.1.iter().map(all).collect()),
        waits.clone(),
        ("others", waits.1.clone()),
    ];
    let file = written(directory.path(), &recording(&threads));
    let three = rate(&[&file]);
    assert!((160_000.0..310_000.0).contains(&three), "{three}");
}

#[test]
fn a_trylock_does_not_wait_and_a_yield_takes_its_time() {
    let directory = tempfile::tempdir().expect("a directory");
    // Both locks, in this order: the second one with a trylock.
    let both = |first: u32, second: u32| -> Steps {
        let pair = |n: u64| {
            let at = n * 1500 + u64::from(first) * 700;
            [
                (at, Kind::Acquires, first),
                (at + 200, Kind::Acquires, second),
                (at + 400, Kind::Releases, second),
                (at + 600, Kind::Releases, first),
            ]
        };
        (0..5000).flat_map(pair).collect()
    };
    let mut threads = recording(&[("a", both(0, 1)), ("b", both(1, 0))]);
    for at in 1..threads.steps.len() {
        let before = threads.steps[at - 1].kind;
        let step = &mut threads.steps[at];
        step.tried = before == Kind::Acquires && step.kind == Kind::Acquires;
    }
    let file = written(directory.path(), &threads);
    // If the second one waited, the threads would wait for each other soon.
    assert!(rate(&[&file, "--threads", "8"]) > 1e6);
    // Within the section of the trylock, the lock before it is released: that is not left out.
    let coupled = |n: u64| {
        let at = n * 1500;
        [
            (at, Kind::Acquires, 0),
            (at + 200, Kind::Acquires, 1),
            (at + 400, Kind::Releases, 0),
            (at + 600, Kind::Releases, 1),
        ]
    };
    let coupled: Steps = (0..5000).flat_map(coupled).collect();
    let mut coupled = recording(&[("a", coupled.clone()), ("b", coupled)]);
    for step in &mut coupled.steps {
        step.tried = step.object == Some(1);
    }
    let file = written(directory.path(), &coupled);
    assert!(rate(&[&file, "--threads", "8"]) > 1e5);
    let yields = sections(0, 3000, 1000, 5000)
        .into_iter()
        .flat_map(|(ns, kind, lock)| {
            [
                (ns, kind, lock),
                (ns, Kind::Yields, 0),
                (ns, Kind::Returns, 0),
            ]
        });
    let yields = recording(&[("work", yields.collect())]);
    let rate = rate(&[&written(directory.path(), &yields)]);
    assert!((150_000.0..240_000.0).contains(&rate), "{rate}");
}

#[test]
fn what_cannot_be_believed_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    // The thread waited for a lock that nobody had.
    let waits = (0..3000u64).flat_map(|n| {
        let at = n * 10_000;
        [
            (at, Kind::Waits, 0),
            (at + 9_000, Kind::Acquires, 0),
            (at + 9_100, Kind::Releases, 0),
        ]
    });
    let file = written(directory.path(), &recording(&[("work", waits.collect())]));
    let ran = output(&["replay", &file]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("is not to be believed"), "{said}");
    let check = String::from_utf8_lossy(&ran.stdout);
    assert!(check.contains("Replayed as it was"), "{check}");
    assert!(!check.contains("fastest"), "{check}");
    let ran = output(&["replay", &file, "--anyway"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");

    let mut good = recording(&[("work", sections(0, 3000, 1000, 5000))]);
    good.real_time = true;
    let ran = output(&["replay", &written(directory.path(), &good)]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.contains("real-time priorities"), "{said}");
    good.real_time = false;
    let file = written(directory.path(), &good);
    for (arguments, said) in [
        (&["--class", "nobody=3"][..], "there is work"),
        (&["--hold", "lookups=-50%"], "lookup"),
        (&["--threads", "0"], "needs 1"),
        (&["--lock", "zzz"], "zzz"),
    ] {
        let ran = output(&[&["replay", &file], arguments].concat());
        assert_fails(&ran, 2, &[said]);
    }
    let cut = directory.path().join("cut.lw");
    let whole = std::fs::read(&file).expect("a file");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    let cut = cut.to_str().expect("a path");
    assert_fails(&output(&["replay", cut]), 2, &["cut off"]);
}
