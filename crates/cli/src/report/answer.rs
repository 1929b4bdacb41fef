//! The answer: which lock to take, and how sure that is.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use super::step::Evidence;
use crate::plot::page::Heading;

/// The answer that this evidence gives.
pub fn of(evidence: &[Evidence], machine: Option<&str>, program: &[OsString]) -> Heading {
    let json = |name: &str| {
        let part = evidence.iter().find(|part| part.results.kind == name);
        part.map_or(&Value::Null, |part| &part.results.json)
    };
    let failures = evidence
        .iter()
        .filter_map(|part| {
            Some(format!(
                "{}: {}",
                part.results.command,
                part.failure.as_ref()?
            ))
        })
        .collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (title, (what, how_sure, lock)) = if !program.is_empty() {
        let name = Path::new(&program[0]).file_name().unwrap_or(&program[0]);
        let name = name.to_string_lossy();
        (
            format!("Which lock for {name}?"),
            for_program(json("compare")),
        )
    } else if let Some(machine) = machine {
        let how_sure = format!(
            "This is predicted: nothing was measured on {machine}. {}",
            "`lockworks reproduce all` shows how far predictions of published tables are off, and \
             `lockworks validate` those for the machine it runs on."
        );
        let answer = text(&json("predicted")["answer"]);
        let lock = recommended(&answer);
        (
            format!("Which lock on {machine}?"),
            (answer, how_sure, lock),
        )
    } else {
        let measured = json("measured");
        let title = format!(
            "Which lock on {} CPUs ({})?",
            measured["machine"]["cpus"],
            measured["machine"]["model"]
                .as_str()
                .unwrap_or("this machine")
        );
        (title, here(measured, json("validated")))
    };
    Heading {
        title,
        what,
        how_sure,
        lock,
        failures,
    }
}

/// The lock that `lockworks regret` recommends.
fn recommended(answer: &str) -> String {
    let after = answer
        .split_once("take one lock, take ")
        .map(|(_, after)| after);
    let name = after.and_then(|after| after.split(':').next());
    name.unwrap_or("mutex").to_owned()
}

/// For a program: what `lockworks compare` found.
fn for_program(compared: &Value) -> (String, String, String) {
    let Some(verdict) = compared["verdict"].as_str() else {
        let failed = "The comparison failed, so no lock can be named.".to_owned();
        return (failed, String::new(), String::new());
    };
    let best = compared["best"].as_str();
    let verdict = match best {
        Some(_) => verdict.to_owned(),
        None => format!("Keep glibc's mutex. {verdict}"),
    };
    let lock = best.unwrap_or("glibc").to_owned();
    let how_sure = format!(
        "Each lock ran {} times, in turns; a difference counts if its 95 % interval excludes 1.",
        compared["rounds_made"].as_u64().unwrap_or(0)
    );
    (verdict, how_sure, lock)
}

/// The locks whose waiters park, so that programs can take them whatever their threads.
const PARKING: [&str; 4] = ["mutex", "pv", "unfair", "pthread_mutex"];

/// For this machine: the parking lock that is nearest to the best one over all numbers of threads.
fn here(measured: &Value, validated: &Value) -> (String, String, String) {
    let none = Vec::new();
    let rows = measured["rows"].as_array().unwrap_or(&none);
    let rate = |lock: &str, threads: u64, key: &str| {
        let row = rows
            .iter()
            .find(|row| row["lock"] == lock && row["threads"] == threads)?;
        row[key].as_f64()
    };
    let of_lock = |lock: &str| {
        rows.iter()
            .filter(|row| row["lock"] == lock)
            .filter_map(|row| row["threads"].as_u64())
            .collect::<Vec<_>>()
    };
    let threads = of_lock(PARKING[0]);
    let key = "operations_per_second";
    let share = |lock: &str| {
        let shares = threads.iter().filter_map(|&n| {
            let best = PARKING
                .iter()
                .filter_map(|other| rate(other, n, key))
                .reduce(f64::max)?;
            Some((rate(lock, n, key)? / best).ln())
        });
        let shares: Vec<f64> = shares.collect();
        (shares.iter().sum::<f64>() / shares.len().max(1) as f64).exp()
    };
    let best = PARKING
        .iter()
        .max_by(|a, b| share(a).total_cmp(&share(b)))
        .expect("four locks");
    let Some(&most) = threads.last() else {
        let none = "Nothing could be measured.".to_owned();
        return (none, "Not at all.".to_owned(), "mutex".to_owned());
    };
    let ratio = |n: u64| Some(rate(best, n, key)? / rate("pthread_mutex", n, key)?);
    let times = |n: u64| ratio(n).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let apart = (|| {
        let low = rate(best, most, "operations_per_second_min")?;
        Some(low > rate("pthread_mutex", most, "operations_per_second_max")?)
    })();
    let what = format!(
        "Take {best}: with 1 to {most} threads it makes {:.0} % of what the best lock for programs makes \
         here, in geometric mean, and with {most} threads {} times what pthread_mutex makes (with one \
         thread {}).",
        100.0 * share(best),
        times(most),
        times(1),
    );
    let how_sure = format!(
        "Measured on two counters under one lock; the ranges of {} rounds {} with {most} threads. {}",
        measured["rounds"],
        if apart == Some(true) {
            "do not overlap"
        } else {
            "overlap"
        },
        validated["here"].as_str().unwrap_or_default(),
    );
    (what, how_sure, (*best).to_owned())
}
