//! How many of a lock's mutants a check of some size finds, where a size is a number of threads and of
//! acquisitions.
//!
//! To find that out takes minutes, so it is kept in `crates/check/sizes.toml`, which `lockworks check mutants
//! --sizes` prints.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lockworks_explore::Limits;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::command_line::find_subject;
use crate::config::Config;
use crate::results::End;

use super::Mutant;

const KEPT: &str = include_str!("../../sizes.toml");
static OF_LOCKS: LazyLock<BTreeMap<String, Sizes>> =
    LazyLock::new(|| toml::from_str(KEPT).expect("a test has read it"));

/// The sizes that are tried: threads and acquisitions. None is within one that stands before it.
const TRIED: [(usize, u32); 5] = [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1)];
/// A size at which the lock without a mistake has more states is not tried.
const MOST_STATES: usize = 200_000;

/// The mutants of a lock that are found at each size, in the checker's default model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sizes {
    /// The number of mutants that can be found.
    pub mutants: usize,
    /// The number of those that each size finds without other options, as `2x1`.
    pub found: BTreeMap<String, usize>,
}

impl Sizes {
    /// The table of a lock in `crates/check/sizes.toml`.
    pub fn table(&self, lock: &str) -> String {
        let table = toml::to_string(&BTreeMap::from([(lock, self)]));
        table.expect("numbers with names") + "\n"
    }
}

/// What is known about a check of one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeShows {
    /// The number of mutants that can be found.
    pub mutants: usize,
    /// The number of those that the size finds, at least.
    pub found: usize,
    /// The smallest size that finds most of those that were tried.
    pub best: String,
    /// The number that it finds.
    pub best_found: usize,
    /// The check has that size.
    #[serde(skip)]
    pub is_best: bool,
}

/// The sizes of a lock that has a list of mutants.
pub fn kept(lock: &str) -> Option<&'static Sizes> {
    OF_LOCKS.get(lock)
}

/// What the mutants of a lock say about a check with this configuration. None: the lock has no list, or the
/// configuration has other options than a size.
pub fn shows(config: &Config) -> Option<SizeShows> {
    let sizes = OF_LOCKS.get(&config.lock)?;
    let size = (config.threads, config.acquisitions);
    if *config != plain(&config.lock, size)? {
        return None;
    }
    let within = TRIED.iter().filter(|tried| is_within(**tried, size));
    let found = within.filter_map(|tried| sizes.found.get(&name(*tried)));
    let best_found = sizes.found.values().copied().max()?;
    let mut best = TRIED.iter().map(|tried| name(*tried));
    let best = best.find(|best| sizes.found.get(best) == Some(&best_found))?;
    Some(SizeShows {
        mutants: sizes.mutants,
        found: found.copied().max().unwrap_or_default(),
        is_best: best == name(size),
        best,
        best_found,
    })
}

/// Finds out how many of the mutants of a lock each size finds, and calls `done` for each mutant.
pub fn measure(lock: &str, mutants: &[&Mutant], done: &(dyn Fn() + Sync)) -> Sizes {
    let limits = Limits {
        states: Some(MOST_STATES),
        ..Limits::NONE
    };
    let end = |config: &Config, mutation| {
        let check = Check::new(config, mutation).expect("a size that all locks have");
        check.run(&limits, &mut |_| {}).end
    };
    let tried: Vec<((usize, u32), Config)> = TRIED
        .iter()
        .filter_map(|size| Some((*size, plain(lock, *size)?)))
        .filter(|(_, config)| end(config, None) == End::Kept)
        .collect();
    let can_be_found = mutants
        .par_iter()
        .filter(|mutant| mutant.equivalent.is_none());
    let found: Vec<Vec<bool>> = can_be_found
        .map(|mutant| {
            let mut found: Vec<bool> = Vec::new();
            for (size, config) in &tried {
                let mut smaller = found.iter().zip(&tried);
                let is_found = smaller
                    .any(|(found, (other, _))| *found && is_within(*other, *size))
                    || matches!(end(config, Some(mutant.mutation)), End::Broken(_));
                found.push(is_found);
            }
            done();
            found
        })
        .collect();
    let of_size = |i: usize| found.iter().filter(|found| found[i]).count();
    Sizes {
        mutants: found.len(),
        found: tried
            .iter()
            .enumerate()
            .map(|(i, (size, _))| (name(*size), of_size(i)))
            .collect(),
    }
}

/// The default configuration of a lock with this size.
fn plain(lock: &str, (threads, acquisitions): (usize, u32)) -> Option<Config> {
    let (_, kind) = find_subject(lock).ok()?;
    Some(Config {
        threads,
        acquisitions,
        readers: if kind.has_readers() { threads - 1 } else { 0 },
        nodes: 1 + usize::from(kind.is_numa_aware()),
        ..Config::new(lock)
    })
}

/// Whether each run of one size is the beginning of a run of the other, in which some threads have yet to go
/// on.
fn is_within(one: (usize, u32), other: (usize, u32)) -> bool {
    one.0 <= other.0 && one.1 <= other.1
}

fn name((threads, acquisitions): (usize, u32)) -> String {
    format!("{threads}x{acquisitions}")
}
