//! The report: a table of locks, their worst cells, and which lock to take.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::cells::{Measured, Plan};
use super::verdict::{Verdict, best};
use crate::figures::{or_dash, percent};
use crate::output;
use crate::sweep::point::VERSION;
use crate::terminal;

/// All that the command reports.
#[derive(Serialize)]
pub struct RegretReport<'a> {
    version: &'static str,
    store: &'a Path,
    /// The greatest fairness factor of a fair lock.
    fair: f64,
    /// The number of cells that are finished.
    cells: usize,
    /// The number of cells that were asked for.
    planned: usize,
    locks: Vec<Verdict>,
    answer: String,
    /// The number of worst cells to list.
    #[serde(skip)]
    listed: usize,
}

impl<'a> RegretReport<'a> {
    /// The report on the cells that are finished.
    pub fn new(plan: &Plan, measured: &[Measured], store: &'a Path) -> Self {
        let verdicts = plan
            .judged
            .iter()
            .filter_map(|lock| Verdict::on(lock, plan, measured));
        let locks: Vec<Verdict> = verdicts.collect();
        Self {
            version: VERSION,
            store,
            fair: plan.fair,
            cells: measured.len(),
            planned: plan.cells.len(),
            answer: answer(&locks, measured.len()),
            locks,
            listed: plan.listed,
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut table = output::table(&[
            "lock",
            "of best",
            "worst",
            "of 1 in 20",
            "within 5 %",
            "of stock",
            "unfair",
            "worst cell",
        ]);
        let two = |share: f64| format!("{share:.2}");
        for verdict in &self.locks {
            let worst = &verdict.worst[0];
            table.add_row([
                verdict.lock.clone(),
                format!("{:.3}", verdict.geometric_mean),
                two(worst.share),
                two(verdict.fifth_percentile),
                percent(verdict.within_5_percent),
                or_dash(verdict.worst_of_stock.map(two)),
                verdict.unfair_cells.to_string(),
                worst.cell.to_string(),
            ]);
        }
        let mut text = format!("{}\n", table.trim_fmt());
        if self.listed > 0 {
            text.push_str(&format!("{}\n", self.worst_cells()));
        }
        let cells = match self.planned - self.cells {
            0 => format!("{} cells.", self.cells),
            missing => format!("{} cells; {missing} are not finished.", self.cells),
        };
        let store = format!("Results are in {}.", self.store.display());
        let prose = format!("{}\nPredicted. {cells} {store}", self.answer);
        text + &terminal::prose(&prose) + "\n"
    }

    fn worst_cells(&self) -> String {
        let mut table = output::table(&["lock", "of best", "best", "of stock", "fairness", "cell"]);
        for verdict in &self.locks {
            for worst in &verdict.worst {
                table.add_row([
                    verdict.lock.clone(),
                    format!("{:.2}", worst.share),
                    worst.best.to_owned(),
                    or_dash(worst.of_stock.map(|share| format!("{share:.2}"))),
                    format!("{:.2}", worst.fairness),
                    worst.cell.to_string(),
                ]);
            }
        }
        table.trim_fmt()
    }
}

/// The sentences that say which lock to take.
fn answer(locks: &[Verdict], cells: usize) -> String {
    let Some(taken) = best(locks) else {
        return match cells {
            0 => "No cell is finished.".to_owned(),
            _ => "No lock is fair enough to be taken.".to_owned(),
        };
    };
    let worst = &taken.worst[0];
    let mut text = format!(
        "If you take one lock, take {}: {:.2} of the best fair lock in geometric mean, {:.2} at worst \
         ({}).",
        taken.lock, taken.geometric_mean, worst.share, worst.cell
    );
    let safest = locks
        .iter()
        .max_by(|a, b| a.worst[0].share.total_cmp(&b.worst[0].share));
    if let Some(safest) = safest.filter(|safest| safest.worst[0].share > worst.share) {
        text.push_str(&format!(
            " The worst cell of {} is better, {:.2}, but its mean is {:.2}.",
            safest.lock, safest.worst[0].share, safest.geometric_mean
        ));
    }
    text
}

/// A header, and a line for each cell and lock.
pub fn rows(plan: &Plan, measured: &[Measured]) -> Vec<Vec<String>> {
    let header = [
        "machine",
        "workload",
        "threads",
        "cpus",
        "lock",
        "operations_per_second",
        "fairness",
        "share",
        "best",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for measured in measured {
        let cell = &measured.cell;
        for (lock, figures) in measured.figures.iter().enumerate() {
            rows.push(vec![
                cell.machine.clone(),
                cell.workload.clone(),
                cell.threads.to_string(),
                cell.cpus.map(|cpus| cpus.to_string()).unwrap_or_default(),
                plan.locks[lock].to_owned(),
                figures.operations_per_second.to_string(),
                figures.fairness.to_string(),
                measured.share(lock).to_string(),
                plan.locks[measured.best].to_owned(),
            ]);
        }
    }
    rows
}

/// The rows as CSV.
pub fn csv(plan: &Plan, measured: &[Measured]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows(plan, measured) {
        writer.write_record(row)?;
    }
    writer.into_inner().map_err(|error| anyhow!("{error}"))
}
