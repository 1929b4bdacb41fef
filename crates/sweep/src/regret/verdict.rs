//! The judgement on a lock over all cells.

use lockworks_measurements::{lock_to_take, mean_share};
use serde::Serialize;

use super::cells::{Cell, Measured, Plan};

/// The stock lock.
const STOCK: &str = "qspinlock";
/// A lock may be unfair in one cell of this number and still be taken.
const UNFAIR_ODDS: usize = 10;

/// A lock in a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The throughput over that of the best lock.
    pub share: f64,
    /// The best lock.
    pub best: &'static str,
    /// The throughput over that of qspinlock, if that ran.
    pub of_stock: Option<f64>,
    /// The fairness factor.
    pub fairness: f64,
}

/// A lock over all cells.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The lock.
    pub lock: String,
    /// The geometric mean of the shares.
    pub geometric_mean: f64,
    /// The least and the greatest of this mean over the machines of each seed. None: no doubt was asked for.
    pub geometric_mean_range: Option<[f64; 2]>,
    /// One share in 20 is this one or a worse one.
    pub fifth_percentile: f64,
    /// The part of the cells whose share is 0.95 or more.
    pub within_5_percent: f64,
    /// The least throughput over that of qspinlock, if that ran.
    pub worst_of_stock: Option<f64>,
    /// The number of cells in which the lock is less fair than asked for.
    pub unfair_cells: usize,
    /// Whether the lock is fair enough to be taken: in nine of ten cells where threads have a CPU each.
    pub is_fair: bool,
    /// The worst cells, the worst first: one at least.
    pub worst: Vec<Share>,
}

impl Verdict {
    /// The verdict on a lock. None: no cell is measured.
    pub fn on(name: &str, plan: &Plan, measured: &[Measured]) -> Option<Self> {
        let (lock, stock) = (plan.lock(name)?, plan.lock(STOCK));
        let share = |measured: &Measured| Share {
            cell: measured.cell.clone(),
            share: measured.share(lock),
            best: plan.locks[measured.best],
            of_stock: stock.map(|stock| measured.over(lock, stock)),
            fairness: measured.figures[lock].fairness,
        };
        let mut shares: Vec<Share> = measured.iter().map(share).collect();
        shares.sort_by(|a, b| a.share.total_cmp(&b.share));
        let n = shares.len();
        let fifth_percentile = shares.get(n / 20)?.share;
        let own_cpus = || shares.iter().filter(|s| s.cell.cpus.is_none());
        let unfair = own_cpus().filter(|s| s.fairness > plan.fair).count();
        let near = shares.iter().filter(|s| s.share >= 0.95).count();
        Some(Self {
            lock: name.to_owned(),
            geometric_mean: mean_share(shares.iter().map(|s| s.share)),
            geometric_mean_range: None,
            fifth_percentile,
            within_5_percent: near as f64 / n as f64,
            worst_of_stock: shares
                .iter()
                .filter_map(|s| s.of_stock)
                .min_by(f64::total_cmp),
            unfair_cells: shares.iter().filter(|s| s.fairness > plan.fair).count(),
            is_fair: unfair * UNFAIR_ODDS <= own_cpus().count(),
            worst: {
                shares.truncate(plan.listed.max(1));
                shares
            },
        })
    }
}

/// The lock to take, of those that are fair enough.
pub fn best(verdicts: &[Verdict]) -> Option<&Verdict> {
    let fair = || verdicts.iter().filter(|verdict| verdict.is_fair);
    let means = fair().map(|verdict| (&verdict.lock[..], vec![verdict.geometric_mean]));
    let taken = lock_to_take(means)?;
    fair().find(|verdict| verdict.lock == taken)
}
