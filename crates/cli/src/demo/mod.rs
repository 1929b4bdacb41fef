//! `lockworks demo`: which lock should I use?

mod advice;
mod throughput;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use lockworks_experiments::PublishedTable;
use lockworks_sim::{Placement, Scenario, Settings};
use serde::Serialize;

use self::advice::Candidate;
use self::throughput::Throughput;
use crate::figures::scaled;
use crate::output;
use crate::plot;
use crate::published;
use crate::sim::runs::{self, SimulatedHost, SimulationPlan, SimulationRow};
use crate::terminal::prose;
use crate::torture::{self, Contender, Host, Pin, Preset, TorturePlan, TortureResults, Workload};

/// Answer "which lock should I use?": measure locks here, simulate them on four sockets, advise
#[derive(clap::Args)]
#[command(after_help = "\
Measures eight locks on this machine as `lockworks torture` does. Simulates them as `lockworks \
sim` does, on the machine of the published table cna_locktorture. Draws the results beside the \
published figures. Ends with advice, which is computed from these figures: locks whose ranges \
overlap count as equal. This takes about a minute on a small machine. Besides printing tables, it \
writes:
  DIR/torture.json, DIR/sim.json  all figures
  DIR/demo.svg                    throughput and fairness against threads

Examples:
  lockworks demo
  lockworks demo --all
  lockworks demo --output /tmp/demo")]
pub struct DemoArgs {
    /// Write the files to the directory DIR, which is made if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = "demo")]
    output: PathBuf,

    /// Show all locks of `lockworks locks` [default: the eight that programs mostly choose from]
    #[arg(long)]
    all: bool,
}

/// The lock that nearly all programs use, and the locks that they mostly choose from.
const LOCKS: [&str; 8] = [
    INCUMBENT,
    "tas",
    "ticket",
    "qspinlock",
    "cna",
    "hq",
    "pv",
    "mutex",
];
/// The lock that a program has already.
const INCUMBENT: &str = "pthread_mutex";
/// The published table whose experiment is simulated.
const TABLE: &str = "cna_locktorture";
/// Virtual time of a run. It is three times CNA's threshold of 10 ms, which shows that the
/// threshold works; for the fairness in the long run it is too short.
const VIRTUAL_MS: f64 = 30.0;
/// The number of rounds measured, and of random placements simulated. Their spread is the noise.
const ROUNDS: u64 = 3;

/// One random placement, simulated.
#[derive(Serialize)]
struct SimulatedRound {
    placement: String,
    rows: Vec<SimulationRow>,
}

/// Runs the command.
pub fn command(args: &DemoArgs) -> Result<ExitCode> {
    let directory = args.output.display();
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create {directory}; name another with --output"))?;
    let table = published::find(TABLE)?;
    let shown = |lock: &str| args.all || LOCKS.contains(&lock);
    let contenders: Vec<Contender> = Contender::usual()
        .filter(|lock| shown(lock.name()))
        .collect();

    let measured = measure(&contenders)?;
    let here = throughput::measured(&measured);
    output::print(&format!(
        "{}{}\n\n",
        prose(&format!(
            "Measured: two counters in a critical section on {} CPUs, {} node(s). Operations a second \
             by number of threads, lowest..highest of {ROUNDS} rounds.\n",
            measured.machine.cpus, measured.machine.nodes
        )),
        throughput::table(&here, scaled)
    ))?;

    let scenario = table.scenario(table.machine())?;
    let simulated = simulate(&table, &scenario, shown)?;
    let rounds: Vec<&[SimulationRow]> = simulated
        .iter()
        .map(|round| round.rows.as_slice())
        .collect();
    let there = throughput::simulated(&rounds, |rate| table.figure(rate));
    let published = throughput::published(&table);
    let beside: Vec<Throughput> = published.iter().map(Throughput::named_published).collect();
    output::print(&format!(
        "{}{}\n\n",
        prose(&format!(
            "Simulated: {} on {}, values as described. {} by number of threads, lowest..highest of \
             {ROUNDS} random placements. Published: mean less and plus a standard deviation.\n",
            table.workload(),
            table.machine(),
            table.unit(),
        )),
        throughput::table(&[there.clone(), beside].concat(), |figure| format!(
            "{figure:.2}"
        ))
    ))?;

    write(args, "torture.json", &measured)?;
    write(args, "sim.json", &simulated)?;
    let experiment = format!("{} on {}", table.workload(), table.machine());
    let panels = [
        throughput::panel(
            format!("Measured: two counters on {} CPUs", measured.machine.cpus),
            "million operations a second",
            1e-6,
            &here,
        ),
        throughput::panel(
            format!("Simulated: {experiment}"),
            table.unit(),
            1.0,
            &there,
        ),
        throughput::panel(
            format!("Published: {experiment}"),
            table.unit(),
            1.0,
            &published,
        ),
    ];
    plot::figure(&args.output.join("demo.svg"), &panels)?;
    output::print(&prose(&format!(
        "Written: {directory}/demo.svg, {directory}/torture.json, {directory}/sim.json\n\n{}\n{}\n",
        advice::here(
            &here,
            &candidates(&contenders, &measured),
            measured.machine.cpus
        ),
        advice::there(&there, &published, &table, &spinning_and_bounded()),
    )))?;
    for warning in &measured.warnings {
        output::print(&prose(&format!("But: {warning}.\n")))?;
    }
    Ok(torture::verdict(&measured))
}

