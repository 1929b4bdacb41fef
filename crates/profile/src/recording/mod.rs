//! `lockworks record`: all that the threads of a program do with locks, in their order.

mod file;
mod sites;
mod steps;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Result, ensure};
use itertools::Itertools;
use lockworks_machine::ticks::Load;
use lockworks_programs::children::in_words;
use lockworks_ui::figures::{counted, percent};
use lockworks_ui::output;
use lockworks_ui::progress::{self, measure_with_progress};
use lockworks_ui::terminal;

pub use file::{Kind, Lock, Recording, Step, Thread};
pub use sites::{LockSites, Site, Sites};

use crate::{Measured, exit_code};

/// Record what the threads of a program do with locks: each acquisition, release and wait for a condition, and
/// the time that they compute in between
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct RecordArgs {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "recording.lw")]
    output: PathBuf,

    /// Seconds to record, from --after on [default: all]
    #[arg(long, value_name = "S", value_parser = seconds)]
    window: Option<f64>,

    /// Seconds of the program before the recording begins
    #[arg(long, value_name = "S", default_value = "0", value_parser = seconds)]
    after: f64,

    /// The most memory to record in, in MB; what comes later is not recorded
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1024))]
    memory: u64,

    /// Print JSON instead of text; what the program prints then goes to standard error
    #[arg(long)]
    json: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
The program runs with glibc's locks, and a library beside it (LD_PRELOAD) writes the steps of each thread into \
memory of its own: an acquisition and its release take 64 bytes and some 30 ns. The recording is complete \
however the program ends. Of several processes, the one with the most steps is recorded.

Time in which a thread had no CPU is told apart: it waited in the kernel, or another thread had the CPU. That \
needs glibc 2.35 on x86-64 or arm64; elsewhere all time counts as computing, and the recording says so.

docs/reference/recordings.md has the format. In Python, lockworks.recording(FILE) has the steps as a frame.

Examples:
  lockworks record -o l.lw -- ./server --threads 2
  lockworks record --after 10 --window 5 -- ./server";

/// A number of seconds, as options give it.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0 to 86400".to_owned()),
    }
}

/// What stands in the line while something takes long.
const LINE: &str = "{spinner} {elapsed} {wide_msg}";

/// The number of steps of memory for a MB.
const BLOCKS_PER_MB: u64 = 16;

impl RecordArgs {
    /// Records the program and writes the file, whose size is returned. `is_part`: nobody sees what the program
    /// prints.
    pub fn record(&self, is_part: bool) -> Result<(Recording, ExitStatus, usize)> {
        output::check_file(&self.output)?;
        let milliseconds = |seconds: f64| ((seconds * 1e3).round() as u64).to_string();
        let mut environment = vec![
            ("LOCKWORKS_RECORD", "1".to_owned()),
            (
                "LOCKWORKS_RECORD_BLOCKS",
                (self.memory * BLOCKS_PER_MB).to_string(),
            ),
            ("LOCKWORKS_RECORD_AFTER_MS", milliseconds(self.after)),
        ];
        if let Some(window) = self.window {
            ensure!(window > 0.0, "a window of 0 s records nothing; give more");
            environment.push((
                "LOCKWORKS_RECORD_UNTIL_MS",
                milliseconds(self.after + window),
            ));
        }
        let begin = Load::beside_children();
        let measured = Measured::run(&self.command, &environment, is_part, self.json)?;
        // Before the steps are read, which is work too.
        let end = Load::beside_children();
        let reading = progress::line(LINE).with_message("reading what the threads did");
        let recording = steps::read(&measured, &self.command);
        reading.finish_and_clear();
        let mut recording = recording?;
        let others = begin.zip(end).map(|(begin, end)| end.others_since(&begin));
        recording.other_cpus = others.unwrap_or(0.0) * recording.cpus as f64;
        ensure!(
            recording.has_locks(),
            "no mutex or rwlock was locked while the program was recorded, which ended with {}; nothing is written{}",
            in_words(measured.status),
            measured
                .unmeasured
                .in_words()
                .map_or_else(String::new, |why| format!("; {why}")),
        );
        match measure_with_progress() {
            Ok(measured) => recording.machine = Some(measured.machine.to_toml()),
            Err(error) => terminal::warn(&format!(
                "{error:#}; so a replay of the recording needs --machine"
            )),
        }
        let writing =
            progress::line(LINE).with_message(format!("writing {}", self.output.display()));
        let mut contents = Vec::new();
        recording.write(&mut contents)?;
        writing.finish_and_clear();
        output::write_file(&self.output, &contents)?;
        Ok((recording, measured.status, contents.len()))
    }
}

/// Runs the command.
pub fn command(args: &RecordArgs) -> Result<ExitCode> {
    let (recording, status, bytes) = args.record(false)?;
    let summary = recording.summary();
    output::print(&match args.json {
        true => output::json(&summary)?,
        false => terminal::prose(&format!(
            "{}Written: {} ({:.1} MB)\n",
            text(&recording),
            args.output.display(),
            bytes as f64 / 1e6,
        )),
    })?;
    if status.signal().is_some() {
        terminal::warn(&format!("the program was ended by {}", in_words(status)));
    }
    Ok(exit_code(status))
}

/// What was recorded, in words.
fn text(recording: &Recording) -> String {
    let summary = recording.summary();
    let lost = match recording.lost {
        0 => String::new(),
        lost => format!("{} later steps had no room (--memory, --window). ", lost),
    };
    let others = match recording.other_processes {
        0 => String::new(),
        1 => "Another process of it is not recorded. ".to_owned(),
        others => format!("{others} other processes of it are not recorded. "),
    };
    let away = match recording.knows_away {
        true => format!(
            "{} of the threads' time had no CPU",
            percent(summary.away_share)
        ),
        false => "the time without a CPU is not known, and counts as computing".to_owned(),
    };
    let places = summary.locks.iter().map(|lock| lock.place.as_str());
    let locks = places.unique().take(3);
    format!(
        "{} of {} in {:.2} s: {} acquisitions, {} contended; {away}. {others}{lost}Most \
         acquisitions: {}.\n",
        counted(summary.steps, "step"),
        counted(summary.threads, "thread"),
        recording.seconds,
        summary.acquisitions,
        percent(summary.contended as f64 / summary.acquisitions.max(1) as f64),
        locks.format(", "),
    )
}
