//! The figures of the page, from the JSON of the commands. A figure always has a table, which is its
//! data; most have a chart too.

use anyhow::Result;
use itertools::Itertools;
use serde::Serialize;
use serde_json::{Value, json};

use super::step::Evidence;

/// A figure.
#[derive(Serialize)]
pub struct Figure {
    /// Names the figure in links and files.
    pub id: &'static str,
    title: String,
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
    /// Column, row, share.
    cells: Vec<(usize, usize, f64)>,
}

#[derive(Serialize)]
struct Bar {
    name: String,
    low: f64,
    middle: f64,
    high: f64,
}

impl Figure {
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

fn rows<'a>(part: &'a Evidence, key: &str) -> &'a [Value] {
    part.json[key].as_array().map_or(&[], Vec::as_slice)
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
pub fn of(part: &Evidence) -> Vec<Figure> {
    if part.json.is_null() {
        return Vec::new();
    }
    match part.name {
        "measured" => measured(part),
        "validated" => vec![validated(part)],
        "predicted" => predicted(part),
        "published" => vec![published(part)],
        "checked" => vec![checked(part)],
        "profile" => vec![profile(part)],
        "compare" => vec![compare(part)],
        _ => Vec::new(),
    }
}

fn measured(part: &Evidence) -> Vec<Figure> {
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
                  chart,
                  columns: Vec<&'static str>,
                  keys: fn(&Value) -> Vec<Value>| Figure {
        id,
        title: title.to_owned(),
        text,
        command: part.command.clone(),
        chart: Some(chart),
        columns,
        rows: all.iter().map(keys).collect(),
    };
    vec![
        figure(
            "throughput",
            "Throughput, measured here",
            format!(
                "Threads take one lock in a loop and increment two counters, on {} CPUs and {} NUMA \
                 node(s). Median of {} rounds; bars show the lowest and the highest round.",
                machine["cpus"], machine["nodes"], part.json["rounds"]
            ),
            Chart::Lines {
                y: "operations a second".to_owned(),
                log: true,
                series: throughput,
            },
            vec!["lock", "threads", "operations a second", "lowest", "highest"],
            |row| {
                ["lock", "threads", "operations_per_second", "operations_per_second_min", "operations_per_second_max"]
                    .map(|key| row[key].clone())
                    .into()
            },
        ),
        figure(
            "fairness",
            "Fairness, measured here",
            "The share of all operations that the busier half of the threads made: 0.5 is strictly \
             fair, 1 totally unfair. The same runs."
                .to_owned(),
            Chart::Lines {
                y: "fairness factor".to_owned(),
                log: false,
                series: fairness,
            },
            vec!["lock", "threads", "fairness factor"],
            |row| ["lock", "threads", "fairness"].map(|key| row[key].clone()).into(),
        ),
        figure(
            "waits",
            "Long waits, measured here",
            "One wait in a thousand is longer than this. The same runs.".to_owned(),
            Chart::Lines {
                y: "wait in ns, 99.9th percentile".to_owned(),
                log: true,
                series: waits,
            },
            vec!["lock", "threads", "median ns", "99.9th percentile ns", "longest ns"],
            |row| {
                let wait = |key: &str| row["latency_ns"][key].clone();
                vec![row["lock"].clone(), row["threads"].clone(), wait("p50"), wait("p999"), wait("max")]
            },
        ),
    ]
}

