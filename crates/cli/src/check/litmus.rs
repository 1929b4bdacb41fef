//! `lockworks check litmus`: runs the litmus tests of the checker, and judges litmus files.

mod files;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Result, bail};
use lockworks_check::{Litmus, Memory, litmus_tests};
use serde::Serialize;

use lockworks_names::command_line as names;
use lockworks_ui::output;

/// Check the checker with litmus tests, or judge litmus files by a memory model.
#[derive(clap::Args)]
#[command(after_help = "\
A built-in test lists the outcomes that each memory model allows. It fails if the search finds others, \
or misses one.

Files are judged by the axioms of the models, as by herd7. A file fails if a comment documents \
another result: `Result: Never`, or `Result: Never (arm: Sometimes)`. The exit status is 1 if a test \
fails, and 2 if a file is refused, in one line.

Examples:
  lockworks check litmus            all built-in tests
  lockworks check litmus sb iriw    those with sb or iriw in their names
  lockworks check litmus tools/memory-model/litmus-tests/*.litmus
  lockworks check litmus --memory lkmm,arm --show mine.litmus
  lockworks check litmus --memory c11,lkmm --search mine.litmus")]
pub struct LitmusArgs {
    /// Run only tests whose name contains one of these [default: all tests]; or judge these files,
    /// whose names end in .litmus
    #[arg(value_name = "NAME|FILE")]
    names: Vec<String>,
    /// Judge files by these memory models: lkmm (the Linux kernel's), lkmm-6.2 (the same up to Linux
    /// 6.2), arm (Armv8), riscv, tso (x86), c11 or sc [default: lkmm; c11 for a file with functions of <stdatomic.h>]
    #[arg(
        short,
        long,
        value_name = "MODEL",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    memory: Vec<Memory>,
    /// Also compile the files, and explore all their runs as those of a lock; the exit status is 1 if
    /// that finds other final states
    #[arg(long)]
    search: bool,
    /// Show, for each file, an execution for which its condition holds
    #[arg(long)]
    show: bool,
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
    let is_file = |name: &&String| name.ends_with(".litmus");
    match args.names.iter().find(is_file) {
        Some(file) => {
            if let Some(name) = args.names.iter().find(|name| !is_file(name)) {
                bail!(
                    "'{name}' is not a .litmus file, and {file} is; give only files or only names"
                );
            }
            let how = files::How {
                models: &args.memory,
                search: args.search,
                show: args.show,
            };
            return files::command(&args.names, &how, args.json);
        }
        None if !args.memory.is_empty() || args.search || args.show => {
            bail!(
                "--memory, --search and --show are for files that end in .litmus, and none is given"
            );
        }
        None => {}
    }
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
