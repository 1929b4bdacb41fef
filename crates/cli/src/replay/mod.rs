//! `lockworks replay`: a recorded program with other locks, on another machine, with more threads.

mod change;
pub mod choice;
mod threads;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use itertools::Itertools;
use lockworks::Settings;
use lockworks_machine::Machine;
use lockworks_profile::recording::{Kind, Recording};
use lockworks_sim::command_line::{find_lock, milliseconds, whole};
use lockworks_sim::comparison::{self, SimulatedHost, SimulationPlan, SimulationRow};
use lockworks_sim::doubt::Doubt;
use lockworks_sim::sequences::Sequences;
use lockworks_sim::{Placement, Scenario, Workload};
use lockworks_ui::figures::{counted, nanoseconds, percent, three_digits};
use lockworks_ui::progress;
use lockworks_ui::terminal;
use serde::Serialize;

use self::change::Change;
use self::threads::{Measured, OfRecorded, Threads};
use crate::sim::{self, Printing, SimulationResults};

/// Simulate a recorded program: with other locks, on another machine, with more threads
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct ReplayArgs {
    /// The recording, which `lockworks record` made
    #[arg(value_name = "FILE", default_value = "recording.lw")]
    recording: PathBuf,

    /// The machine: one of `lockworks machines`, or a file that describes one [default: that of the
    /// recording]
    #[arg(short, long, value_name = "NAME|PATH")]
    machine: Option<String>,

    /// Locks to run the program with; PLACE=LOCK gives one to the mutexes of a place, or of a variable, whatever
    /// the others have
    #[arg(
        short,
        long,
        value_name = "LOCK",
        value_delimiter = ',',
        default_value = "glibc,mutex,pv"
    )]
    lock: Vec<String>,

    /// Numbers of threads in all [default: as many as were recorded]
    #[arg(short, long, value_name = "N", value_delimiter = ',', value_parser = whole::<usize>)]
    threads: Vec<usize>,

    /// Have this many threads of a class, whatever the number of all
    #[arg(long, value_name = "NAME=N", value_delimiter = ',')]
    class: Vec<String>,

    /// What if the sections of a place took other times: PLACE=-50%
    #[arg(
        long,
        value_name = "PLACE=PERCENT",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    hold: Vec<String>,

    /// What if a lock were several, taken at random: LOCK=4
    #[arg(long, value_name = "LOCK=N", value_delimiter = ',')]
    split: Vec<String>,

    /// The acquisitions that count as operations: those of this place [default: all]
    #[arg(long, value_name = "PLACE")]
    operation: Option<String>,

    /// Answer even if the replay of the recording as it was is off
    #[arg(long)]
    anyway: bool,

    /// Vary the machine's values within their ranges
    #[arg(long)]
    doubt: bool,

    /// Number of seeds that each lock runs with [default: 3, or 40 with --doubt]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, hide_short_help = true)]
    seeds: Option<u64>,

    /// Virtual time of each run, in milliseconds [default: once through the recording]
    #[arg(long, value_name = "MS", value_parser = milliseconds, hide_short_help = true)]
    ms: Option<f64>,

    #[command(flatten)]
    printing: Printing,
}

const HELP: &str = "\
Each thread of the recording becomes a simulated one, which does the same with its locks in the same order, \
over and over, and computes in between for as long as it did. Waits for a condition end with the signals that \
ended them. The lines that a lock's holders write are those for which sections took longer after a holder on \
another CPU; the other machine's caches give their price.

First the recording is replayed as it was, on its own machine and with glibc's locks, beside what was measured. \
If that is off by more than 20 %, there is no answer but with --anyway.

With more threads, each class of threads (by the function that they run) grows alike; copies begin elsewhere in \
the recording. Locks that one thread alone used are copied with it.

Examples:
  lockworks replay l.lw
  lockworks replay l.lw --machine epyc-9654-nps4 --threads 8,64,384
  lockworks replay l.lw --lock glibc,mutex --hold Lookup=-50%
  lockworks replay l.lw --threads 64 --split cache_lock=4 --doubt";

/// How far the replay of a recording as it was may be off.
const BELIEVABLE: f64 = 0.20;

/// The share of the threads' time in other waits than for locks from which on they are named.
const OTHER_WAITS: f64 = 0.25;

/// The wake-ups that tell what one takes.
const WAKES: usize = 200;

