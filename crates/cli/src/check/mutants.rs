//! `lockworks check mutants`: does the checker catch deliberate mistakes?

use std::process::ExitCode;

use anyhow::{Result, ensure};
use lockworks_check::mutants::{self, DIRECTORY, Mutant, Mutants, Verdict};
use serde::Serialize;

use crate::output;
use crate::progress;

/// Check mutants, that is, locks with one deliberate mistake each, and report which are caught.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lockworks check mutants              all
  lockworks check mutants --lock cna   those of cna")]
pub struct MutantsArgs {
    /// Check mutants of these locks only [default: all locks]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct MutantRow {
    lock: String,
    mutant: String,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Serialize)]
struct MutantResults {
    mutants: usize,
    caught: usize,
    equivalent: usize,
    beyond: usize,
    /// Not caught without a listed reason, or caught against it.
    survived: usize,
    rows: Vec<MutantRow>,
}

impl MutantResults {
    fn new(mutants: &[&Mutant], verdicts: Vec<Verdict>) -> Self {
        let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|v| is(v)).count();
        Self {
            mutants: verdicts.len(),
            caught: count(|v| matches!(v, Verdict::Caught { .. }) && !v.is_unexpected()),
            equivalent: count(|v| matches!(v, Verdict::Equivalent { .. })),
            beyond: count(|v| matches!(v, Verdict::Beyond { .. })),
            survived: count(Verdict::is_unexpected),
            rows: mutants
                .iter()
                .zip(verdicts)
                .map(|(mutant, verdict)| MutantRow {
                    lock: mutant.lock.clone(),
                    mutant: mutant.to_string(),
                    verdict,
                })
                .collect(),
        }
    }

    fn table(&self) -> String {
        let mut table =
            output::table(&["lock", "mistake", "verdict", "steps", "where, or why not"]);
        for row in &self.rows {
            let (verdict, steps, place) = match &row.verdict {
                Verdict::Caught {
                    configuration,
                    violation,
                    steps,
                    against,
                } => {
                    let place = match against {
                        Some(reason) => format!("{configuration}, though listed: {reason}"),
                        None => configuration.clone(),
                    };
                    (violation.as_str(), steps.to_string(), place)
                }
                Verdict::Equivalent { reason } => ("equivalent", String::new(), reason.clone()),
                Verdict::Beyond { needs } => ("out of reach", String::new(), needs.clone()),
                Verdict::Survived { unreached } => {
                    let place = if *unreached {
                        "no configuration reaches it"
                    } else {
                        ""
                    };
                    ("NOT CAUGHT", String::new(), place.to_owned())
                }
            };
            table.add_row([&row.lock, &row.mutant, verdict, &steps, &place]);
        }
        format!(
            "{table}\n{} mutants: {} caught, {} equivalent, {} out of reach, {} unexpected\n",
            self.mutants, self.caught, self.equivalent, self.beyond, self.survived
        )
    }
}

/// Runs the command.
pub fn command(args: &MutantsArgs) -> Result<ExitCode> {
    let list = Mutants::all()?;
    for lock in &args.lock {
        let known: Vec<&str> = list.configurations.keys().map(String::as_str).collect();
        ensure!(
            known.contains(&lock.as_str()),
            "lock '{lock}' has no mutants; write {DIRECTORY}/{lock}.toml, or choose from {}",
            known.join(", ")
        );
    }
    let wanted: Vec<&Mutant> = list
        .mutants
        .iter()
        .filter(|mutant| args.lock.is_empty() || args.lock.contains(&mutant.lock))
        .collect();
    let bar = progress::bar(wanted.len(), "{bar:30} {pos}/{len} mutants, {elapsed}");
    let verdicts = mutants::run(&wanted, &|mutant, _| {
        tracing::debug!(lock = mutant.lock, %mutant, "checked");
        bar.inc(1);
    });
    bar.finish_and_clear();
    let results = MutantResults::new(&wanted, verdicts);
    if args.json {
        output::print(&output::json(&results)?)?;
    } else {
        output::print(&results.table())?;
    }
    Ok(match results.survived {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
