//! Locks that are judged by the results of a store.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Error, Result};
use clap::Parser;
use lockworks_sim::command_line::SimOptions;
use lockworks_sim::comparison::{self, SimulationRow};
use lockworks_sweep::regret::{self, RegretArgs};
use lockworks_ui::usage;
use serde_json::Value;
use tempfile::TempDir;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: RegretArgs,
}

#[derive(Parser)]
struct Simulation {
    #[command(flatten)]
    options: SimOptions,
}

const SMALL: &str =
    "--machine kunpeng-920 --workload locktorture-new,open1_threads --threads 1,8,96 --ms 2";

/// Runs the command with these arguments. A file that they name is in the directory, as is the store.
fn run(directory: &TempDir, args: &str) -> Result<()> {
    let path = |name: &str| directory.path().join(name).into_os_string();
    let word = |word: &str| match word.rsplit_once('.') {
        Some((_, "csv" | "json" | "png" | "svg")) => path(word),
        _ => word.into(),
    };
    let store = ["--store".into(), path("regret.results.jsonl")];
    let own = store.into_iter().filter(|_| !args.contains("--store"));
    let words = ["regret".into()].into_iter().chain(own);
    let command = Command::try_parse_from(words.chain(args.split(' ').map(word)));
    let command = command.map_err(|error| Error::msg(usage::in_one_line(&error)))?;
    regret::command(&command.args).map(drop)
}

/// Judges locks in the small cells.
fn regret(directory: &TempDir, more: &str) -> Result<()> {
    run(directory, &format!("{SMALL} {more} --output report.json"))
}

/// The report on the small cells.
#[track_caller]
fn json(directory: &TempDir, more: &str) -> Value {
    regret(directory, &format!("{more} --json")).unwrap();
    let report = fs::read(directory.path().join("report.json")).expect("a file");
    serde_json::from_slice(&report).expect("JSON")
}

fn stored(directory: &TempDir) -> usize {
    let store = fs::read_to_string(directory.path().join("regret.results.jsonl"));
    store.map_or(0, |text| text.lines().count())
}

/// Operations a second and fairness of each lock in each cell, without a store.
fn simulated(locks: &str) -> Vec<BTreeMap<&'static str, [f64; 2]>> {
    let mut cells = Vec::new();
    for workload in ["locktorture-new", "open1_threads"] {
        let machine = format!("sim --machine kunpeng-920 --workload {workload}");
        let run = format!("{machine} --lock {locks} --threads 1,8,96 --ms 2");
        let sim = Simulation::parse_from(run.split(' '));
        let rows = comparison::run(&sim.options.plan(1).expect("a plan"), |_| {});
        let rows: Vec<_> = rows.into_iter().map(|row| row.expect("a row")).collect();
        for threads in [1, 8, 96] {
            let rows = rows.iter().filter(|row| row.threads == threads);
            let figures = |row: &SimulationRow| [row.operations_per_second, row.fairness.unwrap()];
            cells.push(rows.map(|row| (row.lock, figures(row))).collect());
        }
    }
    cells
}

#[test]
fn shares_are_those_of_the_simulations() {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = "--lock mutex,cna --against qspinlock,tas --cells 6";
    let report = json(&directory, asked);
    let cells = simulated("mutex,cna,qspinlock,tas");
    assert_eq!(report["cells"], 6);
    assert_eq!(report["locks"].as_array().map(Vec::len), Some(2));
    for verdict in report["locks"].as_array().expect("verdicts") {
        let lock = verdict["lock"].as_str().expect("a name");
        let share = |cell: &BTreeMap<&str, [f64; 2]>| {
            let fair = cell.values().filter(|[_, fairness]| *fairness <= 0.70);
            let best = fair.map(|[rate, _]| *rate).fold(0.0, f64::max);
            cell[lock][0] / best
        };
        let mut shares: Vec<f64> = cells.iter().map(share).collect();
        shares.sort_by(f64::total_cmp);
        let listed = verdict["worst"].as_array().expect("cells").iter();
        let listed: Vec<f64> = listed.map(|cell| cell["share"].as_f64().unwrap()).collect();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            listed.iter().zip(&shares).all(|(a, b)| close(*a, *b)),
            "{lock}"
        );
        let product: f64 = shares.iter().product();
        let mean = verdict["geometric_mean"].as_f64().expect("a number");
        assert!(close(mean, product.powf(1.0 / 6.0)), "{lock}: {mean}");
        let of_stock = cells
            .iter()
            .map(|cell| cell[lock][0] / cell["qspinlock"][0]);
        let worst = of_stock.fold(f64::INFINITY, f64::min);
        assert!(close(
            verdict["worst_of_stock"].as_f64().expect("a number"),
            worst
        ));
        let unfair = cells.iter().filter(|cell| cell[lock][1] > 0.70).count();
        assert_eq!(verdict["unfair_cells"], unfair);
    }
    let answer = report["answer"].as_str().expect("a text");
    assert!(answer.contains("take mutex"), "{answer}");
}

