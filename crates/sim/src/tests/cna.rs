//! Tests of CNA's tunables.

use super::{brief, count, lock, scenario};
use crate::{Run, Scenario, Settings, SimulationOutcome};

fn contended(scenario: &Scenario, seconds: f64, tunables: Settings) -> SimulationOutcome {
    let run = Run {
        seconds,
        tunables,
        ..brief(scenario, lock("cna"), 36)
    };
    run.run().unwrap()
}

fn torture() -> Scenario {
    scenario("oracle-x5-4", "locktorture-old")
}

fn remote_share(outcome: &SimulationOutcome) -> f64 {
    let (local, remote) = (outcome.handoffs.local, outcome.handoffs.remote);
    remote as f64 / (local + remote) as f64
}

#[test]
fn shuffle_reduction_skips_looks_at_the_queue() {
    for shuffle_reduction in [false, true] {
        let tunables = Settings {
            shuffle_reduction,
            ..Settings::kernel()
        };
        let outcome = contended(&torture(), 2e-3, tunables);
        assert_eq!(count(&outcome, "shuffles_skipped") > 0, shuffle_reduction);
        assert!(count(&outcome, "secondary_moves") > 0);
    }
}

#[test]
fn waiters_of_a_node_are_kept_together() {
    let scenario = torture();
    // In some runs two threads of different nodes take the lock in turn at first.
    let mut shares: Vec<f64> = (1..=5)
        .map(|seed| {
            let run = Run {
                seconds: 2e-3,
                seed,
                ..brief(&scenario, lock("cna"), 36)
            };
            let outcome = run.run().unwrap();
            assert_eq!(count(&outcome, "priority_waiters"), 0);
            remote_share(&outcome)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    assert!(shares[2] < 0.05, "{shares:?}");
}

#[test]
fn switched_off_it_hands_over_like_the_stock_lock() {
    let scenario = torture();
    // A run depends on the order in which threads first arrive, so many orders are tried.
    let shares = |name: &str| -> f64 {
        let share = |seed| {
            let run = Run {
                seconds: 1e-3,
                tunables: Settings {
                    numa_aware: false,
                    ..Settings::kernel()
                },
                seed,
                ..brief(&scenario, lock(name), 36)
            };
            let outcome = run.run().unwrap();
            assert_eq!(count(&outcome, "secondary_moves"), 0);
            assert_eq!(count(&outcome, "shuffles_skipped"), 0);
            remote_share(&outcome)
        };
        (1..=32).map(share).sum::<f64>() / 32.0
    };
    let (off, stock) = (shares("cna"), shares("qspinlock"));
    assert!((off - stock).abs() < 0.03, "{off} and {stock}");
}

#[test]
fn the_threshold_bounds_how_long_waiters_are_passed_over() {
    let flushes = |numa_threshold_ms| {
        let tunables = Settings {
            numa_threshold_ms,
            ..Settings::kernel()
        };
        let outcome = contended(&torture(), 20e-3, tunables);
        let least = *outcome.operations.iter().min().unwrap();
        (count(&outcome, "threshold_flushes"), least)
    };
    let (flushes_of_short, least_of_short) = flushes(1);
    let (flushes_of_long, least_of_long) = flushes(100);
    // At most one in each millisecond of the run, including the warm-up.
    assert!((1..=22).contains(&flushes_of_short), "{flushes_of_short}");
    assert!(least_of_short > 0);
    assert_eq!(flushes_of_long, 0);
    assert_eq!(least_of_long, 0, "someone waits for the threshold");
}

#[test]
fn priority_waiters_are_not_passed_over() {
    let scenario = torture();
    let run = Run {
        seconds: 5e-3,
        odd_threads_have_priority: true,
        tunables: Settings {
            numa_threshold_ms: 100,
            // Others are passed over from the first search of the queue on: it is at once.
            shuffle_reduction: false,
            ..Settings::kernel()
        },
        ..brief(&scenario, lock("cna"), 36)
    };
    let outcome = run.run().unwrap();
    assert!(count(&outcome, "priority_waiters") > 0);
    let least = |odd: usize| {
        let threads = outcome.operations.iter().skip(odd).step_by(2);
        *threads.min().unwrap()
    };
    assert!(least(1) > 20 && least(0) == 0, "{:?}", outcome.operations);

    let run = Run {
        tunables: Settings {
            priority_waiters: false,
            ..run.tunables
        },
        ..run
    };
    let outcome = run.run().unwrap();
    assert_eq!(count(&outcome, "priority_waiters"), 0);
    let starved = outcome.operations.iter().skip(1).step_by(2).min();
    assert_eq!(starved, Some(&0), "{:?}", outcome.operations);
}

#[test]
fn it_costs_nothing_where_there_is_little_contention() {
    let scenario = torture();
    for threads in [1, 2] {
        let rate = |name| {
            let run = Run {
                seconds: 10e-3,
                ..brief(&scenario, lock(name), threads)
            };
            run.run().unwrap().operations_per_second
        };
        let ratio = rate("cna") / rate("qspinlock");
        assert!(
            (0.98..=1.02).contains(&ratio),
            "{threads} threads: {ratio:.3}"
        );
    }
}
