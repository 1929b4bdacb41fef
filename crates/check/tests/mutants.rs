//! Every operation of every lock has its mutants, and they are caught.

use std::collections::BTreeSet;

use lockworks_check::mutants::{
    DIRECTORY, FEW_STATES, Mutant, Mutants, RandomTrial, kept, measure, mistakes, run, shows,
};
use lockworks_check::{COND, Check, Config, End, Limits, Site};

#[test]
fn every_operation_that_is_soon_reached_has_its_mistakes_listed() {
    assert_mistakes_are_listed(FEW_STATES / 8);
}

#[test]
#[ignore = "wide"]
fn every_operation_of_a_lock_has_its_mistakes_listed() {
    assert_mistakes_are_listed(FEW_STATES);
}

/// Of the operations that a search reaches within `states`.
fn assert_mistakes_are_listed(states: usize) {
    let list = Mutants::all().unwrap();
    let limits = Limits {
        states: Some(states),
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
        // The lock in them is the mutex, which has its own file.
        let own: &[&str] = match lock.as_str() {
            COND => &["cond.c"],
            "rwlock" => &["rwlock.c", "rwlock.h", "reader_slots.h"],
            _ => &[""],
        };
        let is_its_own = |site: &&Site| own.iter().any(|file| site.file().ends_with(file));
        let reached = Site::all().iter().filter(|site| covered[site.number()]);
        for site in reached.filter(is_its_own) {
            for change in mistakes(site) {
                if !list.has_mistake(lock, site, change) {
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
    assert!(
        missing.is_empty(),
        "add these, or their functions:\n\n{}",
        missing.join("\n")
    );
}

/// Locks with many operations.
const LARGE: [&str; 6] = ["cna", "cna13", "pv42", "mutex310", "pv", "unfair"];

#[test]
fn every_lock_has_enough_mutants_that_are_caught() {
    let list = Mutants::all().unwrap();
    for lock in list.configurations.keys() {
        let fewest = match lock.as_str() {
            "mutex" => 80,
            "hq" => 40,
            lock if LARGE.contains(&lock) => 30,
            _ => 1,
        };
        let is_caught = |m: &&Mutant| m.lock == *lock && m.equivalent.is_none();
        let listed = list.mutants.iter().filter(is_caught).count();
        assert!(listed >= fewest, "only {listed} mutants of {lock}");
    }
}

/// One in 32 of each lock's mutants, without those for which the search has to go to its end, since they
/// are no mistake.
#[test]
fn some_mutants_of_each_lock_are_caught() {
    let list = Mutants::all().unwrap();
    let of_locks = list.mutants.chunk_by(|one, other| one.lock == other.lock);
    let some = of_locks.flat_map(|of| {
        let mistakes = of.iter().filter(|mutant| mutant.equivalent.is_none());
        mistakes.step_by(32)
    });
    assert_caught(&some.collect::<Vec<_>>());
}

/// The whole list, as `lockworks check mutants` runs it. A search for a mistake that no check may catch
/// ends after [`FEW_STATES`].
#[test]
#[ignore = "wide"]
fn mutants_are_caught_as_the_list_says() {
    let list = Mutants::all().unwrap();
    assert_caught(&list.mutants.iter().collect::<Vec<_>>());
}

fn assert_caught(mutants: &[&Mutant]) {
    let unexpected: Vec<String> = mutants
        .iter()
        .zip(run(mutants, &|_, _| {}))
        .filter(|(_, verdict)| verdict.is_unexpected())
        .map(|(mutant, verdict)| format!("{}: {mutant}: {verdict:?}", mutant.lock))
        .collect();
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

/// A random run that breaks a promise shows a mistake only if the lock without it keeps all promises.
#[test]
#[ignore = "wide"]
fn locks_without_a_mistake_keep_their_promises_in_the_random_runs() {
    let list = Mutants::all().unwrap();
    let mut trials: Vec<&RandomTrial> = Vec::new();
    for trial in list
        .mutants
        .iter()
        .filter_map(|mutant| mutant.random.as_ref())
    {
        if !trials.contains(&trial) {
            trials.push(trial);
        }
    }
    assert!(trials.len() >= 5, "{}", trials.len());
    for trial in trials {
        let outcome = trial.run(None);
        let broken = outcome.broken.map(|broken| broken.violation);
        assert_eq!(broken, None, "{trial}");
        assert_eq!((outcome.runs, outcome.cut), (trial.runs, 0), "{trial}");
    }
}

/// The same of searches, where a mutant asks for one that is not among those of its lock.
#[test]
#[ignore = "wide"]
fn locks_without_a_mistake_keep_their_promises_in_the_searches_of_single_mutants() {
    let list = Mutants::all().unwrap();
    let mut searches: Vec<&Config> = Vec::new();
    for mutant in &list.mutants {
        let usual = &list.configurations[&mutant.lock];
        for config in &mutant.configurations {
            if !usual.contains(config) && !searches.contains(&config) {
                searches.push(config);
            }
        }
    }
    assert!(searches.len() >= 2, "{}", searches.len());
    let limits = Limits {
        states: Some(FEW_STATES),
        ..Limits::NONE
    };
    for config in searches {
        let outcome = Check::new(config, None).unwrap().run(&limits, &mut |_| {});
        assert!(
            matches!(outcome.end, End::Kept | End::Unfinished(_)),
            "{config}: {:?}",
            outcome.end
        );
    }
}

/// Of a lock without a list, each operation is changed. Its own files need not be known.
#[test]
fn mutants_of_a_lock_without_a_list_are_derived() {
    assert!(!Mutants::are_listed("busted"));
    let error = Mutants::derived("busted").unwrap_err().to_string();
    assert!(
        error.contains("breaks a promise without a mistake"),
        "{error}"
    );

    // This one has a list, which says which mutants are caught.
    let derived = Mutants::derived("ticket").unwrap().mutants;
    let list = Mutants::all().unwrap();
    let all: Vec<&Mutant> = derived.iter().collect();
    assert!(all.len() >= 5, "{}", all.len());
    for (mutant, verdict) in all.iter().zip(run(&all, &|_, _| {})) {
        let same = |other: &&Mutant| other.lock == "ticket" && other.mutation == mutant.mutation;
        let listed = list.mutants.iter().find(same).expect("the list has all");
        assert_eq!(
            listed.equivalent.is_some(),
            verdict.is_unexpected(),
            "{mutant}"
        );
    }
}

/// The mistakes that each size finds are those of crates/check/sizes.toml, in locks that take a second.
#[test]
fn the_sizes_of_small_locks_find_what_is_kept() {
    assert_sizes_are_kept(&["byte", "mcs", "tas", "ticket"]);
}

#[test]
#[ignore = "wide"]
fn the_sizes_of_all_locks_find_what_is_kept() {
    let list = Mutants::all().unwrap();
    let locks: Vec<&str> = list.configurations.keys().map(String::as_str).collect();
    assert_sizes_are_kept(&locks);
}

fn assert_sizes_are_kept(locks: &[&str]) {
    let list = Mutants::all().unwrap();
    for lock in locks {
        let mutants: Vec<&Mutant> = list.mutants.iter().filter(|m| m.lock == *lock).collect();
        let sizes = measure(lock, &mutants, &|| {});
        let expected = kept(lock).unwrap_or_else(|| panic!("no {}", sizes.table(lock)));
        assert_eq!(*expected, sizes, "{}", sizes.table(lock));
    }
}

/// The hand-off of CNA without its release passes at 3x1, and is found at 3x2.
#[test]
fn a_small_size_says_which_one_finds_more() {
    let config = |threads, acquisitions| Config {
        threads,
        acquisitions,
        nodes: 2,
        ..Config::new("cna")
    };
    let at = |threads, acquisitions| shows(&config(threads, acquisitions)).unwrap();
    assert_eq!(at(3, 1).best, "3x2");
    assert!(at(3, 1).found < at(3, 2).found, "{:?}", at(3, 1));
    assert_eq!(at(3, 2).found, at(3, 2).best_found);
    // A larger size finds at least what each one within it finds.
    assert_eq!(at(4, 2).found, at(3, 2).found);
    let other = Config {
        trylock: true,
        ..config(3, 1)
    };
    assert_eq!(shows(&other), None);
}
