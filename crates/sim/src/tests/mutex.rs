//! Tests of mutexes: those of Linux 3.7 and 3.10, with the cost of an acquisition and their use in a
//! kernel, and holders that lose their CPU.

use lockworks::Setting;
use lockworks_machine::Machine;

use super::{brief, count, lock, scenario};
use crate::{Placement, Run, Scenario, Settings, Sharing, SimulationOutcome, Workload};

fn rmws_per_acquisition(outcome: &SimulationOutcome) -> f64 {
    outcome.lock_rmws as f64 / outcome.acquisitions as f64
}

#[test]
fn atomic_operations_of_locks_are_counted_and_no_others() {
    // The workload's own atomics, of which the mutex on a futex is made, must not be counted.
    for workload in ["locktorture-old", "leveldb_readrandom"] {
        let scenario = scenario("oracle-x5-4", workload);
        for (name, acquire_and_release) in [
            ("tas", 1.0),
            ("ticket", 1.0),
            ("qspinlock", 1.0),
            ("pvticket", 2.0),
            ("mutex37", 2.0),
            ("mutex310", 2.0),
            ("futex", 2.0),
        ] {
            let outcome = brief(&scenario, lock(name), 1).run().unwrap();
            if workload == "leveldb_readrandom" {
                assert_eq!(outcome.lock_rmws, 0, "nobody waits for the mutex");
            } else {
                let off = rmws_per_acquisition(&outcome) - acquire_and_release;
                assert!(off.abs() < 0.01, "{name}: {off}");
            }
        }
    }
}

/// AIM7 on Linux 3.7.
fn aim7() -> Scenario {
    let mut scenario = scenario("westmere-ex-8", "aim7_high_systime");
    scenario.schedule_as("3.7".parse().unwrap());
    scenario
}

/// A run of AIM7's tasks on the first nodes of its machine, without hyperthreads.
fn tasks<'a>(scenario: &'a Scenario, name: &str, tasks: usize, nodes: usize) -> Run<'a> {
    Run {
        placement: Placement::Compact,
        sharing: Some(Sharing {
            cpus: 10 * nodes,
            guests: None,
            pinned: false,
        }),
        seconds: 20e-3,
        ..brief(scenario, lock(name), tasks)
    }
}

#[test]
fn reading_first_spares_atomic_operations() {
    let scenario = aim7();
    let rmws = |name| rmws_per_acquisition(&tasks(&scenario, name, 600, 8).run().unwrap());
    let (before, after) = (rmws("mutex37"), rmws("mutex310"));
    assert!(before > 1.5 * after && after >= 2.0, "{before} and {after}");
}

#[test]
fn waiters_of_a_mutex_sleep_and_are_woken() {
    let scenario = aim7();
    for name in ["mutex37", "mutex310"] {
        let outcome = tasks(&scenario, name, 200, 2).run().unwrap();
        assert_eq!(outcome.violations, 0);
        for event in ["steals_on_arrival", "halts_in_queue", "kicks_at_unlock"] {
            assert!(count(&outcome, event) > 0, "{name}: {event}");
        }
    }
}

#[test]
fn waiters_of_glibcs_mutex_sleep_and_are_woken() {
    let scenario = scenario("oracle-x5-4", "leveldb_readrandom");
    let sharing = Some(Sharing {
        cpus: 4,
        guests: None,
        pinned: false,
    });
    for sharing in [None, sharing] {
        let run = Run {
            sharing,
            seconds: 20e-3,
            ..brief(&scenario, lock("futex"), 16)
        };
        let outcome = run.run().unwrap();
        assert_eq!(outcome.violations, 0);
        assert!(outcome.acquisitions > 1000, "{}", outcome.acquisitions);
        for event in ["halts_in_queue", "kicks_at_unlock"] {
            assert!(count(&outcome, event) > 0, "{event}");
        }
    }
}

#[test]
fn nobody_loses_its_cpu_in_the_kernel() {
    let scenario = aim7();
    let counts = tasks(&scenario, "mutex37", 300, 1).run().unwrap().sharing;
    let counts = counts.expect("they share CPUs");
    assert!(counts.preemptions > 0, "{counts:?}");
    assert_eq!(counts.preempted_holder, 0, "{counts:?}");
}

/// Threads that run whenever they can, and hold a mutex for a tenth of their time.
const ALWAYS_BUSY: &str = r#"
    name = "busy"
    title = "threads that always run"
    placement = "compact"
    [[memory]]
    name = "lock"
    kind = "lock"
    [thread]
    loop = [
        { compute = { exponential = 36000 } },
        { lock = "lock", steps = [{ compute = 4000 }] },
        "operation",
    ]
"#;

#[test]
fn a_holder_gets_an_extension_of_its_time_slice() {
    let machine = Machine::find("oracle-x5-4").unwrap();
    let workload = Workload::parse(ALWAYS_BUSY, "busy.toml").unwrap();
    let scenario = Scenario::new(machine, workload);
    let asks: Setting = "mutex_slice=1".parse().unwrap();
    let run = |settings: &[Setting], microseconds| {
        let mut scenario = scenario.clone();
        let set = scenario.set("model.slice_extension_us", microseconds, "this test");
        set.unwrap();
        let run = Run {
            tunables: Settings::kernel().with(settings),
            sharing: Some(Sharing {
                cpus: 4,
                guests: None,
                pinned: false,
            }),
            seconds: 500e-3,
            ..brief(&scenario, lock("mutex"), 32)
        };
        run.run().unwrap()
    };
    let slices = |outcome: &SimulationOutcome| {
        ["granted", "yielded", "expired"].map(|what| count(outcome, &format!("slices_{what}")))
    };

    let without = run(&[], 5.0);
    assert_eq!(slices(&without), [0, 0, 0]);
    assert!(without.sharing.unwrap().preempted_holder > 0);

    // An extension longer than the critical section ends before the release only by a wake-up, and then
    // the mutex is free.
    let with = run(&[asks], 5.0);
    let [granted, yielded, expired] = slices(&with);
    assert!(
        yielded > 0 && yielded + expired == granted,
        "{granted} {yielded} {expired}"
    );
    assert_eq!(with.sharing.unwrap().preempted_holder, 0);

    let [granted, yielded, expired] = slices(&run(&[asks], 0.5));
    assert!(
        expired > 0 && yielded + expired == granted,
        "{granted} {yielded} {expired}"
    );
}

#[test]
fn hardware_threads_of_a_core_slow_each_other_down() {
    let scenario = aim7();
    let rate = |cpus, placement| {
        let run = Run {
            placement,
            sharing: Some(Sharing {
                cpus,
                guests: None,
                pinned: false,
            }),
            ..tasks(&scenario, "mutex310", 100, 1)
        };
        run.run().unwrap().operations_per_second
    };
    let (cores, threads) = (rate(10, Placement::Compact), rate(20, Placement::Packed));
    assert!(
        (1.05..1.7).contains(&(threads / cores)),
        "{cores}, {threads}"
    );
}
