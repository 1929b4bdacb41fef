//! `lockworks report`: which lock to take, with the evidence, as one HTML file. The evidence is what
//! other subcommands find.

mod answer;
mod evidence;
mod loads;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, ensure};
use itertools::Itertools;
use lockworks::LockType;
use lockworks_experiments::Reproduction;
use lockworks_machine::Machine;
use serde::Serialize;

use self::evidence::{Evidence, Found, Part, Prediction};
use self::loads::{LOADS, Loads};
use crate::check::options::Options as CheckOptions;
use crate::check::{self, CheckReport, CheckReports};
use crate::machines::{MachinesArgs, MachinesCommand};
use crate::plan::PlanArgs;
use crate::replay::{Opened, ReplayArgs};
use crate::reproduce::{OneTable, ReproduceArgs, Tables};
use crate::torture::TortureArgs;
use lockworks_preload::Program;
use lockworks_preload::compare::{CompareArgs, Comparison};
use lockworks_profile::ProfileArgs;
use lockworks_profile::recording::RecordArgs;
use lockworks_programs::children::in_words;
use lockworks_sim::comparison::doubled;
use lockworks_sweep::regret::{RegretArgs, RegretReport};
use lockworks_torture::{Host, TortureResults};
use lockworks_ui::interruption;
use lockworks_ui::output;
use lockworks_ui::plot::figure::Figure;
use lockworks_ui::plot::page::{self, Heading};
use lockworks_ui::progress::measure_with_progress;
use lockworks_ui::terminal::{self, prose};

/// Which lock should I use? Measure, predict, and write the answer and its evidence as a web page
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct ReportArgs {
    /// The page to write: one file, which needs no network
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// Answer for this machine instead of the one that this runs on: one of `lockworks machines`, or
    /// a file that describes one. Nothing is measured then but a program
    #[arg(short, long, value_name = "NAME|PATH")]
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

/// The locks that are measured and predicted: a choice of this page, whose legends have this order.
const LOCKS: &str = "pthread_mutex,mutex,pv,unfair,hq,cna,qspinlock,tas";

const HELP: &str = "\
The page begins with the answer in a few sentences. Below are the figures, each with the command that \
made it and its data to download. It has light and dark colours, and can be printed.

Without options it takes about two minutes, with --quick half as long: it measures locks under four \
loads and the machine, predicts the same and compares, checks locks, and simulates published tables. With a machine it simulates five workloads on it, with one \
thread to all CPUs. With a program it finds the program's hot mutexes, runs it with other locks, and replays it on the machine.

Examples:
  lockworks report --quick
  lockworks report --machine epyc-9654-nps4 -o epyc.html --data epyc
  lockworks report -o server.html --machine epyc-9654-nps4 -- ./server --threads 8";

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
    let directory = directory.path();
    interruption::removes(directory);
    let (answer, parts) = match &args.machine {
        _ if !args.program.is_empty() => args.for_program(directory)?,
        Some(machine) => args.for_machine(machine, directory)?,
        None => args.for_this_machine(directory)?,
    };
    if let Some(directory) = &args.data {
        write_data(directory, &parts)?;
    }
    let failed = |part: &Part| Some(format!("{}: {}", part.command, part.failure.as_ref()?));
    let answer = Heading {
        failures: parts.iter().filter_map(failed).collect(),
        ..answer
    };
    let figures: Vec<Figure> = parts.into_iter().flat_map(|part| part.figures).collect();
    output::write_file(&args.output, page::html(&answer, &figures)?.as_bytes())?;
    output::print(&prose(&format!(
        "{}\n{}\nWritten: {}\n",
        answer.what,
        answer.how_sure,
        args.output.display()
    )))?;
    for failure in &answer.failures {
        eprintln!("lockworks: {failure}");
    }
    Ok(ExitCode::from(u8::from(!answer.failures.is_empty())))
}

fn write_data(directory: &Path, parts: &[Part]) -> Result<()> {
    for part in parts {
        if let Some((file, text)) = &part.data {
            output::write_file(&directory.join(file), text.as_bytes())?;
        }
        for figure in &part.figures {
            let file = directory.join(format!("{}.csv", figure.id));
            output::write_file(&file, &figure.csv()?)?;
        }
    }
    Ok(())
}

/// The lock of programs that run without ours.
const GLIBC: &str = "pthread_mutex";

