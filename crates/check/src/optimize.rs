//! The weakest memory orders with which a lock still keeps its promises, in some checks.
//!
//! Operations are weakened one after another, each together with all that are weaker already, so that the
//! orders that are found pass together. Those that cost most come first.

use std::time::{Duration, Instant};

use lockworks_explore::Limits;
use lockworks_litmus::Memory;
use serde::Serialize;

use crate::check::Check;
use crate::config::{Config, ConfigError};
use crate::mutation::{Change, Mutation};
use crate::results::End;
use crate::site::{OperationKind, Order, Site};
use crate::variants::Variant;
use crate::violation::Violation;

/// An operation whose order can be weaker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weaker {
    /// The name of the file.
    pub file: &'static str,
    /// The line.
    pub line: u32,
    /// The function.
    pub function: &'static str,
    /// The operation.
    pub operation: String,
    /// Its order.
    pub order: &'static str,
    /// The order that suffices in these checks; `drop`: the fence is not needed.
    pub weaker: String,
}

/// The result of an optimisation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Optimized {
    /// The operations that can be weaker, all together.
    pub weaker: Vec<Weaker>,
    /// The number of operations whose order was varied.
    pub tried: usize,
    /// The number of those that a limit left undecided.
    pub undecided: usize,
    /// The number of searches.
    pub searches: usize,
    /// Some searches did not delay operations for as long as a thread could go on.
    pub delays_cut: bool,
}

