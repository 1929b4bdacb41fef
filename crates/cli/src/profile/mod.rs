//! `lockworks profile`: which mutexes of a program are hot, and what could be done about it.

mod advice;
mod places;
mod record;
mod report;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitCode, ExitStatus};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::value_parser;
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::{Statvfs, statvfs};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::output::{self, Destination};
use crate::program::{Library, Program};
use record::Record;
use report::Report;

/// Run a program and say which of its pthread mutexes are hot, and what would help.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// How many places and mutexes to show, those first that were waited for longest
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    top: u32,

    /// Give JSON rather than tables
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    destination: Destination,

    /// The program, and what it is given
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
The program is run with glibc's mutexes, which a library loaded before it measures (LD_PRELOAD), in it
and in all that it starts. What is said follows when it has ended, however it has: a server is ended
by ^C. Of each place in the code, and of each mutex:
  threads     that locked it there; from 256 on at least so many
  locked      times, those after a wait for a condition included
  contended   share of those for which another thread held it: all are counted. How long a wait for a
              condition then waits for the mutex cannot be told
  waited      in all, by all threads together, and the longest
  held        on average, and longest, from having the mutex to releasing it
  before      who had it before: the same thread, another on the same NUMA node, one on another node;
              last-level caches stand for nodes where there is one node (LOCKWORKS_NEAR,
              LOCKWORKS_TOPOLOGY as in the library)
Tables are sorted by what was waited, then by how often it was locked.

A place is where pthread_mutex_lock() is called: function, file and line with debug information, else
function or file and offset. Inlined std::mutex is seen through; where it is not inlined (-O0), it is
all that is seen. mtx_lock() of C11 and what glibc locks itself are not seen. Trylocks and timed locks
that fail are not counted. 65,536 mutexes of a process have room, by address; what has none is counted
as lost. Measuring takes some 50 ns for a lock and its unlock, so very short critical sections look
more contended than they are.

Exit status: that of the program, 128 and its number if a signal ended it. 2 an option is wrong, 126
the program cannot be run so, 127 it is not found.

Examples:
  lockworks profile -- ./server --threads 8
  lockworks profile --top 3 -- python3 -m test test_threading
  lockworks profile --json -o profile.json -- redis-server --io-threads 4";

/// The library that measures.
const LIBRARY: &str = "liblockworks-profile.so";

/// What tells it where to write.
const DIRECTORY: &str = "LOCKWORKS_PROFILE";

/// What tells it which CPUs are near each other.
const NEAR: &str = "LOCKWORKS_NEAR";

/// In memory, where writing is no work for a disk.
const SHARED_MEMORY: &str = "/dev/shm";

/// Bytes that have to be free there. A process takes 19 MB at most, and most take a few pages.
const ROOM: u64 = 512 << 20;

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let library = Library::find(LIBRARY)?;
    let program = Program::find(&args.command)?;
    args.destination.check()?;
    let directory =
        directory().context("cannot make a directory for what is measured; set TMPDIR")?;

    let mut command = program.command_with(&library);
    command.env(DIRECTORY, directory.path());
    if std::env::var_os(NEAR).is_none() && lockworks::topology::nodes() < 2 {
        command.env(NEAR, "llc");
    }
    let begin = Instant::now();
    let child = command.spawn();
    let status = wait(child.map_err(|error| program.not_started(error))?)?;
    let wall = begin.elapsed();

    let records = read(directory.path())?;
    let report = Report::new(&records, &args.command, wall);
    args.destination.write(&match args.json {
        true => output::json(&report)?,
        false => report.tables(args.top as usize),
    })?;
    Ok(exit_code(status))
}

/// Where processes write. Where the room runs out, the system ends them (SIGBUS), and containers often
/// have little in memory.
fn directory() -> std::io::Result<TempDir> {
    let free = |at: Statvfs| at.blocks_available() * at.fragment_size();
    match statvfs(SHARED_MEMORY) {
        Ok(at) if free(at) >= ROOM => tempfile::tempdir_in(SHARED_MEMORY),
        _ => tempfile::tempdir(),
    }
}

/// Waits for it to end. ^C is for it, we have to tell of it yet.
fn wait(mut child: Child) -> Result<ExitStatus> {
    let program = Pid::from_raw(child.id().cast_signed());
    // A terminal has signalled the program too, others have not.
    let tell = !std::io::stdin().is_terminal();
    output::when_interrupted(move || {
        if tell {
            // It may have ended.
            let _ = kill(program, Signal::SIGTERM);
        }
        loop {
            thread::park();
        }
    });
    Ok(child.wait()?)
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.map_or(u8::MAX, |code| code as u8))
}

/// One of each process.
fn read(directory: &Path) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for file in directory.read_dir()? {
        records.extend(Record::read(&file?.path())?);
    }
    records.sort_by_key(|record| record.pid);
    Ok(records)
}
