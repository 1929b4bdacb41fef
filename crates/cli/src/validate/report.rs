//! The text and the figures of `lockworks machines validate`.

use comfy_table::CellAlignment;
use itertools::Itertools;
use lockworks_experiments::PublishedTable;
use lockworks_machine::Machine;
use lockworks_measurements::{Usl, median, sorted};
use lockworks_sim::{Scenario, ScenarioValue};
use serde::Serialize;

use super::FITTED_ON;
use lockworks_torture::{Host, TortureRow};
use lockworks_ui::figures::scaled;
use lockworks_ui::output;
use lockworks_ui::plot::figure::{Chart, Data, Draw, Figure, series};
use lockworks_ui::terminal::{fitted, prose};

/// The share of the time for which threads may wait for a CPU although each has one of its own.
const BEARABLE: f64 = 0.05;

/// One lock with one number of threads, measured and predicted.
#[derive(Serialize)]
pub struct ValidatedCell {
    lock: &'static str,
    threads: usize,
    /// Whether the lock's waiters park.
    parks: bool,
    /// Whether threads outnumber CPUs.
    oversubscribed: bool,
    /// Operations a second, median of the rounds.
    measured: f64,
    measured_min: f64,
    measured_max: f64,
    /// Operations a second of virtual time.
    predicted: f64,
    error_percent: f64,
    /// Whether a value is fitted on it, so that it does not count.
    fitted: bool,
    /// Whether other work kept the threads from running.
    busy: bool,
}

impl ValidatedCell {
    /// The measurement, with its prediction in operations a second.
    pub fn new(row: &TortureRow, predicted: f64, parks: bool, cpus: usize) -> Self {
        let oversubscribed = row.threads > cpus;
        let withheld = row.runqueue_wait_share.unwrap_or(0.0);
        Self {
            lock: row.lock,
            threads: row.threads,
            parks,
            oversubscribed,
            measured: row.operations_per_second,
            measured_min: row.operations_per_second_min,
            measured_max: row.operations_per_second_max,
            predicted,
            error_percent: 100.0 * (predicted / row.operations_per_second - 1.0),
            fitted: row.lock == FITTED_ON && row.threads == 1,
            busy: !oversubscribed && withheld > BEARABLE,
        }
    }
}

/// The errors of a kind of cells.
#[derive(Serialize)]
struct Errors {
    cells: &'static str,
    number: usize,
    mean_absolute_error_percent: f64,
    median_absolute_error_percent: f64,
    worst_error_percent: f64,
    worst_lock: &'static str,
    worst_threads: usize,
}

impl Errors {
    fn of(
        cells: &'static str,
        all: &[ValidatedCell],
        kind: fn(&ValidatedCell) -> bool,
    ) -> Option<Self> {
        let of_kind: Vec<_> = all
            .iter()
            .filter(|cell| kind(cell) && !cell.fitted)
            .collect();
        let error = |cell: &ValidatedCell| cell.error_percent.abs();
        let worst = of_kind
            .iter()
            .max_by(|a, b| error(a).total_cmp(&error(b)))?;
        let sum: f64 = of_kind.iter().map(|cell| error(cell)).sum();
        Some(Self {
            cells,
            number: of_kind.len(),
            mean_absolute_error_percent: sum / of_kind.len() as f64,
            median_absolute_error_percent: median(&sorted(of_kind.iter().map(|cell| error(cell))))?,
            worst_error_percent: worst.error_percent,
            worst_lock: worst.lock,
            worst_threads: worst.threads,
        })
    }
}

/// The errors of the universal scalability law through the first three numbers of threads of each lock, on
/// the others, beside those of the simulation.
#[derive(Serialize)]
struct AgainstUsl {
    cells: usize,
    law_median_absolute_error_percent: f64,
    simulation_median_absolute_error_percent: f64,
}

