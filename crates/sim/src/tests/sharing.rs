//! Tests of locks whose waiters share CPUs.

use super::{brief, lock, scenario, working_locks};
use crate::{Run, Scenario, Sharing, SimulationOutcome};

fn on(cpus: usize, guests: Option<usize>) -> Option<Sharing> {
    Some(Sharing {
        cpus,
        guests,
        pinned: false,
    })
}

fn build(scenario: &Scenario, name: &str, vcpus: usize, seconds: f64) -> SimulationOutcome {
    let run = Run {
        sharing: on(32, Some(1)),
        seconds,
        ..brief(scenario, lock(name), vcpus)
    };
    run.run().unwrap()
}

#[test]
fn fifo_spinning_collapses_when_threads_outnumber_cpus() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    let rate = |name, threads| {
        let run = Run {
            sharing: on(2, None),
            seconds: 0.2,
            ..brief(&scenario, lock(name), threads)
        };
        let outcome = run.run().unwrap();
        assert_eq!(outcome.violations, 0, "{name}");
        outcome.operations_per_second
    };
    for name in ["ticket", "mcs", "qspinlock"] {
        let fall = rate(name, 2) / rate(name, 8);
        assert!(fall > 60.0, "{name} falls {fall:.0} times");
    }
    let fall = rate("tas", 2) / rate("tas", 8);
    assert!(fall < 5.0, "tas falls {fall:.1} times");
}

#[test]
fn every_lock_excludes_among_virtual_cpus() {
    let scenario = scenario("haswell-ex-4", "kernel_build");
    for lock in working_locks() {
        let run = Run {
            sharing: on(4, Some(2)),
            seconds: 30e-3,
            ..brief(&scenario, lock, 12)
        };
        let outcome = run.run().unwrap();
        assert_eq!(outcome.violations, 0, "{}", lock.name());
        // Both guests make progress.
        for guest in outcome.operations.chunks(6) {
            assert!(guest.iter().sum::<u64>() > 20, "{:?}", outcome.operations);
        }
        assert_eq!(outcome, run.run().unwrap(), "{} repeats", lock.name());
    }
}

#[test]
fn virtual_cpus_halt_when_their_task_sleeps() {
    let mut scenario = scenario("haswell-ex-4", "kernel_build");
    let halts = |scenario: &Scenario| {
        let counts = build(scenario, "qspinlock", 32, 20e-3).sharing.unwrap();
        assert_eq!(counts.preemptions, 0, "each has a CPU: {counts:?}");
        counts.halts
    };
    assert!((20..60).contains(&halts(&scenario)), "{}", halts(&scenario));
    scenario.set("workload.sleep_us", 0.0, "test").unwrap();
    assert_eq!(halts(&scenario), 0);
}

#[test]
fn a_build_takes_as_long_as_its_work_where_there_is_a_cpu_for_each() {
    let scenario = scenario("haswell-ex-4", "kernel_build");
    let rate = build(&scenario, "qspinlock", 32, 20e-3).operations_per_second;
    let seconds = scenario.workload.job().unwrap() / rate;
    let alone = 3800.0 / 32.0;
    assert!((alone..1.1 * alone).contains(&seconds), "{seconds}");
}

#[test]
fn pinned_runners_never_move() {
    let mut scenario = scenario("haswell-ex-4", "kernel_build");
    for (key, value) in [("sleep_us", 5000.0), ("sleep_period_us", 2000.0)] {
        let key = format!("workload.{key}");
        scenario.set(&key, value, "test").unwrap();
    }
    let migrations = |pinned| {
        let run = Run {
            sharing: Some(Sharing {
                cpus: 8,
                guests: Some(1),
                pinned,
            }),
            seconds: 50e-3,
            ..brief(&scenario, lock("tas"), 20)
        };
        run.run().unwrap().sharing.unwrap().migrations
    };
    assert_eq!(migrations(true), 0);
    assert!(migrations(false) > 0);
}
