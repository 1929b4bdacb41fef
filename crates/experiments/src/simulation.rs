//! Simulations of the runs that a published table reports.

use std::borrow::Cow;

use anyhow::{Context, Result, ensure};
use itertools::Itertools;
use lockworks::Settings;
use lockworks_sim::{Placement, Run, Scenario, Sharing, SimulationOutcome};
use rayon::prelude::*;

use crate::description::{Column, Measure, ThreadPlacement};
use crate::published::PublishedRow;
use crate::table::{PublishedTable, lock_type};

/// The subject of a simulation: a lock with a number of threads on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case<'a> {
    /// The machine.
    pub machine: &'a str,
    /// The lock.
    pub lock: &'a str,
    /// Whether CNA skips most of its searches for waiters of its own node.
    pub shuffle_reduction: bool,
    /// The number of threads.
    pub threads: usize,
    /// The number of CPUs that they share, where the machine was restricted to some.
    pub cpus: Option<usize>,
    /// Whether these are all hardware threads of their cores.
    pub packed: bool,
    /// The values that hold for its row.
    pub settings: &'a [(String, f64)],
}

/// The outcomes of all placements of all cases.
pub(crate) struct Outcomes<'a>(Vec<(Case<'a>, SimulationOutcome)>);

impl Outcomes<'_> {
    /// The mean of a quantity over all placements of a case.
    pub fn mean(&self, case: Case, quantity: impl Fn(&SimulationOutcome) -> f64) -> f64 {
        let of_case = self.0.iter().filter(|(other, _)| *other == case);
        let (sum, count) = of_case.fold((0.0, 0), |(sum, count), (_, outcome)| {
            (sum + quantity(outcome), count + 1)
        });
        sum / f64::from(count.max(1))
    }

    /// The mean number of operations a second of a case.
    pub fn rate(&self, case: Case) -> f64 {
        self.mean(case, |outcome| outcome.operations_per_second)
    }
}

impl PublishedTable {
    /// The case behind a figure.
    pub(crate) fn case<'a>(&'a self, row: &'a PublishedRow, column: &'a Column) -> Case<'a> {
        Case {
            machine: self.machine_of(column),
            lock: &column.lock,
            shuffle_reduction: column.shuffle_reduction,
            threads: column.users.unwrap_or(row.threads),
            cpus: row.cpus,
            packed: row.packed,
            settings: &row.settings,
        }
    }

    /// The case that a figure's speedup is relative to, if it has one.
    pub(crate) fn baseline_case<'a>(
        &'a self,
        row: &'a PublishedRow,
        column: &'a Column,
    ) -> Option<Case<'a>> {
        match column.measure {
            Measure::Rate | Measure::Jobs => {
                let at = self.column(self.baseline()).ok()?;
                Some(self.case(row, &self.description.columns[at]))
            }
            Measure::Gain | Measure::Latency => Some(Case {
                lock: self.baseline(),
                ..self.case(row, column)
            }),
            Measure::Fairness | Measure::Seconds | Measure::Rmws => None,
        }
    }

    /// The rows of these points.
    pub(crate) fn rows_at(&self, points: &[usize]) -> impl Iterator<Item = &PublishedRow> {
        self.rows.iter().filter(|row| points.contains(&row.point))
    }

    /// Case and placement of each run.
    pub(crate) fn runs(&self, points: &[usize]) -> Vec<(Case<'_>, u64)> {
        let mut cases = Vec::new();
        for (row, column) in self
            .rows_at(points)
            .cartesian_product(&self.description.columns)
        {
            let baseline = self.baseline_case(row, column).into_iter();
            for case in baseline.chain([self.case(row, column)]) {
                if !cases.contains(&case) {
                    cases.push(case);
                }
            }
        }
        let placements = |case: Case| 0..self.placements(case.threads);
        let each = |case| placements(case).map(move |placement| (case, placement));
        cases.into_iter().flat_map(each).collect()
    }

    fn placements(&self, threads: usize) -> u64 {
        match threads {
            0..=4 => self.description.placements,
            5..=36 => self.description.placements.div_ceil(2),
            _ => self.description.placements.div_ceil(4),
        }
    }

    fn place(&self, scenario: &Scenario, case: Case, seed: u64) -> Placement {
        match self.description.placement {
            ThreadPlacement::Compact if case.packed => Placement::Packed,
            ThreadPlacement::Compact => Placement::Compact,
            ThreadPlacement::Packed => Placement::Packed,
            ThreadPlacement::Scatter => Placement::Scatter(seed),
            ThreadPlacement::Gather => scenario.workload.gather(seed),
        }
    }

    /// How the threads of a case share CPUs, if they do: those of a row, or all if threads outnumber them.
    fn sharing(&self, scenario: &Scenario, case: Case) -> Option<Sharing> {
        let guest = self.description.guest.map(|guest| Sharing {
            cpus: guest.cpus,
            guests: Some(1),
            pinned: guest.pinned,
        });
        let all = scenario.machine.cpus();
        let cpus = case.cpus.or((case.threads > all).then_some(all));
        guest.or(cpus.map(|cpus| Sharing {
            cpus,
            guests: None,
            pinned: false,
        }))
    }

    /// Simulates these points, on the scenarios of the table's machines, for `seconds` of virtual time
    /// a run. Calls `on_run` after each run.
    ///
    /// # Errors
    /// A lock failed to exclude, or did nothing in that time.
    pub(crate) fn simulate(
        &self,
        scenarios: &[Scenario],
        points: &[usize],
        seconds: f64,
        on_run: &(dyn Fn() + Sync),
    ) -> Result<Outcomes<'_>> {
        let tunables = self.tunables()?;
        let outcomes = self.runs(points).into_par_iter().map(|(case, placement)| {
            let threads = case.threads;
            let scenario = &with_settings(scenario_of(scenarios, case.machine), case.settings)?;
            let outcome = Run {
                scenario,
                lock: lock_type(case.lock)?,
                threads,
                placement: self.place(scenario, case, placement + 1),
                sharing: self.sharing(scenario, case),
                seconds,
                tunables: Settings {
                    shuffle_reduction: case.shuffle_reduction,
                    ..Settings::kernel()
                }
                .with(&tunables),
                odd_threads_have_priority: false,
                seed: placement + 1,
            }
            .run();
            on_run();
            let outcome =
                outcome.with_context(|| format!("{} with {threads} threads", case.lock))?;
            ensure!(outcome.violations == 0, "{} failed to exclude", case.lock);
            ensure!(
                outcome.operations_per_second > 0.0,
                "{} with {threads} threads did nothing in {} ms; ask for more with --ms",
                case.lock,
                seconds * 1e3
            );
            Ok((case, outcome))
        });
        Ok(Outcomes(outcomes.collect::<Result<_>>()?))
    }
}

/// A scenario with the values that hold for a row.
pub(crate) fn with_settings<'a>(
    scenario: &'a Scenario,
    settings: &[(String, f64)],
) -> Result<Cow<'a, Scenario>> {
    let mut scenario = Cow::Borrowed(scenario);
    for (key, value) in settings {
        scenario
            .to_mut()
            .set(key, *value, "the row of the table")
            .with_context(|| format!("{key}={value}"))?;
    }
    Ok(scenario)
}

/// The scenario of a machine.
pub(crate) fn scenario_of<'a>(scenarios: &'a [Scenario], machine: &str) -> &'a Scenario {
    let mut scenarios = scenarios.iter();
    let of_machine = scenarios.find(|scenario| scenario.machine.name == machine);
    of_machine.expect("a scenario for each machine of the table")
}