/// The least virtual time of a run.
const SHORTEST_MS: f64 = 50.0;

/// The share of acquisitions that are not simulated from which on it is named.
const LEFT_OUT: f64 = 0.05;

/// A bigger machine needs this many hand-offs between CPUs, or the lines that move are not known.
const MOVES: u64 = 1000;

/// The recording as it was, replayed.
#[derive(Serialize)]
struct SelfCheck {
    measured: Measured,
    replayed: Replayed,
    /// How far the rate is off: 0.1 is 10 % too high.
    off: f64,
    /// Why it may be off.
    reasons: Vec<String>,
    /// Whether threads had real-time priorities, which are not simulated.
    real_time: bool,
    seconds: f64,
    threads: usize,
    /// The locks with the most acquisitions.
    locks: Vec<OfRecorded>,
    hand_offs_between_cpus: u64,
}

/// What the replay gave.
#[derive(Serialize)]
struct Replayed {
    operations_per_second: f64,
    contended: f64,
    wait_p99_ns: f64,
}

/// A recording that has been read.
pub struct Opened {
    recording: Recording,
    threads: Threads,
    /// The machine to simulate.
    machine: Machine,
    /// None: the recording does not say what machine it is from.
    check: Option<SelfCheck>,
}

impl Opened {
    /// Reads a recording, and replays it as it was. `machine`: the one to simulate, else that of the recording.
    /// `operation`: the place whose acquisitions are operations, else all are.
    ///
    /// # Errors
    ///
    /// If it cannot be read or replayed.
    pub fn of(file: &Path, machine: Option<&str>, operation: Option<&str>) -> Result<Self> {
        let recording = Recording::open(file)?;
        let own = recording.machine.as_ref();
        let own = own.map(|text| Machine::parse(text, "the machine of the recording"));
        let mut own = own.transpose()?;
        if let Some(own) = &mut own {
            take_wake_ups(&recording, own);
        }
        let machine = match (machine, &own) {
            (Some(name), _) => Machine::find(name)?,
            (None, Some(own)) => own.clone(),
            (None, None) => anyhow::bail!("the recording has no machine; name one: --machine"),
        };
        let mut threads = Threads::of(&recording, own.as_ref(), operation);
        ensure!(
            threads.measured.operations_per_second > 0.0,
            "no thread acquired a lock{} over and over; record more",
            match operation {
                Some(place) => format!(
                    " in {place}; locks are acquired in {}",
                    recording.places.iter().unique().take(5).format(", ")
                ),
                None => String::new(),
            }
        );
        let check = own
            .as_ref()
            .map(|own| SelfCheck::of(&threads, own, &recording))
            .transpose()?;
        // The recording took time of the program that was measured.
        threads.sequences = threads.without_steps(&recording);
        Ok(Self {
            recording,
            threads,
            machine,
            check,
        })
    }

    /// Why the replay is not to be believed. None: it is.
    pub fn refusal(&self) -> Option<String> {
        let check = self.check.as_ref().filter(|check| !check.is_believable())?;
        Some(check.text().replace('\n', " ").trim().to_owned())
    }

    /// Whether the replay of the recording as it was agrees with what was measured, or there is nothing to
    /// compare it with.
    pub fn is_believable(&self) -> bool {
        self.check.as_ref().is_none_or(SelfCheck::is_believable)
    }

    /// What is said before the results, as text and as JSON.
    pub fn before(&self) -> Result<(String, serde_json::Value)> {
        let check = self.check.as_ref();
        let moves = self.threads.moves;
        let few = (moves < MOVES).then(|| {
            format!(
                "Only {moves} hand-offs between CPUs were recorded: too few to say which lines move, so on a \
                 bigger machine it may be slower than this.\n"
            )
        });
        let text = check.map(SelfCheck::text).unwrap_or_default() + &few.unwrap_or_default();
        let json = serde_json::to_value(check).context("a value")?;
        Ok((format!("{}\n", terminal::prose(&text)), json))
    }
}

impl ReplayArgs {
    /// Reads the recording, and replays it as it was.
    pub fn open(&self) -> Result<Opened> {
        let machine = self.machine.as_deref();
        Opened::of(&self.recording, machine, self.operation.as_deref())
    }

