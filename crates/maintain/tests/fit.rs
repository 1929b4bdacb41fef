//! Tests of `lockworks-maintain fit`.

use std::process::Output;

use crate::support::{assert_refused, output, text};

#[test]
fn an_unknown_table_has_a_nearest_one() {
    let args = ["fit", "cna_leveldb", "--points", "1", "--value", "x=1..2"];
    let words = ["did you mean", "cna_leveldb_readrandom"];
    assert_refused(&output(&args), &words);
}

#[test]
fn options_have_bounds() {
    let fit = |point, value| {
        output(&[
            "fit",
            "cna_locktorture",
            "--points",
            point,
            "--value",
            value,
        ])
    };
    assert_refused(&fit("4,3", "machine.rmw_cycles=1..2"), &["row for 3"]);
    assert_refused(&fit("4,4", "machine.rmw_cycles=1..2"), &["once"]);
    let all = "1,2,4,8,16,32,36,72,108,142";
    let words = ["no row of cna_locktorture", "judge the fit"];
    assert_refused(&fit(all, "machine.rmw_cycles=1..2"), &words);
    for bad in ["rmw=2..1", "rmw=1", "rmw=1,1", "rmw=1,x", "rmw="] {
        assert_refused(&fit("4", bad), &["KEY=LOW..HIGH"]);
    }
}

#[test]
fn a_fit_stays_within_its_bounds() {
    let fit = output(&[
        "fit",
        "cna_locktorture",
        "--points",
        "4",
        "--value",
        "machine.rmw_cycles=30..40",
        "--evaluations",
        "5",
        "--ms",
        "0.1",
    ]);
    assert_eq!(fit.status.code(), Some(0), "{}", text(&fit.stderr));
    let fit: toml::Table = text(&fit.stdout).parse().unwrap();
    let value = &fit["value"][0];
    assert_eq!(value["key"].as_str(), Some("machine.rmw_cycles"));
    let fitted = value["value"].as_float().unwrap();
    // The machine's own value, from which a fit could begin, is below.
    assert!((30.0..=40.0).contains(&fitted), "{fitted}");
}

#[test]
fn a_fit_over_lists_tries_every_combination() {
    let fit = |values: &[&str]| {
        let tables = [
            "hq_memcached_epyc9654_nps4_percent",
            "hq_memcached_kunpeng920_percent",
        ];
        let how = ["--points", "80,256", "--ms", "0.5"];
        output(&[&["fit"], &tables[..], &how, values].concat())
    };
    let objective = |fit: &Output| -> f64 {
        let line = text(&fit.stdout).lines().nth(1).expect("the objective");
        let words: Vec<&str> = line.split(' ').collect();
        words[2].parse().unwrap()
    };
    let critical = |values: &str| format!("workload.mutex_critical_ns={values}");
    let request = |values: &str| format!("workload.request_ns={values}");

    let both = fit(&[
        "--value",
        &critical("300,9000"),
        "--value",
        &request("10000,50000"),
    ]);
    let best: toml::Table = text(&both.stdout).parse().unwrap();
    let best = |at: usize| best["value"][at]["value"].as_float().unwrap();
    let mut least = f64::INFINITY;
    for a in ["300", "9000"] {
        for b in ["10000", "50000"] {
            let set = [
                critical(&format!("{a},{a}.001")),
                request(&format!("{b},{b}.001")),
            ];
            let one = objective(&fit(&["--value", &set[0], "--value", &set[1]]));
            let number = |text: &str| text.parse::<f64>().unwrap();
            let chosen = (best(0), best(1)) == (number(a), number(b));
            assert_eq!(one == objective(&both), chosen, "{a} and {b}: {one}");
            least = least.min(one);
        }
    }
    assert_eq!(objective(&both), least);

    let mixed = fit(&[
        "--value",
        &critical("300,9000"),
        "--value",
        &request("1..2"),
    ]);
    assert_refused(&mixed, &["lists for all"]);
}
