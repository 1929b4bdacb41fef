//! Plans, their results and their store.

mod planned;

use std::fs;
use std::path::Path;
use std::str::from_utf8;

use anyhow::{Error, Result};
use clap::{Arg, Parser};
use lockworks_sweep::{SweepArgs, SweepReport};
use lockworks_ui::usage;
use planned::{SMALL, Sweep};
use serde_json::Value;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: SweepArgs,
}

impl Sweep {
    /// The report of a sweep with these arguments. A word with a dot is a file of the directory.
    fn report(&self, words: &[&str]) -> Result<SweepReport> {
        let word = |word: &&str| match word.contains('.') {
            true => self.path(word).into_os_string(),
            false => word.into(),
        };
        let words = ["sweep".into()].into_iter().chain(words.iter().map(word));
        let command = Command::try_parse_from(words);
        let command = command.map_err(|error| Error::msg(usage::in_one_line(&error)))?;
        let check = clap::Command::new("check").arg(Arg::new("keep").long("keep"));
        let lockworks = clap::Command::new("lockworks").subcommand(check);
        command.args.report(&lockworks)
    }

    /// Runs the plan, no point of which fails.
    #[track_caller]
    fn summary(&self, more: &[&str]) -> SweepReport {
        let report = self.report(&[&["plan.toml"], more].concat()).unwrap();
        assert_eq!(report.failed, 0, "{}", report.failures());
        report
    }

    /// The arguments must be refused in one line that has these words.
    #[track_caller]
    fn assert_refused(&self, args: &[&str], words: &[&str]) {
        let refused = format!("{:#}", self.report(args).err().expect("it is refused"));
        for word in words {
            assert!(refused.contains(word), "no {word:?} in {refused:?}");
        }
        assert_eq!(refused.lines().count(), 1, "{refused:?}");
    }
}

/// Output as text.
fn text(bytes: &[u8]) -> &str {
    from_utf8(bytes).expect("UTF-8")
}

fn counts(report: &SweepReport) -> [usize; 4] {
    [report.points, report.stored, report.run, report.failed]
}

#[test]
fn nothing_runs_twice_and_a_plan_can_be_extended() {
    let sweep = Sweep::new(SMALL);
    let intent = sweep.summary(&["--dry-run"]).intent(false);
    let store = sweep.path("plan.results.jsonl");
    let store = store.display();
    assert_eq!(intent, format!("8 points: 0 in {store}, 8 to run\n"));
    assert!(!sweep.path("plan.results.jsonl").exists());
    assert_eq!(counts(&sweep.summary(&[])), [8, 0, 8, 0]);
    assert_eq!(
        counts(&sweep.summary(&["--output", "one.csv"])),
        [8, 8, 0, 0]
    );

    sweep.write(
        "plan.toml",
        &SMALL.replace("seeds = 1\n", "seeds = \"1..3\"\n"),
    );
    assert_eq!(counts(&sweep.summary(&["--dry-run"])), [16, 8, 8, 0]);
    assert_eq!(counts(&sweep.summary(&["--jobs", "1"])), [16, 8, 8, 0]);
    assert_eq!(
        counts(&sweep.summary(&["--output", "two.csv"])),
        [16, 16, 0, 0]
    );

    // The same points in a store of their own have the same results.
    let fresh = ["--store", "fresh.jsonl", "--output", "fresh.csv"];
    assert_eq!(counts(&sweep.summary(&fresh)), [16, 0, 16, 0]);
    assert_eq!(text(&sweep.read("two.csv")), text(&sweep.read("fresh.csv")));
}

#[test]
fn a_store_is_put_together_from_those_of_parts() {
    let sweep = Sweep::new(SMALL);
    let parts = [
        ("1/3", "one.jsonl"),
        ("2/3", "two.jsonl"),
        ("3/3", "three.jsonl"),
    ];
    let stores = parts.map(|(part, store)| {
        let summary = sweep.summary(&["--part", part, "--store", store]);
        assert_eq!(summary.stored, 0);
        sweep.read(store)
    });
    sweep.write("plan.results.jsonl", text(&stores.concat()));
    assert_eq!(
        counts(&sweep.summary(&["--output", "here.csv"])),
        [8, 8, 0, 0]
    );
    sweep.summary(&["--store", "other.jsonl", "--output", "there.csv"]);
    assert_eq!(
        text(&sweep.read("here.csv")),
        text(&sweep.read("there.csv"))
    );
    for part in ["0/3", "4/3", "1", "x/2"] {
        sweep.assert_refused(&["plan.toml", "--part", part], &["give K/N"]);
    }
}