#[test]
fn one_more_lock_runs_only_that_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    regret(&directory, "--lock mutex,cna --against qspinlock").unwrap();
    assert_eq!(stored(&directory), 6 * 3);
    let three = "--lock mutex,cna,hq --against qspinlock --csv cells.csv --plot map.svg";
    regret(&directory, three).unwrap();
    let file = |name: &str| fs::read_to_string(directory.path().join(name)).expect("a file");
    assert_eq!(file("cells.csv").lines().count(), 1 + 6 * 4);
    let map = file("map.svg");
    for words in ["kunpeng-920 open1_threads", "hq", "96"] {
        assert!(map.contains(&format!(">{words}<")), "{words}");
    }
    // A square for each cell and lock, that of --against included.
    assert_eq!(map.matches("stroke=\"#ffffff\"").count(), 6 * 4);
    assert_eq!(stored(&directory), 6 * 4);
}

#[test]
fn more_threads_than_cpus_are_cells_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = "--lock mutex,unfair --against mutex --oversubscribed";
    let report = json(&directory, asked);
    assert_eq!(report["cells"], 2 * (3 + 4));
    // Threads that take turns are not asked to be fair.
    assert!(report["answer"].as_str().unwrap().contains("take mutex"));
    regret(&directory, &format!("{asked} --csv cells.csv")).unwrap();
    let cells = fs::read_to_string(directory.path().join("cells.csv")).expect("a file");
    assert!(
        cells.contains("kunpeng-920,open1_threads,128,32,unfair,"),
        "{cells}"
    );
}

#[test]
fn with_doubt_each_seed_has_a_machine_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = "--lock mutex,cna --against qspinlock --doubt --cells 6";
    let report = json(&directory, asked);
    assert_eq!(stored(&directory), 6 * 3 * 5);
    for verdict in report["locks"].as_array().expect("verdicts") {
        let range = &verdict["geometric_mean_range"];
        let [least, most] = [&range[0], &range[1]].map(|of| of.as_f64().expect("a number"));
        assert!(least < most, "{verdict}");
    }
    let answer = report["answer"].as_str().expect("a text");
    assert!(answer.contains(" of 5 sets of machines"), "{answer}");
    // Runs without doubt are others.
    regret(&directory, "--lock mutex --against qspinlock").unwrap();
    assert_eq!(stored(&directory), 6 * 3 * 5 + 6 * 2);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let small = |args: &str| format!("{SMALL} {args}");
    let refused: [(String, &[&str]); 9] = [
        (small("--lock mutx"), &["'mutx'", "mutex"]),
        (small("--against hqq"), &["'hqq'", "hq"]),
        (small("--fair 0.3"), &["0.5 to 1"]),
        (small("--seeds 0"), &["--seeds"]),
        (small("--plot map.png"), &[".svg"]),
        (
            small("--csv no/such/cells.csv"),
            &["cannot write ", "no/such/cells.csv"],
        ),
        (small("--store ."), &["--store"]),
        ("--machine kunpeng".into(), &["'kunpeng'", "kunpeng-920"]),
        (
            "--machine kunpeng-920 --workload open1".into(),
            &["'open1'", "open1_threads"],
        ),
    ];
    for (args, words) in refused {
        let refused = format!("{:#}", run(&directory, &args).expect_err("it is refused"));
        for word in words {
            assert!(refused.contains(word), "no {word:?} in {refused:?}");
        }
        assert_eq!(refused.lines().count(), 1, "{refused:?}");
    }
}
