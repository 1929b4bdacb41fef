//! Tests of checks: the reductions of the search hide nothing.

use lockworks::LockType;
use lockworks_explore::{KeptError, Limits, Run};
use lockworks_litmus::Memory;

use crate::automaton::Log;
use crate::check::Check;
use crate::config::{COND, Config};
use crate::locks;
use crate::model::Stop;
use crate::mutation::{Change, Mutation};
use crate::results::{CheckOutcome, End};
use crate::site::{OperationKind, Order, Site};
use crate::violation::Violation;

/// Taking local steps at once finds a violation exactly where single steps do.
#[test]
fn reduction_hides_no_violation() {
    for (lock, file) in [("tas", "tas.h"), ("ticket", "ticket.h"), ("mcs", "mcs.h")] {
        let config = Config {
            trylock: true,
            ..Config::new(lock)
        };
        for mutation in mutations(file).map(Some).chain([None]) {
            let check = Check::new(&config, mutation).expect("a lock that there is");
            let limits = Limits {
                states: Some(50_000),
                ..Limits::NONE
            };
            let [reduced, single] = [true, false].map(|reduce| {
                let end = check.search(&limits, reduce, &mut |_| {}).0.end;
                matches!(end, End::Broken(_))
            });
            assert_eq!(reduced, single, "{lock}: {mutation:?}");
        }
    }
}

/// No lock has memory behind its end: with four bytes less, its last word is no memory.
#[test]
fn a_lock_has_no_memory_behind_its_end() {
    let names = locks::lock_types()
        .map(LockType::name)
        .chain(locks::lockref_types().map(|lockref| lockref.name()))
        .chain([COND]);
    for name in names {
        let config = Config {
            threads: 3,
            ..Config::new(name)
        };
        let check = Check::new(&config, None).expect("a lock that there is");
        let mut findings = check.findings();
        let mut found = (0..100).map(|seed| {
            loop {
                let automata = check.automata(Log::of(Vec::new()));
                let mut model = check.model::<1024>(std::mem::take(&mut findings), automata);
                model.cells.lock_size = model.cells.lock_size.saturating_sub(4);
                match Run::new(100, seed).make(&mut model, check.most_steps()) {
                    Err(Stop::Restart) => findings = model.findings,
                    end => break matches!(end, Err(Stop::Violation(Violation::NoMemory { .. }))),
                }
            }
        });
        assert!(found.any(|found| found), "{name}");
    }
}

/// Some mistakes in each operation of a file.
pub(super) fn mutations(file: &str) -> impl Iterator<Item = Mutation> {
    let sites = Site::all().iter().filter(move |site| site.file() == file);
    sites.flat_map(|site| {
        let mut changes = vec![Change::Drop, Change::Order(Order::Relaxed)];
        changes.extend((site.kind == OperationKind::CompareExchange).then_some(Change::Blind));
        changes.extend((site.kind == OperationKind::Store).then_some(Change::Defer));
        changes
            .into_iter()
            .map(move |change| Mutation::at(site, change))
    })
}

fn search(config: &Config, mutation: Option<Mutation>, symmetric: bool) -> CheckOutcome {
    let mut check = Check::new(config, mutation).expect("a lock that there is");
    check.symmetric = symmetric;
    let limits = Limits {
        states: (mutation.is_some() || config.memory.delays()).then_some(30_000),
        ..Limits::NONE
    };
    let outcome = check.run(&limits, &mut |_| {});
    if let End::Broken(broken) = &outcome.end {
        let violation = check.replay(&broken.run).map(|(_, violation)| violation);
        assert_eq!(violation, Some(broken.violation.clone()), "{config}");
    }
    outcome
}

/// Three threads that acquire once, without spurious wake-ups.
fn three(lock: &str) -> Config {
    Config {
        threads: 3,
        acquisitions: 1,
        spurious: 0,
        ..Config::new(lock)
    }
}

