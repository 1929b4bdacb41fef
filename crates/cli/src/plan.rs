//! `lockworks plan`: a lock for each hot mutex of a program, chosen by replay and confirmed by comparison.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, Result};
use itertools::Itertools;
use lockworks_preload::compare::CompareArgs;
use lockworks_profile::recording::RecordArgs;
use lockworks_programs::children::in_words;
use lockworks_ui::figures::percent;
use lockworks_ui::interruption;
use lockworks_ui::output;
use lockworks_ui::table::Table;
use lockworks_ui::terminal::{self, prose};
use serde_json::json;

use crate::options;
use crate::replay::Opened;
use crate::replay::choice::Choices;

/// Choose a lock for each hot mutex of a program, and leave the others to glibc
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct PlanArgs {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "lockworks.plan")]
    output: PathBuf,

    /// Seconds to record [default: all]
    #[arg(long, value_name = "S")]
    window: Option<String>,

    /// Seconds of the program before the recording begins
    #[arg(long, value_name = "S")]
    after: Option<String>,

    /// Rounds of the comparison
    #[arg(short, long, value_name = "N", default_value = "9")]
    rounds: String,

    /// Compare a figure that the program prints, not its time: see `lockworks compare`
    #[arg(long, value_name = "REGEX")]
    metric: Option<String>,

    /// A lower figure is better
    #[arg(long, requires = "metric")]
    lower_is_better: bool,

    /// Go on even if the replay of the recording as it was is off
    #[arg(long)]
    anyway: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
The program is recorded, as `lockworks record` does. Its hot mutexes, by the variable that they are or the call that \
initialises them, get mutex, pv or unfair in a replay, one after the other; each keeps the one that is best, if that earns \
2 % or more. All others stay with glibc. Then the program runs in turns with the plan and with glibc, as `lockworks \
compare` does. Only if it is better with the plan, beyond the noise, the plan is written.

docs/reference/plans.md describes the file. `lockworks run --plan FILE` and LOCKWORKS_PLAN=FILE obey it.

Exit status: 0 if a plan is written, or nothing is to be gained; 1 if the replay is not to be believed, or the program \
fails.

Examples:
  lockworks plan -o server.plan -- ./server --threads 8
  lockworks plan --metric '([0-9]+) operations' -- ./bench
  lockworks run --plan server.plan -- ./server --threads 8";

impl PlanArgs {
    /// The options of a command about the program, from these words.
    fn about<Options: clap::Args>(&self, mut words: Vec<OsString>) -> Result<Options> {
        words.push("--".into());
        words.extend(self.command.iter().cloned());
        options::parse(words)
    }
}

/// An option with its value, if there is one.
fn option(name: &str, value: &Option<String>) -> impl Iterator<Item = OsString> {
    value
        .iter()
        .flat_map(move |value| [name.into(), value.into()])
}

/// Runs the command.
pub fn command(args: &PlanArgs) -> Result<ExitCode> {
    output::check_file(&args.output)?;
    let directory = tempfile::tempdir().context("cannot create a directory for data")?;
    interruption::removes(directory.path());
    let [recorded, file] = ["recording.lw", "plan"].map(|name| directory.path().join(name));
    let mut words: Vec<OsString> = vec!["record".into(), "-o".into(), recorded.clone().into()];
    words.extend(option("--window", &args.window));
    words.extend(option("--after", &args.after));
    let record: RecordArgs = args.about(words)?;
    let mut words: Vec<OsString> = vec!["compare".into(), "--plan".into(), file.clone().into()];
    words.extend(["--rounds".into(), args.rounds.clone().into()]);
    words.extend(option("--metric", &args.metric));
    words.extend(args.lower_is_better.then(|| "--lower-is-better".into()));
    let compare: CompareArgs = args.about(words)?;
    let (_, status, _) = record.record(true)?;
    if !status.success() {
        let status = in_words(status);
        eprintln!("lockworks: the program ended with {status} while it was recorded");
        return Ok(ExitCode::FAILURE);
    }
    let opened = Opened::of(&recorded, None, None)?;
    let (check, recording) = opened.before()?;
    if !opened.is_believable() && !args.anyway {
        show(args, &check, &json!({ "recording": recording }))?;
        eprintln!(
            "lockworks: the replay is not to be believed, so it chooses no locks; --anyway lets it"
        );
        return Ok(ExitCode::FAILURE);
    }
    let choices = opened.choose()?;
    let text = format!("{check}{}", table(&choices));
    let chosen = choices.lines.iter().filter(|choice| choice.earns > 1.0);
    if chosen.count() == 0 {
        let text =
            format!("{text}Nothing is written: no lock is predicted to earn 2 %. Keep glibc's.\n");
        let json = json!({ "recording": recording, "choices": choices, "written": null });
        show(args, &text, &json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = choices.plan().to_string();
    fs::write(&file, &plan)?;
    let (program, library, comparison) = compare.prepare()?;
    let results = Mutex::new(comparison);
    compare.compare(&program, &library, &results)?;
    let results = results.into_inner().expect("nobody panicked with it");
    let report = results.report();
    let is_better = report.best.is_some();
    if is_better {
        output::write_file(&args.output, plan.as_bytes())?;
    }
    let end = match is_better {
        true => format!("Written: {}", args.output.display()),
        false => "Nothing is written. Keep glibc's mutexes.".to_owned(),
    };
    let text = format!("{text}{}\n{end}\n", report.table().trim_end());
    let json = json!({
        "recording": recording,
        "choices": choices,
        "compared": report,
        "written": is_better.then(|| args.output.display().to_string()),
    });
    show(args, &text, &json)?;
    for failure in results.failures() {
        eprintln!("lockworks: {failure}");
    }
    Ok(ExitCode::from(u8::from(
        results.failures().next().is_some(),
    )))
}

fn show(args: &PlanArgs, text: &str, json: &serde_json::Value) -> Result<()> {
    output::print(&match args.json {
        true => output::json(json)?,
        false => text.to_owned(),
    })
}

/// The choices as a table.
fn table(choices: &Choices) -> String {
    let nameless = match choices.nameless {
        share if share > 0.01 => format!(
            "Threads waited for {} of their time for locks that a plan cannot name: no build-id, or no place.\n",
            percent(share)
        ),
        _ => String::new(),
    };
    if choices.lines.is_empty() {
        return prose(&format!("{nameless}No lock is hot enough for a line.\n"));
    }
    let mut table = Table::new(&["locks of", "number", "waits", "lock", "earns", "tried"]);
    for choice in &choices.lines {
        let tried = choice.tried.iter();
        let tried = tried.map(|(lock, ratio)| format!("{lock} {ratio:.2}"));
        table.add_row([
            terminal::printable(&choice.line.comment).to_string(),
            choice.locks.to_string(),
            percent(choice.waited),
            choice.line.lock.clone(),
            match choice.earns {
                ratio if ratio > 1.0 => format!("{:+.0} %", 100.0 * (ratio - 1.0)),
                _ => "-".to_owned(),
            },
            tried.format(", ").to_string(),
        ]);
    }
    format!("{}\n{}", table.trim_fmt(), prose(&nameless))
}
