//! Figures, from the JSON of the commands. A figure always has a table, which is its
//! data; most have a chart too.

use std::cmp::Reverse;

use anyhow::Result;
use itertools::Itertools;
use serde::Serialize;
use serde_json::{Value, json};

/// What a command found.
pub struct Results {
    /// The kind of results, which says what is drawn.
    pub kind: &'static str,
    /// The command, as a user would type it.
    pub command: String,
    /// Its results as JSON. Null if it failed, or gives no JSON.
    pub json: Value,
    /// The results that it wrote as CSV, if it does: a header, and rows.
    pub csv: Vec<Vec<String>>,
}

/// A figure.
#[derive(Serialize)]
pub struct Figure {
    /// Names the figure in links and files.
    pub id: String,
    /// The title above it.
    pub title: String,
    /// What it shows, and what to see in it.
    text: String,
    /// The command that made it.
    command: String,
    chart: Option<Chart>,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

/// What is drawn.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Chart {
    /// A line for each lock, over numbers of threads.
    Lines {
        y: String,
        log: bool,
        series: Vec<Series>,
    },
    /// A share of the best for each lock, workload and number of threads.
    Heat {
        columns: Vec<String>,
        rows: Vec<String>,
        panels: Vec<Panel>,
    },
    /// Predicted over measured.
    Pairs { unit: String, series: Vec<Series> },
    /// A ratio with its interval for each lock.
    Intervals { unit: String, bars: Vec<Bar> },
    /// An amount with its spread for each name. Names that are no locks look alike.
    Bars {
        unit: String,
        alike: bool,
        bars: Vec<Bar>,
    },
}

#[derive(Serialize)]
struct Series {
    name: String,
    /// Threads, value, lowest, highest; for pairs: measured, predicted, threads, 0.
    points: Vec<[f64; 4]>,
}

#[derive(Serialize)]
struct Panel {
    name: String,
    /// Column, row, share, and whether the lock is unfair there.
    cells: Vec<(usize, usize, f64, bool)>,
}

#[derive(Serialize)]
struct Bar {
    name: String,
    low: f64,
    middle: f64,
    high: f64,
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
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| match cell {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            }))?;
        }
        Ok(writer.into_inner()?)
    }
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

fn name(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

fn rows<'a>(part: &'a Results, key: &str) -> &'a [Value] {
    part.json[key].as_array().map_or(&[], Vec::as_slice)
}

/// The results of a command that prints an array only if there are several.
fn one_or_more(part: &Results) -> &[Value] {
    let one = std::slice::from_ref(&part.json);
    part.json.as_array().map_or(one, Vec::as_slice)
}