#[test]
fn a_result_that_was_cut_short_is_run_again() {
    let sweep = Sweep::new(SMALL);
    sweep.summary(&["--jobs", "1"]);
    let store = sweep.read("plan.results.jsonl");
    sweep.write("plan.results.jsonl", text(&store[..store.len() - 10]));
    assert_eq!(counts(&sweep.summary(&["--dry-run"])), [8, 7, 1, 0]);
    assert_eq!(counts(&sweep.summary(&[])), [8, 7, 1, 0]);
    assert_eq!(text(&sweep.read("plan.results.jsonl")).lines().count(), 8);
}

#[test]
fn a_check_that_ends_at_a_limit_is_a_failure_until_the_limit_is_raised() {
    let plan = "[[sweep]]\nkind = \"check\"\nlocks = \"cna\"\nthreads = 3\nmemory_limit = 1\n";
    let sweep = Sweep::new(plan);
    let failures = sweep.report(&["plan.toml"]).unwrap().failures();
    assert!(failures.contains("not complete: "), "{failures}");
    assert!(failures.contains("--memory-limit 1"), "{failures}");
    sweep.write(
        "plan.toml",
        &plan.replace("memory_limit = 1", "memory_limit = 2000"),
    );
    assert_eq!(counts(&sweep.summary(&["--retry"])), [1, 0, 1, 0]);
}

/// The rows of a CSV file.
fn csv_rows(bytes: &[u8]) -> Vec<csv::StringRecord> {
    csv::Reader::from_reader(bytes)
        .into_records()
        .collect::<Result<_, _>>()
        .expect("CSV")
}