fn write(args: &DemoArgs, name: &str, value: &impl Serialize) -> Result<()> {
    output::write_file(&args.output.join(name), output::json(value)?.as_bytes())
}

fn measure(contenders: &[Contender]) -> Result<TortureResults> {
    torture::run(&TorturePlan {
        reference: torture::usual_reference(contenders),
        contenders: contenders.to_vec(),
        threads: torture::usual_threads(Host::look()?.cpus),
        duration: Duration::from_millis(300),
        rounds: ROUNDS as usize,
        workload: Workload {
            preset: Preset::Plain,
            critical_ns: 0,
            think_ns: 0,
        },
        pin: Pin::None,
    })
}

fn simulate(
    table: &PublishedTable,
    scenario: &Scenario,
    shown: impl Fn(&str) -> bool,
) -> Result<Vec<SimulatedRound>> {
    let locks: Vec<_> = lockworks_sim::lock_types()
        .filter(|lock| !lock.is_broken() && shown(lock.name()))
        .collect();
    let rounds = (1..=ROUNDS).map(|seed| {
        let placement = Placement::Scatter(seed);
        let plan = SimulationPlan {
            scenario: scenario.clone(),
            locks: locks.clone(),
            threads: table.points(),
            host: SimulatedHost::all_of(&scenario.machine),
            placement: placement.clone(),
            ms: VIRTUAL_MS,
            tunables: Settings::kernel(),
            odd_priority: false,
            seed,
            seeds: 1,
        };
        let rows = runs::run(&plan, |_| {});
        Ok(SimulatedRound {
            placement: placement.to_string(),
            rows: rows.into_iter().collect::<Result<_>>()?,
        })
    });
    rounds.collect()
}

/// The measured locks, with the traits that decide where each can be used.
fn candidates(contenders: &[Contender], measured: &TortureResults) -> Vec<Candidate> {
    contenders
        .iter()
        .map(|contender| {
            // On one node, CNA and HQ are the queued spinlock.
            let same_as_another = measured.machine.nodes < 2
                && matches!(contender, Contender::Lock(lock) if lock.is_numa_aware());
            Candidate {
                lock: contender.name(),
                bounds_waiting: contender.collapses() && !same_as_another,
                parks: match contender {
                    Contender::Lock(lock) => !lock.spins(),
                    Contender::Peer(_) => contender.name() == INCUMBENT,
                },
                is_incumbent: contender.name() == INCUMBENT,
            }
        })
        .collect()
}

/// The locks that can be a kernel's spinlock and bound how long a waiter is passed over.
fn spinning_and_bounded() -> Vec<&'static str> {
    let locks = Contender::all().filter(Contender::collapses);
    locks.map(|lock| lock.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_locks_exist() {
        let usual: Vec<&str> = Contender::usual().map(|lock| lock.name()).collect();
        for lock in LOCKS {
            assert!(usual.contains(&lock), "{lock}");
        }
    }
}