impl AgainstUsl {
    /// None: no lock was measured with more than three numbers of threads.
    fn of(all: &[ValidatedCell]) -> Option<Self> {
        let by_lock = all.iter().into_group_map_by(|cell| cell.lock);
        let (mut of_law, mut of_simulation) = (Vec::new(), Vec::new());
        for cells in by_lock.values() {
            let first = cells
                .iter()
                .map(|cell| (cell.threads as f64, cell.measured));
            let Some(law) = first.take(3).collect_array().and_then(Usl::through) else {
                continue;
            };
            for cell in &cells[3..] {
                let predicted = law.throughput(cell.threads as f64);
                of_law.push(100.0 * (predicted / cell.measured - 1.0).abs());
                of_simulation.push(cell.error_percent.abs());
            }
        }
        Some(Self {
            cells: of_law.len(),
            law_median_absolute_error_percent: median(&sorted(of_law.into_iter()))?,
            simulation_median_absolute_error_percent: median(&sorted(of_simulation.into_iter()))?,
        })
    }
}

/// Measurements beside predictions, as JSON has them.
#[derive(Serialize)]
pub struct TrustReport {
    machine: Host,
    /// The loop's own time, which is fitted on one point.
    loop_ns: f64,
    warnings: Vec<String>,
    cells: Vec<ValidatedCell>,
    errors: Vec<Errors>,
    against_usl: Option<AgainstUsl>,
    /// How far to trust predictions for this machine, in a sentence.
    pub here: String,
    bigger: String,
    values: Vec<ScenarioValue>,
}