/// The lock cannot be optimised.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum OptimizeError {
    #[error("{config} breaks a promise as it is: {violation}")]
    Broken {
        config: String,
        violation: Violation,
    },
    #[error(
        "{config}: {limit}; ask for fewer threads or acquisitions, since only a complete check says which orders suffice"
    )]
    Unfinished { config: String, limit: &'static str },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Looks for weaker orders with which a lock passes all of these checks. `progress` is called before each
/// operation, with the number of those that are done, and of all.
///
/// # Errors
/// The lock does not pass them as it is.
pub fn optimize(
    configs: &[Config],
    limits: &Limits,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Optimized, OptimizeError> {
    let memory = configs[0].memory;
    let mut reached = vec![false; Site::all().len()];
    let mut most = Vec::new();
    let mut delays_cut = false;
    for config in configs {
        let outcome = Check::new(config, None)?.run(limits, &mut |_| {});
        let config = config.to_string();
        match outcome.end {
            End::Kept => {}
            End::Broken(broken) => {
                let violation = broken.violation;
                return Err(OptimizeError::Broken { config, violation });
            }
            End::Unfinished(limit) => return Err(OptimizeError::Unfinished { config, limit }),
        }
        for (all, now) in reached.iter_mut().zip(outcome.covered) {
            *all |= now;
        }
        delays_cut |= outcome.coverage.delays_cut;
        most.push(MOST_GROWTH * outcome.coverage.states + FEW);
    }
    let mut sites: Vec<&Site> = Site::all()
        .iter()
        .filter(|site| reached[site.number()] && !site.is_of_client())
        .filter(|site| !weaker(site, memory).is_empty())
        .collect();
    sites.sort_by_key(|site| std::cmp::Reverse((site.order, site.kind.is_read_modify_write())));
    let mut found = Optimized {
        weaker: Vec::new(),
        tried: sites.len(),
        undecided: 0,
        searches: configs.len(),
        delays_cut,
    };
    let mut variant = Variant {
        name: "optimized".to_owned(),
        lock: configs[0].lock.clone(),
        source: "searches".to_owned(),
        orders: Vec::new(),
    };
    for (done, site) in sites.iter().enumerate() {
        progress(done, sites.len());
        let mut is_undecided = false;
        let found_before = found.weaker.len();
        for change in weaker(site, memory) {
            variant.orders.push(Mutation::at(site, change));
            let mut passes = true;
            for (config, states) in configs.iter().zip(&most) {
                let config = Config {
                    variant: Some(variant.clone()),
                    ..config.clone()
                };
                let limits = Limits {
                    states: Some(*states),
                    ..*limits
                };
                found.searches += 1;
                let outcome = Check::new(&config, None)?.run(&limits, &mut |_| {});
                is_undecided |= matches!(outcome.end, End::Unfinished(_));
                passes = outcome.end == End::Kept;
                found.delays_cut |= passes && outcome.coverage.delays_cut;
                if !passes {
                    break;
                }
            }
            if passes {
                found.weaker.push(Weaker {
                    file: site.file(),
                    line: site.line,
                    function: site.function(),
                    operation: site.to_string(),
                    order: site.order.name(),
                    weaker: change.to_string(),
                });
                break;
            }
            variant.orders.pop();
        }
        let is_open = is_undecided && found.weaker.len() == found_before;
        found.undecided += usize::from(is_open);
    }
    found
        .weaker
        .sort_by_key(|weaker| (weaker.file, weaker.line));
    Ok(found)
}

/// A search with weaker orders may have so many times the states of the lock as it is, and a few more.
const MOST_GROWTH: usize = 8;
const FEW: usize = 1000;

/// The changes that make the order of an operation weaker, the weakest first.
fn weaker(site: &Site, memory: Memory) -> Vec<Change> {
    use Order::{AcqRel, Acquire, Dependency, Plain, Relaxed, Release, SeqCst};
    let kind = site.kind;
    let orders: &[Order] = match (kind, site.order) {
        (OperationKind::Park | OperationKind::Unpark, _) | (_, Relaxed | Plain) => &[],
        // The search takes each fence of Linux for the full one.
        (OperationKind::Fence, _) if memory == Memory::Lkmm => &[],
        (OperationKind::Fence, SeqCst) => &[Acquire, Release, AcqRel],
        (OperationKind::Fence, AcqRel) => &[Acquire, Release],
        (OperationKind::Fence, _) => &[],
        (_, Dependency | Acquire | Release) => &[Relaxed],
        (_, AcqRel) => &[Relaxed, Acquire, Release],
        (OperationKind::Store, SeqCst) => &[Relaxed, Release],
        (_, SeqCst) if kind.is_read_modify_write() => &[Relaxed, Acquire, Release, AcqRel],
        (_, SeqCst) => &[Relaxed, Acquire],
    };
    let dropped = (kind == OperationKind::Fence).then_some(Change::Drop);
    dropped
        .into_iter()
        .chain(orders.iter().copied().map(Change::Order))
        .collect()
}

/// The operations of which one with a stronger order suffices for a lock that breaks a promise, each with that
/// order: the likely places of a mistake. None are found where no order is the cause.
///
/// # Errors
/// The configuration cannot be checked.
pub fn remedies(
    config: &Config,
    limits: &Limits,
) -> Result<Vec<(&'static Site, Order)>, ConfigError> {
    let begin = Instant::now();
    let limits = Limits {
        states: Some(MOST_STATES),
        ..*limits
    };
    let mut found = Vec::new();
    if config.memory == Memory::Sc || config.variant.is_some() {
        return Ok(found);
    }
    let covered = Check::new(config, None)?.run(&limits, &mut |_| {}).covered;
    let reached = |site: &&Site| covered[site.number()] && !site.is_of_client();
    for site in Site::all().iter().filter(reached) {
        for order in stronger(site) {
            if begin.elapsed() > LONGEST {
                return Ok(found);
            }
            let change = Mutation::at(site, Change::Order(*order));
            let check = Check::new(config, Some(change))?;
            if check.run(&limits, &mut |_| {}).end == End::Kept {
                found.push((site, *order));
                break;
            }
        }
    }
    Ok(found)
}

/// The most states of a search for a remedy.
const MOST_STATES: usize = 200_000;
/// No search for a remedy begins later.
const LONGEST: Duration = Duration::from_secs(10);

/// The orders that are stronger than that of an operation, the weakest first.
fn stronger(site: &Site) -> &'static [Order] {
    use Order::{AcqRel, Acquire, Dependency, Relaxed, Release, SeqCst};
    match (site.kind, site.order) {
        (_, SeqCst) => &[],
        (OperationKind::Store, Relaxed) => &[Release, SeqCst],
        (OperationKind::Store | OperationKind::Fence, _) => &[SeqCst],
        (kind, Relaxed) if kind.is_read_modify_write() => &[Acquire, Release, AcqRel, SeqCst],
        (kind, Dependency | Acquire | Release) if kind.is_read_modify_write() => &[AcqRel, SeqCst],
        (kind, AcqRel) if kind.is_read_modify_write() => &[SeqCst],
        (OperationKind::Load, Relaxed | Dependency) => &[Acquire, SeqCst],
        (OperationKind::Load, _) => &[SeqCst],
        (kind, Relaxed | Dependency) if kind.waits() => &[Acquire],
        _ => &[],
    }
}
