//! `lockworks report` from outside. How the page looks is tested in tests/report, in a browser.

use std::fs;
use std::path::Path;

use crate::support::{assert_fails, assert_refused, lockworks, output, text};
use serde_json::Value;

/// A machine of 4 CPUs.
const SMALL: &str = include_str!("../../../tests/report/small.toml");

/// The contents of the page.
fn contents(page: &Path) -> Value {
    let page = fs::read_to_string(page).expect("a page");
    let begin = "<script id=\"data\" type=\"application/json\">";
    let (_, after) = page.split_once(begin).expect("data");
    let (json, _) = after.split_once("</script>").expect("an end");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn a_machine_gets_a_page_with_its_data() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("small.toml"), SMALL).unwrap();
    let args = [
        "report",
        "--machine",
        "./small.toml",
        "-o",
        "page.html",
        "--data",
        "data",
        "--quick",
    ];
    let output = lockworks(&args).current_dir(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout).replace('\n', " ");
    assert!(
        said.contains("If you take one lock, take ") && said.contains("page.html"),
        "{said}"
    );

    let page = contents(&at("page.html"));
    assert!(
        said.contains(page["answer"]["what"].as_str().unwrap()),
        "{said}"
    );
    assert_eq!(page["answer"]["failures"], Value::Array(Vec::new()));
    let figures = page["figures"].as_array().unwrap();
    let ids: Vec<_> = figures
        .iter()
        .map(|figure| figure["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "regret",
            "predicted",
            "checked",
            "published-cna-locktorture"
        ]
    );
    for figure in figures {
        let command = figure["command"].as_str().unwrap();
        assert!(
            command.starts_with("lockworks ") && !command.contains("/tmp"),
            "{command}"
        );
        let rows = figure["rows"].as_array().unwrap();
        let csv =
            fs::read_to_string(at("data").join(format!("{}.csv", figure["id"].as_str().unwrap())));
        assert_eq!(csv.unwrap().lines().count(), rows.len() + 1, "{command}");
    }
    // Every cell of every lock: five workloads, and 1, 2 and 4 threads.
    let panels = figures[0]["chart"]["panels"].as_array().unwrap();
    for panel in panels {
        assert_eq!(panel["cells"].as_array().unwrap().len(), 15, "{panel}");
    }
    assert!(at("data").join("predicted.json").exists());
    assert!(fs::metadata(at("page.html")).unwrap().len() < 3 << 20);
}

#[test]
fn a_program_that_fails_is_said_so_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let path = page.to_str().unwrap();
    let failed = output(&["report", "-o", path, "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let page = contents(&page);
    assert!(
        !page["answer"]["failures"].as_array().unwrap().is_empty(),
        "{page}"
    );
}

#[test]
fn bad_input_leaves_no_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let path = page.to_str().unwrap();
    for (args, said) in [
        (&["-o", "page.pdf"][..], "give a name that ends in .html"),
        (
            &["-o", "/nowhere/page.html"],
            "cannot write /nowhere/page.html",
        ),
        (&["-o", path, "--machine", "epyc"], "did you mean"),
        (
            &["-o", path, "--data", "/proc/data"],
            "cannot create /proc/data",
        ),
    ] {
        assert_refused(&output(&[&["report"], args].concat()), &[said]);
    }
    let missing = output(&["report", "-o", path, "--", "./no-such-program"]);
    assert_fails(&missing, 127, &["'./no-such-program' not found"]);
    assert!(!page.exists());
}

#[test]
fn pictures_are_drawn_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("locks.svg");
    let path = picture.to_str().unwrap();
    let short = ["--lock", "cna,qspinlock", "--threads", "1,4"];
    let sim = ["sim", "--ms", "0.5", "--seeds", "2", "--plot", path];
    assert_eq!(output(&[&sim[..], &short].concat()).status.code(), Some(0));
    let svg = fs::read_to_string(&picture).unwrap();
    assert!(
        svg.contains(">cna<")
            && svg.contains("Simulated throughput, locktorture-old on oracle-x5-4"),
        "{svg}"
    );
    let torture = [
        "torture",
        "--seconds",
        "0.01",
        "--rounds",
        "1",
        "--plot",
        path,
    ];
    assert_eq!(
        output(&[&torture[..], &short].concat()).status.code(),
        Some(0)
    );
    let svg = fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("Throughput, measured here"), "{svg}");
    let page = directory.path().join("table.html");
    let table = ["reproduce", "mutex_slowpath_time_percent", "--ms", "0.5"];
    let plot = ["--plot", page.to_str().unwrap()];
    assert_eq!(output(&[&table[..], &plot].concat()).status.code(), Some(0));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Published and simulated: mutex_slowpath_time_percent"));
    let refused = output(&["sim", "--plot", "locks.png"]);
    assert_refused(&refused, &["give a name that ends in .svg"]);
}
