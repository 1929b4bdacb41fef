//! The results of `lockworks kernel compare`: medians over the rounds, as a table or JSON.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement};
use lockworks_measurements::Range;
use lockworks_ui::figures::scaled;
use lockworks_ui::output;
use lockworks_ui::plot::figure::{Bar, Chart, Data, Draw, Figure};
use lockworks_ui::terminal::fitted;
use serde::Serialize;

use crate::command::options::FAILED;
use crate::compare::{GuestRun, Workload};

/// The results of all guests.
#[derive(Clone, Serialize)]
pub struct GuestComparisonResults {
    /// The version of Linux that was asked for.
    pub version: &'static str,
    /// The release of the guests' kernel.
    pub release: String,
    /// CPUs of a guest.
    pub guest_cpus: u32,
    /// CPUs of this machine.
    pub cpus: usize,
    /// The length of each workload.
    pub seconds: u32,
    /// The planned guests for each mode.
    pub rounds: u32,
    /// Whether guests of the plan are missing.
    pub interrupted: bool,
    /// The mode by whose rates the others are divided.
    pub reference: &'static str,
    /// The compared locks.
    #[serde(skip)]
    pub modes: Vec<&'static str>,
    /// The workloads of each guest.
    #[serde(skip)]
    pub workloads: Vec<Workload>,
    /// The guests that have ended.
    #[serde(skip)]
    pub runs: Vec<GuestRun>,
}

/// The JSON output.
#[derive(Serialize)]
struct GuestComparisonReport<'a> {
    #[serde(flatten)]
    results: &'a GuestComparisonResults,
    rows: Vec<GuestComparisonRow>,
    runs: &'a [GuestRun],
    command: Vec<String>,
}

/// The results of a workload with a mode.
#[derive(Serialize)]
struct GuestComparisonRow {
    workload: &'static str,
    mode: &'static str,
    unit: &'static str,
    /// Median of the rounds; missing if the workload ended in no round.
    rate: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    /// Divided by the rate of the reference in the same round.
    ratio: Option<Range>,
    /// Acquisitions of locktorture's busiest thread divided by those of its least busy thread, median.
    max_min: Option<f64>,
    /// The number of rounds in which the workload did not end.
    missing: usize,
}

impl GuestComparisonResults {
    fn of_mode(&self, mode: &str) -> impl Iterator<Item = &GuestRun> {
        self.runs.iter().filter(move |run| run.mode == mode)
    }

    fn row(&self, workload: Workload, mode: &'static str) -> GuestComparisonRow {
        let name = workload.name();
        let references: BTreeMap<u32, f64> = self
            .of_mode(self.reference)
            .filter_map(|run| Some((run.round, *run.rates.get(name)?)))
            .collect();
        let rates = || {
            self.of_mode(mode)
                .filter_map(|run| Some((run.round, *run.rates.get(name)?)))
        };
        let rate = Range::of(rates().map(|(_, rate)| rate));
        let ratio = rates().filter_map(|(round, rate)| Some(rate / references.get(&round)?));
        let figures = self
            .of_mode(mode)
            .filter_map(|run| run.locktorture.as_ref());
        let most = figures.map(|figures| figures.max as f64 / figures.min.max(1) as f64);
        let max_min = (workload == Workload::Locktorture)
            .then(|| Range::of(most))
            .flatten();
        GuestComparisonRow {
            workload: name,
            mode,
            unit: workload.unit(),
            rate: rate.map(|rate| rate.median),
            min: rate.map(|rate| rate.min),
            max: rate.map(|rate| rate.max),
            ratio: Range::of(ratio),
            max_min: max_min.map(|range| range.median),
            missing: self.of_mode(mode).count() - rates().count(),
        }
    }

    fn rows(&self) -> Vec<GuestComparisonRow> {
        let workloads = self.workloads.iter();
        workloads
            .flat_map(|workload| self.modes.iter().map(|mode| self.row(*workload, mode)))
            .collect()
    }

    /// The table, or JSON.
    pub fn text(&self, json: bool) -> Result<String> {
        match json {
            true => output::json(&GuestComparisonReport {
                results: self,
                rows: self.rows(),
                runs: &self.runs,
                command: std::env::args().collect(),
            }),
            false => Ok(self.table()),
        }
    }