    /// What is to be simulated, and the lock that others are compared with: with the changes of locks and sections
    /// that are asked for, or without.
    fn plan(&self, opened: &Opened, changed: bool) -> Result<(SimulationPlan, &'static str)> {
        let Opened {
            recording,
            threads,
            machine,
            ..
        } = opened;
        let (locks, changes) = change::locks(&self.lock)?;
        let mut sequences = threads.sequences.clone();
        sequences.busy = 0.0;
        let holds = self.hold.iter().map(|text| Change::hold(text));
        let splits = self.split.iter().map(|text| Change::split(text));
        let all = changes.into_iter().map(Ok).chain(holds).chain(splits);
        for change in all.filter(|_| changed) {
            change?.apply(&mut sequences, &threads.locks)?;
        }
        for class in &self.class {
            change::class(&mut sequences, class)?;
        }
        let numbers = match self.threads.as_slice() {
            [] => vec![sequences.recorded()],
            numbers => numbers.to_vec(),
        };
        for number in &numbers {
            let least = sequences.least();
            ensure!(
                *number >= least,
                "{number} threads are too few for the recording, which needs {least}: {}",
                classes(&sequences)
            );
            ensure!(
                *number == sequences.recorded()
                    || sequences.classes.iter().any(|class| class.count.is_none()),
                "{number} threads cannot be: all classes have numbers, {}",
                classes(&sequences)
            );
            ensure!(
                *number <= comparison::MOST_THREADS,
                "{number} threads are too many to simulate; ask for at most {}",
                comparison::MOST_THREADS
            );
        }
        let name = self.recording.display().to_string();
        let program = recording.command.iter().format(" ");
        let changes = [
            ("hold", &self.hold),
            ("split", &self.split),
            ("class", &self.class),
        ];
        let changes = changes
            .iter()
            .flat_map(|(option, of)| of.iter().map(move |of| (option, of)));
        let changes = changes.map(|(option, of)| format!(", --{option} {of}"));
        let title = format!("{program} as recorded in {name}{}", changes.format(""));
        let cpus = match (&self.machine, machine.cpus()) {
            (None, cpus) => cpus.min(recording.cpus),
            (Some(_), cpus) => cpus,
        };
        let workload = Workload::recorded(&name, &title, sequences);
        let plan = SimulationPlan {
            locks,
            threads: numbers,
            ms: self.ms.unwrap_or_else(|| virtual_ms(threads)),
            seeds: self.seeds.unwrap_or(sim::usual_seeds(self.doubt)),
            doubt: self.doubt.then(Doubt::default),
            ..plan(machine.clone(), workload, cpus)
        };
        let reference = match plan.locks.iter().any(|lock| lock.name() == "futex") {
            true => "futex",
            false => sim::reference(None, &plan.locks)?,
        };
        Ok((plan, reference))
    }

    /// The program without the changes of locks and sections, in words and as JSON. None: there are none.
    fn unchanged(&self, opened: &Opened) -> Result<Option<(String, serde_json::Value)>> {
        let places = self.lock.iter().any(|lock| lock.contains('='));
        if !places && self.hold.is_empty() && self.split.is_empty() {
            return Ok(None);
        }
        let (plan, reference) = self.plan(opened, false)?;
        let plan = SimulationPlan {
            locks: vec![find_lock(reference)?],
            ..plan
        };
        let rows = comparison::run(&plan, |_| ()).into_iter();
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let in_words = rows.iter().map(|row| {
            let threads = counted(row.threads as u64, "thread");
            format!(
                "{} operations/s with {threads}",
                rate(row.operations_per_second)
            )
        });
        let text = format!(
            "Without the changes, {reference} does {}.\n",
            in_words.format(", ")
        );
        let rows = rows.iter().map(|row| {
            serde_json::json!({
                "lock": reference,
                "threads": row.threads,
                "operations_per_second": row.operations_per_second,
            })
        });
        Ok(Some((text, rows.collect())))
    }

    /// The results, for a page.
    ///
    /// # Errors
    ///
    /// If the simulation cannot run.
    pub fn results(&self, opened: &Opened) -> Result<SimulationResults> {
        let (plan, reference) = self.plan(opened, true)?;
        let rows = comparison::run(&plan, |_| ());
        let rows = rows.into_iter().collect::<Result<_>>()?;
        let before = opened.before()?;
        Ok(sim::results(&plan, reference, rows, Some(&before)))
    }
}

