//! The resilient lock: it keeps its promises in small configurations, and mistakes that the field
//! found in Linux' lock of that kind are caught.

use lockworks_check::{Check, CheckOutcome, Config, End, Limits, Memory, Time};

fn run(config: &Config) -> CheckOutcome {
    Check::new(config, None)
        .expect("a lock and sizes that there are")
        .run(&Limits::NONE, &mut |_| {})
}

/// A configuration, from that of two threads that acquire the lock twice in weak memory.
fn config(lock: &str, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new(lock);
    change(&mut config);
    config
}

fn keeps(change: impl FnOnce(&mut Config)) {
    let config = config("rqspinlock", change);
    let outcome = run(&config);
    assert_eq!(outcome.end, End::Kept, "{config}");
    assert!(outcome.is_complete(), "{config}");
}

#[test]
fn a_thread_that_waits_for_itself_is_told() {
    keeps(|_| {});
    keeps(|c| c.trylock = true);
    keeps(|c| c.nesting = 1);
    keeps(|c| {
        c.threads = 3;
        c.acquisitions = 1;
    });
    keeps(|c| {
        c.threads = 3;
        c.acquisitions = 1;
        c.nesting = 1;
        c.memory = Memory::Sc;
    });
}

#[test]
#[ignore = "wide"]
fn each_of_three_threads_that_waits_for_itself_is_told() {
    keeps(|c| c.threads = 3);
}

#[test]
fn threads_that_wait_for_each_other_are_told() {
    keeps(|c| c.locks = 2);
    keeps(|c| {
        c.locks = 2;
        c.threads = 3;
        c.acquisitions = 1;
    });
}

/// Of three locks, which all threads take in the same order, so that no two wait for each other.
#[test]
fn an_order_of_three_locks_is_not_taken_for_a_deadlock() {
    keeps(|c| c.locks = 3);
    keeps(|c| {
        c.locks = 3;
        c.time = Time::Early;
    });
}

/// No deadline ever passes here, so all deadlocks end by detection.
#[test]
fn deadlocks_end_without_timeouts() {
    keeps(|c| {
        c.nesting = 1;
        c.time = Time::Early;
    });
    keeps(|c| {
        c.locks = 2;
        c.time = Time::Early;
    });
    keeps(|c| {
        c.locks = 2;
        c.acquisitions = 1;
        c.nesting = 1;
        c.memory = Memory::Sc;
        c.time = Time::Early;
    });
}

#[test]
fn no_deadlock_is_reported_where_all_take_locks_in_one_order() {
    keeps(|c| {
        c.locks = 2;
        c.trylock = true;
    });
}

#[test]
fn threads_without_slots_give_up_in_time() {
    for slots in 0..2 {
        keeps(|c| c.slots = Some(slots));
        keeps(|c| {
            c.slots = Some(slots);
            c.nesting = 1;
        });
        keeps(|c| {
            c.slots = Some(slots);
            c.locks = 2;
        });
    }
}

/// Each with the name of the violation, and the most steps of the shortest run.
const MISTAKES: [(&str, &str, usize); 4] = [
    ("rq_late", "livelock", 2),
    ("rq_early", "livelock", 10),
    ("rq_unasked", "promise", 56),
    ("rq_twice", "promise", 18),
];

#[test]
fn mistakes_of_the_field_are_caught() {
    for (lock, violation, steps) in MISTAKES {
        let config = config(lock, |c| {
            c.acquisitions = 1;
            c.nesting = 1;
        });
        let check = Check::new(&config, None).expect("a lock of this check");
        let End::Broken(broken) = check.run(&Limits::NONE, &mut |_| {}).end else {
            panic!("{config} is not caught");
        };
        let shortest = check.shorten(&Limits::NONE, broken);
        assert!(shortest.shortest, "{config}");
        assert_eq!(shortest.violation.name(), violation, "{config}");
        assert!(shortest.steps() <= steps, "{config}: {}", shortest.steps());
    }
}
