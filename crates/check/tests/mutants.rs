//! Every operation of every lock has its planted mistakes, and they are caught.

use lockworks_check::mutants::{Mutant, Mutants, mistakes, run};
use lockworks_check::{COND, Check, Limits, Mutation, Site, Target};

/// Configurations larger than this are left to `lockworks check mutants`.
const STATES: usize = 80_000;

#[test]
fn every_operation_of_a_lock_has_its_mistakes_listed() {
    let list = Mutants::all().unwrap();
    let limits = Limits {
        states: Some(STATES),
        ..Limits::NONE
    };
    for (lock, configurations) in &list.configurations {
        let mut covered = vec![false; Site::all().len()];
        for config in configurations {
            let outcome = Check::new(config, None).unwrap().run(&limits, &mut |_| {});
            covered
                .iter_mut()
                .zip(outcome.covered)
                .for_each(|(c, now)| *c |= now);
        }
        // The mistakes in its lock are those of the mutex.
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
                assert!(
                    listed(None) || Target::ALL.iter().all(|target| listed(Some(*target))),
                    "{lock}: {}: {site} -> {change} is not in tests/check/mutants.toml",
                    site.function()
                );
            }
        }
    }
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
fn what_is_said_to_be_equivalent_is_not_caught() {
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

#[test]
fn a_wrong_list_is_refused() {
    let list = |mutant: &str| {
        let text = format!("[configurations]\na = {{}}\n[locks]\ntas = [\"a\"]\n{mutant}");
        text.parse::<Mutants>()
            .map(|l| l.mutants.len())
            .map_err(|e| e.to_string())
    };
    let entry = |at: &str, change: &str| {
        format!("[[mutant]]\nlocks = [\"tas\"]\nat = \"{at}\"\nchange = \"{change}\"\n")
    };
    let good = entry("lw_tas_unlock: store lock->locked", "drop");
    assert_eq!(list(&good), Ok(1));
    assert!(
        list(&format!("{good}{good}"))
            .unwrap_err()
            .contains("twice")
    );
    assert!(
        list(&entry("lw_tas_unlock: store x", "drop"))
            .unwrap_err()
            .contains("no operation")
    );
    let twice = "lw_queue_in_slot: store nodes->count";
    assert!(
        list(&entry(twice, "drop"))
            .unwrap_err()
            .contains("#1 to #2")
    );
    assert!(list(&entry(&format!("{twice} #3"), "drop")).is_err());
    assert!(
        list(&good.replace("drop", "weak"))
            .unwrap_err()
            .contains("no change")
    );
}
