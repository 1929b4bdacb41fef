//! The bound on idleness: a free lock whose queue head sleeps is taken, or its head is woken.

use lockworks_check::{
    Change, Check, Config, ConfigError, End, Limits, Memory, Mutation, Site, Violation,
};

fn end(config: &Config, mutation: Option<Mutation>) -> End {
    let check = Check::new(config, mutation).expect("a lock that promises it");
    check.run(&Limits::NONE, &mut |_| {}).end
}

fn twice(lock: &str, idle: Option<u8>) -> Config {
    Config {
        idle,
        ..Config::new(lock)
    }
}

/// Three threads that acquire once.
fn once(lock: &str, idle: u8) -> Config {
    Config {
        threads: 3,
        acquisitions: 1,
        idle: Some(idle),
        ..Config::new(lock)
    }
}

/// Of two threads, the one that releases wakes the head next, or acquires again.
#[test]
fn two_threads_do_nothing_while_the_lock_is_idle() {
    for lock in ["mutex", "pv", "unfair"] {
        for split_release in [false, true] {
            let config = Config {
                split_release,
                ..twice(lock, Some(0))
            };
            assert_eq!(end(&config, None), End::Kept, "{config}");
        }
    }
}

/// A third thread goes on while the one that releases has not yet woken the head. No smaller bound holds.
#[test]
fn a_third_thread_runs_until_it_parks_or_acquires() {
    let smallest = [
        once("pv", 10),
        once("unfair", 8),
        Config {
            memory: Memory::Sc,
            nodes: 2,
            ..once("mutex", 15)
        },
    ];
    for config in smallest {
        assert_eq!(end(&config, None), End::Kept, "{config}");
        let bound = config.idle.expect("set above");
        let smaller = Config {
            idle: Some(bound - 1),
            ..config
        };
        let End::Broken(broken) = end(&smaller, None) else {
            panic!("{smaller}");
        };
        let Violation::Idle { operations, .. } = broken.violation else {
            panic!("{smaller}: {}", broken.violation);
        };
        assert_eq!(operations, Some(bound));
    }
}

/// Locks that wake the queue head.
const WAKING: [&str; 3] = ["mutex", "pv", "unfair"];

/// The broken promise of a lock whose wake-up of the head is changed.
fn wakes(config: &Config, change: Change) -> Option<Violation> {
    let wakes = |site: &&Site| site.function() == "lw_wake" && site.kind.name() == "unpark";
    let site = Site::all().iter().find(wakes).expect("it wakes the head");
    match end(config, Some(Mutation::at(site, change))) {
        End::Broken(broken) => Some(broken.violation),
        end => {
            assert_eq!(end, End::Kept, "{config}");
            None
        }
    }
}

/// The head is woken in the end, so that no other promise is broken.
#[test]
fn a_wake_up_that_comes_late_is_found() {
    for lock in WAKING {
        let late = |idle| wakes(&twice(lock, idle), Change::Defer);
        assert_eq!(late(None), None, "{lock}");
        let found = late(Some(0)).expect("it is found");
        assert!(
            matches!(
                found,
                Violation::Idle {
                    operations: Some(1),
                    ..
                }
            ),
            "{lock}: {found}"
        );
    }
}

/// In a program the sleep of a head ends by time, so that no other promise is broken.
#[test]
fn a_wake_up_that_is_left_to_time_is_found() {
    for lock in WAKING {
        let dropped = |idle| {
            let config = Config {
                acquisitions: 1,
                split_release: true,
                ..twice(lock, idle)
            };
            wakes(&config, Change::Drop)
        };
        assert_eq!(dropped(None), None, "{lock}");
        let found = dropped(Some(0)).expect("it is found");
        assert!(
            matches!(
                found,
                Violation::Idle {
                    operations: None,
                    ..
                }
            ),
            "{lock}: {found}"
        );
    }
}

#[test]
fn only_locks_whose_heads_park_promise_it() {
    for lock in ["qspinlock", "rwlock", "pvticket", "lockref-cna", "cond"] {
        let refused = twice(lock, Some(0)).validate();
        assert_eq!(refused, Err(ConfigError::Idle(lock.to_owned())));
    }
}
