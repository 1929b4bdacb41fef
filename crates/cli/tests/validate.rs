//! `lockworks machines validate` from outside.

use crate::support::{assert_refused, json, output, text};

fn validate(more: &[&str]) -> std::process::Output {
    let short = [
        "machines",
        "validate",
        "--seconds",
        "0.02",
        "--rounds",
        "2",
        "--ms",
        "1",
    ];
    output(&[&short[..], more].concat())
}

#[test]
fn every_lock_is_measured_and_predicted_and_past_the_cpus_those_that_park() {
    let output = validate(&["--lock", "tas,mcs,mutex,pthread_mutex", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    let cpus = report["machine"]["cpus"].as_u64().expect("a number");
    let cells = report["cells"].as_array().expect("cells");
    for cell in cells {
        let number = |key: &str| cell[key].as_f64().expect("a number");
        assert!(
            number("measured") > 0.0 && number("predicted") > 0.0,
            "{cell}"
        );
        let error = 100.0 * (number("predicted") / number("measured") - 1.0);
        assert!((number("error_percent") - error).abs() < 0.01, "{cell}");
        let parks = ["mutex", "pthread_mutex"]
            .iter()
            .any(|lock| cell["lock"] == *lock);
        assert_eq!(cell["parks"], parks, "{cell}");
        let outnumber = cell["threads"].as_u64() > Some(cpus);
        assert_eq!(cell["oversubscribed"], outnumber, "{cell}");
        assert!(parks || !outnumber, "{cell}");
        assert_eq!(
            cell["fitted"],
            cell["lock"] == "tas" && cell["threads"] == 1
        );
    }
    for threads in [1, cpus, 2 * cpus, 4 * cpus, 8 * cpus, 32 * cpus] {
        assert!(
            cells.iter().any(|cell| cell["threads"] == threads),
            "{threads}"
        );
    }
    // The cell on which the loop is fitted is predicted as it was measured a moment before.
    let errors = report["errors"].as_array().expect("errors");
    let counted: u64 = errors.iter().filter_map(|of| of["number"].as_u64()).sum();
    assert_eq!(counted as usize, cells.len() - 1);
    let values = report["values"].as_array().expect("values");
    let loop_ns = values
        .iter()
        .find(|value| value["key"] == "workload.loop_ns");
    assert!(
        loop_ns.is_some_and(|value| value["value"] == report["loop_ns"]),
        "{values:?}"
    );
    assert!(
        values
            .iter()
            .any(|value| value["key"] == "model.wake_latency_ns" && value["mark"] == "E")
    );
}

#[test]
fn bad_input_is_refused_before_anything_is_measured() {
    for (args, said) in [
        (["--lock", "mutx"], "did you mean 'mutex'?"),
        (["--lock", "parking_lot"], "unknown lock 'parking_lot'"),
        (["--machine", "epyc-9654-nps4"], "describes 384 CPUs"),
        (["--machine", "./nothing.toml"], "nothing.toml"),
    ] {
        assert_refused(&validate(&args), &[said]);
    }
}