/// Runs the command.
pub fn command(args: &ReplayArgs) -> Result<ExitCode> {
    let printing = args.printing.clone();
    printing.check()?;
    let name = args.recording.display();
    let line =
        progress::line("{spinner} {elapsed} {wide_msg}").with_message(format!("reading {name}"));
    let opened = args.open();
    line.finish_and_clear();
    let opened = opened?;
    let before = opened.before()?;
    if !opened.is_believable() && !args.anyway {
        let json = serde_json::json!({ "recording": before.1 });
        let json = lockworks_ui::output::json(&json)?;
        printing.destination.write(match printing.json {
            true => &json,
            false => &before.0,
        })?;
        eprintln!(
            "lockworks: the replay is not to be believed, so it has no answer; --anyway gives one"
        );
        return Ok(ExitCode::FAILURE);
    }
    let (plan, reference) = args.plan(&opened, true)?;
    let mut before = before;
    if let Some((text, rows)) = args.unchanged(&opened)? {
        before.0 += &format!("{}\n", terminal::prose(&text));
        before.1["unchanged"] = rows;
    }
    let before = Some(before);
    sim::simulate(plan, reference, Printing { before, ..printing })
}

/// Takes the cost of wake-ups from a recording. Where CPUs are virtual, it can be several times that of some
/// seconds later, when the machine was measured.
fn take_wake_ups(recording: &Recording, machine: &mut Machine) {
    let (Some(cost), Some(latency), Some(call)) = (
        machine.cost("wake_cost_ns").map(|cost| cost.value),
        machine.cost("wake_latency_ns").map(|cost| cost.value),
        machine.cost("futex_wake_ns").map(|cost| cost.value),
    ) else {
        return;
    };
    let pairs = recording
        .by_thread()
        .flat_map(|(_, steps)| steps.windows(2));
    let calls =
        pairs.filter(|pair| (pair[0].kind, pair[1].kind) == (Kind::Releases, Kind::Returns));
    let took = calls.map(|pair| (pair[1].ns - pair[0].ns).saturating_sub(pair[1].away_ns) as f64);
    // Others found nobody to wake.
    let wakes: Vec<f64> = took.filter(|ns| *ns > 2.0 * call).collect();
    if wakes.len() < WAKES {
        return;
    }
    let mean = wakes.iter().sum::<f64>() / wakes.len() as f64;
    let recorded = mean.clamp(cost / 10.0, cost * 10.0);
    // What is spent in the call is part of the latency.
    let latency = (latency - cost + recorded).max(recorded);
    for (key, value) in [("wake_cost_ns", recorded), ("wake_latency_ns", latency)] {
        let of_machine = machine.value_mut(key).expect("it has a value");
        of_machine.value = value;
        of_machine.source = format!("{} wake-ups in the recording", wakes.len());
    }
}

/// The classes of threads, in words.
fn classes(sequences: &Sequences) -> String {
    let classes = sequences.classes.iter();
    let class = classes.map(|class| match class.count {
        Some(count) => format!("{} ({count}, fixed)", class.name),
        None => format!("{} ({})", class.name, class.lanes.len()),
    });
    class.format(", ").to_string()
}

/// The virtual time of a run: once through the recording, or several times.
fn virtual_ms(threads: &Threads) -> f64 {
    let once = threads.sequences.ns / 1e6;
    (once * (SHORTEST_MS / once).ceil().max(1.0)).ceil()
}

/// A plan without locks and threads.
fn plan(machine: Machine, workload: Workload, cpus: usize) -> SimulationPlan {
    let numa_aware = machine.nodes() > 1;
    SimulationPlan {
        scenario: Scenario::new(machine, workload),
        locks: Vec::new(),
        threads: Vec::new(),
        host: SimulatedHost {
            cpus,
            guests: None,
            pinned: false,
        },
        placement: Placement::Compact,
        ms: 50.0,
        tunables: Settings {
            numa_aware,
            ..Settings::kernel()
        },
        odd_priority: false,
        seed: 1,
        seeds: 3,
        recorded: 0,
        doubt: None,
    }
}

