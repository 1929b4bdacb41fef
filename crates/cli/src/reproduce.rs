//! `lockworks reproduce`: simulates a published table and shows both side by side.

use std::iter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use comfy_table::CellAlignment;
use itertools::Itertools;
use lockworks_experiments::{
    ComparedFigure, Errors, FittedReproduction, JudgedOn, PublishedTable, Reproduction, Speedup,
    reproduce,
};
use lockworks_machine::Mark;
use serde::Serialize;

use lockworks_experiments::command_line as published;
use lockworks_sim::command_line as simulations;
use lockworks_ui::interruption;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::plot::figure::{Bar, Chart, Column, Data, Draw, Figure, MOST_SERIES, series};
use lockworks_ui::progress;
use lockworks_ui::table::Table;
use lockworks_ui::terminal::fitted;

/// Simulate a published table and compare every figure
#[derive(clap::Args)]
#[command(after_help = "\
Without a table, lists all tables. A table is simulated with its values as described. If a saved \
fit holds for it, it is simulated again with the fitted values (by the tool `lockworks-maintain fit`). A fit is \
judged by the error on the points that it has not seen; points that it has seen are marked *. \
Errors are those of the speedup over the baseline, where there is one. Published figures have a \
spread of their own, shown as a standard deviation.

Examples:
  lockworks reproduce
  lockworks reproduce cna_locktorture
  lockworks reproduce all --json -o tables.json")]
pub struct ReproduceArgs {
    /// A table, or `all` [default: list the tables]
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// Virtual time of each run, in milliseconds [default: that of the table, mostly 5]
    #[arg(long, value_name = "MS", value_parser = simulations::milliseconds)]
    ms: Option<f64>,

    /// Change a value of machine, workload or model, to see its effect
    #[arg(long, value_name = "KEY=VALUE", value_parser = simulations::setting)]
    set: Vec<(String, f64)>,

    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Draw published and simulated figures by number of threads in FILE, an .svg or .html
    #[arg(long, value_name = "FILE", requires = "table")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    destination: Destination,
}