/// A line for each name, in the order of their first points.
fn series(points: impl Iterator<Item = (String, [f64; 4])>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (name, point) in points.filter(|(_, point)| point.iter().all(|value| value.is_finite())) {
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

/// The figures that a command's results make.
pub fn of(part: &Results) -> Vec<Figure> {
    if part.json.is_null() {
        return Vec::new();
    }
    match part.kind {
        "measured" => measured(part),
        "validated" => vec![validated(part)],
        "predicted" => predicted(part),
        "simulated" => simulated(part),
        "published" => match part.json.as_array() {
            Some(tables) => {
                let each = tables.iter().map(|table| published(part, table));
                std::iter::once(published_errors(part, tables))
                    .chain(each)
                    .collect()
            }
            None => vec![published(part, &part.json)],
        },
        "checked" => vec![checked(part)],
        "profile" => std::iter::once(profile(part))
            .chain(slow_waits(part))
            .collect(),
        "compare" => vec![compare(part)],
        "locktorture" => locktorture(part),
        "guests" => guests(part),
        _ => Vec::new(),
    }
}

/// The most series of a figure, unless the user names more locks.
const MOST_SERIES: usize = 8;

/// The locks that a figure shows if there are too many.
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

/// At most eight series, unless the command names the locks; and what to say about those left out.
fn not_too_many(part: &Results, mut all: Vec<Series>) -> (Vec<Series>, String) {
    let names_locks = |word: &str| word.starts_with("--lock") || word.starts_with("-l");
    if all.len() <= MOST_SERIES || part.command.split(' ').any(names_locks) {
        return (all, String::new());
    }
    let number = all.len();
    let rank = |one: &Series| BEST_KNOWN.iter().position(|known| one.name == *known);
    all.sort_by_key(|one| rank(one).unwrap_or(BEST_KNOWN.len()));
    all.truncate(MOST_SERIES);
    let left_out = format!(" {MOST_SERIES} of {number} locks are drawn; --lock chooses others.");
    (all, left_out)
}

fn measured(part: &Results) -> Vec<Figure> {
    let all = rows(part, "rows");
    let machine = &part.json["machine"];
    let lines = |value: fn(&Value) -> [f64; 3]| {
        series(all.iter().map(|row| {
            let [value, low, high] = value(row);
            (
                name(row, "lock"),
                [number(row, "threads"), value, low, high],
            )
        }))
    };
    let throughput = lines(|row| {
        ["", "_min", "_max"].map(|end| number(row, &format!("operations_per_second{end}")))
    });
    let fairness = lines(|row| [number(row, "fairness"); 3]);
    let waits = lines(|row| [number(&row["latency_ns"], "p999").max(1.0); 3]);
    let figure = |id,
                  title: &str,
                  text: String,
                  (y, log, series): (&str, bool, Vec<Series>),
                  columns: Vec<&'static str>,
                  keys: fn(&Value) -> Vec<Value>| {
        let (series, left_out) = not_too_many(part, series);
        let y = y.to_owned();
        Figure {
            id,
            title: title.to_owned(),
            text: text + &left_out,
            command: part.command.clone(),
            chart: Some(Chart::Lines { y, log, series }),
            columns,
            rows: all.iter().map(keys).collect(),
        }
    };
    vec![
        figure(
            "throughput".to_owned(),
            "Throughput, measured here",
            format!(
                "Threads take one lock in a loop and increment two counters, on {} CPUs and {} NUMA \
                 node(s). Median of {} rounds; bars show the lowest and the highest round.",
                machine["cpus"], machine["nodes"], part.json["rounds"]
            ),
            ("operations a second", true, throughput),
            vec!["lock", "threads", "operations a second", "lowest", "highest"],
            |row| {
                ["lock", "threads", "operations_per_second", "operations_per_second_min", "operations_per_second_max"]
                    .map(|key| row[key].clone())
                    .into()
            },
        ),
        figure(
            "fairness".to_owned(),
            "Fairness, measured here",
            "The share of all operations that the busier half of the threads made: 0.5 is strictly \
             fair, 1 totally unfair. The same runs."
                .to_owned(),
            ("fairness factor", false, fairness),
            vec!["lock", "threads", "fairness factor"],
            |row| ["lock", "threads", "fairness"].map(|key| row[key].clone()).into(),
        ),
        figure(
            "waits".to_owned(),
            "Long waits, measured here",
            "One wait in a thousand is longer than this. The same runs.".to_owned(),
            ("wait in ns, 99.9th percentile", true, waits),
            vec!["lock", "threads", "median ns", "99.9th percentile ns", "longest ns"],
            |row| {
                let wait = |key: &str| row["latency_ns"][key].clone();
                vec![row["lock"].clone(), row["threads"].clone(), wait("p50"), wait("p999"), wait("max")]
            },
        ),
    ]
}

fn simulated(part: &Results) -> Vec<Figure> {
    let all = rows(part, "rows");
    let of = [name(&part.json, "workload"), name(&part.json, "machine")].join(" on ");
    let rates = all.iter().map(|row| {
        let seeds = row["operations_per_second_by_seed"].as_array();
        let seeds = seeds.into_iter().flatten().filter_map(Value::as_f64);
        let low = seeds.clone().fold(f64::INFINITY, f64::min);
        let high = seeds.fold(0.0, f64::max);
        let point = [
            number(row, "threads"),
            number(row, "operations_per_second"),
            low,
            high,
        ];
        (name(row, "lock"), point)
    });
    let fairness = all.iter().map(|row| {
        let fairness = number(row, "fairness");
        let point = [number(row, "threads"), fairness, fairness, fairness];
        (name(row, "lock"), point)
    });
    let (rates, left_out) = not_too_many(part, series(rates));
    let (fairness, _) = not_too_many(part, series(fairness));
    let columns = vec!["lock", "threads", "operations a second", "fairness factor"];
    let keys = ["lock", "threads", "operations_per_second", "fairness"];
    let data = all
        .iter()
        .map(|row| keys.map(|key| row[key].clone()).into());
    let data: Vec<Vec<Value>> = data.collect();
    let figure = |id, title, text, y: &str, log, series| Figure {
        id,
        title,
        text,
        command: part.command.clone(),
        chart: Some(Chart::Lines {
            y: y.to_owned(),
            log,
            series,
        }),
        columns: columns.clone(),
        rows: data.clone(),
    };
    vec![
        figure(
            "throughput".to_owned(),
            format!("Simulated throughput, {of}"),
            format!("The median over the seeds; bars show the lowest and the highest.{left_out}"),
            "operations a second",
            true,
            rates,
        ),
        figure(
            "fairness".to_owned(),
            format!("Simulated fairness, {of}"),
            "The share of all operations that the busier half of the threads made: 0.5 is strictly \
             fair, 1 totally unfair."
                .to_owned(),
            "fairness factor",
            false,
            fairness,
        ),
    ]
}

fn validated(part: &Results) -> Figure {
    let cells = rows(part, "cells");
    let points = cells.iter().map(|cell| {
        let pair = [
            number(cell, "measured"),
            number(cell, "predicted"),
            number(cell, "threads"),
            0.0,
        ];
        (name(cell, "lock"), pair)
    });
    Figure {
        id: "validated".to_owned(),
        title: "Prediction beside measurement".to_owned(),
        text: format!(
            "Each point is a lock with a number of threads. On the diagonal the prediction is right. {}",
            name(&part.json, "here")
        ),
        command: part.command.clone(),
        chart: Some(Chart::Pairs {
            unit: "operations a second".to_owned(),
            series: series(points),
        }),
        columns: vec![
            "lock",
            "threads",
            "measured",
            "predicted",
            "error %",
            "measured beside other work",
        ],
        rows: cells
            .iter()
            .map(|cell| {
                [
                    "lock",
                    "threads",
                    "measured",
                    "predicted",
                    "error_percent",
                    "busy",
                ]
                .map(|key| cell[key].clone())
                .into()
            })
            .collect(),
    }
}

/// A machine's name; a file is named without its directory and ending.
fn short(machine: &str) -> &str {
    let file = machine.rsplit('/').next().unwrap_or(machine);
    file.strip_suffix(".toml").unwrap_or(file)
}

/// The columns of `lockworks regret --csv`.
const MACHINE: usize = 0;
const WORKLOAD: usize = 1;
const THREADS: usize = 2;
const CPUS: usize = 3;
const LOCK: usize = 4;
const RATE: usize = 5;
const FAIRNESS: usize = 6;
const SHARE: usize = 7;

fn predicted(part: &Results) -> Vec<Figure> {
    let cells: Vec<&Vec<String>> = part.csv.iter().skip(1).collect();
    let several = cells.iter().map(|cell| &cell[MACHINE]).unique().count() > 1;
    // Of several machines, each has another number of CPUs.
    let most = cells
        .iter()
        .filter(|cell| cell[CPUS].is_empty())
        .filter_map(|cell| Some((&cell[MACHINE], cell[THREADS].parse::<usize>().ok()?)))
        .into_grouping_map()
        .max();
    let order = |cell: &[String]| {
        let number = |at: usize| cell[at].parse::<usize>().unwrap_or(0);
        let is_most = several && most.get(&cell[MACHINE]) == Some(&number(THREADS));
        match cell[CPUS].is_empty() && is_most {
            true => (0, usize::MAX),
            false => (number(CPUS), number(THREADS)),
        }
    };
    let column = |cell: &[String]| match order(cell) {
        (0, usize::MAX) => "most".to_owned(),
        (0, threads) => threads.to_string(),
        (cpus, threads) => format!("{threads} on {cpus}"),
    };
    let columns: Vec<String> = cells
        .iter()
        .map(|cell| (order(cell), column(cell)))
        .sorted()
        .dedup()
        .map(|(_, column)| column)
        .collect();
    let row = |cell: &[String]| format!("{} {}", short(&cell[MACHINE]), cell[WORKLOAD]);
    let workloads: Vec<String> = cells.iter().map(|cell| row(cell)).unique().collect();
    let locks = cells.iter().map(|cell| cell[LOCK].clone()).unique();
    let fair = part.json["fair"].as_f64().unwrap_or(1.0);
    let place = |list: &[String], what: &str| list.iter().position(|one| one == what);
    let panels = locks.map(|lock| {
        let own = cells.iter().filter(|cell| cell[LOCK] == lock);
        let cell = |cell: &&Vec<String>| {
            let share = cell[SHARE].parse().ok()?;
            let fairness: f64 = cell[FAIRNESS].parse().ok()?;
            Some((
                place(&columns, &column(cell))?,
                place(&workloads, &row(cell))?,
                share,
                cell[CPUS].is_empty() && fairness > fair,
            ))
        };
        Panel {
            cells: own.filter_map(cell).collect(),
            name: lock,
        }
    });
    let mut figures = vec![Figure {
        id: "regret".to_owned(),
        title: "How far from the best lock, predicted".to_owned(),
        text: "Throughput divided by that of the best fair lock, for each workload and number of \
               threads; 'on 8' means that the threads share 8 CPUs, 'most' is the most that a \
               machine runs. 1 is the best. A dot: the lock is \
               unfair there. Choose a lock."
            .to_owned(),
        command: part.command.clone(),
        chart: Some(Chart::Heat {
            panels: panels.collect(),
            columns: columns.clone(),
            rows: workloads.clone(),
        }),
        columns: vec![
            "workload",
            "threads",
            "CPUs shared",
            "lock",
            "operations a second",
            "share of the best",
        ],
        rows: cells
            .iter()
            .map(|cell| {
                let number = |at: usize| cell[at].parse::<f64>().map_or(Value::Null, |n| json!(n));
                vec![
                    json!(row(cell)),
                    number(THREADS),
                    number(CPUS),
                    json!(cell[LOCK]),
                    number(RATE),
                    number(SHARE),
                ]
            })
            .collect(),
    }];
    figures.extend(workloads.last().map(|workload| {
        let own = cells
            .iter()
            .filter(|cell| row(cell) == *workload && cell[CPUS].is_empty());
        let points = own.clone().map(|cell| {
            let number = |at: usize| cell[at].parse().unwrap_or(f64::NAN);
            let rate = number(RATE);
            (cell[LOCK].clone(), [number(THREADS), rate, rate, rate])
        });
        Figure {
            id: "predicted".to_owned(),
            title: format!("Throughput in {workload}, predicted"),
            text: "The locks of the heat map, in one of its workloads, with a CPU for each thread."
                .to_owned(),
            command: part.command.clone(),
            chart: Some(Chart::Lines {
                y: "operations a second".to_owned(),
                log: true,
                series: series(points),
            }),
            columns: vec!["lock", "threads", "operations a second"],
            rows: own
                .map(|cell| {
                    let number =
                        |at: usize| cell[at].parse::<f64>().map_or(Value::Null, |n| json!(n));
                    vec![json!(cell[LOCK]), number(THREADS), number(RATE)]
                })
                .collect(),
        }
    }));
    figures
}

/// How far all tables are off.
fn published_errors(part: &Results, tables: &[Value]) -> Figure {
    let error = |table: &Value| number(table, "judged_error_percent");
    let bars = tables.iter().map(|table| Bar {
        name: name(table, "table"),
        low: error(table),
        middle: error(table),
        high: error(table),
    });
    Figure {
        id: "published".to_owned(),
        title: "Published tables and their simulation".to_owned(),
        text: "Mean error of the simulated figures, table by table. Where values were fitted, points \
               of the fit do not count. Percentages and shares are compared as ratios. A figure for \
               each table is below."
            .to_owned(),
        command: part.command.clone(),
        chart: Some(Chart::Bars {
            unit: "%".to_owned(),
            alike: true,
            bars: bars.collect(),
        }),
        columns: vec!["table", "machine", "points", "judged on", "mean error %", "source"],
        rows: tables
            .iter()
            .map(|table| {
                let points = table["rows"].as_array().map_or(0, Vec::len);
                vec![
                    table["table"].clone(),
                    table["machines"].as_array().into_iter().flatten().filter_map(Value::as_str).join(", ").into(),
                    points.into(),
                    name(table, "judged_on").replace('_', " ").into(),
                    json!((10.0 * error(table)).round() / 10.0),
                    table["source"].clone(),
                ]
            })
            .collect(),
    }
}

fn published(part: &Results, table: &Value) -> Figure {
    let all = table["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let several = |key: &str| all.iter().any(|row| row[key] != all[0][key]);
    let distinct: Vec<&str> = ["column", "circumstances", "machine"]
        .into_iter()
        .filter(|key| *key == "column" || several(key))
        .collect();
    let of = |key: &'static str| {
        let distinct = &distinct;
        all.iter().map(move |row| {
            let deviation = if key == "published" {
                number(row, "published_sd")
            } else {
                0.0
            };
            let deviation = if deviation.is_finite() {
                deviation
            } else {
                0.0
            };
            let value = number(row, key);
            let point = [
                number(row, "threads"),
                value,
                value - deviation,
                value + deviation,
            ];
            let column = distinct.iter().map(|key| name(row, key)).join(", ");
            (format!("{column}, {key}"), point)
        })
    };
    let lines = series(of("published").chain(of("simulated")));
    // A table of other things than threads has no lines, and many columns have too many.
    let drawn = lines.len() <= 2 * MOST_SERIES && lines.iter().any(|line| line.points.len() > 2);
    let mut columns = distinct.clone();
    columns.extend(["threads", "published", "simulated", "error_percent"]);
    let judged_on = name(table, "judged_on").replace('_', " ");
    Figure {
        id: format!("published-{}", name(table, "table").replace('_', "-")),
        title: format!("Published and simulated: {}", name(table, "table")),
        text: format!(
            "{} on {}. {}. Mean error {:.1} % on {judged_on}. `lockworks reproduce all` compares all \
             tables.",
            name(table, "title"),
            name(&table["rows"][0], "machine"),
            name(table, "source"),
            number(table, "judged_error_percent"),
        ),
        command: part.command.replacen(
            "reproduce all",
            &format!("reproduce {}", name(table, "table")),
            1,
        ),
        chart: drawn.then(|| Chart::Lines {
            y: name(table, "unit"),
            log: false,
            series: lines,
        }),
        rows: all
            .iter()
            .map(|row| columns.iter().map(|key| row[*key].clone()).collect())
            .collect(),
        columns: columns
            .iter()
            .map(|key| match *key {
                "error_percent" => "error %",
                other => other,
            })
            .collect(),
    }
}

/// What the model checker went through: a row for each lock and size of search.
fn checked(part: &Results) -> Figure {
    let searches = one_or_more(part);
    let size = |search: &&Value| {
        ["lock", "threads", "acquisitions", "memory"].map(|key| search[key].clone())
    };
    let mut sizes: Vec<[Value; 4]> = Vec::new();
    for search in searches {
        if !sizes.contains(&size(&search)) {
            sizes.push(size(&search));
        }
    }
    let rows = sizes.into_iter().map(|of| {
        let those: Vec<&Value> = searches
            .iter()
            .filter(|search| size(search) == of)
            .collect();
        let sum = |key: &str| those.iter().map(|search| number(search, key)).sum::<f64>();
        let complete = those.iter().filter(|search| search["complete"] == true);
        let mut row = of.to_vec();
        row.extend([
            json!(those.len()),
            json!(complete.count()),
            json!(sum("states") as u64),
            json!(sum("violations") as u64),
        ]);
        row
    });
    Figure {
        id: "checked".to_owned(),
        title: "Checked while this page was made".to_owned(),
        text: "The model checker ran the locks' code in small cases: each search is one number of \
               threads and acquisitions, with an option such as trylock or cancellation. A complete \
               search went through every interleaving, and in weak memory every reordering that C11 \
               allows, except load buffering (a load that sees a later store). Larger searches and \
               planted mistakes: `lockworks check --help` and `lockworks check mutants`."
            .to_owned(),
        command: part.command.clone(),
        chart: None,
        columns: vec![
            "lock",
            "threads",
            "acquisitions",
            "memory",
            "searches",
            "complete",
            "states",
            "violations",
        ],
        rows: rows.collect(),
    }
}

/// A place in the code of a program.
fn place_name(place: &Value) -> String {
    let module = name(place, "module");
    let module = module.rsplit('/').next().unwrap_or_default().to_owned();
    match (place["function"].as_str(), place["line"].as_str()) {
        (Some(function), Some(line)) => format!("{function} ({line})"),
        (Some(function), None) => function.to_owned(),
        _ => format!("{module}+{:#x}", place["offset"].as_u64().unwrap_or(0)),
    }
}

/// What holders did during slow waits. None: no wait was slow.
fn slow_waits(part: &Results) -> Option<Figure> {
    let places = rows(part, "places").iter();
    let places = places.chain(rows(part, "rwlock_places"));
    let causes = places.flat_map(|row| {
        let causes = row["slow"]["causes"].as_array();
        let causes = causes.map_or(&[][..], Vec::as_slice).iter();
        causes.map(|cause| (place_name(&row["places"][0]), cause))
    });
    let ns = |(_, cause): &(String, &Value)| Reverse(cause["ns"].as_u64());
    let causes: Vec<(String, &Value)> = causes.sorted_by_key(ns).take(10).collect();
    let bars = causes.iter().map(|(place, cause)| {
        let waited = number(cause, "ns") / 1e6;
        Bar {
            name: format!("{place}: {}", name(cause, "meanwhile")),
            low: waited,
            middle: waited,
            high: waited,
        }
    });
    (!causes.is_empty()).then(|| Figure {
        id: "slow".to_owned(),
        title: "Why waits took long".to_owned(),
        text: "What the holder of the lock did while other threads waited long for it, by the places where \
               they waited. Share is that of the slow waits at the place."
            .to_owned(),
        command: part.command.clone(),
        chart: Some(Chart::Bars {
            unit: "milliseconds that threads waited, in all".to_owned(),
            alike: true,
            bars: bars.collect(),
        }),
        columns: vec!["waited in", "meanwhile", "share %", "waited ms", "locked in"],
        rows: causes
            .iter()
            .map(|(place, cause)| {
                vec![
                    json!(place),
                    cause["meanwhile"].clone(),
                    json!((100.0 * number(cause, "share")).round()),
                    json!((number(cause, "ns") / 1e4).round() / 100.0),
                    match &cause["held_at"] {
                        Value::Null => Value::Null,
                        held => json!(place_name(held)),
                    },
                ]
            })
            .collect(),
    })
}

fn profile(part: &Results) -> Figure {
    let place = |row: &Value| {
        let places = row["places"].as_array().map_or(&[][..], Vec::as_slice);
        let shown = places.iter().take(2).map(place_name).join(", ");
        json!(match places.len() {
            0..=2 => shown,
            several => format!("{shown} and {} more", several - 2),
        })
    };
    let locks = rows(part, "mutexes").iter().chain(rows(part, "rwlocks"));
    let heat = |row: &&Value| ["waited_ns", "acquisitions"].map(|count| row[count].as_u64());
    let locks: Vec<&Value> = locks
        .sorted_by_key(|row| Reverse(heat(row)))
        .take(10)
        .collect();
    let kind = |row: &Value| match row.get("reads") {
        None => "mutex",
        Some(_) => "rwlock",
    };
    let bars = locks.iter().map(|row| {
        let waited = number(row, "waited_ns") / 1e6;
        Bar {
            name: place(row).as_str().unwrap_or_default().to_owned(),
            low: waited,
            middle: waited,
            high: waited,
        }
    });
    let bars: Vec<Bar> = bars.filter(|bar| bar.middle > 0.0).collect();
    Figure {
        id: "hot".to_owned(),
        title: "The program's mutexes and rwlocks".to_owned(),
        text: format!(
            "The ten locks that threads waited for the longest, by the places where they are locked. {}",
            name(&part.json["advice"], "text")
        ),
        command: part.command.clone(),
        chart: (!bars.is_empty()).then(|| Chart::Bars {
            unit: "milliseconds that threads waited, in all".to_owned(),
            alike: true,
            bars,
        }),
        columns: vec![
            "locked in",
            "kind",
            "threads",
            "locked",
            "contended %",
            "waited ms",
            "held ns on average",
        ],
        rows: locks
            .iter()
            .map(|row| {
                let locked = number(row, "acquisitions").max(1.0);
                vec![
                    place(row),
                    json!(kind(row)),
                    row["threads"].clone(),
                    row["acquisitions"].clone(),
                    json!((1000.0 * number(row, "contended") / locked).round() / 10.0),
                    json!((number(row, "waited_ns") / 1e6).round()),
                    json!((number(row, "held_ns") / locked).round()),
                ]
            })
            .collect(),
    }
}

fn compare(part: &Results) -> Figure {
    let locks = rows(part, "locks");
    let interval = |row: &Value, at: usize| row["ratio"]["interval"][at].as_f64();
    let bars = locks.iter().filter_map(|row| {
        let middle = row["ratio"]["median"].as_f64()?;
        Some(Bar {
            name: name(row, "lock"),
            low: interval(row, 0).unwrap_or(middle),
            middle,
            high: interval(row, 1).unwrap_or(middle),
        })
    });
    let better = if part.json["lower_is_better"] == true {
        "lower"
    } else {
        "higher"
    };
    Figure {
        id: "compare".to_owned(),
        title: "The program with other locks".to_owned(),
        text: format!(
            "{}, divided by that with glibc in the same round; {better} is better. Bars are 95 % \
             intervals. {}",
            name(&part.json, "measure"),
            name(&part.json, "verdict")
        ),
        command: part.command.clone(),
        chart: Some(Chart::Intervals {
            unit: "of glibc".to_owned(),
            bars: bars.collect(),
        }),
        columns: vec!["lock", "value", "of glibc", "verdict", "failed"],
        rows: locks
            .iter()
            .map(|row| {
                vec![
                    row["lock"].clone(),
                    row["value"]["median"].clone(),
                    row["ratio"]["median"].clone(),
                    row["beside_glibc"].clone(),
                    row["failed"].clone(),
                ]
            })
            .collect(),
    }
}

/// What `lockworks kernel torture` found: one lock, or several.
fn locktorture(part: &Results) -> Vec<Figure> {
    let locks = one_or_more(part);
    let bars = locks.iter().filter_map(|row| {
        let rounds = row["rounds"].as_array().into_iter().flatten();
        let rounds: Vec<f64> = rounds.map(|round| number(round, "operations")).collect();
        Some(Bar {
            name: name(row, "lock"),
            low: rounds.iter().copied().reduce(f64::min)?,
            middle: row["operations"].as_f64()?,
            high: rounds.iter().copied().reduce(f64::max)?,
        })
    });
    let columns = ["lock", "operations", "fairness", "fail", "verdict"];
    vec![Figure {
        id: "locktorture".to_owned(),
        title: format!(
            "locktorture in a guest, Linux {}, {} CPUs",
            name(&locks[0], "version"),
            locks[0]["cpus"]
        ),
        text: "Acquisitions in a round: the median; lines show the lowest and the highest round. \
               Emulation has no NUMA cost, so compare the locks of one guest only."
            .to_owned(),
        command: part.command.clone(),
        chart: Some(Chart::Bars {
            unit: "acquisitions in a round".to_owned(),
            alike: false,
            bars: bars.collect(),
        }),
        columns: columns.to_vec(),
        rows: locks
            .iter()
            .map(|row| columns.map(|key| row[key].clone()).into())
            .collect(),
    }]
}

/// What `lockworks kernel compare` found: a figure for each workload.
fn guests(part: &Results) -> Vec<Figure> {
    let all = rows(part, "rows");
    let workloads = all.iter().map(|row| name(row, "workload")).unique();
    let columns = ["mode", "rate", "min", "max", "unit", "missing"];
    workloads
        .map(|workload| {
            let own = all
                .iter()
                .filter(|row| row["workload"] == workload.as_str());
            let bars = own.clone().filter_map(|row| {
                let middle = row["ratio"]["median"].as_f64()?;
                Some(Bar {
                    name: name(row, "mode"),
                    low: row["ratio"]["min"].as_f64().unwrap_or(middle),
                    middle,
                    high: row["ratio"]["max"].as_f64().unwrap_or(middle),
                })
            });
            Figure {
                id: "guests".to_owned(),
                title: format!(
                    "{workload}, {} virtual CPUs on {}",
                    part.json["guest_cpus"], part.json["cpus"]
                ),
                text: format!(
                    "The rate divided by that of {} in the same round: the median; lines show the \
                     lowest and the highest.",
                    name(&part.json, "reference")
                ),
                command: part.command.clone(),
                chart: Some(Chart::Intervals {
                    unit: format!("of {}", name(&part.json, "reference")),
                    bars: bars.collect(),
                }),
                columns: columns.to_vec(),
                rows: own
                    .map(|row| columns.map(|key| row[key].clone()).into())
                    .collect(),
            }
        })
        .collect()
}