#[test]
fn threads_that_change_places_do_all_that_they_did() {
    let with = |lock: &str, change: fn(&mut Config)| {
        let mut config = three(lock);
        change(&mut config);
        config
    };
    for (config, renamings) in [
        (with("mcs", |c| c.acquisitions = 2), 6),
        (with("mcs", |c| c.trylock = true), 2),
        (with("mcs", |c| c.bypass = Some(0)), 6),
        (with("qspinlock", |c| c.acquisitions = 2), 6),
        (with("qspinlock", |c| c.slots = Some(2)), 2),
        (with("cna", |c| c.acquisitions = 2), 6),
        (with("cna", |c| c.priority = vec![0, 1]), 2),
        (with("hq", |c| c.nodes = 2), 2),
        (with("pv42", |c| c.spurious = 1), 6),
        (with("unfair", |c| c.spurious = 1), 6),
        (
            with("qspinlock", |c| {
                c.threads = 4;
                c.memory = Memory::Sc;
            }),
            24,
        ),
    ] {
        let [symmetric, all] = [true, false].map(|how| search(&config, None, how));
        assert_eq!(
            (&symmetric.end, &all.end),
            (&End::Kept, &End::Kept),
            "{config}"
        );
        assert_eq!(symmetric.covered, all.covered, "{config}");
        assert_eq!(symmetric.events, all.events, "{config}");
        // A few states are the same after some of the renamings.
        let [fewer, states] = [symmetric, all].map(|outcome| outcome.coverage.states);
        let all_renamed = fewer * renamings;
        assert!(
            (states..states * 3 / 2).contains(&all_renamed),
            "{config}: {fewer} of {states}"
        );
    }
}

/// In models in which threads delay operations too, of which the results may name threads.
#[test]
fn threads_of_small_locks_that_delay_operations_change_places() {
    let small = ["tas", "ticket", "mcs"];
    let compared = places_changed(|lock| small.contains(&lock.name()));
    assert!(compared >= 10, "{compared}");
}

#[test]
#[ignore = "wide"]
fn threads_that_delay_operations_change_places() {
    let compared = places_changed(|lock| lock.name() != "busted");
    assert!(compared >= 33, "{compared}");
}

/// The number of checks of these locks that were compared with and without changes of places.
fn places_changed(of: impl Fn(&LockType) -> bool) -> usize {
    let mut compared = 0;
    for lock in crate::lock_types().filter(|lock| of(lock)) {
        for memory in [Memory::Arm, Memory::Lkmm] {
            for (threads, acquisitions, renamings) in [(2, 2, 2), (3, 1, 6)] {
                let config = Config {
                    memory,
                    threads,
                    acquisitions,
                    nodes: 1,
                    ..three(lock.name())
                };
                let [symmetric, all] = [true, false].map(|how| search(&config, None, how));
                match (&symmetric.end, &all.end) {
                    (End::Kept, End::Kept) => {}
                    (End::Broken(one), End::Broken(other)) => {
                        assert_eq!(one.violation.name(), other.violation.name(), "{config}");
                        continue;
                    }
                    // Too many states for this test.
                    (_, End::Unfinished(_)) => continue,
                    ends => panic!("{config}: {ends:?}"),
                }
                assert_eq!(symmetric.covered, all.covered, "{config}");
                assert_eq!(symmetric.events, all.events, "{config}");
                let [fewer, states] = [symmetric, all].map(|outcome| outcome.coverage.states);
                if lock.name() == "pvticket" {
                    // Its threads poll different slots first.
                    assert_eq!(fewer, states, "{config}");
                    continue;
                }
                // A few states are the same after some of the renamings: all if there are few.
                let all_renamed = fewer * renamings;
                let most = match threads {
                    2 => states + 16,
                    _ => states.max(400) * 3 / 2,
                };
                assert!(
                    fewer < states && (states..most).contains(&all_renamed),
                    "{config}: {fewer} of {states}"
                );
                compared += 1;
            }
        }
    }
    compared
}