/// Simulates these threads of a recording, as many as there were, on the CPUs that they had; locks of no other type
/// are glibc's.
fn under_glibc(
    threads: &Threads,
    sequences: &Sequences,
    machine: &Machine,
    recording: &Recording,
) -> Result<SimulationRow> {
    let glibc = find_lock("glibc")?;
    let number = sequences.recorded();
    let workload = Workload::recorded("recording", "", sequences.clone());
    let cpus = machine.cpus().min(recording.cpus);
    let plan = SimulationPlan {
        ms: virtual_ms(threads),
        ..plan(machine.clone(), workload, cpus)
    };
    comparison::simulate(&plan, glibc, number)
}

impl SelfCheck {
    fn is_believable(&self) -> bool {
        self.off.abs() <= BELIEVABLE && !self.real_time
    }

    fn of(threads: &Threads, machine: &Machine, recording: &Recording) -> Result<Self> {
        let number = threads.sequences.recorded();
        let row = under_glibc(threads, &threads.sequences, machine, recording)
            .context("the recording cannot be replayed")?;
        let measured = threads.measured;
        let off = row.operations_per_second / measured.operations_per_second - 1.0;
        let mut locks = threads.locks.clone();
        locks.sort_by_key(|lock| std::cmp::Reverse(lock.acquisitions));
        locks.truncate(5);
        Ok(Self {
            replayed: Replayed {
                operations_per_second: row.operations_per_second,
                contended: row.contended.unwrap_or(0.0),
                wait_p99_ns: row.wait_ns.map_or(0.0, |wait| wait.p99 as f64),
            },
            off,
            reasons: reasons(threads, recording),
            real_time: recording.real_time,
            seconds: threads.sequences.ns / 1e9,
            threads: number - threads.sequences.busy_threads(),
            locks,
            hand_offs_between_cpus: threads.moves,
            measured,
        })
    }

    /// The check in words.
    fn text(&self) -> String {
        let measured = &self.measured;
        let reasons = match self.is_believable() {
            true => String::new(),
            false => format!("What it cannot know: {}.\n", self.reasons.join("; ")),
        };
        format!(
            "Recorded: {} for {:.2} s, {} operations/s, {} contended, 1 wait of 100 over {}.\n\
             Replayed as it was: {} operations/s ({:+.0} %), {} contended, 1 wait of 100 over {}.\n{reasons}",
            counted(self.threads as u64, "thread"),
            self.seconds,
            rate(measured.operations_per_second),
            percent(measured.contended),
            nanoseconds(measured.wait_p99_ns),
            rate(self.replayed.operations_per_second),
            100.0 * self.off,
            percent(self.replayed.contended),
            nanoseconds(self.replayed.wait_p99_ns as u64),
        )
    }
}

/// A rate in thousands or millions.
fn rate(rate: f64) -> String {
    match rate < 1e5 {
        true => format!("{:.1} k", rate / 1e3),
        false => format!("{:.3} M", rate / 1e6),
    }
}

/// What a replay cannot know of a recording.
fn reasons(threads: &Threads, recording: &Recording) -> Vec<String> {
    let measured = &threads.measured;
    let causes = [
        (
            recording.real_time,
            "threads had real-time priorities, which are not simulated".to_owned(),
        ),
        (
            recording.other_processes > 0,
            match recording.other_processes {
                1 => "another process of the program is not in it".to_owned(),
                number => format!("{number} other processes of the program are not in it"),
            },
        ),
        (
            measured.asleep > OTHER_WAITS,
            format!(
                "threads slept for {} of their time for other reasons than locks",
                percent(measured.asleep)
            ),
        ),
        (
            measured.left_out > LEFT_OUT,
            format!(
                "{} of the acquisitions are left out, as their threads always had a lock",
                percent(measured.left_out)
            ),
        ),
        (
            recording.other_cpus > 0.25,
            format!(
                "other work had {} CPUs meanwhile",
                three_digits(recording.other_cpus)
            ),
        ),
        (
            measured.preempted > OTHER_WAITS,
            format!(
                "threads had no CPU for {} of their time, although they did not wait",
                percent(measured.preempted)
            ),
        ),
        (
            recording.lost > 0,
            format!("{} had no room", counted(recording.lost, "step")),
        ),
        (
            !recording.knows_away,
            "the time without a CPU is not known, and counts as computing".to_owned(),
        ),
    ];
    let known = causes.into_iter().filter(|(applies, _)| *applies);
    let known: Vec<String> = known.map(|(_, cause)| cause).collect();
    match known.is_empty() {
        true => vec!["no cause is known; record again, with nothing else running".to_owned()],
        false => known,
    }
}
