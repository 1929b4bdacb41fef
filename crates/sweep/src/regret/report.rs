//! The report: a table of locks, their worst cells, and which lock to take.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use itertools::Itertools;
use lockworks_machine::Machine;
use serde::Serialize;

use super::cells::{Measured, Plan};
use super::verdict::{Verdict, best};
use crate::point::VERSION;
use crate::store::Results;
use lockworks_measurements::Range;
use lockworks_ui::figures::{or_dash, percent};
use lockworks_ui::output;
use lockworks_ui::terminal;

/// All that the command reports: on the cells of a plan that are finished.
#[derive(Serialize)]
pub struct RegretReport {
    version: &'static str,
    store: PathBuf,
    /// The greatest fairness factor of a fair lock.
    fair: f64,
    /// The number of cells that are finished.
    cells: usize,
    /// The number of cells that were asked for.
    planned: usize,
    locks: Vec<Verdict>,
    /// Which lock to take, in words.
    pub answer: String,
    /// What measurements of others say against these predictions.
    pub contested: Vec<String>,
    #[serde(skip)]
    pub(super) plan: Plan,
    #[serde(skip)]
    pub(super) measured: Vec<Measured>,
    /// The points that failed: the command of each, and why.
    #[serde(skip)]
    pub failures: Vec<(String, String)>,
}

impl RegretReport {
    /// The report on the results that a store has of a plan.
    pub fn read(plan: Plan, store: &Path) -> Result<Self> {
        let results = Results::read(store)?;
        let measured = plan.measured(&results)?;
        let verdicts = |measured: &[Measured]| -> Vec<Verdict> {
            let verdict = |lock: &String| Verdict::on(lock, &plan, measured);
            plan.judged.iter().filter_map(verdict).collect()
        };
        let mut locks = verdicts(&measured);
        let mut taken_with = Vec::new();
        if plan.doubt && !locks.is_empty() {
            let mut means = vec![Vec::new(); locks.len()];
            for seed in 0..plan.seeds {
                let of_seed = verdicts(&plan.measured_with(&results, seed..seed + 1)?);
                taken_with.push(best(&of_seed).map(|verdict| verdict.lock.clone()));
                for (means, verdict) in means.iter_mut().zip(of_seed) {
                    means.push(verdict.geometric_mean);
                }
            }
            for (lock, means) in locks.iter_mut().zip(means) {
                let range = Range::of(means.into_iter());
                lock.geometric_mean_range = range.map(|range| [range.min, range.max]);
            }
        }
        let machines = plan.cells.iter().map(|planned| &planned.cell.machine);
        let mut contested = Vec::new();
        for machine in machines.unique() {
            contested.extend(Machine::find(machine)?.contested(&plan.locks));
        }
        Ok(Self {
            contested,
            version: VERSION,
            store: store.to_owned(),
            fair: plan.fair,
            cells: measured.len(),
            planned: plan.cells.len(),
            answer: answer(&locks, measured.len(), &taken_with),
            locks,
            failures: plan.failures(&results)?,
            plan,
            measured,
        })
    }

    /// The lock to take. None: no lock is fair enough.
    pub fn taken(&self) -> Option<&str> {
        best(&self.locks).map(|verdict| verdict.lock.as_str())
    }

