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

/// Runs mutants and requires that each behaves as its list says.
fn assert_expected(mutants: &[&Mutant]) {
    run(mutants, &|mutant, verdict| {
        assert!(
            !verdict.is_unexpected(),
            "{}: {mutant}: {verdict:?}",
            mutant.lock
        );
    });
}

#[test]
fn mistakes_are_caught() {
    let list = Mutants::all().unwrap();
    let caught: Vec<&Mutant> = list
        .mutants
        .iter()
        .filter(|m| m.equivalent.is_none() && m.beyond.is_none())
        .collect();
    for lock in list.configurations.keys() {
        let fewest = match lock.as_str() {
            "hq" => 40,
            lock if LARGE.contains(&lock) => 30,
            _ => 1,
        };
        let listed = caught.iter().filter(|m| m.lock == *lock).count();
        assert!(listed >= fewest, "only {listed} mutants of {lock}");
    }
    assert_expected(&caught);
}

/// Locks of which a search that finds nothing takes seconds. Their mutants that no check may catch are
/// tried by `lockworks check mutants` only.
const LARGE: [&str; 7] = ["cna", "cna13", "pv42", "mutex310", "pv", "unfair", "mutex"];

#[test]
fn mutants_that_no_check_may_catch_are_not_caught() {
    let list = Mutants::all().unwrap();
    let tried: Vec<&Mutant> = list
        .mutants
        .iter()
        .filter(|m| m.equivalent.is_some() || m.beyond.is_some())
        .filter(|m| !LARGE.contains(&m.lock.as_str()))
        .collect();
    assert!(!tried.is_empty());
    assert_expected(&tried);
}
