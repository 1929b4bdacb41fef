//! `lockworks kernel torture --soak`: locks under locktorture for a long time, with disturbances.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use comfy_table::{CellAlignment, ContentArrangement};
use lockworks_ui::figures::{counted, scaled};
use lockworks_ui::interruption;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::terminal::fitted;
use serde::Serialize;

use super::options::{Steps, complain};
use super::torture::{GuestTortureArgs, KINDS};
use crate::cache::Cache;
use crate::emulation::Emulation;
use crate::guest::Guest;
use crate::lock::Lock;
use crate::machine::Input;
use crate::torture::{LocktorturePlan, SoakPlan, Soaked, soak};

/// Soaks the locks of a plan. `lock` is the lock that the guest boots with.
pub fn command(
    args: &GuestTortureArgs,
    torture: LocktorturePlan,
    lock: Option<Lock>,
    minutes: f64,
) -> Result<ExitCode> {
    let emulation = args.machine.chosen_emulation().unwrap_or(Emulation::Multi);
    ensure!(
        emulation != Emulation::Counted,
        "--soak suspends virtual CPUs, which a clock that counts instructions does not notice; \
         use --emulation multi or single"
    );
    let kinds = match &args.kind {
        Some(kind) => vec![kind.clone()],
        None => KINDS.map(str::to_owned).into(),
    };
    let plan = SoakPlan {
        torture,
        kinds,
        seconds: (60.0 * minutes).ceil() as u32,
        seed: args.seed.unwrap_or_else(random_seed),
    };

    let cache = Cache::open()?;
    let steps = Steps::new();
    let built = args.source.build_to_boot(&args.machine, &cache, &steps)?;
    let limits = args.machine.limits(args.source.config());
    let guest = Guest {
        emulation,
        ..args.machine.guest(&built, lock, Input::Nothing, limits)?
    };
    let soaked = Arc::new(Mutex::new(Soaked::default()));
    let so_far = |soaked: &Mutex<Soaked>| {
        let soaked = soaked.lock().unwrap_or_else(PoisonError::into_inner);
        soaked.clone()
    };
    let conditions = Conditions {
        seed: plan.seed,
        version: built.version.name(),
        arch: built.arch.name(),
        compiler: built.compiler.name(),
        config: args.source.config().name(),
        nodes: args.machine.nodes,
        cpus: args.machine.cpus,
        emulation: emulation.name(),
        writers: plan.torture.writers,
        seconds_of_rounds: plan.torture.seconds,
        planned_seconds: plan.seconds,
    };
    let give = Give {
        json: args.json,
        destination: args.destination.clone(),
        conditions,
    };
    interruption::before_exit({
        let (soaked, give) = (Arc::clone(&soaked), give.clone());
        move || {
            let mut soaked = so_far(&soaked);
            if soaked.release.is_empty() {
                return;
            }
            soaked.read_console();
            if let Err(error) = give.results(&soaked, true) {
                eprintln!("lockworks: {error:#}");
            }
        }
    });
    let ended = soak(&plan, &guest, &cache, &|step| steps.begin(step), &soaked);
    interruption::before_exit(|| {});
    steps.end();
    ended?;
    give.results(&so_far(&soaked), false)
}

/// A seed that differs between runs.
fn random_seed() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().subsec_nanos()
}

/// How and where the results are printed, and the conditions that they name.
#[derive(Clone)]
struct Give {
    json: bool,
    destination: Destination,
    conditions: Conditions,
}

/// The conditions of a soak.
#[derive(Clone, Serialize)]
struct Conditions {
    seed: u32,
    version: &'static str,
    arch: &'static str,
    compiler: &'static str,
    config: &'static str,
    nodes: u32,
    cpus: u32,
    emulation: &'static str,
    writers: u32,
    /// The length of a round.
    seconds_of_rounds: f64,
    /// The planned length of the soak, in seconds of the guest's time.
    planned_seconds: u32,
}

/// The JSON output.
#[derive(Serialize)]
struct SoakReport<'a> {
    verdict: &'static str,
    /// Whether the soak was interrupted before its time was over.
    interrupted: bool,
    #[serde(flatten)]
    conditions: &'a Conditions,
    #[serde(flatten)]
    soaked: &'a Soaked,
    command: Vec<String>,
}

impl Give {
    /// Prints the results, and reports what is wrong on standard error. Returns the exit status.
    fn results(&self, soaked: &Soaked, interrupted: bool) -> Result<ExitCode> {
        let report = SoakReport {
            verdict: if soaked.complaints.is_empty() {
                "pass"
            } else {
                "fail"
            },
            interrupted,
            conditions: &self.conditions,
            soaked,
            command: std::env::args().collect(),
        };
        self.destination.write(&match self.json {
            true => output::json(&report)?,
            false => table(&report),
        })?;
        Ok(complain(&soaked.complaints, &soaked.console))
    }
}

fn table(report: &SoakReport) -> String {
    let (soaked, conditions) = (report.soaked, report.conditions);
    let mut text = fitted(&format!(
        "Linux {} ({}, {}, {}), {} CPUs on {} nodes, emulation {}. {} writers, rounds of {} s. {:.0} of {} s \
         soaked{}, seed {}: {}.\n",
        soaked.release,
        conditions.arch,
        conditions.compiler,
        conditions.config,
        conditions.cpus,
        conditions.nodes,
        conditions.emulation,
        conditions.writers,
        conditions.seconds_of_rounds,
        soaked.seconds,
        conditions.planned_seconds,
        if report.interrupted {
            ", then interrupted"
        } else {
            ""
        },
        conditions.seed,
        report.verdict,
    ));
    let mut table = output::table(&["lock", "type", "rounds", "operations", "fail"]);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(soaked.rows.iter().map(|row| {
        [
            row.lock.to_owned(),
            row.kind.clone(),
            row.rounds.to_string(),
            scaled(row.operations as f64),
            row.fail.to_string(),
        ]
    }));
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    text.push_str(&format!("{table}\n"));
    let done = &soaked.disturbances;
    text.push_str(&fitted(&format!(
        "{} switched off; {} suspended; the machine stopped {}; locktorture loaded {}, the conformance \
         module {}; memory added {}, removed {}.\n",
        counted(done.cpus_switched_off, "CPU"),
        counted(done.cpus_suspended, "CPU"),
        counted(done.machine_stops, "time"),
        counted(done.locktorture_loads, "time"),
        counted(done.conformance_loads, "time"),
        counted(done.memory_added, "time"),
        counted(done.memory_removed, "time"),
    )));
    text
}