    /// A CSV with a line for each cell and lock.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let header = "machine,workload,threads,cpus,lock,operations_per_second,fairness,share,best";
        writer.write_record(header.split(','))?;
        for measured in &self.measured {
            let cell = &measured.cell;
            for (lock, figures) in measured.figures.iter().enumerate() {
                writer.write_record([
                    &cell.machine,
                    &cell.workload,
                    &cell.threads.to_string(),
                    &cell.cpus.map(|cpus| cpus.to_string()).unwrap_or_default(),
                    self.plan.locks[lock],
                    &figures.operations_per_second.to_string(),
                    &figures.fairness.to_string(),
                    &measured.share(lock).to_string(),
                    self.plan.locks[measured.best],
                ])?;
            }
        }
        writer.into_inner().map_err(|error| anyhow!("{error}"))
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
                match verdict.geometric_mean_range {
                    Some([least, most]) => {
                        format!("{:.2} ({least:.2}-{most:.2})", verdict.geometric_mean)
                    }
                    None => format!("{:.3}", verdict.geometric_mean),
                },
                two(worst.share),
                two(verdict.fifth_percentile),
                percent(verdict.within_5_percent),
                or_dash(verdict.worst_of_stock.map(two)),
                verdict.unfair_cells.to_string(),
                worst.cell.to_string(),
            ]);
        }
        let mut text = format!("{}\n", table.trim_fmt());
        if self.plan.listed > 0 {
            text.push_str(&format!("{}\n", self.worst_cells()));
        }
        let cells = match self.planned - self.cells {
            0 => format!("{} cells.", self.cells),
            missing => format!("{} cells; {missing} are not finished.", self.cells),
        };
        let store = format!("Results are in {}.", self.store.display());
        let contested: String = self.contested.iter().map(|c| format!("{c}\n")).collect();
        let prose = format!("{}\n{contested}Predicted. {cells} {store}", self.answer);
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

/// The sentences that say which lock to take. `taken_with`: the lock that each seed alone recommends,
/// where each has machines of its own.
fn answer(locks: &[Verdict], cells: usize, taken_with: &[Option<String>]) -> String {
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
    if !taken_with.is_empty() {
        let same = |lock: &&Option<String>| lock.as_ref() == Some(&taken.lock);
        text.push_str(&format!(
            " It is the answer for {} of {} sets of machines like those described.",
            taken_with.iter().filter(same).count(),
            taken_with.len()
        ));
    }
    // A lock that is not fair enough has another reason not to be taken.
    let fair = locks.iter().filter(|verdict| verdict.is_fair);
    let safest = fair.max_by(|a, b| a.worst[0].share.total_cmp(&b.worst[0].share));
    if let Some(safest) = safest.filter(|safest| safest.worst[0].share > worst.share) {
        text.push_str(&format!(
            " The worst cell of {} is better, {:.2}, but its mean is {:.2}.",
            safest.lock, safest.worst[0].share, safest.geometric_mean
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cell;
    use super::super::verdict::Share;
    use super::*;

    fn verdict(lock: &str, geometric_mean: f64, share: f64, is_fair: bool) -> Verdict {
        let cell = Cell {
            machine: "here".to_owned(),
            workload: "torture".to_owned(),
            threads: 1,
            cpus: None,
        };
        Verdict {
            lock: lock.to_owned(),
            geometric_mean,
            geometric_mean_range: None,
            fifth_percentile: share,
            within_5_percent: 1.0,
            worst_of_stock: None,
            unfair_cells: 0,
            is_fair,
            worst: vec![Share {
                cell,
                share,
                best: "tas",
                of_stock: None,
                fairness: 0.5,
            }],
        }
    }

    #[test]
    fn the_lock_with_a_better_worst_cell_is_one_that_could_be_taken() {
        let locks = |pv_is_fair| {
            let pv = verdict("pv", 0.9, 0.8, pv_is_fair);
            [verdict("hq", 0.95, 0.7, true), pv]
        };
        let both = answer(&locks(true), 2, &[]);
        assert!(
            both.contains("take hq") && both.contains("0.70 at worst (here torture, 1 thread)")
        );
        assert!(both.contains("The worst cell of pv is better, 0.80, but its mean is 0.90."));
        assert!(!answer(&locks(false), 2, &[]).contains("pv"));
    }

    #[test]
    fn the_answer_says_for_how_many_machines_it_holds() {
        let taken = ["hq", "pv", "hq"].map(|lock| Some(lock.to_owned()));
        let text = answer(&[verdict("hq", 0.9, 0.8, true)], 2, &taken);
        assert!(text.contains("for 2 of 3 sets of machines"), "{text}");
    }
}
