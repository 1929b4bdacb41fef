//! `lockworks demo`: which lock should I use?

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use lockworks_experiments::PublishedTable;
use lockworks_sim::{Placement, Scenario, Settings};
use serde::Serialize;

use crate::figures::scaled;
use crate::output;
use crate::plot::{self, Panel, Point, Series};
use crate::published;
use crate::sim;
use crate::torture::{self, Contender, Host, Pin, Preset, TorturePlan, TortureResults, Workload};

/// Which lock should I use? Measures all on this machine, simulates them on one with four sockets.
#[derive(clap::Args)]
#[command(after_help = "\
Measures every lock here as `lockworks torture` does, simulates them all on the machine of the \
published table cna_locktorture as `lockworks sim` does, draws both with what was published, and \
ends with two sentences of advice computed from these figures. About a minute on a small machine. \
Writes, besides the tables:
  DIR/torture.json, DIR/sim.json  all figures
  DIR/figure.svg, DIR/figure.png  throughput and fairness against threads

Examples:
  lockworks demo
  lockworks demo --output /tmp/demo")]
pub struct Args {
    /// Write the files into DIR, which need not be there yet
    #[arg(short, long, value_name = "DIR", default_value = "demo")]
    output: PathBuf,
}

/// What is simulated, and drawn beside its published figures.
const TABLE: &str = "cna_locktorture";
/// Many times CNA's threshold of 10 ms would be needed for its fairness in the long run; three show
/// that the threshold works.
const VIRTUAL_MS: f64 = 30.0;
/// Locks closer than this are alike, on a machine as noisy as most.
const ALIKE: f64 = 1.05;

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let directory = args.output.display();
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create {directory}; name another with --output"))?;
    let experiment = published::find(TABLE)?;
    let scenario = experiment.scenario(experiment.machine())?;

    let measured = measure()?;
    output::print(&format!("{}\n", torture::table(&measured)))?;
    let simulated = simulate(&experiment, &scenario)?;
    output::print(&format!("{}\n", simulated_table(&experiment, &simulated)))?;

    write(args, "torture.json", &measured)?;
    write(args, "sim.json", &simulated)?;
    let panels = [
        measured_panel(&measured),
        simulated_panel(&experiment, &simulated),
        published_panel(&experiment),
    ];
    plot::figure(&args.output.join("figure"), &panels)?;
    output::print(&format!(
        "Written: {directory}/figure.png, {directory}/figure.svg, {directory}/torture.json, \
         {directory}/sim.json\n\n{} {}\n",
        advice_here(&measured),
        advice_there(&experiment, &simulated)
    ))?;
    for warning in &measured.warnings {
        output::print(&format!("But: {warning}.\n"))?;
    }
    Ok(torture::verdict(&measured))
}

fn write(args: &Args, name: &str, value: &impl Serialize) -> Result<()> {
    output::write_file(&args.output.join(name), output::json(value)?.as_bytes())
}

fn measure() -> Result<TortureResults> {
    let contenders: Vec<Contender> = Contender::usual().collect();
    torture::run(&TorturePlan {
        reference: torture::usual_reference(&contenders),
        contenders,
        threads: torture::usual_threads(Host::look()?.cpus),
        duration: Duration::from_millis(300),
        rounds: 3,
        workload: Workload {
            preset: Preset::Plain,
            critical_ns: 0,
            think_ns: 0,
        },
        pin: Pin::None,
    })
}

fn simulate(experiment: &PublishedTable, scenario: &Scenario) -> Result<Vec<sim::Row>> {
    sim::run(&sim::Plan {
        scenario,
        locks: lockworks_sim::lock_types()
            .filter(|lock| !lock.is_broken())
            .collect(),
        threads: experiment.points(),
        host: sim::Host::all_of(&scenario.machine),
        placement: Placement::Scatter(1),
        ms: VIRTUAL_MS,
        tunables: Settings::kernel(),
        odd_priority: false,
        seed: 1,
    })
    .into_iter()
    .collect()
}

/// Throughput of each lock in the table's unit, with the published figures beside it.
fn simulated_table(experiment: &PublishedTable, rows: &[sim::Row]) -> String {
    let locks = names(rows.iter().map(|row| row.lock));
    let published = experiment.published_series();
    let mut header = vec!["threads"];
    header.extend(&locks);
    let titles: Vec<String> = published
        .iter()
        .map(|series| format!("published {}", series.column))
        .collect();
    header.extend(titles.iter().map(String::as_str));
    let mut table = output::table(&header);
    for (at, &threads) in experiment.points().iter().enumerate() {
        let mut cells = vec![threads.to_string()];
        for lock in &locks {
            let row = rows
                .iter()
                .find(|r| r.lock == *lock && r.threads == threads);
            cells.push(row.map_or_else(String::new, |row| {
                format!("{:.3}", experiment.figure(row.operations_per_second))
            }));
        }
        cells.extend(published.iter().map(|s| format!("{:.3}", s.points[at].1)));
        table.add_row(cells);
    }
    format!(
        "Simulated: {} on {}, {}, values as described, one random placement (`lockworks reproduce` takes the mean of several)\n{table}\n",
        experiment.workload(),
        experiment.machine(),
        experiment.unit()
    )
}

