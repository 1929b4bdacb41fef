//! `lockworks machines validate`: how far predictions can be trusted on this machine. Measures the machine,
//! predicts `lockworks torture` on it, runs torture, and shows both.

mod report;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::value_parser;
use itertools::Itertools;
use lockworks::{LockType, Settings};
use lockworks_experiments::PublishedTable;
use lockworks_machine::{Machine, affinity};
use lockworks_sim::{Placement, Run, Scenario, Sharing, Workload};
use rayon::prelude::*;

pub use self::report::TrustReport;
use self::report::ValidatedCell;
use crate::torture;
use lockworks_sim::command_line::{find_lock, milliseconds, set};
use lockworks_sim::comparison::LONGER;
use lockworks_torture::{Contender, Host, Pin, Preset, TorturePlan, TortureResults};
use lockworks_ui::output::{self, Destination};
use lockworks_ui::progress::{self, measure_with_progress};
use lockworks_ui::usage::seconds;

/// Predict torture on this machine, run it, and say how far to trust predictions.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct ValidateArgs {
    /// Locks to predict and to measure [default: all of `lockworks locks` that are not broken, and
    /// pthread_mutex]
    #[arg(short, long, value_name = "LOCK", value_delimiter = ',')]
    lock: Vec<String>,

    /// This machine as `lockworks machines this -o FILE` described it [default: measure it again]
    #[arg(short, long, value_name = "FILE")]
    machine: Option<String>,

    /// Length of each measured run in seconds
    #[arg(short, long, value_name = "S", default_value = "0.3", value_parser = seconds)]
    seconds: f64,

    /// Number of rounds; each round measures every lock once
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Virtual time of each prediction, in milliseconds; ten times as long for threads that share
    /// CPUs
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = milliseconds, hide_short_help = true)]
    ms: f64,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,
}

const HELP: &str = "\
The work is that of `lockworks torture` without options: two counters under one lock. Up to the \
number of CPUs each thread is bound to a CPU of its own. With 2, 4, 8 and 32 threads a CPU \
only locks are measured whose throughput does not collapse then.

One value is fitted, on one point that does not count for the errors: the loop's own time, so that \
tas with one thread is predicted as measured. All others are those of `lockworks machines this`, or \
from literature.

Columns:
  measured: operations a second, median of the rounds; min..max of the rounds
  predicted: operations a second of the simulation
  error: how much more (or less) is predicted than measured

A cell marked 'busy' was measured while other work kept its threads from running. Values of the \
machine that were measured while other work ran are marked so, too.

What is said about bigger machines are the limits to which this version's tests hold the published \
tables; `lockworks reproduce all` shows their errors.

Examples:
  lockworks machines validate
  lockworks machines validate --lock tas,mutex,pthread_mutex --json
  lockworks machines this -o here.toml && lockworks machines validate --machine here.toml";

/// The lock on which the loop's own time is fitted, with one thread.
pub const FITTED_ON: &str = "tas";
/// glibc's mutex, by its name in torture. In simulations it is the lock futex.
const GLIBC: &str = "pthread_mutex";

/// Runs the command.
pub fn command(args: &ValidateArgs) -> Result<ExitCode> {
    args.destination.check()?;
    let (report, measured) = args.validate()?;
    args.destination.write(&if args.json {
        output::json(&report)?
    } else {
        report.text()
    })?;
    let verdicts = measured.iter().map(torture::verdict);
    Ok(verdicts.fold(ExitCode::SUCCESS, |all, one| {
        if one == ExitCode::SUCCESS { all } else { one }
    }))
}

impl ValidateArgs {
    /// Predicts and measures locks. Returns the report, and the measurements.
    pub fn validate(&self) -> Result<(TrustReport, Vec<TortureResults>)> {
        let contenders = self.contenders()?;
        let host = Host::look()?;
        ensure!(
            host.cpus > 1,
            "it takes two CPUs to validate; this process may use one"
        );
        let (machine, warnings) = self.machine(&host)?;

        let mut scenario = Scenario::new(machine, Workload::find("torture")?);
        for (key, call) in [
            ("workload.futex_wait_ns", "futex_wait_ns"),
            ("workload.futex_wake_ns", "futex_wake_ns"),
        ] {
            if let Some(value) = scenario.machine.cost(call).cloned() {
                scenario.describe(key, value.value, value.mark, &value.source)?;
            }
        }
        let (loop_ns, alone) = self.fit_loop(&mut scenario)?;
        let measured = self.measure(&contenders, host.cpus)?;
        affinity::check(host.cpus)?;
        let cells = self.cells(&scenario, &measured)?;
        let tables = PublishedTable::all()?;

        let of_torture = TortureResults::warnings_of(measured.iter().chain([&alone]));
        let warnings = of_torture.iter().cloned().chain(warnings);
        let warnings = warnings.unique().collect();
        let report = TrustReport::new(&host, &scenario, loop_ns, warnings, cells, &tables);
        Ok((report, measured))
    }

