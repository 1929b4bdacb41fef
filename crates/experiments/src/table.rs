//! Published tables, each with the experiment behind it and the saved fit that holds for it.

use anyhow::{Context, Result, bail, ensure};
use itertools::Itertools;
use lockworks::{LockType, Setting, Tunable};
use lockworks_machine::Machine;
use lockworks_machine::description::Fault;
use lockworks_sim::{Scenario, Workload};
use serde::de::DeserializeOwned;

use crate::description::{Column, Description, Measure};
use crate::embedded::{self, Files};
use crate::published::{self, PublishedRow};
use crate::saved_fit::SavedFit;
use crate::simulation::with_settings;

/// A published table: its figures, the experiment behind it, and the saved fit that holds for it.
#[derive(Clone, Debug)]
pub struct PublishedTable {
    name: String,
    pub(crate) description: Description,
    pub(crate) rows: Vec<PublishedRow>,
    fit: Option<SavedFit>,
}

/// A column of a published table.
pub struct PublishedSeries<'a> {
    /// Its name.
    pub column: &'a str,
    /// The lock behind it.
    pub lock: &'a str,
    /// Number of threads, figure and standard deviation of each row.
    pub points: Vec<(usize, f64, f64)>,
}

impl PublishedTable {
    /// The greatest error, in percent or percentage points, with which the table counts as
    /// reproduced. It is that of points that no fit has seen.
    pub fn limit_percent(&self) -> f64 {
        self.description.limit_percent
    }

    /// All tables, in alphabetical order.
    ///
    /// # Errors
    /// A file in `experiments/` is wrong. The message names it.
    pub fn all() -> Result<Vec<Self>> {
        assemble(&embedded::files()?)
    }

    /// The table of this name, if there is one.
    ///
    /// # Errors
    /// As [`PublishedTable::all`].
    pub fn find(name: &str) -> Result<Option<Self>> {
        Ok(Self::all()?.into_iter().find(|table| table.name == name))
    }

    fn new(name: &str, description: &str, figures: &str) -> Result<Self> {
        let origin = format!("experiments/{name}.toml");
        let description: Description = read(description, &origin)?;
        let rows = published::read(&description, figures)
            .with_context(|| format!("experiments/published/{name}.csv"))?;
        let table = Self {
            name: name.to_owned(),
            description,
            rows,
            fit: None,
        };
        table.check().context(origin)?;
        Ok(table)
    }

    /// Whether all names in the description mean something.
    fn check(&self) -> Result<()> {
        let description = &self.description;
        for scenario in self.scenarios(&[])? {
            if self.needs_a_job() {
                ensure!(
                    scenario.workload.job().is_some(),
                    "the workload has no job that ends"
                );
            }
        }
        for (row, machine) in self.rows.iter().cartesian_product(self.machines()) {
            with_settings(&self.scenario(machine)?, &row.settings)?;
        }
        self.tunables()?;
        for column in &description.columns {
            lock_type(&column.lock)?;
        }
        let baselines = description
            .columns
            .iter()
            .filter_map(|column| match column.measure {
                Measure::Rate | Measure::Jobs => Some(self.column(&description.baseline).map(drop)),
                Measure::Gain | Measure::Latency => {
                    Some(lock_type(&description.baseline).map(drop))
                }
                Measure::Fairness | Measure::Seconds | Measure::Rmws => None,
            });
        baselines.collect::<Result<()>>().context("baseline")?;
        if !description.headline.is_empty() {
            self.column(&description.headline).context("headline")?;
        }
        Ok(())
    }