/// A search in which threads change places finds a violation exactly where another does.
#[test]
fn symmetry_hides_no_violation() {
    assert_symmetry_hides_none(&[("mcs", Memory::C11), ("mcs", Memory::Lkmm)]);
}

#[test]
#[ignore = "wide"]
fn symmetry_of_larger_locks_hides_no_violation() {
    assert_symmetry_hides_none(&[
        ("qspinlock", Memory::C11),
        ("qspinlock", Memory::Arm),
        ("qspinlock", Memory::Lkmm),
        ("pv42", Memory::C11),
    ]);
}

fn assert_symmetry_hides_none(of: &[(&str, Memory)]) {
    let file = |site: &Site| {
        let files = [
            "mcs.h",
            "qspinlock.c",
            "pending_bit.h",
            "queue_slot.h",
            "parking.h",
            "stealing.h",
            "pv42.c",
            "parked_heads.h",
            "lock_word.h",
        ];
        files.contains(&site.file())
    };
    for &(lock, memory) in of {
        let config = Config {
            memory,
            ..three(lock)
        };
        let covered = search(&config, None, true).covered;
        let sites = Site::all()
            .iter()
            .filter(|site| file(site) && covered[site.number()]);
        for site in sites {
            for change in [Change::Drop, Change::Order(Order::Relaxed)] {
                let mutation = Mutation::at(site, change);
                let [symmetric, all] =
                    [true, false].map(|how| search(&config, Some(mutation), how).end);
                let what = format!("{config}: {mutation:?}: {symmetric:?}, {all:?}");
                match (symmetric, all) {
                    (End::Broken(_), End::Broken(_)) | (End::Kept, End::Kept) => {}
                    // Too many states for this test.
                    (_, End::Unfinished(_)) => {}
                    _ => panic!("{what}"),
                }
            }
        }
    }
}

/// The staleness bound holds in the replay of a run, as in the search.
#[test]
fn runs_of_bounded_reads_can_be_made_again() {
    let sites = |file: &'static str| Site::all().iter().filter(move |s| s.file() == file);
    for (lock, file) in [
        ("mcs", "mcs.h"),
        ("qspinlock", "qspinlock.c"),
        ("qspinlock", "pending_bit.h"),
        ("qspinlock", "queue_slot.h"),
    ] {
        for (bound, site) in (0..3).flat_map(|bound| sites(file).map(move |s| (bound, s))) {
            let config = Config {
                staleness: Some(bound),
                ..three(lock)
            };
            for change in [Change::Drop, Change::Order(Order::Relaxed)] {
                search(&config, Some(Mutation::at(site, change)), true);
            }
        }
    }
}

/// The search notices that the threads of a lockref differ, even if its caller says otherwise.
#[test]
fn threads_that_differ_are_found_out() {
    let config = three("lockref-tas");
    let [symmetric, all] = [true, false].map(|how| search(&config, None, how));
    assert_eq!(symmetric.end, all.end);
    assert_eq!(symmetric.coverage.states, all.coverage.states);
    let mut check = Check::new(&config, None).expect("a lock that there is");
    check.symmetric = true;
    let limits = Limits {
        threads: 3,
        ..Limits::NONE
    };
    let by_several = check.run(&limits, &mut |_| {});
    assert_eq!(by_several.end, all.end);
    assert_eq!(by_several.coverage.states, all.coverage.states);
}

