//! Every lockref, in the configurations that its proof consists of.

use lockworks::LockrefType;
use lockworks_check::{Check, CheckOutcome, Config, End, Limits, Memory, Mode, lockref_types};

fn run(config: &Config) -> CheckOutcome {
    Check::new(config, None)
        .expect("a lockref and sizes that there are")
        .run(&Limits::NONE, &mut |_| {})
}

/// A configuration, from that of two threads that get two references each in weak memory.
fn config(lockref: &LockrefType, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new(lockref.name());
    change(&mut config);
    config
}

fn keeps(config: &Config) {
    let outcome = run(config);
    assert_eq!(outcome.end, End::Kept, "{config}");
    assert!(outcome.is_complete(), "{config}");
}

#[test]
fn all_are_kept_by_two_threads() {
    for lockref in lockref_types().filter(|lockref| !lockref.lock().is_broken()) {
        // A lockref whose unlocked word is not 0 has several times the states.
        let fewer = u32::from(lockref.lock().unlocked() != 0);
        keeps(&config(lockref, |c| c.acquisitions = 4 - fewer));
        keeps(&config(lockref, |c| {
            c.acquisitions = 3 - fewer;
            c.trylock = true;
        }));
        keeps(&config(lockref, |c| {
            c.acquisitions = 2 - fewer;
            c.nesting = 1;
        }));
    }
}

#[test]
fn small_ones_are_kept_by_three_threads() {
    for lockref in lockref_types().filter(|l| ["tas", "ticket"].contains(&l.lock().name())) {
        keeps(&config(lockref, |c| {
            c.threads = 3;
            c.acquisitions = 1;
        }));
    }
}

#[test]
fn the_queued_one_is_kept_by_three_threads() {
    let lockref = lockref_types().find(|l| l.lock().name() == "qspinlock");
    keeps(&config(lockref.expect("it has one"), |c| {
        c.threads = 3;
        c.acquisitions = 1;
    }));
}

/// The word of an unlocked HQ-spinlock is not zero, and its mode changes.
#[test]
fn the_hierarchical_one_is_kept_on_two_nodes() {
    let lockref = lockref_types().find(|l| l.lock().name() == "hq");
    for mode in [Mode::Numa, Mode::Plain] {
        keeps(&config(lockref.expect("it has one"), |c| {
            c.threads = 3;
            c.acquisitions = 1;
            c.nodes = 2;
            c.memory = Memory::Sc;
            c.mode = mode;
        }));
    }
}

/// One mutant does not check for the lock, and the other takes a dead count for a live one.
#[test]
fn planted_mistakes_are_caught() {
    let broken: Vec<_> = lockref_types()
        .filter(|lockref| lockref.lock().is_broken())
        .collect();
    assert_eq!(broken.len(), 2);
    for lockref in broken {
        for memory in [Memory::C11, Memory::Sc] {
            let outcome = run(&config(lockref, |c| {
                c.acquisitions = 3;
                c.memory = memory;
            }));
            assert!(
                matches!(outcome.end, End::Broken(_)),
                "{} in {memory}",
                lockref.name()
            );
        }
    }
}