    fn needs_a_job(&self) -> bool {
        let mut columns = self.description.columns.iter();
        columns.any(|column| matches!(column.measure, Measure::Seconds | Measure::Jobs))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The measurement, in one line.
    pub fn title(&self) -> &str {
        &self.description.title
    }

    /// The unit of the published figures.
    pub fn unit(&self) -> &str {
        &self.description.unit
    }

    /// The workload.
    pub fn workload(&self) -> &str {
        &self.description.workload
    }

    /// The machine of all columns that name no other.
    pub fn machine(&self) -> &str {
        &self.description.machine
    }

    /// All machines of the table.
    pub fn machines(&self) -> Vec<&str> {
        let columns = self.description.columns.iter();
        columns
            .map(|column| self.machine_of(column))
            .unique()
            .collect()
    }

    pub(crate) fn machine_of<'a>(&'a self, column: &'a Column) -> &'a str {
        column
            .machine
            .as_deref()
            .unwrap_or(&self.description.machine)
    }

    /// The reference of speedups: a column, or a lock where the table has gains or latencies.
    pub fn baseline(&self) -> &str {
        &self.description.baseline
    }

    /// The column that the publication is about; empty if it is about all of them.
    pub fn headline(&self) -> &str {
        &self.description.headline
    }

    /// Virtual time of each run, in seconds.
    pub fn seconds(&self) -> f64 {
        self.description.milliseconds / 1e3
    }

    /// The saved fit on tables of the same workload, machine and pinning.
    pub fn fit(&self) -> Option<&SavedFit> {
        self.fit.as_ref()
    }

    /// The thread counts of the table, or node counts where the machine was restricted to some.
    pub fn points(&self) -> Vec<usize> {
        self.rows.iter().map(|row| row.point).unique().collect()
    }

    pub(crate) fn column(&self, name: &str) -> Result<usize> {
        let mut columns = self.description.columns.iter();
        let at = columns.position(|column| column.name == name);
        at.with_context(|| format!("there is no column {name:?}"))
    }

    /// The lock behind a column.
    ///
    /// # Panics
    /// The table has no such column.
    pub fn lock(&self, column: &str) -> &str {
        let at = self.column(column).expect("a column of the table");
        &self.description.columns[at].lock
    }

    /// The published speedup of a column over the baseline column.
    ///
    /// # Panics
    /// The table has no such columns.
    pub fn published_speedup(&self, column: &str, threads: usize) -> Option<f64> {
        let of = |name| self.column(name).expect("a column of the table");
        let row = self.rows.iter().find(|row| row.threads == threads)?;
        Some(row.figures[of(column)] / row.figures[of(self.baseline())])
    }

    /// The published figures, column by column.
    pub fn published_series(&self) -> Vec<PublishedSeries<'_>> {
        let columns = self.description.columns.iter().enumerate();
        columns
            .map(|(at, column)| PublishedSeries {
                column: &column.name,
                lock: &column.lock,
                points: self
                    .rows
                    .iter()
                    .map(|row| {
                        let deviation = row.deviations.as_ref().map_or(0.0, |d| d[at]);
                        (row.threads, row.figures[at], deviation)
                    })
                    .collect(),
            })
            .collect()
    }

    /// Operations a second in the table's unit.
    pub fn figure(&self, operations_per_second: f64) -> f64 {
        operations_per_second * self.description.per_second
    }

    /// Whether all errors are percentage points rather than percent.
    pub fn errors_are_points(&self) -> bool {
        let in_points =
            |column: &Column| matches!(column.measure, Measure::Fairness | Measure::Rmws);
        self.description.columns.iter().all(in_points)
    }

    /// Whether its figures are rates, and differ by the number of threads only.
    pub(crate) fn has_rates_by_threads(&self) -> bool {
        let is_rate = |column: &Column| column.measure == Measure::Rate;
        self.description.columns.iter().all(is_rate)
            && self.rows.iter().all(|row| row.circumstances.is_none())
    }

    /// One of the table's machines and its workload, with values as described.
    ///
    /// # Errors
    /// Machine or workload are unknown, or a described value is.
    pub fn scenario(&self, machine: &str) -> Result<Scenario> {
        let workload = &self.description.workload;
        let workload = Workload::find(workload)?;
        let mut scenario = Scenario::new(Machine::find(machine)?, workload);
        if let Some(kernel) = self.description.kernel {
            scenario.schedule_as(kernel);
        }
        for value in &self.description.settings {
            scenario
                .describe(&value.key, value.value, value.mark, &value.source)
                .with_context(|| value.key.clone())?;
        }
        Ok(scenario)
    }

    /// The scenario of each of the table's machines: values as described, then these settings.
    ///
    /// # Errors
    /// As [`PublishedTable::scenario`], or a setting is of an unknown value or out of its range.
    pub fn scenarios(&self, settings: &[(String, f64)]) -> Result<Vec<Scenario>> {
        self.machines()
            .into_iter()
            .map(|machine| {
                let mut scenario = self.scenario(machine)?;
                for (key, value) in settings {
                    scenario
                        .set(key, *value, "set by hand")
                        .with_context(|| format!("{key}={value}"))?;
                }
                Ok(scenario)
            })
            .collect()
    }

    pub(crate) fn tunables(&self) -> Result<Vec<Setting>> {
        let settings = self.description.tunables.iter();
        settings
            .map(|(name, &value)| Ok(Setting::new(Tunable::find(name)?, value)?))
            .collect()
    }

    /// The circumstances that a fit holds for: a workload on a machine, with virtual CPUs pinned or not.
    fn circumstances(&self) -> (&str, &str, bool) {
        let pinned = self.description.guest.is_some_and(|guest| guest.pinned);
        (
            &self.description.workload,
            &self.description.machine,
            pinned,
        )
    }
}

/// The simulator's lock of this name.
pub(crate) fn lock_type(name: &str) -> Result<&'static LockType> {
    lockworks_sim::lock_types()
        .find(|lock| lock.name() == name)
        .with_context(|| format!("unknown lock {name:?}"))
}

