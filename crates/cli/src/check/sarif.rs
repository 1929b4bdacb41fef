//! Broken promises in SARIF, the format in which forges take the results of checkers.

use std::path::Path;

use lockworks_check::{Site, TraceStep, loaded_source};
use serde_json::{Value, json};

use super::report::CheckReport;

/// A file of the format with the results of all checks. It has no result if no promise is broken.
pub fn log(reports: &[CheckReport]) -> Value {
    let results: Vec<Value> = reports.iter().filter_map(result).collect();
    let mut names: Vec<&str> = reports
        .iter()
        .filter_map(|report| Some(report.counterexample.as_ref()?.broken.violation.name()))
        .collect();
    names.sort_unstable();
    names.dedup();
    let rules: Vec<Value> = names
        .iter()
        .map(|name| json!({"id": name, "shortDescription": {"text": name.replace('_', " ")}}))
        .collect();
    let cut: Vec<Value> = reports
        .iter()
        .filter(|report| report.is_cut())
        .filter_map(|report| report.failure())
        .map(|text| json!({"level": "warning", "message": {"text": text}}))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "lockworks",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": cut.is_empty(),
                "toolExecutionNotifications": cut,
            }],
            "results": results,
        }],
    })
}

/// The broken promise of a check: at the operations of which a stronger order would keep it, or else at the
/// last operation of lock code.
fn result(report: &CheckReport) -> Option<Value> {
    let found = report.counterexample.as_ref()?;
    let mut text = format!("{}: {}", report.config(), found.broken.violation);
    let mut places: Vec<Value> = Vec::new();
    for remedy in &report.stronger {
        places.push(place(remedy.path, remedy.line));
        text += &format!(
            ". {}:{} with {} would do",
            remedy.file, remedy.line, remedy.order
        );
    }
    let steps: Vec<(&TraceStep, &Site)> = found
        .trace
        .iter()
        .filter_map(|step| Some((step, site(step)?)))
        .collect();
    if places.is_empty()
        && let Some((_, site)) = steps.last()
    {
        places.push(place(site.path(), site.line));
    }
    let threads = steps.iter().map(|(step, _)| step.thread).max().unwrap_or(0);
    let flows: Vec<Value> = (0..=threads)
        .map(|thread| {
            let own = found.trace.iter().enumerate().filter_map(|(i, step)| {
                let site = site(step).filter(|_| step.thread == thread)?;
                let text = format!("{} {}: {}", step.operation, step.order, step.effect);
                let mut location = place(site.path(), site.line);
                location["message"] = json!({"text": text});
                Some(json!({"location": location, "executionOrder": i + 1}))
            });
            json!({"id": format!("thread {thread}"), "locations": own.collect::<Vec<_>>()})
        })
        .filter(|flow| {
            flow["locations"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        })
        .collect();
    let (first, others) = places.split_first()?;
    let others: Vec<Value> = others
        .iter()
        .enumerate()
        .map(|(id, place)| {
            let mut place = place.clone();
            place["id"] = json!(id);
            place
        })
        .collect();
    Some(json!({
        "ruleId": found.broken.violation.name(),
        "level": "error",
        "message": {"text": format!("{text}\n{}", found.replay())},
        "locations": [first],
        "relatedLocations": others,
        "codeFlows": [{"threadFlows": flows}],
    }))
}

/// The operation of a step, if it is one of lock code.
fn site(step: &TraceStep) -> Option<&'static Site> {
    let (file, line) = step.place.rsplit_once(':')?;
    let is_it = |site: &&Site| site.file() == file && site.line.to_string() == line;
    let mut sites = Site::all().iter().rev();
    sites.find(is_it).filter(|site| site.file() != "client.c")
}

fn place(path: &str, line: u32) -> Value {
    json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(path)},
        "region": {"startLine": line},
    }})
}

/// A file as its repository has it: the source as it was named, and headers of the locks by their directory.
fn uri(path: &str) -> String {
    let name = Path::new(path).file_name();
    if let Some(source) = loaded_source().filter(|source| source.file_name() == name) {
        let here = std::env::current_dir().unwrap_or_default();
        let source = source.strip_prefix(&here).unwrap_or(source);
        return source.display().to_string();
    }
    match path.rfind("locks/") {
        Some(at) => path[at..].to_owned(),
        None => path.trim_start_matches('/').to_owned(),
    }
}
