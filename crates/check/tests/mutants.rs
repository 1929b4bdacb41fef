//! Every operation of every lock has its mutants, and they are caught.

use std::collections::BTreeSet;

use lockworks_check::mutants::{DIRECTORY, Mutant, Mutants, mistakes, run};
use lockworks_check::{COND, Check, Limits, Mutation, Site, Target};

/// The most states of a configuration here; `lockworks check mutants` searches larger ones.
const STATES: usize = 80_000;

#[test]
fn every_operation_of_a_lock_has_its_mistakes_listed() {
    let list = Mutants::all().unwrap();
    let limits = Limits {
        states: Some(STATES),
        ..Limits::NONE
    };
    let mut missing = BTreeSet::new();
    for (lock, configurations) in &list.configurations {
        let mut covered = vec![false; Site::all().len()];
        for config in configurations {
            let outcome = Check::new(config, None).unwrap().run(&limits, &mut |_| {});
            covered
                .iter_mut()
                .zip(outcome.covered)
                .for_each(|(c, now)| *c |= now);
        }
        // The lock in a condition variable is the mutex, which has its own file.
        let is_its_own = |site: &&Site| lock != COND || site.file().ends_with("cond.c");
        let reached = Site::all().iter().filter(|site| covered[site.number()]);
        for site in reached.filter(is_its_own) {
            for change in mistakes(site) {
                let listed = |target: Option<Target>| {
                    let mutation = Mutation {
                        target,
                        ..Mutation::at(site, change)
                    };
                    let is_it = |m: &Mutant| m.lock == *lock && m.mutation == mutation;
                    list.mutants.iter().any(is_it)
                };
                if !listed(None) && !Target::ALL.iter().all(|target| listed(Some(*target))) {
                    missing.insert(format!(
                        "# {DIRECTORY}/{lock}.toml, {}:{}\n\
                         [[mutant]]\nat = \"{}: {site}\"\nchange = \"{change}\"\n",
                        site.file(),
                        site.line,
                        site.function()
                    ));
                }
            }
        }
    }
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(missing.is_empty(), "add these:\n\n{}", missing.join("\n"));
}

#[test]
fn mistakes_of_the_small_locks_are_caught() {
    let list = Mutants::all().unwrap();
    let small: Vec<&Mutant> = list
        .mutants
        .iter()
        .filter(|m| {
            [
                "tas",
                "lockref-tas",
                "byte",
                "ticket",
                "mcs",
                "pvticket",
                "mutex37",
                COND,
            ]
            .contains(&m.lock.as_str())
        })
        .collect();
    assert!(!small.is_empty());
    run(&small, &|mutant, verdict| {
        assert!(
            !verdict.is_unexpected(),
            "{}: {mutant}: {verdict:?}",
            mutant.lock
        );
    });
}

#[test]
fn mistakes_of_the_hq_spinlock_are_caught() {
    let list = Mutants::all().unwrap();
    let of_hq: Vec<&Mutant> = list.mutants.iter().filter(|m| m.lock == "hq").collect();
    assert!(of_hq.iter().filter(|m| m.equivalent.is_none()).count() >= 40);
    run(&of_hq, &|mutant, verdict| {
        assert!(!verdict.is_unexpected(), "hq: {mutant}: {verdict:?}");
    });
}

#[track_caller]
fn mistakes_are_caught(lock: &str) {
    let list = Mutants::all().unwrap();
    let all = list.mutants.iter().filter(|m| m.lock == lock);
    let mutants: Vec<&Mutant> = all
        .filter(|m| m.equivalent.is_none() && m.beyond.is_none())
        .collect();
    assert!(mutants.len() >= 30);
    run(&mutants, &|mutant, verdict| {
        assert!(!verdict.is_unexpected(), "{lock}: {mutant}: {verdict:?}");
    });
}

#[test]
fn mistakes_of_the_paravirt_lock_of_linux_4_2_are_caught() {
    mistakes_are_caught("pv42");
}

#[test]
fn mistakes_of_the_mutex_that_reads_first_are_caught() {
    mistakes_are_caught("mutex310");
}

#[test]
fn mistakes_of_the_paravirt_lock_are_caught() {
    mistakes_are_caught("pv");
}

#[test]
fn mistakes_of_the_mutex_are_caught() {
    mistakes_are_caught("mutex");
}

#[test]
fn mistakes_of_the_queued_unfair_lock_are_caught() {
    mistakes_are_caught("unfair");
}

#[test]
fn mutants_listed_as_equivalent_are_not_caught() {
    let list = Mutants::all().unwrap();
    let large = ["cna", "hq", "pv42", "pv", "unfair", "mutex310", "mutex"];
    let equivalent: Vec<&Mutant> = list
        .mutants
        .iter()
        .filter(|m| m.equivalent.is_some() && !large.contains(&m.lock.as_str()))
        .collect();
    run(&equivalent, &|mutant, verdict| {
        assert!(
            !verdict.is_unexpected(),
            "{}: {mutant}: {verdict:?}",
            mutant.lock
        );
    });
}
