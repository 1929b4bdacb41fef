//! Tests of properties that workloads show: exclusion, order, hand-offs, and sleepers that wake.

use lockworks_machine::{Machine, builtin};

use super::{brief, lock, scenario, working_locks};
use crate::{Run, Scenario, Workload};

/// The least and the most operations of a thread.
fn extremes(operations: &[u64]) -> (u64, u64) {
    let (least, most) = (operations.iter().min(), operations.iter().max());
    (*least.unwrap(), *most.unwrap())
}

#[test]
fn contested_locks_of_machines_exist() {
    let machines = builtin().unwrap().into_iter();
    let contested = machines.flat_map(|of| Machine::find(of.name).unwrap().contested);
    let locks: Vec<&str> = contested.map(|(name, _)| lock(&name).name()).collect();
    assert!(locks.contains(&"cna"));
}

#[test]
fn every_workload_runs_on_every_machine() {
    for machine in builtin().unwrap() {
        let machine = Machine::find(machine.name).unwrap();
        for workload in Workload::all().unwrap() {
            let scenario = Scenario::new(machine.clone(), workload);
            // The operations of a job are longer.
            let seconds = if scenario.workload.job().is_some() {
                3e-3
            } else {
                2e-4
            };
            for threads in [1, 2, machine.cpus().min(5)] {
                for lock in working_locks() {
                    let run = Run {
                        seconds,
                        ..brief(&scenario, lock, threads)
                    };
                    let what = format!(
                        "{}, {threads} threads of {} on {}",
                        lock.name(),
                        scenario.workload.name,
                        machine.name
                    );
                    let outcome = run.run().unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(outcome.violations, 0, "{what}");
                    let (least, most) = extremes(&outcome.operations);
                    // The other locks may pass over a waiter for longer than this run.
                    assert!(most > 0 && (least > 0 || !lock.is_fifo()), "{what}");
                }
            }
        }
    }
}

#[test]
fn every_workload_fits_every_machine() {
    for machine in builtin().unwrap() {
        let machine = Machine::find(machine.name).unwrap();
        for workload in Workload::all().unwrap() {
            let all = workload.check(&machine, machine.cpus());
            all.unwrap_or_else(|error| panic!("{}: {error}", machine.name));
        }
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_caught_by_every_workload() {
    for workload in Workload::all().unwrap() {
        let machine = Machine::find("oracle-x5-4").unwrap();
        let scenario = Scenario::new(machine, workload);
        let run = brief(&scenario, lock("busted"), 24);
        assert!(
            run.run().unwrap().violations > 0,
            "{}",
            scenario.workload.name
        );
    }
}

#[test]
fn fifo_locks_serve_in_order() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    for lock in working_locks().filter(|lock| lock.is_fifo()) {
        let run = Run {
            seconds: 10e-3,
            ..brief(&scenario, lock, 36)
        };
        let operations = run.run().unwrap().operations;
        let (least, most) = extremes(&operations);
        // Each thread misses a turn at some of its ten timer ticks.
        assert!(
            least > 100 && most - least <= 10,
            "{}: {operations:?}",
            lock.name()
        );
    }
}

#[test]
fn a_test_and_set_lock_keeps_no_order() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    let run = Run {
        seconds: 10e-3,
        ..brief(&scenario, lock("tas"), 36)
    };
    let (least, most) = extremes(&run.run().unwrap().operations);
    assert!(most - least > 100, "{least}..{most}");
}

#[test]
fn handoffs_add_up_to_operations() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    for lock in working_locks() {
        let outcome = brief(&scenario, lock, 24).run().unwrap();
        let handoffs = outcome.handoffs;
        let acquired = handoffs.local + handoffs.remote + handoffs.reacquisitions;
        let done: u64 = outcome.operations.iter().sum();
        // The measured time may begin and end within an operation. Several threads may be within one
        // where a thread wakes another after it has released the lock, as futex does each time that
        // threads wait.
        let within = if lock.name() == "futex" { 24 } else { 1 };
        assert!(
            acquired > 0 && acquired.abs_diff(done) <= within,
            "{}: {handoffs:?}, {done} operations",
            lock.name()
        );
        assert!(outcome.acquisitions > acquired, "warm-up included");
    }
}

#[test]
fn every_sleeper_of_leveldb_is_woken() {
    assert_every_sleeper_is_woken("leveldb_readrandom");
}

#[test]
fn every_sleeper_of_memcached_is_woken() {
    assert_every_sleeper_is_woken("memcached");
}

fn assert_every_sleeper_is_woken(workload: &str) {
    let scenario = scenario("oracle-x5-4", workload);
    for lock in working_locks() {
        let run = Run {
            seconds: 50e-3,
            ..brief(&scenario, lock, 72)
        };
        let operations = run.run().unwrap().operations;
        assert!(
            extremes(&operations).0 > 0,
            "{}: {operations:?}",
            lock.name()
        );
    }
}

#[test]
fn a_crowd_of_workers_queues_for_the_lock_of_the_one_file() {
    let scenario = scenario("kunpeng-920", "nginx");
    let run = |threads| {
        let run = Run {
            seconds: 5e-3,
            ..brief(&scenario, lock("qspinlock"), threads)
        };
        run.run().unwrap()
    };
    assert_eq!(run(16).acquisitions, 0);
    let crowd = run(64);
    let handoffs = crowd.handoffs.local + crowd.handoffs.remote + crowd.handoffs.reacquisitions;
    let requests: u64 = crowd.operations.iter().sum();
    // Four references in each request. The measured time may begin and end within requests.
    let off = handoffs.abs_diff(4 * requests);
    assert!(off <= 4 * 64, "{handoffs} of {requests}");
}