/// Neither several OS threads nor a memory that is too small changes what a search finds.
#[test]
fn threads_and_disk_change_nothing() {
    let mut hq = Config::new("hq");
    hq.threads = 3;
    hq.nodes = 1;
    let mut queued = three("qspinlock");
    queued.acquisitions = 2;
    let mut stores = Site::all()
        .iter()
        .filter(|site| site.file() == "pending_bit.h" && site.kind == OperationKind::Store);
    let lost = Mutation::at(stores.next().expect("there is one"), Change::Drop);
    let mut delayed = Config::new("mcs");
    delayed.memory = Memory::Arm;
    for (config, mutation) in [
        (&hq, None),
        (&queued, None),
        (&queued, Some(lost)),
        (&delayed, None),
    ] {
        let check = Check::new(config, mutation).expect("a lock that there is");
        let with = |threads, memory| {
            let limits = Limits {
                memory,
                threads,
                ..Limits::NONE
            };
            check.run(&limits, &mut |_| {})
        };
        let plain = with(1, None);
        assert_eq!(mutation.is_some(), matches!(plain.end, End::Broken(_)));
        for (threads, memory) in [(3, None), (1, Some(1 << 16)), (3, Some(1 << 16))] {
            let other = with(threads, memory);
            assert_eq!(plain.end, other.end, "{config} {threads} {memory:?}");
            assert_eq!(plain.covered, other.covered, "{config}");
            assert_eq!(plain.events, other.events, "{config}");
            if mutation.is_none() {
                assert_eq!(plain.coverage.states, other.coverage.states, "{config}");
                let transitions = [&plain, &other].map(|o| o.coverage.transitions);
                assert_eq!(transitions[0], transitions[1], "{config}");
                assert_eq!(plain.coverage.depth, other.coverage.depth, "{config}");
                assert_eq!(memory.is_some(), other.coverage.disk > 0, "{config}");
            }
        }
    }
}

/// A search that is ended again and again finds in the end what one without an end finds.
#[test]
fn a_search_that_is_kept_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("search");
    let mut queued = three("qspinlock");
    queued.acquisitions = 2;
    let mut arm = Config::new("cna");
    arm.memory = Memory::Arm;
    for config in [&queued, &arm] {
        let check = Check::new(config, None).expect("a lock that there is");
        let whole = check.run(&Limits::NONE, &mut |_| {});
        assert_eq!(whole.end, End::Kept);
        for memory in [None, Some(1 << 16)] {
            let mut states = 0;
            let mut ended = 0;
            let last = loop {
                states += 6000;
                let limits = Limits {
                    states: Some(states),
                    memory,
                    threads: 2,
                    ..Limits::NONE
                };
                let outcome = check
                    .run_kept(&limits, &file, &mut |_| {})
                    .expect("a file that can be written");
                assert_eq!(outcome.end != End::Kept, file.exists());
                if outcome.end == End::Kept {
                    break outcome;
                }
                ended += 1;
            };
            assert!(ended > 1, "{config}");
            assert_eq!(last.coverage.states, whole.coverage.states, "{config}");
            let transitions = [&last, &whole].map(|o| o.coverage.transitions);
            assert_eq!(transitions[0], transitions[1], "{config}");
            assert_eq!(last.coverage.depth, whole.coverage.depth, "{config}");
            assert_eq!(last.covered, whole.covered, "{config}");
            assert_eq!(last.events, whole.events, "{config}");
        }
    }
    // Another check does not go on with it, and what is no search stays as it is.
    let limits = Limits {
        states: Some(10),
        ..Limits::NONE
    };
    let check = Check::new(&queued, None).expect("a lock that there is");
    check
        .run_kept(&limits, &file, &mut |_| {})
        .expect("a file that can be written");
    let other = three("mcs");
    let other = Check::new(&other, None).expect("a lock that there is");
    let refused = other.run_kept(&limits, &file, &mut |_| {});
    assert!(matches!(refused, Err(KeptError::OtherCheck)));
    std::fs::write(&file, "a diary").expect("a file that can be written");
    let refused = check.run_kept(&limits, &file, &mut |_| {});
    assert!(matches!(refused, Err(KeptError::Other)));
    assert_eq!(std::fs::read(&file).expect("it is there"), b"a diary");
}