/// Runs the command.
pub fn command(args: &ReproduceArgs) -> Result<ExitCode> {
    args.destination.check()?;
    plot::check(args.plot.as_deref())?;
    if args.table.is_none() {
        return list(args);
    }
    let tables = args.tables()?;
    let finished = Arc::new(Mutex::new(Vec::new()));
    let on_interruption = (Arc::clone(&finished), args.json, tables.len());
    interruption::before_exit(move || {
        let (finished, as_json, tables) = on_interruption;
        let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
        if let ([_, ..], Ok(text)) = (finished.as_slice(), results(&finished, as_json)) {
            let _ = output::print(&text);
        }
        eprintln!(
            "lockworks: interrupted after {} of {tables} tables",
            finished.len()
        );
    });
    args.simulate(&tables, |reproduction| {
        let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.push(reproduction);
    })?;

    let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
    let text = results(&finished, args.json)?;
    if let Some(path) = &args.plot {
        plot::write(path, &drawn(&finished, &plot::this_command()))?;
    }
    drop(finished);
    args.destination.write(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl ReproduceArgs {
    /// The tables that are named.
    pub fn tables(&self) -> Result<Vec<PublishedTable>> {
        let tables = match self.table.as_deref() {
            None | Some("all") => PublishedTable::all()?,
            Some(name) => vec![published::find(name)?],
        };
        for table in &tables {
            let settings = self.set.iter().map(|(key, value)| (key.as_str(), *value));
            published::check_settings(table, settings)?;
        }
        Ok(tables)
    }

    /// Simulates tables, and gives each to `finish`.
    pub fn simulate(
        &self,
        tables: &[PublishedTable],
        mut finish: impl FnMut(Reproduction),
    ) -> Result<()> {
        let runs = tables.iter().map(PublishedTable::runs_to_reproduce).sum();
        let bar = progress::runs(runs, "simulating");
        for table in tables {
            let seconds = self.ms.map_or(table.seconds(), |ms| ms / 1e3);
            let runs = table.runs_to_reproduce();
            tracing::info!(table = table.name(), runs, "begins");
            finish(reproduce(table, &self.set, seconds, &|| bar.inc(1))?);
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// The tables as the command prints them.
fn results(reproductions: &[Reproduction], as_json: bool) -> Result<String> {
    match (as_json, reproductions) {
        (true, all) => output::one_or_more(all),
        (false, [one]) => Ok(text(one)),
        (false, several) => {
            let texts = several.iter().map(text).chain([summary(several)]);
            Ok(texts.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// Lists all tables.
fn list(args: &ReproduceArgs) -> Result<ExitCode> {
    #[derive(Serialize)]
    struct ListedTable {
        table: String,
        title: String,
        machine: String,
    }
    let tables: Vec<_> = PublishedTable::all()?
        .iter()
        .map(|table| ListedTable {
            table: table.name().to_owned(),
            title: table.title().to_owned(),
            machine: table.machines().join(", "),
        })
        .collect();
    let text = if args.json {
        output::json(&tables)?
    } else {
        let mut listed = output::table(&["table", "machine", "what"]);
        for table in tables {
            listed.add_row([table.table, table.machine, table.title]);
        }
        format!("{listed}\n")
    };
    args.destination.write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The error of each table on points that no fit has seen, with the number of fitted values.
fn summary(reproductions: &[Reproduction]) -> String {
    let mut table = output::table(&[
        "table",
        "error",
        "limit",
        "fitted values",
        "of",
        "as described",
    ]);
    for r in reproductions {
        let error = |error: f64| format!("{error:.1} {}", unit(r));
        let fit = r.fitted.as_ref().map(|fitted| &fitted.fit);
        let fit = fit.filter(|_| r.judged_on == JudgedOn::PointsNotFitted);
        table.add_row([
            r.table.clone(),
            error(r.judged_error_percent),
            error(r.limit_percent),
            fit.map_or(0, |fit| fit.values.len()).to_string(),
            match r.judged_on {
                JudgedOn::AllPoints => "all points, nothing fitted",
                JudgedOn::UnusedPoints => "all points, not used for any value",
                JudgedOn::PointsOfOwnValues => "all points; values or rules chosen on this table",
                JudgedOn::PointsNotFitted => "points not fitted",
            }
            .to_owned(),
            error(r.mean_absolute_error_percent),
        ]);
    }
    format!("Mean absolute errors\n{table}\n")
}

/// From this error of the baseline's figures on, only ratios count.
const RATES_FAIL_PERCENT: f64 = 50.0;

/// The unit of a table's errors.
fn unit(r: &Reproduction) -> &'static str {
    if r.errors_are_points { "points" } else { "%" }
}

fn text(r: &Reproduction) -> String {
    let unit = unit(r);
    let heading = format!(
        "{}: {}\n{}; on {}, in {}\n",
        r.table,
        r.title,
        r.source,
        r.machines.join(", "),
        r.unit,
    );
    let judged_apart = figures_have_errors(r);
    let mut text = String::from(match judged_apart {
        true => "Mean absolute error with values as described, of speedups and of figures:\n",
        false => "Mean absolute error with values as described, of speedups:\n",
    });
    for column in &r.columns {
        text.push_str(&format!(
            "  {:16} {}",
            column.column,
            column
                .speedup_mean_absolute_error_percent
                .map_or_else(|| "      -".to_owned(), |error| format!("{error:5.1} %")),
        ));
        if judged_apart {
            let error = column.mean_absolute_error_percent;
            text.push_str(&format!("  {error:5.1} {unit}"));
        }
        text.push('\n');
    }
    let mut columns = r.columns.iter();
    if judged_apart
        && !r.errors_are_points
        && let Some(stock) = columns.find(|column| column.column == r.baseline)
        && stock.mean_absolute_error_percent > RATES_FAIL_PERCENT
    {
        text.push_str(&format!(
            "Ratios only: the figures of {} are off by {:.0} %, so rates mean nothing here.\n",
            stock.column, stock.mean_absolute_error_percent
        ));
    }
    if let Some(against) = &r.against_usl {
        let errors = |of: Errors| {
            format!(
                "{:.0} % (simulated {:.0} %)",
                of.law_percent, of.simulation_percent
            )
        };
        text.push_str(&format!(
            "The universal scalability law through {} threads errs on the other {} points by {} of figures, \
             and {} of speedups.\n",
            against.through.iter().format(", "),
            against.points,
            errors(against.figures),
            errors(against.speedups),
        ));
    }
    match &r.fitted {
        Some(fitted) => text.push_str(&fit_text(r, fitted)),
        None => text.push_str("No saved fit holds for this table.\n"),
    }
    for pair in &r.misordered {
        text.push_str(&format!(
            "With {} threads, {} is not slower than {}, as it is published to be.\n",
            pair.threads, pair.slower, pair.faster
        ));
    }
    let marked = |mark: Mark| r.values.iter().filter(|value| value.mark == mark).count();
    text.push_str(&format!(
        "Values: {} measured on the part (E), {} on a sibling (S), {} recalled (R), {} inferred (I).\n",
        marked(Mark::E),
        marked(Mark::S),
        marked(Mark::R),
        marked(Mark::I)
    ));
    text.push_str(&format!("{}\n", simulations::inferred(&r.values)));
    for assumption in &r.assumptions {
        text.push_str(&format!("Assumed (I): {assumption}.\n"));
    }
    let figures = figures(r);
    format!("{}{figures}\n{}", fitted(&heading), fitted(&text))
}

/// Whether figures have errors of their own. Those of gains and latencies are the errors of the
/// speedups.
fn figures_have_errors(r: &Reproduction) -> bool {
    r.rows.iter().any(|row| {
        let speedup = row.speedup.as_ref();
        speedup.is_none_or(|speedup| speedup.error_percent != row.error_percent)
    })
}

/// The figures of a table, published and simulated.
fn figures(r: &Reproduction) -> Table {
    let speedups = r.rows.iter().any(|row| row.speedup.is_some());
    let judged_apart = figures_have_errors(r);
    let mut header = vec!["threads", "column", "published", "simulated"];
    if judged_apart {
        header.push("error");
    }
    if speedups {
        header.extend(["published speedup", "simulated speedup", "speedup error"]);
    }
    if r.fitted.is_some() {
        header.extend(match speedups {
            true => ["fitted speedup", "fitted error"],
            false => ["fitted", "fitted error"],
        });
    }
    let mut table = output::table(&header);
    for (at, row) in r.rows.iter().enumerate() {
        let threads = match &row.circumstances {
            Some(circumstances) => format!("{}, {circumstances}", row.threads),
            None => row.threads.to_string(),
        };
        let deviation = row.published_sd.map(|sd| format!(" ±{sd:.3}"));
        let published = format!("{:.3}{}", row.published, deviation.unwrap_or_default());
        let mut cells = vec![threads, row.column.clone(), published];
        let [simulated, error] = simulated_figure(r, row);
        cells.push(simulated);
        if judged_apart {
            cells.push(error);
        }
        if speedups {
            let shown = shown_speedup(row);
            cells.push(shown.map_or_else(String::new, |s| format!("{:.3}", s.published)));
            cells.extend(simulated_speedup(shown));
        }
        if let Some(fitted) = &r.fitted {
            let row = &fitted.rows[at];
            let [value, error] = match &row.speedup {
                Some(_) => simulated_speedup(shown_speedup(row)),
                None => simulated_figure(r, row),
            };
            let seen = fitted.fit.has_seen(&r.table, row.point) && !error.is_empty();
            cells.extend([value, if seen { format!("{error} *") } else { error }]);
        }
        table.add_row(cells);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if at != 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn simulated_figure(r: &Reproduction, row: &ComparedFigure) -> [String; 2] {
    let error = format!("{:+.1} {}", row.error_percent, unit(r));
    [format!("{:.3}", row.simulated), error]
}

fn simulated_speedup(speedup: Option<&Speedup>) -> [String; 2] {
    speedup.map_or_else(Default::default, |speedup| {
        let error = format!("{:+.1} %", speedup.error_percent);
        [format!("{:.3}", speedup.simulated), error]
    })
}

/// The speedup of a row, unless it is that of the baseline over itself.
fn shown_speedup(row: &ComparedFigure) -> Option<&Speedup> {
    let speedup = row.speedup.as_ref();
    speedup.filter(|speedup| (speedup.published, speedup.simulated) != (1.0, 1.0))
}

fn fit_text(r: &Reproduction, fitted: &FittedReproduction) -> String {
    let fit = &fitted.fit;
    let points: Vec<String> = fit.points.iter().map(usize::to_string).collect();
    let of_nodes = r.rows.iter().any(|row| row.circumstances.is_some());
    let unit = unit(r);
    let mut text = format!(
        "With {} fitted on {} at {} {}: {:.1} {unit} on points not fitted, {:.1} {unit} on all\n",
        match fit.values.len() {
            1 => "one value".to_owned(),
            several => format!("{several} values"),
        },
        fit.tables.join(", "),
        points.join(", "),
        if of_nodes { "nodes" } else { "threads" },
        fitted.mean_absolute_error_percent_not_fitted,
        fitted.mean_absolute_error_percent
    );
    for value in &fit.values {
        if let Some(before) = r.values.iter().find(|described| described.key == value.key) {
            text.push_str(&format!(
                "  {:32} {:8.2} -> {:8.2}, of {}..{}\n",
                value.key, before.value, value.value, value.low, value.high
            ));
        }
    }
    text
}

/// Several tables of a report.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Tables(pub Vec<Reproduction>);

impl Draw for Tables {
    fn figures(&self, command: &str) -> Vec<Figure> {
        drawn(&self.0, command)
    }
}

/// The only table of a report.
#[derive(Serialize)]
#[serde(transparent)]
pub struct OneTable(pub Reproduction);

impl Draw for OneTable {
    fn figures(&self, command: &str) -> Vec<Figure> {
        vec![figure(&self.0, command)]
    }
}

/// A figure of each table, below one of their errors.
fn drawn(tables: &[Reproduction], command: &str) -> Vec<Figure> {
    let each = tables.iter().map(|table| figure(table, command));
    iter::once(drawn_errors(tables, command))
        .chain(each)
        .collect()
}

/// How far all tables are off.
fn drawn_errors(tables: &[Reproduction], command: &str) -> Figure {
    let bar = |table: &Reproduction| Bar::exact(&table.table, table.judged_error_percent);
    Figure {
        id: "published".to_owned(),
        title: "Published tables and their simulation".to_owned(),
        text: "Mean error of the simulated figures, table by table. Where values were fitted, points \
               of the fit do not count. Percentages and shares are compared as ratios. A figure for \
               each table is below."
            .to_owned(),
        command: command.to_owned(),
        chart: Some(Chart::Bars {
            unit: "%",
            alike: true,
            bars: tables.iter().map(bar).collect(),
        }),
        data: Data::of(
            tables,
            &[
                ("table", &|table| table.table.as_str().into()),
                ("machine", &|table| table.machines.join(", ").into()),
                ("points", &|table| table.rows.len().into()),
                ("judged on", &|table| judged_on(table).into()),
                ("mean error %", &|table| {
                    ((10.0 * table.judged_error_percent).round() / 10.0).into()
                }),
                ("source", &|table| table.source.as_str().into()),
            ],
        ),
    }
}

fn judged_on(table: &Reproduction) -> &'static str {
    match table.judged_on {
        JudgedOn::AllPoints => "all points",
        JudgedOn::UnusedPoints => "points not used",
        JudgedOn::PointsOfOwnValues => "points of own values",
        JudgedOn::PointsNotFitted => "points not fitted",
    }
}

/// The published figures of a table, and the simulated ones.
fn figure(table: &Reproduction, command: &str) -> Figure {
    let all = &table.rows;
    let names: [Column<ComparedFigure>; 3] = [
        ("column", &|row| row.column.as_str().into()),
        ("circumstances", &|row| row.circumstances.as_deref().into()),
        ("machine", &|row| row.machine.as_str().into()),
    ];
    let is_distinct =
        |(of, name): &Column<ComparedFigure>| *of == "column" || !all.iter().map(name).all_equal();
    let names: Vec<_> = names.into_iter().filter(is_distinct).collect();
    let points = |what: &'static str, value: fn(&ComparedFigure) -> [f64; 2]| {
        let names = &names;
        all.iter().map(move |row| {
            let names = names.iter().map(|(_, name)| name(row));
            let column = names.map(|name| name.as_str().unwrap_or_default().to_owned());
            let [value, deviation] = value(row);
            let [low, high] = [value - deviation, value + deviation];
            let point = [row.threads as f64, value, low, high];
            (column.chain([what.to_owned()]).join(", "), point)
        })
    };
    let published = points("published", |row| {
        [row.published, row.published_sd.unwrap_or(0.0)]
    });
    let lines = series(published.chain(points("simulated", |row| [row.simulated, 0.0])));
    // A table of other things than threads has no lines, and many columns have too many.
    let drawn = lines.len() <= 2 * MOST_SERIES && lines.iter().any(|line| line.points.len() > 2);
    let figures: [Column<ComparedFigure>; 4] = [
        ("threads", &|row| row.threads.into()),
        ("published", &|row| row.published.into()),
        ("simulated", &|row| row.simulated.into()),
        ("error %", &|row| row.error_percent.into()),
    ];
    Figure {
        id: format!("published-{}", table.table.replace('_', "-")),
        title: format!("Published and simulated: {}", table.table),
        text: format!(
            "{} on {}. {}. Mean error {:.1} % on {}. `lockworks reproduce all` compares all tables.",
            table.title,
            all.first().map_or("", |row| &row.machine),
            table.source,
            table.judged_error_percent,
            judged_on(table),
        ),
        command: command.replacen("reproduce all", &format!("reproduce {}", table.table), 1),
        chart: drawn.then(|| Chart::Lines {
            y: table.unit.clone(),
            log: false,
            series: lines,
        }),
        data: Data::of(all, &[&names[..], &figures].concat()),
    }
}
