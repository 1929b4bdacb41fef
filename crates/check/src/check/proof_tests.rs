//! Tests of proofs: the states with merged histories stand for all states that runs reach.

use std::collections::{BTreeMap, HashSet, VecDeque};

use lockworks_explore::{Expanded, Expander, Histories, Limits, Model as _, Outcome, Proof, State};

use crate::check::Check;
use crate::config::Config;
use crate::model::{Model, Stop};
use crate::mutation::Mutation;
use crate::results::End;

use super::tests::mutations;

/// The entries of views.
const N: usize = 32;

fn check(config: &Config, mutation: Option<Mutation>) -> Check<'_> {
    let mut check = Check::new(config, mutation).expect("a lock that there is");
    check.symmetric = false;
    check
}

/// States of a proof, by all of their key but who has seen what.
type ByNewest = BTreeMap<Vec<u8>, Vec<Box<[u8]>>>;

/// The states of a proof, and whether it proved anything. None: an assumption failed.
fn proven(expander: &mut Expander<Model<N>>) -> Option<(ByNewest, Outcome)> {
    expander.model.histories = Histories::Merged;
    let proof = Proof::new(&Limits::NONE, 0, std::time::Instant::now());
    proof.begin(expander);
    proof.work(expander, &mut || {});
    let states = proof.states();
    let outcome = proof.outcome();
    let mut by_newest = ByNewest::new();
    let mut state = State::empty();
    for found in states {
        expander.model.decode(&found, &mut state);
        let newest = state.newest_bytes(&expander.model.shared);
        by_newest.entry(newest).or_default().push(found);
    }
    expander.model.histories = Histories::Ordered;
    (outcome != Outcome::Restart).then_some((by_newest, outcome))
}

/// All states that runs reach, as bytes. None: an assumption failed.
fn reached(expander: &mut Expander<Model<N>>) -> Option<HashSet<Vec<u8>>> {
    let mut known = HashSet::new();
    let mut waiting = VecDeque::new();
    let (mut found, mut bytes) = (Vec::new(), Vec::new());
    let state = expander.model.start().ok()?;
    let first = expander.settled(state).ok()?;
    expander.encode(first, &mut found, &mut bytes);
    loop {
        let mut start = 0;
        for successor in &found {
            let state = &bytes[start..successor.end];
            if known.insert(state.to_vec()) {
                waiting.push_back(state.to_vec());
            }
            start = successor.end;
        }
        let Some(next) = waiting.pop_front() else {
            return Some(known);
        };
        found.clear();
        bytes.clear();
        if let Expanded::Halt((stop, _)) = expander.expand(&next, &mut found, &mut bytes) {
            assert!(matches!(stop, Stop::Restart), "{stop:?}");
            return None;
        }
    }
}

/// Every state that a run reaches is within a state of the proof.
#[test]
fn proofs_leave_out_no_state() {
    let fork = Config {
        fork: true,
        acquisitions: 1,
        ..Config::new("qspinlock")
    };
    let idle = Config {
        idle: Some(0),
        ..Config::new("pv")
    };
    let others = [
        ("tas", 3, 1),
        ("mcs", 3, 1),
        ("byte", 3, 1),
        ("qspinlock", 2, 2),
        ("qspinlock", 3, 1),
        ("cna", 2, 2),
        ("hq", 2, 2),
        ("cna", 3, 1),
        ("hq", 3, 1),
        ("pv", 2, 1),
        ("pv", 2, 2),
        ("mutex", 2, 1),
        // Not the mutex: its word takes more values than a merged history holds.
        ("unfair", 2, 2),
        ("rwlock", 2, 1),
    ];
    let others = others.map(|(lock, threads, acquisitions)| Config {
        threads,
        acquisitions,
        ..Config::new(lock)
    });
    for config in others.into_iter().chain([fork, idle]) {
        let check = check(&config, None);
        let mut findings = check.findings();
        findings.view = N;
        let (states, covered) = loop {
            let automata = check.rehearse::<N>(&mut findings).expect("views are large");
            let mut model = check.model::<N>(std::mem::take(&mut findings), automata);
            model.number_cells_in_order();
            let mut expander = Expander::new(model, true);
            let Some((by_newest, outcome)) = proven(&mut expander) else {
                findings = expander.model.findings;
                continue;
            };
            assert_eq!(outcome, Outcome::Proven, "{config}");
            let Some(states) = reached(&mut expander) else {
                findings = expander.model.findings;
                continue;
            };
            let mut ordered = Vec::new();
            for bytes in &states {
                let mut state = State::empty();
                expander.model.decode(bytes, &mut state);
                ordered.push(state);
            }
            expander.model.histories = Histories::Merged;
            let model = &expander.model;
            let is_within = |one: &State<N>, bytes: &[u8]| {
                let mut known = State::empty();
                model.decode(bytes, &mut known);
                let mut united = Vec::new();
                let fits = known.unite(&mut one.clone());
                known.encode(&model.shared, &mut united);
                fits && united == bytes
            };
            let is_covered = |state: &&State<N>| {
                let known = by_newest.get(&state.newest_bytes(&model.shared));
                (0..1 << state.sealed()).any(|open| {
                    let merged = state.merged(model.live(state), open);
                    let mut known = known.into_iter().flatten();
                    known.any(|bytes| is_within(&merged, bytes))
                })
            };
            let covered = ordered.iter().filter(is_covered).count();
            break (states.len(), covered);
        };
        assert_eq!(covered, states, "{config}");
    }
}

/// No proof is found for a lock with a mistake that the search finds.
#[test]
fn no_mistake_is_proven() {
    let two = |lock| Config {
        trylock: true,
        ..Config::new(lock)
    };
    let three = |lock| Config {
        threads: 3,
        acquisitions: 1,
        ..Config::new(lock)
    };
    let limits = Limits {
        threads: 2,
        ..Limits::NONE
    };
    let mut proofs = 0;
    for (config, file) in [
        (two("tas"), "tas.h"),
        (two("mcs"), "mcs.h"),
        (two("qspinlock"), "qspinlock.h"),
        (two("qspinlock"), "pending_bit.h"),
        (three("mcs"), "mcs.h"),
        (three("qspinlock"), "qspinlock.h"),
    ] {
        for mutation in mutations(file).map(Some).chain([None]) {
            let check = Check::new(&config, mutation).expect("a lock that there is");
            let exact = check.run(&Limits::NONE, &mut |_| {});
            let proof = check.prove(0, &limits);
            assert_eq!(
                matches!(proof.end, End::Kept),
                matches!(exact.end, End::Kept),
                "{config}: {mutation:?}"
            );
            proofs += usize::from(proof.coverage.merged);
        }
    }
    assert!(proofs > 10, "only {proofs} of the checks were proven");
}
