//! `lockworks check mutants`: does the checker catch deliberate mistakes?

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use itertools::Itertools;
use lockworks_check::load_source;
use lockworks_check::mutants::{self, Mutant, Mutants, Verdict};
use serde::Serialize;

use super::options::Functions;
use lockworks_check::command_line::find_subject;
use lockworks_ui::output;
use lockworks_ui::progress;

/// Check mutants, that is, locks with one deliberate mistake each, and report which are caught.
#[derive(clap::Args)]
#[command(after_help = "\
\
The mutants of the library's locks are listed in crates/check/mutants, with the reason if one cannot \
be caught. For a lock without a list each operation is changed in turn: its memory order weakened, or \
the operation dropped. You judge those that are not caught: is the operation needed, or is the check \
too small?

Exit status: 1 if a listed mutant has another verdict than the list says.

Examples:
  lockworks check mutants               all that are listed
  lockworks check mutants --lock cna    those of cna
  lockworks check mutants --lock mine   each operation of a lock without a list
  lockworks check mutants --source spin.c")]
pub struct MutantsArgs {
    /// Check mutants of these locks only [default: all locks with a list]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// Compile the lock in FILE, as for `lockworks check`, and change each of its operations
    #[arg(long, value_name = "FILE", conflicts_with = "lock")]
    source: Option<PathBuf>,

    /// Print how many of the mutants a check of each size finds, as crates/check/sizes.toml has it
    #[arg(long, conflicts_with = "json")]
    sizes: bool,

    #[command(flatten)]
    functions: Functions,

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
    /// Not caught without a listed reason, or caught against it.
    survived: usize,
    /// Not caught, of a lock without a list: its author judges these.
    unjudged: usize,
    rows: Vec<MutantRow>,
}

impl MutantResults {
    /// The verdicts on mutants. `loaded`: the lock of a file, which has no list.
    fn new(mutants: &[&Mutant], verdicts: Vec<Verdict>, loaded: Option<&str>) -> Self {
        let is_listed = |lock: &str| Mutants::are_listed(lock) && loaded != Some(lock);
        let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|v| is(v)).count();
        let unexpected = |listed| {
            let rows = mutants.iter().zip(&verdicts);
            rows.filter(|(mutant, verdict)| {
                verdict.is_unexpected() && is_listed(&mutant.lock) == listed
            })
            .count()
        };
        Self {
            mutants: verdicts.len(),
            caught: count(|v| matches!(v, Verdict::Caught { .. }) && !v.is_unexpected()),
            equivalent: count(|v| matches!(v, Verdict::Equivalent { .. })),
            survived: unexpected(true),
            unjudged: unexpected(false),
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
        let mut text = format!(
            "{table}\n{} mutants: {} caught, {} equivalent, {} unexpected\n",
            self.mutants, self.caught, self.equivalent, self.survived
        );
        if self.unjudged > 0 {
            text += &format!(
                "{} not caught, of locks without a list: for you to judge\n",
                self.unjudged
            );
        }
        text
    }
}

/// Runs the command.
pub fn command(args: &MutantsArgs) -> Result<ExitCode> {
    let mut list = Mutants::all()?;
    let mut locks = args.lock.clone();
    let mut loaded = None;
    if let Some(source) = &args.source {
        let lock = load_source(source, &args.functions.functions)?;
        // The mutants that a list has are those of the built lock.
        list.mutants.retain(|mutant| mutant.lock != lock);
        loaded = Some(lock);
        locks.push(lock.to_owned());
    }
    for lock in &locks {
        if Mutants::are_listed(lock) && loaded != Some(lock.as_str()) {
            continue;
        }
        find_subject(lock)?;
        list.mutants.extend(Mutants::derived(lock)?.mutants);
    }
    let wanted: Vec<&Mutant> = list
        .mutants
        .iter()
        .filter(|mutant| locks.is_empty() || locks.contains(&mutant.lock))
        .collect();
    let bar = progress::bar(wanted.len(), "{bar:30} {pos}/{len} mutants, {elapsed}");
    if args.sizes {
        let of_lock = wanted
            .iter()
            .copied()
            .into_group_map_by(|mutant| mutant.lock.as_str());
        for (lock, mutants) in of_lock.into_iter().sorted_by_key(|(lock, _)| *lock) {
            let sizes = mutants::measure(lock, &mutants, &|| bar.inc(1));
            output::print(&sizes.table(lock))?;
        }
        bar.finish_and_clear();
        return Ok(ExitCode::SUCCESS);
    }
    let verdicts = mutants::run(&wanted, &|mutant, _| {
        tracing::debug!(lock = mutant.lock, %mutant, "checked");
        bar.inc(1);
    });
    bar.finish_and_clear();
    let results = MutantResults::new(&wanted, verdicts, loaded);
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
