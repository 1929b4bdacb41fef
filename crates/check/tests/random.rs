//! Random runs.

use std::time::Duration;

use lockworks_check::{
    Change, Check, Config, Mutation, RandomOutcome, RandomRuns, Site, Token, lock_types,
    lockref_types,
};

fn config(lock: &str, threads: usize) -> Config {
    Config {
        threads,
        nodes: 2,
        trylock: true,
        ..Config::new(lock)
    }
}

fn run(config: &Config, mutation: Option<Mutation>, runs: u64, seed: u64) -> RandomOutcome {
    let plan = RandomRuns {
        runs,
        seed,
        time: None,
    };
    let check = Check::new(config, mutation).expect("a lock and sizes that there are");
    check.random(&plan, &|_| {})
}

fn assert_keeps(config: &Config, runs: u64) {
    let outcome = run(config, None, runs, 1);
    assert_eq!(outcome.broken, None, "{config}");
    assert_eq!((outcome.runs, outcome.cut), (runs, 0), "{config}");
}

#[test]
fn every_lock_passes() {
    for lock in lock_types().filter(|lock| !lock.is_broken()) {
        let config = Config {
            nesting: 1,
            priority: vec![1, 5],
            ..config(lock.name(), 10)
        };
        assert_keeps(&config, 5);
    }
    for lockref in lockref_types().filter(|lockref| !lockref.lock().is_broken()) {
        assert_keeps(&config(lockref.name(), 8), 10);
    }
}

/// Locks share the queues of NUMA nodes.
#[test]
fn queues_of_more_nodes_and_locks_pass() {
    for threads in [8, 16] {
        for (nodes, locks) in [(2, 2), (3, 1), (3, 2)] {
            let config = Config {
                nodes,
                locks,
                nesting: 1,
                ..config("hq", threads)
            };
            assert_keeps(&config, 5);
        }
    }
}

#[test]
fn waits_of_many_threads_are_cancelled() {
    for lock in ["mutex", "pv", "unfair"] {
        let config = Config {
            cancel: true,
            split_release: true,
            trylock: false,
            ..config(lock, 12)
        };
        assert_keeps(&config, 5);
    }
}

/// A cell has more writes than a view can count.
#[test]
fn the_most_threads_pass() {
    let config = Config {
        acquisitions: 4,
        ..config("ticket", 64)
    };
    assert_keeps(&config, 1);
}

/// The kind of the violation that 500 runs of eight threads find in a lock with `change` made to an
/// operation of `function`. Its token repeats the run.
fn changed(lock: &str, function: &str, operation: &str, change: Change) -> Option<&'static str> {
    let site = Site::all()
        .iter()
        .find(|site| site.function() == function && site.to_string() == operation)
        .unwrap_or_else(|| panic!("{function} has {operation}"));
    let config = config(lock, 8);
    let mutation = Some(Mutation::at(site, change));
    let broken = run(&config, mutation, 500, 1).broken?;
    let check = Check::new(&config, mutation).expect("it was valid before");
    let token: Token = Token::new(&check, &broken).to_string().parse().unwrap();
    assert_eq!(token.replay(&check).as_ref(), Ok(&broken), "{operation}");
    assert_eq!(check.trace(&broken).len(), broken.steps());
    Some(broken.violation.name())
}

#[test]
fn planted_mistakes_are_caught() {
    let relaxed = Change::Order(lockworks_check::Order::Relaxed);
    for (lock, function, operation, change) in [
        (
            "qspinlock",
            "lw_mcs_wait",
            "await_ne node->locked",
            Change::Drop,
        ),
        (
            "qspinlock",
            "lw_mcs_hand_over",
            "store next->locked",
            relaxed,
        ),
        (
            "cna",
            "lw_mcs_hand_over",
            "store next->locked",
            Change::Drop,
        ),
        ("mcs", "lw_mcs_lock", "store prev->next", Change::Defer),
        (
            "cna",
            "lw_cna_move",
            "store next->secondary_head",
            Change::Drop,
        ),
        // Needs four threads.
        ("cna", "lw_cna_move", "store tail2->next", Change::Drop),
        (
            "hq",
            "lw_hq_wait_in_place",
            "store before->next",
            Change::Drop,
        ),
        (
            "hq",
            "lw_node_queue_release",
            "cmpxchg lw_hq_part(queue)->waiters",
            Change::Blind,
        ),
        (
            "hq",
            "lw_node_queue_release",
            "cmpxchg lw_hq_part(queue)->waiters",
            Change::Drop,
        ),
    ] {
        let found = changed(lock, function, operation, change);
        assert!(found.is_some(), "{lock}: {operation} -> {change}");
    }
}

#[test]
fn polling_rather_than_waiting_is_no_mistake() {
    let found = changed("tas", "lw_tas_lock", "await_eq lock->locked", Change::Drop);
    assert_eq!(found, None);
}

#[test]
fn threads_that_bypass_a_waiter_are_found() {
    let config = Config {
        bypass: Some(0),
        trylock: false,
        ..config("tas", 12)
    };
    let broken = run(&config, None, 100, 1).broken.expect("it is found");
    assert_eq!(broken.violation.name(), "bypassed");
}

#[test]
fn the_seed_decides_everything() {
    let config = config("busted", 12);
    let [one, same, other] = [1, 1, 2].map(|seed| run(&config, None, 100, seed).broken);
    assert!(one.is_some() && one == same && other.is_some() && one != other);
    let kept = |seed| run(&self::config("cna", 12), None, 20, seed);
    let [one, same, other] = [1, 1, 2].map(|seed| kept(seed).steps);
    assert!(one == same && one != other);
}

#[test]
fn no_run_begins_after_the_time() {
    let config = config("cna", 12);
    let plan = RandomRuns {
        runs: u64::MAX,
        seed: 1,
        time: Some(Duration::from_millis(1)),
    };
    let outcome = Check::new(&config, None).unwrap().random(&plan, &|_| {});
    assert!(outcome.runs < 1000, "{}", outcome.runs);
}
