//! Runs repeat to the bit. A run that cannot start or continue says why.

use super::{brief, lock, made_up, scenario, working_locks};
use crate::{Placement, Run, RunError, Scenario, Workload};

#[test]
fn the_same_run_twice_is_identical() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    for lock in working_locks() {
        let run = brief(&scenario, lock, 24);
        assert_eq!(run.run().unwrap(), run.run().unwrap(), "{}", lock.name());
    }
}

#[test]
fn another_seed_gives_another_run() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    for lock in working_locks() {
        let run = brief(&scenario, lock, 24);
        let other = Run {
            seed: 2,
            ..brief(&scenario, lock, 24)
        };
        assert_ne!(run.run().unwrap(), other.run().unwrap(), "{}", lock.name());
    }
}

#[test]
fn runs_side_by_side_do_not_meet() {
    let scenario = scenario("oracle-x5-4", "leveldb_readrandom");
    let cna = lock("cna");
    let alone = [4, 24].map(|threads| brief(&scenario, cna, threads).run().unwrap());
    std::thread::scope(|scope| {
        let beside = [4, 24, 4, 24].map(|threads| {
            let scenario = &scenario;
            scope.spawn(move || brief(scenario, cna, threads).run().unwrap())
        });
        for (i, run) in beside.into_iter().enumerate() {
            assert_eq!(run.join().unwrap(), alone[i % 2]);
        }
    });
}

#[test]
fn a_deadlock_tells_what_each_cpu_waits_for() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    let run = brief(&scenario, &made_up::STUCK, 3);
    let error = run.run().unwrap_err();
    let places = run.placement.place(&scenario.machine, 3).unwrap();
    let RunError::Deadlock { lock, cpus, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(lock, "stuck");
    assert_eq!(cpus.len(), 3);
    for (cpu, place) in places.into_iter().enumerate() {
        let node = scenario.machine.node_of(place);
        let expected = format!(
            "CPU {cpu} (machine CPU {place}, node {node}): Waiting, \
             awaits (torture_spinlock+0 & 0xffffffff) == 0x0, sees 0x1"
        );
        assert!(cpus[cpu].starts_with(&expected), "{}", cpus[cpu]);
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn threads_have_to_fit_the_machine() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    let error = |threads| brief(&scenario, lock("tas"), threads).run().unwrap_err();
    assert!(matches!(error(0), RunError::NoThreads));
    assert!(matches!(
        error(145),
        RunError::TooManyThreads {
            cpus: 144,
            threads: 145,
            ..
        }
    ));
}

/// The simulator names few last-level caches by bits, and many by the CPUs that have a line.
#[test]
fn any_number_of_caches() {
    let operations = |caches: usize, directory: &str| {
        let text = std::fs::read_to_string("../../machines/ampereone.toml").unwrap();
        let text = text
            .replace(
                "\"socket\", count = 1",
                &format!("\"socket\", count = {caches}"),
            )
            .replace("\"cluster\", count = 48", "\"cluster\", count = 1")
            .replace(
                "directory = \"home\"",
                &format!("directory = \"{directory}\""),
            );
        let (from, _) = text.split_once("[[relation]]").unwrap();
        let relation = |share, ns| {
            format!(
                "[[relation]]\nshare = \"{share}\"\n\
                 cache_to_cache_ns = {{ value = {ns}, mark = \"I\", source = \"made up\" }}\n"
            )
        };
        let text = format!(
            "{from}{}{}",
            relation("socket", 45),
            relation("machine", 90)
        );
        let machine = lockworks_machine::Machine::parse(&text, "made up").unwrap();
        let scenario = Scenario::new(machine, Workload::find("locktorture-old").unwrap());
        let mut run = brief(&scenario, lock("ticket"), 16);
        run.placement = Placement::Compact;
        run.run().unwrap().operations
    };
    for directory in ["home", "llc"] {
        assert_eq!(operations(64, directory), operations(65, directory));
    }
}
