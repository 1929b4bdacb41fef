//! Forks: in the child, locks go on for which threads waited that are not there.

use lockworks_check::{
    Change, Check, CheckOutcome, Config, ConfigError, End, Limits, Memory, Mutation, Site,
};

/// The locks that go on in the child of a fork.
const LOCKS: [&str; 6] = ["mutex", "pv", "unfair", "qspinlock", "cna", "hq"];

fn run(config: &Config, mutation: Option<Mutation>) -> CheckOutcome {
    let check = Check::new(config, mutation).expect("a lock that goes on after a fork");
    check.run(&Limits::NONE, &mut |_| {})
}

/// A check of forks, from that of two threads that acquire twice in weak memory.
fn forks(lock: &str, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config {
        fork: true,
        ..Config::new(lock)
    };
    change(&mut config);
    config
}

fn keeps(config: &Config) -> CheckOutcome {
    let outcome = run(config, None);
    assert_eq!(outcome.end, End::Kept, "{config}");
    assert!(outcome.is_complete(), "{config}");
    outcome
}

#[test]
fn locks_go_on_in_the_child_in_sequential_consistency() {
    go_on_in_the_child(Memory::Sc);
}

#[test]
#[ignore = "wide"]
fn locks_go_on_in_the_child() {
    go_on_in_the_child(Memory::C11);
}

fn go_on_in_the_child(memory: Memory) {
    for lock in LOCKS {
        let is_numa_aware = ["cna", "hq"].contains(&lock);
        let outcome = keeps(&forks(lock, |c| {
            c.nodes = 1 + usize::from(is_numa_aware);
            c.memory = memory;
        }));
        let done = |function: &str| {
            let mut sites = Site::all().iter();
            sites.any(|site| site.function() == function && outcome.covered[site.number()])
        };
        assert!(
            done("lw_forked_retire") && done("lw_forked_end_reads"),
            "{lock}"
        );
        assert!(done("lw_forked_empty_parked_heads"), "{lock}");
    }
}

/// Three threads that acquire once. In the child there are two, unless the third waited.
fn three(lock: &str) -> Config {
    forks(lock, |c| {
        c.threads = 3;
        c.acquisitions = 1;
        c.memory = Memory::Sc;
    })
}

#[test]
fn several_threads_of_the_child_go_on() {
    for lock in LOCKS {
        keeps(&three(lock));
    }
}

#[test]
fn waits_are_cancelled_before_and_after_a_fork() {
    for lock in ["mutex", "pv", "unfair"] {
        keeps(&forks(lock, |c| {
            c.cancel = true;
            c.memory = Memory::Sc;
        }));
    }
}

#[test]
fn a_lock_is_tried_in_the_child() {
    for lock in LOCKS {
        keeps(&forks(lock, |c| {
            c.trylock = true;
            c.memory = Memory::Sc;
        }));
    }
}

/// The code of the child, and the test of each lock whether the waiter before it is dead.
#[test]
fn mistakes_in_the_child_are_found() {
    let dead = |lock: &str| match lock {
        "mutex" => ("lw_mutex_take_place", "load (before)->locked"),
        "hq" => ("lw_hq_wait_in_place", "load (before)->locked"),
        "qspinlock" => (
            "lw_qspinlock_lock_slow",
            "load (lw_decode_tail(prev))->locked",
        ),
        "cna" => ("lw_cna_lock_slow", "load (lw_decode_tail(prev))->locked"),
        _ => ("lw_queue_join", "load (prev)->locked"),
    };
    let retire = "lw_forked_retire";
    let empty = "lw_forked_empty_parked_heads";
    for lock in LOCKS {
        let mut mistakes = vec![
            dead(lock),
            (retire, "load nodes->count"),
            (retire, "store nodes[i].locked"),
        ];
        if ["mutex", "pv", "unfair"].contains(&lock) {
            mistakes.push((empty, "load entry->lock"));
            mistakes.push((empty, "store entry->lock"));
        }
        for (function, operation) in mistakes {
            let here = |site: &&Site| site.function() == function && site.to_string() == operation;
            let site = Site::all().iter().find(here).expect("it is there");
            let outcome = run(&three(lock), Some(Mutation::at(site, Change::Drop)));
            assert!(
                matches!(outcome.end, End::Broken(_)),
                "{lock}: {function}: {operation}"
            );
        }
    }
}

#[test]
fn only_what_is_promised_is_checked() {
    for lock in [
        "mcs",
        "ticket",
        "cna13",
        "rqspinlock",
        "rwlock",
        "lockref-cna",
        "cond",
    ] {
        let refused = forks(lock, |_| {}).validate();
        assert_eq!(refused, Err(ConfigError::Fork(lock.to_owned())));
    }
    let changes: [fn(&mut Config); 5] = [
        |c| c.nesting = 1,
        |c| c.locks = 2,
        |c| c.never_park = true,
        |c| c.slots = Some(1),
        |c| c.memory = Memory::Arm,
    ];
    for change in changes {
        let refused = forks("mutex", change).validate();
        assert_eq!(refused, Err(ConfigError::ForkOptions));
    }
}
