//! `lockworks report`: which lock to take, with the evidence, as one HTML file. The evidence is what
//! other subcommands print with `--json`; each runs as a process of its own.

mod answer;
mod step;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use lockworks_machine::Machine;

use self::step::{Evidence, Step};
use crate::output;
use crate::plot::figure::{self, Figure};
use crate::plot::page;
use crate::program::Program;
use crate::progress;
use crate::terminal::prose;

/// Which lock should I use? Measure, predict, and write the answer and its evidence as a web page
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct ReportArgs {
    /// The page to write: one file, which needs no network
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Answer for this machine instead of the one that this runs on: one of `lockworks machines`, or
    /// a file that describes one. Nothing is measured then
    #[arg(short, long, value_name = "NAME|PATH", conflicts_with = "program")]
    machine: Option<String>,

    /// Simulate one published table only, and make one small check: minutes less
    #[arg(long)]
    quick: bool,

    /// Also write what the page shows to the directory DIR: a CSV of each figure, and the JSON of
    /// each command
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Answer for this program, with its arguments: it runs some thirty times
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// A machine of four sockets, which shows what changes on bigger ones.
const BIGGER: &str = "oracle-x5-4";

const HELP: &str = "\
The page begins with the answer in two sentences. Below are the figures, each with the command that \
made it and its data to download. It has light and dark colours, and can be printed.

Without options it takes about two minutes, with --quick half as long: it measures locks and the \
machine, predicts the same and compares, checks locks, and simulates published tables. With a machine it simulates five workloads on it, with one \
thread to all CPUs. With a program it finds the program's hot mutexes, and runs it with other locks.

Examples:
  lockworks report --quick
  lockworks report --machine epyc-9654-nps4 -o epyc.html --data epyc
  lockworks report -o server.html -- ./server --threads 8";

/// Runs the command.
pub fn command(args: &ReportArgs) -> Result<ExitCode> {
    output::check_file(&args.output)?;
    ensure!(
        args.output.extension().is_some_and(|end| end == "html"),
        "'{}' is no HTML file; give a name that ends in .html",
        args.output.display()
    );
    if let Some(machine) = &args.machine {
        Machine::find(machine)?;
    }
    if !args.program.is_empty() {
        Program::find(&args.program)?;
    }
    if let Some(directory) = &args.data {
        fs::create_dir_all(directory).with_context(|| {
            format!(
                "cannot create {}; name another with --data",
                directory.display()
            )
        })?;
    }

    let directory = tempfile::tempdir().context("cannot create a directory for data")?;
    let steps = args.steps(directory.path());
    let bar = progress::bar(
        steps.len(),
        "{msg} [{wide_bar}] {pos}/{len} parts, {elapsed}",
    );
    let mut evidence = Vec::new();
    for step in &steps {
        show(&bar, step);
        evidence.push(step.run(directory.path())?);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let figures: Vec<Figure> = evidence
        .iter()
        .flat_map(|part| figure::of(&part.results))
        .collect();
    let answer = answer::of(&evidence, args.machine.as_deref(), &args.program);
    output::write_file(&args.output, page::html(&answer, &figures)?.as_bytes())?;
    if let Some(directory) = &args.data {
        write_data(directory, &evidence, &figures)?;
    }
    output::print(&prose(&format!(
        "{}\n{}\nWritten: {}\n",
        answer.what,
        answer.how_sure,
        args.output.display()
    )))?;
    let mut failed = evidence
        .iter()
        .filter_map(|part| Some((part, part.failure.as_ref()?)));
    for (part, failure) in failed.by_ref() {
        eprintln!("lockworks: {}: {failure}", part.results.command);
    }
    let whole = evidence.iter().all(|part| part.failure.is_none());
    Ok(ExitCode::from(u8::from(!whole)))
}

fn show(bar: &ProgressBar, step: &Step) {
    bar.set_message(step.what);
    bar.tick();
    tracing::info!(part = step.what, "begins");
}

fn write_data(directory: &Path, evidence: &[Evidence], figures: &[Figure]) -> Result<()> {
    for part in evidence {
        match &part.text {
            Some(text) => output::write_file(&directory.join(part.results.kind), text.as_bytes())?,
            None => {
                let file = directory.join(format!("{}.json", part.results.kind));
                output::write_file(&file, output::json(&part.results.json)?.as_bytes())?;
            }
        }
    }
    for figure in figures {
        output::write_file(
            &directory.join(format!("{}.csv", figure.id)),
            &figure.csv()?,
        )?;
    }
    Ok(())
}

impl ReportArgs {
    /// The commands whose results are the evidence.
    fn steps(&self, directory: &Path) -> Vec<Step> {
        if !self.program.is_empty() {
            return vec![
                Step::new("profile", "finding hot mutexes", &["profile"]).with(&self.program),
                Step::new(
                    "compare",
                    "running the program with other locks",
                    &["compare", "--lock", "mutex,pv,unfair", "--rounds", "7"],
                )
                .with(&self.program),
            ];
        }
        let table = match self.quick {
            true => "cna_locktorture",
            false => "all",
        };
        let published = Step::new(
            "published",
            "simulating published tables",
            &["reproduce", table],
        );
        let check: &[&str] = match self.quick {
            true => &["check", "--lock", "mutex"],
            false => &[
                "check",
                "--quick",
                "--lock",
                "mutex,qspinlock,cna,hq,pv,unfair",
            ],
        };
        let checked = Step::new("checked", "checking", check);
        if let Some(machine) = &self.machine {
            return vec![Step::regret(machine, "5"), checked, published];
        }
        let here = directory.join("here.toml");
        let here = here.to_str().unwrap_or("here.toml");
        let locks = "pthread_mutex,mutex,pv,unfair,hq,cna,qspinlock,tas";
        vec![
            Step::text("here.toml", "measuring this machine", &["machines", "this"]),
            Step::new(
                "measured",
                "measuring locks",
                &[
                    "torture",
                    "--lock",
                    locks,
                    "--seconds",
                    "0.15",
                    "--rounds",
                    "5",
                ],
            ),
            Step::new(
                "validated",
                "predicting what was measured",
                &[
                    "validate",
                    "--machine",
                    here,
                    "--lock",
                    locks,
                    "--seconds",
                    "0.1",
                    "--ms",
                    "10",
                ],
            ),
            Step::regret(&format!("{here},{BIGGER}"), "5"),
            checked,
            published,
        ]
    }
}