    fn table(&self) -> String {
        let done = self.runs.len();
        let mut text = format!(
            "Linux {}, guests with {} CPUs on {}, workloads of {} s: {done} of {} guests.\n",
            self.release,
            self.guest_cpus,
            self.cpus,
            self.seconds,
            self.rounds as usize * self.modes.len(),
        );
        text = fitted(&text);
        let ratio = format!("/ {}", self.reference);
        let header = [
            "workload", "mode", "rate", "min..max", "unit", &ratio, "min..max", "max/min",
            "missing",
        ];
        let mut table = output::table(&header);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.add_rows(self.rows().iter().map(cells));
        for column in [2, 3, 5, 6, 7, 8] {
            let column = table.column_mut(column).expect("it is in the header");
            column.set_cell_alignment(CellAlignment::Right);
        }
        text.push_str(&format!("{table}\n"));
        let complaints = self.runs.iter().filter(|run| !run.complaints.is_empty());
        for GuestRun {
            mode,
            round,
            complaints,
            ..
        } in complaints
        {
            let kinds: Vec<String> = complaints.iter().map(|c| c.kind.to_string()).collect();
            let complaints = format!("{mode}, round {round}: {}\n", kinds.join("; "));
            text.push_str(&fitted(&complaints));
        }
        text
    }

    /// Reports what failed on standard error. Returns the exit status.
    pub fn verdict(&self) -> ExitCode {
        let failed = self
            .runs
            .iter()
            .flat_map(|run| run.failures().map(move |c| (run, c)));
        let mut status = ExitCode::SUCCESS;
        for (run, complaint) in failed {
            eprintln!(
                "lockworks: FAIL: {}, round {}: {}",
                run.mode, run.round, complaint.kind
            );
            for line in &complaint.lines {
                eprintln!("  {line}");
            }
            eprintln!("  the console is in {}", run.console.display());
            status = ExitCode::from(FAILED);
        }
        status
    }
}

/// A figure for each workload.
impl Draw for GuestComparisonResults {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let figure = |workload: &Workload| {
            let rows: Vec<_> = self
                .modes
                .iter()
                .map(|mode| self.row(*workload, mode))
                .collect();
            let bars = rows.iter().filter_map(|row| {
                let Range { median, min, max } = row.ratio?;
                Some(Bar {
                    name: row.mode.to_owned(),
                    low: min,
                    middle: median,
                    high: max,
                })
            });
            Figure {
                id: "guests".to_owned(),
                title: format!(
                    "{}, {} virtual CPUs on {}",
                    workload.name(),
                    self.guest_cpus,
                    self.cpus
                ),
                text: format!(
                    "The rate divided by that of {} in the same round: the median; lines show the \
                     lowest and the highest.",
                    self.reference
                ),
                command: command.to_owned(),
                chart: Some(Chart::Intervals {
                    unit: format!("of {}", self.reference),
                    bars: bars.collect(),
                }),
                data: Data::of(
                    &rows,
                    &[
                        ("mode", &|row| row.mode.into()),
                        ("rate", &|row| row.rate.into()),
                        ("min", &|row| row.min.into()),
                        ("max", &|row| row.max.into()),
                        ("unit", &|row| row.unit.into()),
                        ("missing", &|row| row.missing.into()),
                    ],
                ),
            }
        };
        self.workloads.iter().map(figure).collect()
    }
}

fn cells(row: &GuestComparisonRow) -> [String; 9] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let range = row.min.zip(row.max);
    [
        row.workload.to_owned(),
        row.mode.to_owned(),
        or_dash(row.rate.map(scaled)),
        or_dash(range.map(|(min, max)| format!("{}..{}", scaled(min), scaled(max)))),
        row.unit.to_owned(),
        or_dash(row.ratio.map(|ratio| format!("{:.2}", ratio.median))),
        or_dash(
            row.ratio
                .map(|ratio| format!("{:.2}..{:.2}", ratio.min, ratio.max)),
        ),
        or_dash(row.max_min.map(|ratio| format!("{ratio:.2}"))),
        match row.missing {
            0 => String::new(),
            missing => missing.to_string(),
        },
    ]
}