#[test]
fn both_formats_have_the_same_columns_and_rows() {
    let sweep = Sweep::new(SMALL);
    for file in ["results.csv", "results.json"] {
        sweep.summary(&["--output", file]);
    }
    let rows: Value = serde_json::from_slice(&sweep.read("results.json")).unwrap();
    let rows = rows.as_array().expect("a list");
    let names: Vec<&String> = rows[0].as_object().expect("an object").keys().collect();
    for name in [
        "kind",
        "machine",
        "lock",
        "threads",
        "operations_per_second",
        "states",
        "error",
    ] {
        assert!(
            names.iter().any(|known| *known == name),
            "no {name} in {names:?}"
        );
    }

    let bytes = sweep.read("results.csv");
    let header = csv::Reader::from_reader(bytes.as_slice())
        .headers()
        .unwrap()
        .clone();
    assert_eq!(header.iter().collect::<Vec<_>>(), names);

    let mut count = 0;
    for (row, record) in rows.iter().zip(csv_rows(&bytes)) {
        for (name, cell) in names.iter().zip(&record) {
            let written = match &row[name.as_str()] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            assert_eq!(cell, written, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 8);
}

#[test]
fn mistakes_in_a_plan_are_named_with_their_line() {
    for (plan, words) in [
        (
            "[[sweep]]\nlokcs = \"cna\"\n",
            &["plan.toml:2: ", "unknown key `lokcs`", "`locks`"][..],
        ),
        ("[[sweeps]]\n", &["plan.toml:1: ", "did you mean `sweep`?"]),
        (
            "[[sweep]]\n\nlocks = [\"cna\",\n\"qspinlok\"]\n",
            &["plan.toml:4: ", "'qspinlock'?"],
        ),
        (
            "[[sweep]]\nmachines = \"oracle-x5\"\n",
            &["plan.toml:2: ", "'oracle-x5-4'?"],
        ),
        (
            "[[sweep]]\nworkloads = \"locktortur\"\n",
            &["plan.toml:2: ", "'locktorture-"],
        ),
        (
            "[[sweep]]\nworkloads = \"./none.toml\"\n",
            &["plan.toml:2: ", "none.toml: cannot read"],
        ),
        (
            "[[sweep]]\nkind = \"checks\"\n",
            &["plan.toml:2: ", "\"sim\" or \"check\""],
        ),
        (
            "[[sweep]]\nacquisitions = 2\n",
            &["plan.toml:2: ", "unknown key `acquisitions`"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nthreads = 65\n",
            &["plan.toml:3: ", "65 threads"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nlocks = \"mc\"\n",
            &["plan.toml:3: ", "'mcs'?"],
        ),
        (
            "[[sweep]]\nthreads = \"8..1\"\n",
            &["plan.toml:2: ", "\"1..8\""],
        ),
        (
            "[[sweep]]\nthreads = [0]\n",
            &["plan.toml:2: ", "no threads to run"],
        ),
        (
            "[[sweep]]\nthreads = []\n",
            &["plan.toml:2: ", "the list is empty"],
        ),
        (
            "[[sweep]]\ncpus = 1000\n",
            &["plan.toml:2: ", "ask for 1 to 144"],
        ),
        ("[[sweep]]\nms = 0\n", &["plan.toml:2: ", "0.01"]),
        (
            "[[sweep]]\nseeds = -1\n",
            &["plan.toml:2: ", "not negative"],
        ),
        (
            "[[sweep]]\nplacements = \"here\"\n",
            &["plan.toml:2: ", "scatter"],
        ),
        (
            "[[sweep]]\ntune.mutex_spinn = 1\n",
            &["plan.toml:2: ", "'mutex_spin'?"],
        ),
        (
            "[[sweep]]\nset.machine.rmw_cycle = 3\n",
            &["plan.toml:2: ", "rmw_cycles"],
        ),
        (
            "[[sweep]]\nset.machine.rmw_cycles = -1\n",
            &["plan.toml:2: ", "not negative"],
        ),
        (
            "[[sweep]]\nseeds = \"1..900000\"\n",
            &["plan.toml:", "more than 1000000 points"],
        ),
        // A default that does not fit is at the table that has it.
        (
            "[[sweep]]\nthreads = 1\n\n[[sweep]]\nvcpus = 2\nguests = 4000\n",
            &["plan.toml:6: ", "8000 threads are too many"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nkeep = \"search\"\n",
            &[
                "plan.toml:3: ",
                "`keep` does not say what a point is; remove it",
                "`lockworks check`",
            ],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nseeds = 3\n",
            &["plan.toml:3: ", "--random <N>"],
        ),
        (
            "[[sweep]]\nkind = \"check\"\nseconds = [1, 2]\n",
            &["plan.toml:3: ", "--seconds is a limit", "give one value"],
        ),
        ("[[sweep]]\nkind = 3\n", &["plan.toml:2: ", "\"check\""]),
        ("[sweep]\n", &["plan.toml:1: ", "[[sweep]]"]),
        ("# empty\n", &["plan.toml:1: ", "no points"]),
    ] {
        let sweep = Sweep::new(plan);
        sweep.assert_refused(&["plan.toml"], words);
    }
    let sweep = Sweep::new(SMALL);
    sweep.assert_refused(&["none.toml"], &["cannot read the plan ", "none.toml"]);
    sweep.assert_refused(&[], &["PLAN"]);
    let words = ["results.txt", ".csv or .json"];
    sweep.assert_refused(&["plan.toml", "--output", "results.txt"], &words);
    let words = ["cannot write ", "none/results.csv"];
    sweep.assert_refused(&["plan.toml", "--output", "none/results.csv"], &words);
}

#[test]
fn files_that_are_no_stores_are_refused() {
    let sweep = Sweep::new(SMALL);
    for other in ["a text that is no store", "[[sweep]]\n", "{\"key\":1}\n"] {
        sweep.write("other.jsonl", other);
        let words = ["other.jsonl:1: no result of a sweep", "--store"];
        sweep.assert_refused(&["plan.toml", "--store", "other.jsonl"], &words);
        assert_eq!(text(&sweep.read("other.jsonl")), other);
    }
}

#[test]
fn a_store_of_100000_results_is_opened() {
    let plan = "[[sweep]]\nlocks = \"cna\"\nthreads = 4\nms = 0.01\nseeds = 2\n";
    let sweep = Sweep::new(plan);
    sweep.summary(&[]);
    let store = sweep.read("plan.results.jsonl");
    let of_seed_2 = text(&store);
    let result: Value = serde_json::from_str(of_seed_2).expect("JSON");
    let version = result["version"].as_str().expect("a version");
    let key = |seed: usize| {
        let point = of_seed_2.find("\"kind\"").expect("a point");
        let end = of_seed_2.find(",\"result\"").expect("a result");
        let point = of_seed_2[point..end].replace("\"seed\":2", &format!("\"seed\":{seed}"));
        let depends_on = format!("[\"{version}\",{{{point}}}]");
        format!(
            "{:032x}",
            xxhash_rust::xxh3::xxh3_128(depends_on.as_bytes())
        )
    };
    let of_2 = key(2);
    assert_eq!(result["key"], of_2.as_str());
    let lines = (2..100_002).map(|seed| of_seed_2.replace(&of_2, &key(seed)));
    sweep.write("plan.results.jsonl", &lines.collect::<String>());
    sweep.write("plan.toml", &plan.replace("= 2\n", "= \"2..100001\"\n"));
    assert_eq!(
        counts(&sweep.summary(&["--dry-run"])),
        [100_000, 100_000, 0, 0]
    );
}

#[test]
fn results_depend_on_all_crates_of_simulator_and_checker() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let hashed = fs::read_to_string(crates.join("sweep/build.rs")).expect("a file");
    for name in ["sim", "check", "lockworks", "machine", "measurements"] {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a file");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        let tables = ["dependencies", "build-dependencies"].map(|key| manifest.get(key));
        let used = tables.into_iter().flatten().filter_map(|t| t.as_table());
        let used = used.flat_map(|table| table.keys());
        let used = used.filter_map(|key| match key.as_str() {
            "lockworks" => Some("lockworks"),
            other => other.strip_prefix("lockworks-"),
        });
        for used in used.chain([name]) {
            let source = format!("\"crates/{used}/src\"");
            assert!(hashed.contains(&source), "build.rs does not hash {source}");
        }
    }
}