/// Those of the locks that park, so that programs can take them whatever their threads.
fn parking() -> impl Iterator<Item = &'static str> {
    let spins = |name| lockworks::find(name).is_some_and(LockType::spins);
    LOCKS.split(',').filter(move |name| !spins(name))
}

/// The results of a command, and why it failed in spite of them.
fn found<R: Serialize>(results: R, failure: Option<String>) -> Result<Found<R>> {
    let json = output::json(&results)?;
    Ok((results, json, failure))
}

/// The results of a replay, unless the recording cannot be replayed, or that is not to be believed.
fn replayed<R: Serialize>(
    opened: Result<Opened>,
    results: impl FnOnce(&Opened) -> Result<R>,
) -> Result<Found<Prediction<R>>> {
    let results = opened
        .map_err(|error| format!("{error:#}."))
        .and_then(|opened| match opened.refusal() {
            Some(check) => Err(check),
            None => results(&opened).map_err(|error| format!("{error:#}.")),
        });
    match results {
        Err(why) => {
            let json = output::json(&serde_json::json!({ "refused": why }))?;
            Ok((Prediction::Refused(why), json, None))
        }
        Ok(results) => {
            let (results, json, failure) = found(results, None)?;
            Ok((Prediction::Answer(results), json, failure))
        }
    }
}

impl ReportArgs {
    /// Which lock a program should take.
    fn for_program(&self, directory: &Path) -> Result<(Heading, Vec<Part>)> {
        let mut evidence = Evidence::new(directory, &self.program, 5);
        let hot = "finding hot mutexes";
        evidence.add(
            "profile.json",
            hot,
            "profile --",
            |mut args: ProfileArgs| {
                args.is_part = true;
                let (report, _, status) = args.profile()?;
                let failure =
                    (!status.success()).then(|| format!("it ended with {}", in_words(status)));
                found(report, failure)
            },
        );
        let locks = parking().filter(|&lock| lock != GLIBC).join(",");
        let command = format!("compare --lock {locks} --rounds 7 --");
        let turns = "running the program with other locks";
        let compared = evidence.add("compare.json", turns, &command, |args: CompareArgs| {
            let (program, library, comparison) = args.prepare()?;
            let results = Mutex::new(comparison);
            args.compare(&program, &library, &results)?;
            let results = results.into_inner().expect("nobody panicked with it");
            let failure = results.failures().last();
            let json = output::json(&results.report())?;
            Ok((results, json, failure))
        });
        let path = directory.join("recording.lw");
        let file = path.display().to_string();
        let file = shlex::try_quote(&file)?;
        let command = format!("record -o {file} --window 5 --");
        let recording = "recording its locks";
        // Of a program without locks there is nothing to replay, which is no failure.
        let mut refused = None;
        evidence.add("recording.json", recording, &command, |args: RecordArgs| {
            let summary = args.record(true).map(|(recording, ..)| recording.summary());
            refused = summary.as_ref().err().map(ToString::to_string);
            let json = output::json(&(summary.ok(), &refused))?;
            Ok(((), json, None))
        });
        let recorded = |opened: Result<Opened>| match &refused {
            Some(why) => Err(anyhow!(why.clone())),
            None => opened,
        };
        let choosing = "choosing a lock for each mutex";
        evidence.add("plan.json", choosing, "plan --", |_: PlanArgs| {
            replayed(recorded(Opened::of(&path, None, None)), Opened::choose)
        });
        let machine = self.machine.as_deref().unwrap_or(BIGGER);
        let cpus = Machine::find(machine)?.cpus();
        let threads = doubled(cpus).into_iter().filter(|&n| n > 1).join(",");
        let machine = shlex::try_quote(machine)?;
        let command = format!(
            "replay {file} --machine {machine} --threads {threads} --lock glibc,mutex,pv,unfair"
        );
        let replaying = "replaying the program on a bigger machine";
        evidence.add("replayed.json", replaying, &command, |args: ReplayArgs| {
            replayed(recorded(args.open()), |opened| args.results(opened))
        });
        let report = compared.as_ref().map(Comparison::report);
        let answer = answer::for_program(&self.program, report.as_ref());
        Ok((answer, evidence.parts))
    }

    /// Which lock to take on another machine.
    fn for_machine(&self, machine: &str, directory: &Path) -> Result<(Heading, Vec<Part>)> {
        let mut evidence = Evidence::new(directory, &[], 3);
        let predicted = predict(&mut evidence, &shlex::try_quote(machine)?, " --doubt");
        self.check_and_reproduce(&mut evidence);
        let answer = answer::for_machine(machine, predicted.as_ref());
        Ok((answer, evidence.parts))
    }