/// The tables of these files, each with its fit.
fn assemble(files: &Files) -> Result<Vec<PublishedTable>> {
    for (name, _) in &files.figures {
        ensure!(
            files
                .descriptions
                .iter()
                .any(|(described, _)| described == name),
            "experiments/published/{name}.csv has no experiments/{name}.toml"
        );
    }
    let mut tables: Vec<PublishedTable> = files
        .descriptions
        .iter()
        .map(|(name, description)| {
            let Some((_, figures)) = files.figures.iter().find(|(of, _)| of == name) else {
                bail!("experiments/{name}.toml has no experiments/published/{name}.csv");
            };
            PublishedTable::new(name, description, figures)
        })
        .collect::<Result<_>>()?;
    for (name, text) in &files.fits {
        let origin = format!("experiments/fits/{name}.toml");
        let fit = read(text, &origin)?;
        add_fit(&mut tables, fit).context(origin)?;
    }
    Ok(tables)
}

/// Reads a TOML file. Errors name the file and the line.
fn read<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| Fault::from(error).locate(text, origin).into())
}

/// Gives a saved fit to all tables that it holds for.
fn add_fit(tables: &mut [PublishedTable], fit: SavedFit) -> Result<()> {
    let mut holds_for = Vec::new();
    for name in &fit.tables {
        let table = tables.iter().find(|table| table.name == *name);
        let table = table.with_context(|| format!("there is no table {name:?}"))?;
        ensure!(
            table
                .points()
                .iter()
                .any(|&point| !fit.has_seen(name, point)),
            "the fit has seen all points of {name}, which leaves none to judge it by"
        );
        let (workload, machine, pinned) = table.circumstances();
        holds_for.push((workload.to_owned(), machine.to_owned(), pinned));
    }
    for table in tables {
        let (workload, machine, pinned) = table.circumstances();
        if holds_for.contains(&(workload.to_owned(), machine.to_owned(), pinned)) {
            ensure!(
                table.fit.is_none(),
                "{} has another fit already",
                table.name
            );
            table.fit = Some(fit.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIPTION: &str = r#"
        title = "a table that somebody adds"
        source = "nowhere"
        machine = "kunpeng-920"
        workload = "nginx"
        placement = "scatter"
        placements = 1
        unit = "percent"
        baseline = "qspinlock"
        limit_percent = 10
        assumptions = []

        [[column]]
        name = "gain"
        lock = "hq"
        measure = "gain"
    "#;
    const FIGURES: &str = "workers,gain\n32,1\n64,+68.5\n";
    const FIT: &str = r#"
        tables = ["added"]
        points = [32]

        [[value]]
        key = "machine.rmw_cycles"
        value = 20
        low = 10
        high = 30
    "#;

    fn with(description: &'static str, figures: &'static str, fit: &'static str) -> Files<'static> {
        let mut files = embedded::files().unwrap();
        files.descriptions.push(("added", description));
        files.figures.push(("added", figures));
        files.fits.push(("added", fit));
        files
    }

    fn refusal(files: &Files) -> String {
        let refusal = format!("{:#}", assemble(files).expect_err("a refusal"));
        assert!(!refusal.contains('\n'), "{refusal}");
        refusal
    }

    #[test]
    fn a_table_is_added_by_its_two_files() {
        let mut files = with(DESCRIPTION, FIGURES, FIT);
        files.fits.pop();
        let tables = assemble(&files).unwrap();
        assert_eq!(tables.len(), PublishedTable::all().unwrap().len() + 1);
        let added = tables.last().unwrap();
        assert_eq!(added.name(), "added");
        assert_eq!(added.points(), [32, 64]);
        assert_eq!(added.rows[1].figures, [68.5]);
        assert_eq!(added.fit(), None);
    }

    #[test]
    fn nodes_may_have_different_numbers_of_cpus() {
        let description =
            DESCRIPTION.replace("kunpeng-920", "granite-rapids-2-snc3") + "[nodes]\nusers = 1000\n";
        let description: Description = toml::from_str(&description).unwrap();
        let figures = "nodes,hyperthreads,gain\n1,on,1\n3,on,1\n3,off,1\n";
        let rows = crate::published::read(&description, figures).unwrap();
        let cpus: Vec<_> = rows.iter().map(|row| row.cpus).collect();
        assert_eq!(cpus, [Some(86), Some(256), Some(128)]);
    }

    #[test]
    fn a_row_may_have_values_of_its_own() {
        let figures = "workers,model.tick_ns,workload.work_ns,gain\n32,0,900,1\n32,3000,900,2\n";
        let mut files = with(DESCRIPTION, figures, FIT);
        files.fits.pop();
        let unknown = "experiments/added.toml: workload.work_ns=900: ";
        assert!(refusal(&files).starts_with(unknown), "{}", refusal(&files));

        let figures = "workers,model.tick_ns,gain\n32,0,1\n32,3000,2\n";
        let mut files = with(DESCRIPTION, figures, FIT);
        files.fits.pop();
        let tables = assemble(&files).unwrap();
        let added = tables.last().unwrap();
        let circumstances = added.rows.iter().map(|row| row.circumstances.as_deref());
        let expected = [Some("tick_ns 0"), Some("tick_ns 3000")];
        assert_eq!(circumstances.collect::<Vec<_>>(), expected);
        // The two rows differ in that value alone, and so do their runs.
        assert_eq!(added.runs(&[32]).len(), 4);
    }

    #[test]
    fn a_fit_is_added_by_its_file() {
        let tables = assemble(&with(DESCRIPTION, FIGURES, FIT)).unwrap();
        let names = tables.iter().filter(|table| {
            table
                .fit()
                .is_some_and(|fit| fit.values[0].key == "machine.rmw_cycles")
        });
        // The other table of nginx on that machine has the same circumstances.
        let names: Vec<_> = names.map(PublishedTable::name).collect();
        assert_eq!(names, ["hq_nginx_kunpeng920_percent", "added"]);
    }

    #[test]
    fn a_wrong_file_is_named() {
        let mut files = with(DESCRIPTION, FIGURES, FIT);
        files.figures.pop();
        let words = "experiments/added.toml has no experiments/published/added.csv";
        assert_eq!(refusal(&files), words);

        let mut files = with(DESCRIPTION, FIGURES, FIT);
        files.descriptions.pop();
        let words = "experiments/published/added.csv has no experiments/added.toml";
        assert_eq!(refusal(&files), words);

        for (wrong, words) in [
            (
                "baseline = \"qspinlok\"",
                "baseline: unknown lock \"qspinlok\"",
            ),
            (
                "headline = \"gains\"",
                "headline: there is no column \"gains\"",
            ),
            ("machine = \"kunpeng\"", "kunpeng"),
            (
                "workload = \"ngin\"",
                "unknown workload 'ngin'; did you mean",
            ),
        ] {
            let key = wrong.split(' ').next().unwrap();
            let others = DESCRIPTION
                .lines()
                .filter(|line| !line.trim().starts_with(key));
            let description = format!("{wrong}\n{}", others.collect::<Vec<_>>().join("\n"));
            let refusal = refusal(&with(description.leak(), FIGURES, FIT));
            assert!(refusal.starts_with("experiments/added.toml: "), "{refusal}");
            assert!(refusal.contains(words), "no {words:?} in {refusal}");
        }
        for (key, wrong, words) in [
            (
                "title",
                "titel = \"x\"",
                "2: unknown field `titel`, expected",
            ),
            ("placements", "", "1: missing field `placements`"),
            (
                "placements",
                "placements = 1.5",
                "7: invalid type: floating point `1.5`, expected",
            ),
            (
                "placement ",
                "placement = \"spread\"",
                "6: unknown variant `spread`, expected one of `compact`, `scatter`",
            ),
            ("unit", "title = \"x\"", "8: duplicate key"),
        ] {
            let lines = DESCRIPTION
                .lines()
                .map(|line| match line.trim().starts_with(key) {
                    true => wrong,
                    false => line,
                });
            let description = lines.collect::<Vec<_>>().join("\n");
            let refusal = refusal(&with(description.leak(), FIGURES, FIT));
            assert!(
                refusal.starts_with(&format!("experiments/added.toml:{words}")),
                "{refusal}"
            );
        }
        let fit = FIT.replace("points", "point").leak();
        let refused = refusal(&with(DESCRIPTION, FIGURES, fit));
        let words = "experiments/fits/added.toml:3: unknown field `point`, expected";
        assert!(refused.starts_with(words), "{refused}");
        for (wrong, words) in [
            ("workers,gains\n32,1\n", "row 1: no column gain"),
            (
                "workers,gain\n32,1\n64,much\n",
                "row 2: column gain: \"much\" is not a number",
            ),
            (
                "workers,gain\nmany,1\n",
                "row 1: \"many\" is not a number of threads",
            ),
            ("workers,gain\n32\n", "2 fields"),
            ("workers,gain\n", "no rows"),
        ] {
            let refusal = refusal(&with(DESCRIPTION, wrong, FIT));
            assert!(
                refusal.contains("experiments/published/added.csv"),
                "{refusal}"
            );
            assert!(refusal.contains(words), "no {words:?} in {refusal}");
        }
        let all = FIT.replace("[32]", "[32, 64]").leak();
        assert_eq!(
            refusal(&with(DESCRIPTION, FIGURES, all)),
            "experiments/fits/added.toml: the fit has seen all points of added, which leaves none \
             to judge it by"
        );
    }
}