fn validated(part: &Evidence) -> Figure {
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
        id: "validated",
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
const SHARE: usize = 7;

fn predicted(part: &Evidence) -> Vec<Figure> {
    let cells: Vec<&Vec<String>> = part.csv.iter().skip(1).collect();
    let column = |cell: &[String]| match cell[CPUS].as_str() {
        "" => cell[THREADS].clone(),
        cpus => format!("{} on {cpus}", cell[THREADS]),
    };
    let order = |cell: &[String]| {
        let number = |at: usize| cell[at].parse::<usize>().unwrap_or(0);
        (number(CPUS), number(THREADS))
    };
    let columns: Vec<String> = cells
        .iter()
        .map(|cell| (order(cell), column(cell)))
        .sorted()
        .dedup()
        .map(|(_, column)| column)
        .collect();
    let several = cells.iter().map(|cell| &cell[MACHINE]).unique().count() > 1;
    let row = |cell: &[String]| match several {
        true => format!("{} {}", short(&cell[MACHINE]), cell[WORKLOAD]),
        false => cell[WORKLOAD].clone(),
    };
    let workloads: Vec<String> = cells.iter().map(|cell| row(cell)).unique().collect();
    let locks = cells.iter().map(|cell| cell[LOCK].clone()).unique();
    let place = |list: &[String], what: &str| list.iter().position(|one| one == what);
    let panels = locks.map(|lock| {
        let own = cells.iter().filter(|cell| cell[LOCK] == lock);
        let cell = |cell: &&Vec<String>| {
            let share = cell[SHARE].parse().ok()?;
            Some((
                place(&columns, &column(cell))?,
                place(&workloads, &row(cell))?,
                share,
            ))
        };
        Panel {
            cells: own.filter_map(cell).collect(),
            name: lock,
        }
    });
    let mut figures = vec![Figure {
        id: "regret",
        title: "How far from the best lock, predicted".to_owned(),
        text: "Throughput divided by that of the best fair lock, for each workload and number of \
               threads; 'on 8' means that the threads share 8 CPUs. 1 is the best. Choose a lock."
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
            id: "predicted",
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

fn published(part: &Evidence) -> Figure {
    let all = rows(part, "rows");
    let of = |key: &'static str, what: &'static str| {
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
            (format!("{}, {what}", name(row, "column")), point)
        })
    };
    Figure {
        id: "published",
        title: "A published table beside its simulation".to_owned(),
        text: format!(
            "{} on {}. {}. Mean error {:.1} % on {}. `lockworks reproduce all` compares all tables.",
            name(&part.json, "title"),
            name(&part.json["rows"][0], "machine"),
            name(&part.json, "source"),
            number(&part.json, "judged_error_percent"),
            name(&part.json, "judged_on").replace('_', " "),
        ),
        command: part.command.clone(),
        chart: Some(Chart::Lines {
            y: name(&part.json, "unit"),
            log: false,
            series: series(of("published", "published").chain(of("simulated", "simulated"))),
        }),
        columns: vec!["column", "threads", "published", "simulated", "error %"],
        rows: all
            .iter()
            .map(|row| {
                [
                    "column",
                    "threads",
                    "published",
                    "simulated",
                    "error_percent",
                ]
                .map(|key| row[key].clone())
                .into()
            })
            .collect(),
    }
}

fn checked(part: &Evidence) -> Figure {
    let keys = [
        "lock",
        "threads",
        "acquisitions",
        "memory",
        "states",
        "complete",
        "violations",
        "seconds",
    ];
    Figure {
        id: "checked",
        title: "Checked while this page was made".to_owned(),
        text:
            "The model checker went through every interleaving and every reordering of this small \
               case. `lockworks check mutants` shows that it finds mistakes."
                .to_owned(),
        command: part.command.clone(),
        chart: None,
        columns: keys.to_vec(),
        rows: vec![keys.map(|key| part.json[key].clone()).into()],
    }
}

fn profile(part: &Evidence) -> Figure {
    let place = |row: &Value| {
        let places = row["places"].as_array().map_or(&[][..], Vec::as_slice);
        let one = |place: &Value| {
            let module = name(place, "module");
            let module = module.rsplit('/').next().unwrap_or_default().to_owned();
            match (place["function"].as_str(), place["line"].as_str()) {
                (Some(function), Some(line)) => format!("{function} ({line})"),
                (Some(function), None) => function.to_owned(),
                _ => format!("{module}+{:#x}", place["offset"].as_u64().unwrap_or(0)),
            }
        };
        let shown = places.iter().take(2).map(one).join(", ");
        json!(match places.len() {
            0..=2 => shown,
            several => format!("{shown} and {} more", several - 2),
        })
    };
    let mutexes = rows(part, "mutexes").iter().take(10);
    Figure {
        id: "hot",
        title: "The program's mutexes".to_owned(),
        text: format!(
            "The ten mutexes that threads waited for the longest, by the places where they are locked. {}",
            name(&part.json["advice"], "text")
        ),
        command: part.command.clone(),
        chart: None,
        columns: vec![
            "locked in",
            "threads",
            "locked",
            "contended %",
            "waited ms",
            "held ns on average",
        ],
        rows: mutexes
            .map(|row| {
                let locked = number(row, "acquisitions").max(1.0);
                vec![
                    place(row),
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

fn compare(part: &Evidence) -> Figure {
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
        id: "compare",
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