/// Each name once, in order.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn measured_panel(results: &TortureResults) -> Panel {
    let series = |lock: &str| Series {
        name: lock.to_owned(),
        points: results
            .rows
            .iter()
            .filter(|row| row.lock == lock)
            .map(|row| Point {
                threads: row.threads,
                throughput: row.operations_per_second / 1e6,
                spread: Some((
                    row.operations_per_second_min / 1e6,
                    row.operations_per_second_max / 1e6,
                )),
                fairness: row.fairness,
            })
            .collect(),
    };
    Panel {
        title: format!("Measured: two counters on {} CPUs", results.machine.cpus),
        unit: "million operations a second".to_owned(),
        series: names(results.rows.iter().map(|row| row.lock))
            .into_iter()
            .map(series)
            .collect(),
    }
}

fn simulated_panel(experiment: &PublishedTable, rows: &[sim::Row]) -> Panel {
    let series = |lock: &str| Series {
        name: lock.to_owned(),
        points: rows
            .iter()
            .filter(|row| row.lock == lock)
            .map(|row| Point {
                threads: row.threads,
                throughput: experiment.figure(row.operations_per_second),
                spread: None,
                fairness: row.fairness,
            })
            .collect(),
    };
    Panel {
        title: format!(
            "Simulated: {} on {}",
            experiment.workload(),
            experiment.machine()
        ),
        unit: experiment.unit().to_owned(),
        series: names(rows.iter().map(|row| row.lock))
            .into_iter()
            .map(series)
            .collect(),
    }
}

/// The stock lock and the one that the table is about.
fn published_panel(experiment: &PublishedTable) -> Panel {
    let series = experiment
        .published_series()
        .into_iter()
        .filter(|s| s.column == experiment.baseline() || s.column == experiment.headline())
        .map(|s| Series {
            name: s.lock.to_owned(),
            points: s
                .points
                .iter()
                .map(|&(threads, throughput, deviation)| Point {
                    threads,
                    throughput,
                    spread: Some((throughput - deviation, throughput + deviation)),
                    fairness: None,
                })
                .collect(),
        })
        .collect();
    Panel {
        title: format!(
            "Published: {} on {}",
            experiment.workload(),
            experiment.machine()
        ),
        unit: experiment.unit().to_owned(),
        series,
    }
}

/// What the measurements say about this machine, in a sentence.
fn advice_here(results: &TortureResults) -> String {
    let cpus = results.machine.cpus;
    let most = results
        .rows
        .iter()
        .map(|row| row.threads)
        .max()
        .unwrap_or(1);
    let rate = |lock: &str, threads: usize| {
        results
            .rows
            .iter()
            .find(|row| row.lock == lock && row.threads == threads)
            .map_or(0.0, |row| row.operations_per_second)
    };
    let locks: Vec<Contender> = Contender::usual().collect();
    let best = |threads: usize, of: &dyn Fn(&Contender) -> bool| {
        locks
            .iter()
            .filter(|lock| of(lock))
            .max_by(|a, b| rate(a.name(), threads).total_cmp(&rate(b.name(), threads)))
            .expect("every kind of lock is there")
            .name()
    };
    let within = results
        .rows
        .iter()
        .map(|row| row.threads)
        .filter(|&threads| threads <= cpus)
        .max()
        .unwrap_or(1);
    // With one node, CNA is the queued spinlock.
    let alike = |lock: &Contender| {
        results.machine.nodes < 2 && matches!(lock, Contender::Lock(l) if l.is_numa_aware())
    };
    let sleeps = |lock: &Contender| match lock {
        Contender::Lock(lock) => !lock.spins(),
        Contender::Peer(_) => lock.name() == "pthread_mutex",
    };
    let queued = best(within, &|lock| lock.collapses() && !alike(lock));
    let barging = best(within, &|lock| !lock.collapses() && !sleeps(lock));
    let past = best(most, &sleeps);
    format!(
        "On these {cpus} CPUs, while no more threads than CPUs want to run, take {queued} if waiting \
         must be bounded ({}/s with {within} threads) and {barging} if not ({}/s); with {most} threads \
         {queued} falls to {}/s where {past} has {}/s, so take {past} once threads outnumber CPUs.",
        scaled(rate(queued, within)),
        scaled(rate(barging, within)),
        scaled(rate(queued, most)),
        scaled(rate(past, most)),
    )
}

/// What the simulation says about the published machine, in a sentence.
fn advice_there(experiment: &PublishedTable, rows: &[sim::Row]) -> String {
    let find = |lock: &str, threads: usize| {
        rows.iter()
            .find(|row| row.lock == lock && row.threads == threads)
    };
    let rate = |lock: &str, threads| find(lock, threads).map_or(0.0, |r| r.operations_per_second);
    let (stock, aware) = (
        experiment.lock(experiment.baseline()),
        experiment.lock(experiment.headline()),
    );
    let threads = experiment.points();
    let most = threads.last().copied().unwrap_or(1);
    let gain = |n: usize| rate(aware, n) / rate(stock, n).max(1.0);
    let published = |n| {
        experiment
            .published_speedup(experiment.headline(), n)
            .unwrap_or(f64::NAN)
    };
    let fairness = find(aware, most).and_then(|row| row.fairness);
    let from = threads
        .iter()
        .copied()
        .find(|&n| threads.iter().all(|&m| m < n || gain(m) > ALIKE));
    let Some(from) = from else {
        return format!(
            "On the simulated {} {aware} gains nothing over {stock}: take {stock} there.",
            experiment.machine()
        );
    };
    format!(
        "On the simulated {} take {aware}: from {from} threads on it is ahead of {stock}, at {most} \
         by {:.2} times (published: {:.2}), for a fairness factor of {} over {VIRTUAL_MS} ms, and \
         with fewer threads the two are alike.",
        experiment.machine(),
        gain(most),
        published(most),
        fairness.map_or_else(|| "?".to_owned(), |f| format!("{f:.2}")),
    )
}