impl TrustReport {
    /// The report on these cells and tables.
    pub fn new(
        host: &Host,
        scenario: &Scenario,
        loop_ns: f64,
        warnings: Vec<String>,
        cells: Vec<ValidatedCell>,
        tables: &[PublishedTable],
    ) -> Self {
        let errors: Vec<Errors> = [
            Errors::of("spinning locks, a CPU for each thread", &cells, |cell| {
                !cell.parks && !cell.oversubscribed
            }),
            Errors::of("parking locks, a CPU for each thread", &cells, |cell| {
                cell.parks && !cell.oversubscribed
            }),
            Errors::of("parking locks, threads share CPUs", &cells, |cell| {
                cell.parks && cell.oversubscribed
            }),
        ]
        .into_iter()
        .flatten()
        .collect();
        Self {
            machine: host.clone(),
            loop_ns,
            warnings,
            here: here(host, &cells, &errors),
            bigger: bigger(&scenario.machine, tables),
            values: scenario.values(),
            against_usl: AgainstUsl::of(&cells),
            cells,
            errors,
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut table = output::table(&[
            "threads",
            "lock",
            "measured",
            "min..max",
            "predicted",
            "error",
            "",
        ]);
        for cell in &self.cells {
            table.add_row([
                cell.threads.to_string(),
                cell.lock.to_owned(),
                scaled(cell.measured),
                format!(
                    "{}..{}",
                    scaled(cell.measured_min),
                    scaled(cell.measured_max)
                ),
                scaled(cell.predicted),
                format!("{:+.0} %", cell.error_percent),
                match (cell.fitted, cell.busy) {
                    (true, _) => "fitted",
                    (false, true) => "busy",
                    (false, false) => "",
                }
                .to_owned(),
            ]);
        }
        for column in table.column_iter_mut() {
            if column.index != 1 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let heading = format!(
            "{}: {} CPUs, {} {}. Operations a second of two counters under one lock.\n",
            self.machine.model.as_deref().unwrap_or("This machine"),
            self.machine.cpus,
            self.machine.nodes,
            if self.machine.nodes == 1 {
                "node"
            } else {
                "nodes"
            },
        );
        let errors = self.errors.iter().map(|errors| {
            format!(
                "{}: mean error {:.0} %, median {:.0} %, worst {:+.0} % ({}, {} threads)\n",
                errors.cells,
                errors.mean_absolute_error_percent,
                errors.median_absolute_error_percent,
                errors.worst_error_percent,
                errors.worst_lock,
                errors.worst_threads
            )
        });
        let law = self.against_usl.as_ref().map(|law| {
            format!(
                "On the {} cells with the most threads, median error: {:.0} %; the universal scalability law \
                 through the first three of each lock: {:.0} %\n",
                law.cells,
                law.simulation_median_absolute_error_percent,
                law.law_median_absolute_error_percent,
            )
        });
        let fitted_on = format!(
            "Fitted, on {FITTED_ON} with one thread, which is not counted: the loop itself takes {:.1} \
             ns.\n",
            self.loop_ns
        );
        let warnings = self
            .warnings
            .iter()
            .map(|warning| format!("But: {warning}.\n"));
        format!(
            "{}{table}\n{}\n{}",
            fitted(&heading),
            fitted(&(errors.chain(law).collect::<String>() + &fitted_on)),
            prose(&format!(
                "{}\n{}\n{}",
                self.here,
                self.bigger,
                warnings.collect::<String>()
            ))
        )
    }
}

impl Draw for TrustReport {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let points = self.cells.iter().map(|cell| {
            let pair = [cell.measured, cell.predicted, cell.threads as f64, 0.0];
            (cell.lock, pair)
        });
        vec![Figure {
            id: "validated".to_owned(),
            title: "Prediction beside measurement".to_owned(),
            text: format!(
                "Each point is a lock with a number of threads. On the diagonal the prediction is \
                 right. {}",
                self.here
            ),
            command: command.to_owned(),
            chart: Some(Chart::Pairs {
                unit: "operations a second",
                series: series(points),
            }),
            data: Data::of(
                &self.cells,
                &[
                    ("lock", &|cell| cell.lock.into()),
                    ("threads", &|cell| cell.threads.into()),
                    ("measured", &|cell| cell.measured.into()),
                    ("predicted", &|cell| cell.predicted.into()),
                    ("error %", &|cell| cell.error_percent.into()),
                    ("measured beside other work", &|cell| cell.busy.into()),
                ],
            ),
        }]
    }
}

/// How far to trust predictions for this machine, in a sentence.
fn here(host: &Host, cells: &[ValidatedCell], errors: &[Errors]) -> String {
    let all = Errors::of("all", cells, |_| true);
    let Some(all) = all else {
        return "Nothing was measured.".to_owned();
    };
    let (pairs, agree) = ordered_pairs(cells);
    let by_kind = errors
        .iter()
        .map(|errors| {
            format!(
                "{:.0} % for {}",
                errors.mean_absolute_error_percent, errors.cells
            )
        })
        .join("; ");
    let busy = cells.iter().filter(|cell| cell.busy).count();
    let but = match busy {
        0 => String::new(),
        n => format!(
            " But {n} of {} cells were measured while other work ran.",
            all.number
        ),
    };
    let order = match pairs {
        0 => String::new(),
        pairs => format!(
            " Of {pairs} pairs of locks that differ by more than their rounds, {:.0} % are predicted \
             in the right order.",
            100.0 * agree as f64 / pairs as f64
        ),
    };
    format!(
        "On this machine of {} CPUs predictions are off by {by_kind}, in the mean.{order}{but}",
        host.cpus
    )
}

/// Pairs of locks with as many threads whose measured ranges do not overlap, and how many of them are
/// predicted in the measured order.
fn ordered_pairs(cells: &[ValidatedCell]) -> (usize, usize) {
    let apart = cells.iter().array_combinations().filter_map(|[a, b]| {
        let slower = a.measured_max < b.measured_min;
        let faster = a.measured_min > b.measured_max;
        (a.threads == b.threads && (slower || faster))
            .then_some((slower, a.predicted < b.predicted))
    });
    apart.fold((0, 0), |(pairs, agree), (slower, predicted_slower)| {
        (pairs + 1, agree + usize::from(slower == predicted_slower))
    })
}

/// How far to trust predictions for bigger machines, in a sentence.
fn bigger(machine: &Machine, tables: &[PublishedTable]) -> String {
    let limits = sorted(tables.iter().map(PublishedTable::limit_percent));
    let nodes = match machine.nodes() {
        1 => "This machine has one NUMA node, so nothing between nodes was measured.".to_owned(),
        n => format!("Hand-offs between the {n} NUMA nodes of this machine were measured."),
    };
    format!(
        "For bigger machines, expect errors of up to {:.0} %, in the mean of a table: tests hold {} \
         published tables to that median limit, on points to which nothing was fitted. {nodes}",
        median(&limits).unwrap_or_default(),
        tables.len()
    )
}
