//! Figures of results. A figure always has a table, which is its data; most have a chart too.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

/// Results that make figures.
pub trait Draw {
    /// The figures of these results of `command`, which is written as a user would type it.
    fn figures(&self, command: &str) -> Vec<Figure>;
}

/// A figure.
#[derive(Serialize)]
pub struct Figure {
    /// Names the figure in links and files.
    pub id: String,
    /// The title above it.
    pub title: String,
    /// The text below the title: the data that it shows, and the point to see in it.
    pub text: String,
    /// The command that made it.
    pub command: String,
    /// The drawing, if there is one.
    pub chart: Option<Chart>,
    /// The data that it shows.
    #[serde(flatten)]
    pub data: Data,
}

/// A table of data, with a name for each column.
#[derive(Serialize)]
pub struct Data {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

/// The name of a column, and its cell in a row.
pub type Column<'a, Row> = (&'static str, &'a dyn Fn(&Row) -> Value);

impl Data {
    /// The table of these rows.
    pub fn of<Row>(rows: &[Row], columns: &[Column<Row>]) -> Self {
        let cells = |row| columns.iter().map(|(_, cell)| cell(row)).collect();
        Self {
            columns: columns.iter().map(|(name, _)| *name).collect(),
            rows: rows.iter().map(cells).collect(),
        }
    }
}

/// The kind of drawing.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Chart {
    /// A line for each lock, over numbers of threads.
    Lines {
        /// The quantity that the lines show.
        y: String,
        /// Whether the axis is logarithmic.
        log: bool,
        /// The lines.
        series: Vec<Series>,
    },
    /// A share of the best for each lock, workload and number of threads.
    Heat {
        /// The names of the columns.
        columns: Vec<String>,
        /// The names of the rows.
        rows: Vec<String>,
        /// A map for each lock.
        panels: Vec<Panel>,
    },
    /// Predicted over measured.
    Pairs {
        /// The unit of both.
        unit: &'static str,
        /// The points of each lock.
        series: Vec<Series>,
    },
    /// A ratio with its interval for each lock.
    Intervals {
        /// The quantity of which the ratios are.
        unit: String,
        /// The locks.
        bars: Vec<Bar>,
    },
    /// An amount with its spread for each name. Names that are no locks look alike.
    Bars {
        /// The unit of the amounts.
        unit: &'static str,
        /// Whether all bars look alike.
        alike: bool,
        /// The names with their amounts.
        bars: Vec<Bar>,
    },
}

/// A line of a figure.
#[derive(Serialize)]
pub struct Series {
    name: String,
    /// Threads, value, lowest, highest; for pairs: measured, predicted, threads, 0.
    pub points: Vec<[f64; 4]>,
}

/// A lock in a heat map.
#[derive(Serialize)]
pub struct Panel {
    /// The name of the lock.
    pub name: String,
    /// Column, row, share, and whether the lock is unfair there.
    pub cells: Vec<(usize, usize, f64, bool)>,
}

/// A value with its spread.
#[derive(Serialize)]
pub struct Bar {
    /// The name of the lock, or of another thing, that has this value.
    pub name: String,
    /// The lowest value.
    pub low: f64,
    /// The value.
    pub middle: f64,
    /// The highest value.
    pub high: f64,
}

/// Results that may not be shown.
impl<Results: Draw> Draw for Option<Results> {
    fn figures(&self, command: &str) -> Vec<Figure> {
        self.iter()
            .flat_map(|results| results.figures(command))
            .collect()
    }
}

/// A result without figures.
impl Draw for () {
    fn figures(&self, _: &str) -> Vec<Figure> {
        Vec::new()
    }
}

impl Bar {
    /// A value without a spread.
    pub fn exact(name: impl Into<String>, value: f64) -> Self {
        Self {
            name: name.into(),
            low: value,
            middle: value,
            high: value,
        }
    }
}

impl Figure {
    /// Whether there is something to draw.
    pub fn has_chart(&self) -> bool {
        match &self.chart {
            None => false,
            Some(Chart::Lines { series, .. } | Chart::Pairs { series, .. }) => !series.is_empty(),
            Some(Chart::Heat { panels, .. }) => !panels.is_empty(),
            Some(Chart::Intervals { bars, .. } | Chart::Bars { bars, .. }) => !bars.is_empty(),
        }
    }

    /// The data as CSV.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.data.columns)?;
        for row in &self.data.rows {
            writer.write_record(row.iter().map(|cell| match cell {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            }))?;
        }
        Ok(writer.into_inner()?)
    }
}

/// A line for each name, in the order of their first points. A point without a value is left out.
pub fn series<Name: Into<String>>(points: impl Iterator<Item = (Name, [f64; 4])>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (name, point) in points.filter(|(_, point)| point.iter().all(|value| value.is_finite())) {
        let name = name.into();
        match all.iter_mut().find(|one| one.name == name) {
            Some(one) => one.points.push(point),
            None => all.push(Series {
                name,
                points: vec![point],
            }),
        }
    }
    all
}

/// The most series of a figure, unless the user names more locks.
pub const MOST_SERIES: usize = 8;

/// The locks that a figure shows first if there are too many: a choice of figures. Others follow in the order
/// of the results.
const BEST_KNOWN: [&str; 9] = [
    "mutex",
    "pthread_mutex",
    "futex",
    "qspinlock",
    "cna",
    "hq",
    "pv",
    "unfair",
    "tas",
];

/// The lines of locks, by lock, threads, and value with lowest and highest: at most eight, unless the
/// command names the locks; and what to say about those left out.
pub fn few_series<'a>(
    command: &str,
    points: impl Iterator<Item = (&'a str, usize, [f64; 3])>,
) -> (Vec<Series>, String) {
    let mut all = series(points.map(|(lock, threads, [value, lowest, highest])| {
        (lock, [threads as f64, value, lowest, highest])
    }));
    let names_locks = |word: &str| word.starts_with("--lock") || word.starts_with("-l");
    if all.len() <= MOST_SERIES || command.split(' ').any(names_locks) {
        return (all, String::new());
    }
    let number = all.len();
    let rank = |one: &Series| BEST_KNOWN.iter().position(|known| one.name == *known);
    all.sort_by_key(|one| rank(one).unwrap_or(BEST_KNOWN.len()));
    all.truncate(MOST_SERIES);
    let left_out = format!(" {MOST_SERIES} of {number} locks are drawn; --lock chooses others.");
    (all, left_out)
}

/// The meaning of a fairness factor.
pub const FAIRNESS: &str = "The share of all operations that the busier half of the threads made: 0.5 \
                            is strictly fair, 1 totally unfair.";
