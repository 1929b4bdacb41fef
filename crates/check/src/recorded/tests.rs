use std::sync::Arc;

use lockworks_explore::Limits;
use lockworks_litmus::Memory;
use lockworks_litmus::{has_race, is_allowed};

use crate::config::{Config, Subject};
use crate::headers::LitmusTest;
use crate::locks;
use crate::mutation::{Change, Mutation};
use crate::site::{Order, Site};

use super::*;

/// The runs of each litmus test, and of each lock.
const RUNS_OF_A_TEST: u64 = 40;
const RUNS_OF_A_LOCK: u64 = 300;

/// A check of a litmus test.
fn litmus_check<'a>(
    test: &'static LitmusTest,
    config: &'a Config,
    mutation: Option<Mutation>,
) -> Check<'a> {
    Check {
        shared: Arc::default(),
        config,
        subject: Subject::Lock(locks::lock_types().next().unwrap()),
        mutation,
        program: locks::lw_litmus_thread,
        litmus: test,
        symmetric: false,
    }
}

fn litmus_config(test: &LitmusTest, memory: Memory) -> Config {
    let lock = locks::lock_types().next().unwrap();
    Config {
        threads: test.threads.iter().flatten().count(),
        memory,
        ..Config::new(lock.name())
    }
}

fn name(test: &LitmusTest) -> &'static str {
    // SAFETY: a string literal.
    unsafe { std::ffi::CStr::from_ptr(test.name) }
        .to_str()
        .unwrap()
}

/// Tests in which threads park are not recorded.
fn is_recorded(test: &LitmusTest) -> bool {
    !name(test).starts_with("park")
}

/// Requires that the axioms allow an execution.
fn assert_allowed(memory: Memory, x: &Execution, what: &str) {
    if let Err(broken) = is_allowed(memory, x) {
        for (number, event) in x.events.iter().enumerate() {
            let from = x.rf.pairs().find(|(_, read)| *read == number);
            println!(
                "{number}: {event:?} from {:?}",
                from.map(|(write, _)| write)
            );
        }
        panic!("{what} in {memory}: {broken:?}");
    }
}

#[test]
fn runs_of_litmus_tests_are_allowed() {
    let mut judged = 0;
    for memory in Memory::ALL {
        for test in locks::litmus_tests().filter(|test| is_recorded(test)) {
            let config = litmus_config(test, memory);
            let check = litmus_check(test, &config, None);
            record(&check, RUNS_OF_A_TEST, |x| {
                assert_allowed(memory, &x, name(test));
                judged += 1;
            });
        }
    }
    // Tests that end in a violation have none.
    assert!(judged > 19_000, "{judged}");
}

#[test]
fn runs_of_locks_are_allowed() {
    let mut judged = 0;
    for memory in Memory::ALL {
        for lock in ["tas", "ticket", "mcs", "qspinlock", "cna"] {
            for threads in [2, 3] {
                let config = Config {
                    threads,
                    acquisitions: 1,
                    nodes: 2,
                    memory,
                    ..Config::new(lock)
                };
                let check = Check::new(&config, None).unwrap();
                record(&check, RUNS_OF_A_LOCK, |x| {
                    assert_allowed(memory, &x, lock);
                    assert!(!has_race(memory, &x), "{lock} in {memory}");
                    judged += 1;
                });
            }
        }
    }
    // The others were cut.
    assert!(judged > 14_000, "{judged}");
}

/// A search whose operations are weaker than the source says makes runs that the axioms forbid.
#[test]
fn a_weakened_search_is_noticed() {
    for wanted in [
        "sb+sc-fences",
        "mp+rel+acq",
        "mp+fences",
        "isa2+rel+acq",
        "2+2w+sc",
    ] {
        let mut tests = locks::litmus_tests();
        let test = tests.find(|test| name(test) == wanted).unwrap();
        let config = litmus_config(test, Memory::C11);
        let check = litmus_check(test, &config, None);
        let outcome = check.run(&Limits::NONE, &mut |_| {});
        let done = Site::all().iter().zip(outcome.covered);
        let needed = |site: &Site| site.order != Order::Relaxed && site.operand() != "m->done";
        let mut weakened = 0;
        for (site, _) in done.filter(|(site, done)| *done && needed(site)) {
            let mutation = Mutation::at(site, Change::Order(Order::Relaxed));
            let check = litmus_check(test, &config, Some(mutation));
            let mut refused = 0;
            record(&check, 20 * RUNS_OF_A_TEST, |x| {
                refused += usize::from(is_allowed(Memory::C11, &x).is_err());
            });
            assert!(refused > 0, "{wanted}: {site:?} relaxed");
            weakened += 1;
        }
        assert!(weakened > 1, "{wanted}");
    }
}

/// A read-modify-write reads the write before its own, and nothing else.
#[test]
fn another_source_of_a_read_is_refused() {
    for memory in Memory::ALL {
        let config = Config {
            acquisitions: 1,
            memory,
            ..Config::new("qspinlock")
        };
        let check = Check::new(&config, None).unwrap();
        let mut changed = 0;
        record(&check, RUNS_OF_A_LOCK / 10, |x| {
            for (read, write) in x.rmw.pairs() {
                let source = x.rf.pairs().find(|(_, r)| *r == read).unwrap().0;
                let others = x.co.pairs().filter(|(_, later)| *later == write);
                for (other, _) in others.filter(|(other, _)| *other != source) {
                    let mut x = x.clone();
                    x.rf.remove(source, read);
                    x.rf.insert(other, read);
                    assert!(
                        is_allowed(memory, &x).is_err(),
                        "{memory}: {other} to {read}"
                    );
                    changed += 1;
                }
            }
        });
        assert!(changed > 0, "{memory}");
    }
}