    fn contenders(&self) -> Result<Vec<Contender>> {
        let named = |name: &String| {
            let contender = Contender::find(name)?;
            simulated(&contender)?;
            Ok(contender)
        };
        if self.lock.is_empty() {
            let usual = Contender::usual().filter(|lock| simulated(lock).is_ok());
            return Ok(usual.collect());
        }
        self.lock.iter().unique().map(named).collect()
    }

    /// This machine, described, and warnings about that.
    fn machine(&self, host: &Host) -> Result<(Machine, Vec<String>)> {
        let Some(file) = &self.machine else {
            let measured = measure_with_progress()?;
            return Ok((measured.machine, measured.warnings));
        };
        let machine = Machine::find(file)?;
        ensure!(
            machine.cpus() == host.cpus,
            "{file} describes {} CPUs, and this process may use {}; describe this machine by \
             `lockworks machines this -o FILE`",
            machine.cpus(),
            host.cpus
        );
        Ok((machine, Vec::new()))
    }

    fn torture(
        &self,
        locks: &[Contender],
        threads: Vec<usize>,
        pin: Pin,
    ) -> Result<TortureResults> {
        lockworks_torture::run(&TorturePlan {
            contenders: locks.to_vec(),
            reference: locks[0],
            threads,
            duration: Duration::from_secs_f64(self.seconds),
            rounds: self.rounds as usize,
            workload: lockworks_torture::Workload {
                preset: Preset::Plain,
                critical_ns: 0,
                think_ns: 0,
                readers: 0.0,
            },
            pin,
            quota: None,
            recorded: 0,
        })
    }

    /// Sets the loop's own time, in nanoseconds, so that one thread with the lock [`FITTED_ON`] is
    /// predicted as it is measured. Returns that time and the measurement.
    fn fit_loop(&self, scenario: &mut Scenario) -> Result<(f64, TortureResults)> {
        let lock = Contender::find(FITTED_ON)?;
        let measured = self.torture(&[lock], vec![1], Pin::Compact)?;
        let turn_ns = |rate: f64| 1e9 / rate;
        let least = 0.1;
        set(scenario, "workload.loop_ns", least)?;
        let without = turn_ns(self.predict(scenario, &lock, 1)?) - least;
        let loop_ns = turn_ns(measured.rows[0].operations_per_second) - without;
        let loop_ns = loop_ns.max(least);
        let key = "workload.loop_ns";
        scenario.set(key, loop_ns, "fitted on tas with one thread")?;
        Ok((loop_ns, measured))
    }

    /// Torture with a CPU for each thread, and with more threads than CPUs.
    fn measure(&self, contenders: &[Contender], cpus: usize) -> Result<Vec<TortureResults>> {
        let threads = lockworks_sim::comparison::doubled(cpus);
        let mut measured = vec![self.torture(contenders, threads, Pin::Compact)?];
        let sturdy: Vec<_> = contenders
            .iter()
            .filter(|lock| parks(lock))
            .copied()
            .collect();
        if !sturdy.is_empty() {
            measured.push(self.torture(
                &sturdy,
                [2, 4, 8, 32].map(|n| n * cpus).to_vec(),
                Pin::None,
            )?);
        }
        Ok(measured)
    }

    /// Operations a second of virtual time.
    fn predict(&self, scenario: &Scenario, lock: &Contender, threads: usize) -> Result<f64> {
        let cpus = scenario.machine.cpus();
        let outnumber = threads > cpus;
        // The waiters of a program may park, even if each thread has a CPU.
        let sharing = (outnumber || parks(lock)).then_some(Sharing {
            cpus,
            guests: None,
            pinned: false,
        });
        let outcome = Run {
            scenario,
            lock: simulated(lock)?,
            threads,
            placement: Placement::Compact,
            sharing,
            seconds: if outnumber { LONGER } else { 1.0 } * self.ms / 1e3,
            tunables: Settings::default(),
            odd_threads_have_priority: false,
            seed: 1,
        }
        .run()?;
        Ok(outcome.operations_per_second)
    }

    /// A prediction beside each measurement.
    fn cells(
        &self,
        scenario: &Scenario,
        measured: &[TortureResults],
    ) -> Result<Vec<ValidatedCell>> {
        let cpus = scenario.machine.cpus();
        let rows: Vec<_> = measured.iter().flat_map(|results| &results.rows).collect();
        let bar = progress::runs(rows.len(), "predicting");
        let cells: Result<Vec<_>> = rows
            .into_par_iter()
            .map(|row| {
                let lock = Contender::find(row.lock)?;
                let predicted = self.predict(scenario, &lock, row.threads)?;
                bar.inc(1);
                Ok(ValidatedCell::new(row, predicted, parks(&lock), cpus))
            })
            .collect();
        bar.finish_and_clear();
        cells
    }
}

/// The lock as simulations have it.
fn simulated(contender: &Contender) -> Result<&'static LockType> {
    find_lock(contender.name())
}

/// Whether waiters park, so that throughput does not collapse when threads outnumber CPUs.
fn parks(contender: &Contender) -> bool {
    match contender {
        Contender::Lock(lock) => !lock.spins(),
        Contender::Peer(_) => contender.name() == GLIBC,
    }
}
