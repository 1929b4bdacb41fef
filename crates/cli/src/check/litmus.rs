//! `lockworks check litmus`: runs the litmus tests of the checker.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use lockworks_check::{Litmus, Memory, litmus_tests};
use serde::Serialize;

use crate::{names, output};

/// Check the checker itself with litmus tests: small programs whose possible outcomes are known.
#[derive(clap::Args)]
#[command(after_help = "\
Each test lists exactly the outcomes that C11's memory model allows without load buffering. A test \
fails if the checker finds an outcome that is not listed, or misses an outcome that is listed. The \
exit status is 1 if a test fails.

Examples:
  lockworks check litmus            all
  lockworks check litmus sb iriw    those with sb or iriw in their names
  lockworks check litmus --json     all, for programs")]
pub struct LitmusArgs {
    /// Run only tests whose name contains one of these [default: all tests]
    names: Vec<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct LitmusRow {
    name: &'static str,
    summary: &'static str,
    memory: Memory,
    expected: BTreeSet<String>,
    seen: BTreeSet<String>,
    states: usize,
    agrees: bool,
}

impl LitmusRow {
    fn of(test: Litmus, memory: Memory) -> Self {
        let result = test.run(memory);
        Self {
            name: test.name(),
            summary: test.summary(),
            memory,
            agrees: result.agrees(),
            expected: result.expected,
            seen: result.seen,
            states: result.states,
        }
    }

    fn verdict(&self) -> String {
        if self.agrees {
            return "as expected".to_owned();
        }
        let list = |what: &str, some: &BTreeSet<String>, others: &BTreeSet<String>| {
            let only: Vec<_> = some.difference(others).map(String::as_str).collect();
            (!only.is_empty()).then(|| format!("{what} {}", only.join(" ")))
        };
        let differences = [
            list("missing", &self.expected, &self.seen),
            list("unexpected", &self.seen, &self.expected),
        ];
        let differences: Vec<String> = differences.into_iter().flatten().collect();
        format!("FAILED: {}", differences.join("; "))
    }
}

/// Runs the command.
pub fn command(args: &LitmusArgs) -> Result<ExitCode> {
    if let Some(name) = args
        .names
        .iter()
        .find(|name| !litmus_tests().any(|test| test.name().contains(*name)))
    {
        let all = litmus_tests().map(|test| test.name());
        return Err(names::unknown("litmus test", name, all));
    }
    let rows: Vec<LitmusRow> = litmus_tests()
        .filter(|test| {
            args.names.is_empty() || args.names.iter().any(|name| test.name().contains(name))
        })
        .flat_map(|test| Memory::ALL.map(|memory| LitmusRow::of(test, memory)))
        .collect();
    let text = if args.json {
        output::json(&rows)?
    } else {
        table(&rows)
    };
    output::print(&text)?;
    Ok(match rows.iter().all(|row| row.agrees) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

fn table(rows: &[LitmusRow]) -> String {
    let mut table = output::table(&["test", "memory", "outcomes", "states", "verdict", "what"]);
    for row in rows {
        table.add_row([
            row.name.to_owned(),
            row.memory.to_string(),
            outcomes(&row.seen),
            row.states.to_string(),
            row.verdict(),
            row.summary.to_owned(),
        ]);
    }
    let failed = rows.iter().filter(|row| !row.agrees).count();
    format!("{table}\n\n{} searches, {failed} failed\n", rows.len())
}

/// The outcomes if they are few, else their number.
fn outcomes(seen: &BTreeSet<String>) -> String {
    const FEW: usize = 4;
    match seen.len() {
        0 => "it ends".to_owned(),
        1..=FEW => seen
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        many => format!("{many} outcomes"),
    }
}