    /// Which lock to take on this machine.
    fn for_this_machine(&self, directory: &Path) -> Result<(Heading, Vec<Part>)> {
        let mut evidence = Evidence::new(directory, &[], 5 + LOADS.len());
        let here = directory.join("here.toml").display().to_string();
        let here = shlex::try_quote(&here)?;
        let command = format!("machines this -o {here}");
        let measuring = "measuring this machine";
        evidence.add("here.toml", measuring, &command, |args: MachinesArgs| {
            let text = measure_with_progress()?.machine.to_toml();
            args.destination.write(&text)?;
            Ok(((), text, None))
        });
        let mut loads = Loads::default();
        for (number, load) in LOADS.into_iter().enumerate() {
            // Locks that spin are shown under one load only: programs cannot take them.
            let locks = match number {
                0 => LOCKS.to_owned(),
                _ => parking().join(","),
            };
            let options = load.options();
            let command = format!("torture --lock {locks} --seconds 0.15 --rounds 5{options}");
            evidence.add(load.file, load.name, &command, |args: TortureArgs| {
                let results = lockworks_torture::run(&args.plan()?)?;
                let violation = results.violations().last();
                let shown = (number == 0).then(|| results.clone());
                let json = output::json(&results)?;
                loads
                    .measured
                    .push((load, results, format!("lockworks {command}")));
                Ok((shown, json, violation))
            });
        }
        evidence.show(loads.figure());
        let command =
            format!("machines validate --machine {here} --lock {LOCKS} --seconds 0.1 --ms 10");
        let predicting = "predicting what was measured";
        for warning in loads.warnings() {
            terminal::warn(warning);
        }
        let validated = evidence.add(
            "validated.json",
            predicting,
            &command,
            |args: MachinesArgs| {
                let Some(MachinesCommand::Validate(args)) = args.command else {
                    unreachable!("the command is validate");
                };
                let (report, measured) = args.validate()?;
                let violations = measured.iter().flat_map(TortureResults::violations);
                found(report, violations.last())
            },
        );
        predict(&mut evidence, &format!("{here},{BIGGER}"), "");
        self.check_and_reproduce(&mut evidence);
        let host = Host::look()?;
        let answer = answer::for_this_machine(&host, &loads, validated.as_ref());
        Ok((answer, evidence.parts))
    }

    /// Checks locks, and simulates published tables.
    fn check_and_reproduce(&self, evidence: &mut Evidence) {
        let (check, reproduce) = match self.quick {
            true => ("check --lock mutex", "reproduce cna_locktorture"),
            false => (
                "check --quick --lock mutex,qspinlock,cna,hq,pv,unfair",
                "reproduce all",
            ),
        };
        evidence.add(
            "checked.json",
            "checking",
            check,
            |options: CheckOptions| {
                let reports = check::run_all(&options, |_| Ok(()))?;
                let failure = reports.iter().find_map(CheckReport::failure);
                let json = output::one_or_more(&reports)?;
                Ok((CheckReports(reports), json, failure))
            },
        );
        let published = "simulating published tables";
        let simulate = |args: ReproduceArgs| -> Result<Vec<Reproduction>> {
            let mut tables = Vec::new();
            args.simulate(&args.tables()?, |table| tables.push(table))?;
            Ok(tables)
        };
        if self.quick {
            let one = |args| found(OneTable(simulate(args)?.remove(0)), None);
            evidence.add("published.json", published, reproduce, one);
        } else {
            let all = |args| found(Tables(simulate(args)?), None);
            evidence.add("published.json", published, reproduce, all);
        }
    }
}

/// All locks on machines, with every number of threads. `doubt`: the option for machines that the
/// descriptions could mean as well.
fn predict(evidence: &mut Evidence, machines: &str, doubt: &str) -> Option<RegretReport> {
    let store = evidence.directory.join("cells.jsonl");
    let command = format!("regret --machine {machines} --ms 5 --oversubscribed{doubt}");
    let add = |mut args: RegretArgs| {
        args.store = store;
        let report = args.simulate(args.plan()?)?;
        let failure = report.failures.last().map(|(_, error)| error.clone());
        found(report, failure)
    };
    evidence.add("predicted.json", "predicting", &command, add)
}
