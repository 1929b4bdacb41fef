//! `lockworks profile`: which mutexes and rwlocks of a program are hot, and what would help.

mod advice;
mod attach;
mod callers;
mod clock;
mod conditions;
mod deadlock;
mod diff;
mod hotspots;
mod layout;
mod places;
mod pprof;
mod record;
pub mod recording;
mod report;
mod slow;
mod stack;
mod stacks;
mod timeline;
mod unmeasured;

use std::ffi::OsString;
use std::fs::{OpenOptions, Permissions};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::value_parser;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::{Statvfs, statvfs};
use nix::unistd::Pid;
use tempfile::TempDir;

use clock::Now;
use lockworks_preload::{Library, OtherLocks, Program};
use lockworks_programs::children;
use lockworks_ui::output::{self, Destination};
use lockworks_ui::plot;
use lockworks_ui::terminal;
use lockworks_ui::timeline as file;
use record::Record;
use report::{ProfileReport, Run};
use unmeasured::{Listener, Unmeasured};

pub use attach::top::{TopArgs, command as top};

/// Run a program and say which of its pthread mutexes and rwlocks are hot, and what would help. Or look at a
/// process that runs.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = HELP
)]
pub struct ProfileArgs {
    #[command(subcommand)]
    further: Option<ProfileCommand>,

    /// Number of places, of mutexes and of rwlocks to show; those with the longest waits come first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..))]
    top: u32,

    /// Microseconds from which a wait is slow: then the waiter looks what the holder does
    #[arg(long, value_name = "US", default_value_t = 100, value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    slow: u64,

    /// Number of callers to tell places by and to show
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32).range(0..=32))]
    depth: u32,

    /// Print JSON instead of tables; unless --output is given, what the program prints goes to standard
    /// error
    #[arg(long)]
    json: bool,

    /// Print the wait times by call stack instead of tables, as other tools read them
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<Format>,

    /// Look at a process that runs already, instead of starting a program
    #[arg(
        long,
        value_name = "PID",
        value_parser = value_parser!(u32).range(1..),
        conflicts_with_all = ["command", "slow", "depth", "format", "plot", "trace"]
    )]
    pid: Option<u32>,

    /// Seconds to look at the process; ^C ends it before
    #[arg(long, value_name = "S", default_value = "10", conflicts_with = "command", value_parser = attach::seconds)]
    seconds: f64,

    /// Samples a second, at most: there are fewer if they would take more than 0.5 % of the CPUs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..=1000),
        conflicts_with = "command", hide_short_help = true)]
    hz: u32,

    /// Draw the waits for each lock in FILE, an .svg or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Write the most recent acquisitions of each process in FILE, a .pftrace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    destination: Destination,

    /// Whether the program is part of something else: nobody sees what it prints, and ^C ends all.
    #[arg(skip)]
    pub is_part: bool,

    /// The program and its arguments
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

/// Further commands about profiles.
#[derive(clap::Subcommand)]
enum ProfileCommand {
    Diff(diff::DiffArgs),
}

/// A format of other tools.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// That of `go tool pprof`
    Pprof,
    /// A line for each stack, with microseconds, as flame graphs are made from
    Collapsed,
}

const HELP: &str = "\
The program runs with glibc's mutexes and rwlocks. A library measures them; it is loaded before the \
program's libraries (LD_PRELOAD), into the program and into all programs that it starts. The report \
follows when the program has ended, in whatever way, and what it has left in the background: end a server \
with ^C, or with kill(1) of this command.

Columns, for each place in the code and for each lock; rwlocks have tables of their own:
  to: the mode of an rwlock: read, with other readers, or write, alone.
  threads: number of threads that locked it; 256 and more are a lower bound.
  locked: number of acquisitions, including those after waits for a condition.
  contended: share of the acquisitions that another thread was in the way of.
  waited: time that all threads together waited for the lock, and the longest wait. Waits that had \
not ended when the program did are included. A wait for the mutex after a condition counts \
from the signal on, if the thread slept for the mutex.
  held: time from acquiring to releasing the lock, on average, and the longest.
  before: the previous holder: the same thread, another one on the same NUMA node (near), or one \
on another node (far). If there is one node, last-level caches stand for nodes. LOCKWORKS_NEAR \
and LOCKWORKS_TOPOLOGY work as in the library.
  slow waits at, meanwhile: what the holder did while threads waited long (--slow) at this place, or \
why the waiter did not run although the lock was free.
  share: of the time of all slow waits at the place; causes below 1 % are left out.
  waits: number of slow waits at the place, for all causes together.
  holds it since: the place where the holder locked the lock.
  waits for a condition at: calls of pthread_cond_wait() or the like: their number, and the time until the \
signal if the thread slept for the mutex after that, else until the call returned. Waits that had not ended when \
the program did are not included. To wait for work is no loss: see which waits delay other threads.
  timed out: waits that ended at their deadline.
  for nothing: wake-ups after which the thread waited for the same condition again, without unlocking the mutex \
in between.
  signalled at: the place that signalled these conditions most often.

Tables are sorted by the time waited, then by the number of acquisitions.

A place is a call of pthread_mutex_lock() or the like: function, file and line if there is debug information, \
else function or file and offset. If a program locks through functions of its own, or std::mutex, the place is the \
function that uses them: the innermost that is on the stack both when the lock is acquired and when it is \
released. Stacks are copied for the first acquisition at each place and a part of the contended ones, 2,048 for a \
process, 4 KiB of each. If several functions use a wrapper for one lock, the place is the call in the wrapper. --depth \
shows callers, and tells places by them, with counts that are estimated from these stacks. Mutexes of C11 are measured too, of spinlocks only the time that all \
threads waited, and glibc's own locks are not. Trylocks and timed locks that fail are not counted. A process has room for 65,536 \
locks, by address, in which readers and writers of an rwlock count as two, and a quarter is for contended ones; acquisitions of others are counted as lost. Measuring a lock and its unlock \
takes some 20 ns, or 50 ns where the kernel does not keep time by the time stamp counter, so very short critical sections look more contended than they are.

--pid looks at a process that runs already, of the same user. Nothing is stopped, and nothing is loaded into \
it. Threads are sampled: which of them sleep in the futex system call, for which lock, and what the lock's holder does \
meanwhile. The columns of these tables:
  waited: time that all threads together waited for the lock, and the longest wait so far.
  waiters: threads that waited at a time, on average.
  meanwhile: what the holder did. Where it slept is known; where it ran is not.
  waits now: the threads that waited for a lock in the last sample, for how long at least, and which thread \
holds it.
  other waits: those for conditions, semaphores, threads, and for locks that glibc does not know.
Only threads that sleep are seen to wait, not those that poll. The report says for how much of the time \
threads ran, which is more than they can have polled. The command ends early, with status 1, if threads have \
deadlocked. `lockworks top` shows the same for all processes of the user, as a table that changes.

Examples:
  lockworks profile -- ./server --threads 8
  lockworks profile --pid 4711 --seconds 30
  lockworks top
  lockworks profile --top 3 -- python3 -m test test_threading
  lockworks profile --format pprof -o waits.pb.gz -- ./server
  lockworks profile diff before.json after.json
  lockworks profile --json -o profile.json -- redis-server --io-threads 4";

/// The file name of the library that measures.
const LIBRARY: &str = "liblockworks-profile.so";

/// The environment variable that names the directory for its records.
const DIRECTORY: &str = "LOCKWORKS_PROFILE";

/// The environment variable that asks for a record of each acquisition.
const EVENTS: &str = "LOCKWORKS_PROFILE_EVENTS";

/// The environment variable that says from how many nanoseconds on a wait is slow.
const SLOW: &str = "LOCKWORKS_PROFILE_SLOW_NS";

/// The environment variable that says which CPUs are near each other.
const NEAR: &str = "LOCKWORKS_NEAR";

/// The time after which a program that has ended should not have a process in the background.
const SOON: Duration = Duration::from_millis(200);

/// Names of files that are no records yet begin with this.
const SPARE: &str = "spare-";

/// Names of files with the steps of threads end with this.
const STEPS: &str = ".steps";

/// A directory in memory, so that writing needs no disk.
const SHARED_MEMORY: &str = "/dev/shm";

/// The bytes that should be free in [`SHARED_MEMORY`]. A record takes 41 MB at most, and usually a
/// few pages.
const ROOM: u64 = 512 << 20;

/// Runs the command.
pub fn command(args: &ProfileArgs) -> Result<ExitCode> {
    if let Some(ProfileCommand::Diff(args)) = &args.further {
        return diff::command(args);
    }
    args.destination.check()?;
    if let Some(pid) = args.pid {
        let top = args.top as usize;
        return attach::profile(
            pid,
            args.seconds,
            args.hz,
            top,
            args.json,
            &args.destination,
        );
    }
    plot::check(args.plot.as_deref())?;
    args.trace.as_deref().map_or(Ok(()), file::check)?;
    let (report, records, status) = args.profile()?;
    if let Some(path) = &args.plot
        && let Err(error) = plot::draw(path, &report)
    {
        terminal::warn(&format!("{error:#}"));
    }
    if let Some(path) = &args.trace {
        let timelines = timeline::of(&records);
        let written = match timelines.is_empty() {
            true => Err(anyhow!(
                "no mutex or rwlock was locked, so there is no timeline"
            )),
            false => file::write_runs(
                path,
                timelines.iter().map(|(title, one)| (title.clone(), one)),
            ),
        };
        if let Err(error) = written {
            terminal::warn(&format!("{error:#}"));
        }
    }
    let stacks = || stacks::of(&records);
    match args.format {
        Some(Format::Pprof) => {
            let contents = pprof::encode(&stacks(), report.seconds())?;
            args.destination.write_bytes(&contents)?;
        }
        Some(Format::Collapsed) => args.destination.write(stacks::collapsed(&stacks()))?,
        None if args.json => args.destination.write(output::json(&report)?)?,
        None => args.destination.write(report.tables(args.top as usize))?,
    }
    Ok(exit_code(status))
}

impl ProfileArgs {
    /// Runs the program. Returns the report, the records of its processes, and how it ended.
    pub fn profile(&self) -> Result<(ProfileReport, Vec<Record>, ExitStatus)> {
        let mut environment = vec![(SLOW, (self.slow * 1000).to_string())];
        if self.trace.is_some() {
            environment.push((EVENTS, "1".to_owned()));
        }
        let prints_here = (self.json || self.format.is_some()) && self.destination.output.is_none();
        let measured = Measured::run(&self.command, &environment, self.is_part, prints_here)?;
        let run = Run {
            command: &self.command,
            wall: measured.wall,
            status: measured.status,
            is_server: measured.is_server,
            unmeasured: measured.unmeasured,
        };
        let records = measured.records;
        let depth = self.depth as usize;
        let report = ProfileReport::new(&records, run, measured.other_locks, depth);
        Ok((report, records, measured.status))
    }
}

/// A program that has run with the library that measures.
struct Measured {
    records: Vec<Record>,
    /// The directory of the records, which is removed with this.
    directory: TempDir,
    status: ExitStatus,
    wall: Duration,
    /// Whether a signal ended it, or it left something in the background.
    is_server: bool,
    unmeasured: Unmeasured,
    other_locks: OtherLocks,
}

impl Measured {
    /// Runs a program to its end, and that of what it leaves in the background. `is_part`: nobody sees what
    /// it prints, and ^C ends all. `prints_here`: standard output is for results.
    fn run(
        words: &[OsString],
        environment: &[(&str, String)],
        is_part: bool,
        prints_here: bool,
    ) -> Result<Self> {
        let library = Library::find(LIBRARY)?;
        let program = Program::find(words)?;
        if !is_part {
            ending::begin()?;
        }
        let directory = directory().context(
            "cannot make a directory for the records; set TMPDIR to one that you may write to",
        )?;
        tracing::info!(directory = %directory.path().display(), "records");
        let listener = Listener::start(directory.path());
        make_spares(directory.path())?;
        let mut command = program.command_with(&library);
        command.env(DIRECTORY, directory.path());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        if std::env::var_os(NEAR).is_none() && lockworks::topology::nodes() < 2 {
            command.env(NEAR, "llc");
        }
        if is_part {
            let command = command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::null());
        } else if prints_here {
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        }
        let begin = Instant::now();
        children::adopt().context("cannot wait for processes in the background")?;
        let mut child = command
            .spawn()
            .map_err(|error| program.not_started(error))?;
        if !is_part {
            ending::pass_on_to(child.id());
        }
        let status = child.wait()?;
        let was_left = wait_for_left();
        let wall = begin.elapsed();
        let mut unmeasured = listener.map(Listener::end).unwrap_or_default();
        let records = read(directory.path(), Now::get()?, &mut unmeasured)?;
        Ok(Self {
            records,
            directory,
            status,
            wall,
            is_server: was_left || ending::signals() > 0,
            unmeasured,
            other_locks: program.other_locks(),
        })
    }
}

/// Waits for processes that the program has left in the background, until a signal ends them. Returns whether
/// there were any.
fn wait_for_left() -> bool {
    let signals = ending::stop();
    let mut was_left = false;
    let begin = Instant::now();
    let say = |left: &[Pid]| {
        // What ends at once need not be known.
        if let (Some(first), false) = (left.first(), was_left || begin.elapsed() <= SOON) {
            terminal::warn(&format!(
                "the program has left process {first} in the background; the report follows when that ends: \
                 `kill {first}`, or ^C"
            ));
            was_left = true;
        }
    };
    let left = children::wait_for_left(say, || ending::signals() > signals);
    if let Some(warning) = left.warning() {
        terminal::warn(&warning);
    }
    was_left
}

/// Makes a directory for the records that only this user can enter, in memory if there is enough
/// room. Containers often have little room in memory; if the other directory has even less, it is no better.
fn directory() -> std::io::Result<TempDir> {
    let free = |at: Statvfs| at.blocks_available() * at.fragment_size();
    let in_memory = statvfs(SHARED_MEMORY).map_or(0, free);
    let elsewhere = statvfs(&std::env::temp_dir()).map_or(0, free);
    let mut private = tempfile::Builder::new();
    private.permissions(Permissions::from_mode(0o700));
    match in_memory >= ROOM.min(elsewhere.max(1)) {
        true => private.tempdir_in(SHARED_MEMORY),
        false => private.tempdir(),
    }
}

/// Makes the empty files for processes that may not make files of that size.
fn make_spares(directory: &Path) -> Result<()> {
    let size = size_of::<layout::Profile>() as u64;
    // Beyond the limit of this process, the attempt would end it.
    if getrlimit(Resource::RLIMIT_FSIZE)?.0 < size {
        return Ok(());
    }
    for number in 0..layout::LW_PROFILE_SPARES {
        let mut private = OpenOptions::new();
        private.write(true).create_new(true).mode(0o600);
        let file = private.open(directory.join(format!("{SPARE}{number}")))?;
        file.set_len(size)?;
    }
    Ok(())
}

/// Passes signals that ask this process to end on to the program, since this process has yet to report. A terminal
/// sends its signals to the program too, so these are not passed on.
mod ending {
    use std::sync::atomic::{AtomicI32, Ordering};

    use nix::libc;
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    /// The program's number. 0: it has ended, or has not begun.
    static PROGRAM: AtomicI32 = AtomicI32::new(0);

    /// The last signal. 0: none.
    static SIGNAL: AtomicI32 = AtomicI32::new(0);

    /// The number of signals.
    static SIGNALS: AtomicI32 = AtomicI32::new(0);

    extern "C" fn pass_on(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
        // Either this finds the program, or the start of the program finds the signal.
        SIGNAL.store(signal, Ordering::SeqCst);
        let program = PROGRAM.load(Ordering::SeqCst);
        // SAFETY: the kernel passes a valid structure.
        let is_of_process = unsafe { (*info).si_code } <= 0;
        if program > 0 && is_of_process {
            // SAFETY: kill() may be called in a handler, and touches no memory.
            unsafe { libc::kill(program, signal) };
        }
    }

    /// Begins to keep signals for the program. Those that are ignored stay so, for the program too.
    pub fn begin() -> nix::Result<()> {
        let action = SigAction::new(
            SigHandler::SigAction(pass_on),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the handler calls only what may be called in one.
            let before = unsafe { sigaction(signal, &action) }?;
            if matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: there is no handler.
                unsafe { sigaction(signal, &before) }?;
            }
        }
        Ok(())
    }

    /// Begins to pass signals on to the program, also the last one of those before.
    pub fn pass_on_to(program: u32) {
        let program = program.cast_signed();
        PROGRAM.store(program, Ordering::SeqCst);
        let signal = SIGNAL.load(Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: this touches no memory.
            unsafe { libc::kill(program, signal) };
        }
    }

    /// Says that the program has ended. Returns the number of signals so far.
    pub fn stop() -> i32 {
        PROGRAM.store(0, Ordering::Relaxed);
        SIGNALS.load(Ordering::Relaxed)
    }

    /// The number of signals so far.
    pub fn signals() -> i32 {
        SIGNALS.load(Ordering::Relaxed)
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.map_or(u8::MAX, |code| code as u8))
}

fn os_error(error: &anyhow::Error) -> Option<Errno> {
    let error: &std::io::Error = error.downcast_ref()?;
    error.raw_os_error().map(Errno::from_raw)
}

/// The records of all processes, some of which may have ended just `now`.
fn read(directory: &Path, now: Now, unmeasured: &mut Unmeasured) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for file in directory.read_dir()? {
        let file = file?;
        let name = file.file_name();
        if name.as_bytes().starts_with(SPARE.as_bytes())
            || name.as_bytes().ends_with(STEPS.as_bytes())
        {
            continue;
        }
        match Record::read(&file.path(), now) {
            Ok(record) => records.extend(record),
            // That is no fault of the record.
            Err(error) if os_error(&error) == Some(Errno::EMFILE) => {
                return Err(error.context("cannot read the records"));
            }
            Err(error) => unmeasured.add(format!("its record is damaged: {error:#}")),
        }
    }
    records.sort_by_key(|record| record.pid);
    Ok(records)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::mem::offset_of;

    use super::*;
    use layout::{LW_PROFILE_MAGIC, Profile};

    /// The beginnings of all parts of a record.
    const PARTS: [usize; 23] = [
        offset_of!(Profile, magic),
        offset_of!(Profile, size),
        offset_of!(Profile, pid),
        offset_of!(Profile, nodes),
        offset_of!(Profile, has_tsc),
        offset_of!(Profile, time),
        offset_of!(Profile, at_ns),
        offset_of!(Profile, modules),
        offset_of!(Profile, sites),
        offset_of!(Profile, threads),
        offset_of!(Profile, lost),
        offset_of!(Profile, events),
        offset_of!(Profile, stacks),
        offset_of!(Profile, ended),
        offset_of!(Profile, wait),
        offset_of!(Profile, cause),
        offset_of!(Profile, module),
        offset_of!(Profile, lock),
        offset_of!(Profile, site),
        offset_of!(Profile, event),
        offset_of!(Profile, condition),
        offset_of!(Profile, stack),
        size_of::<Profile>(),
    ];

    /// A record in which all words but magic number and size have this value.
    fn record(word: u64) -> Vec<u8> {
        let mut words = vec![word; size_of::<Profile>() / 8];
        words[0] = LW_PROFILE_MAGIC as u64;
        words[1] = size_of::<Profile>() as u64;
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_record_that_is_cut_off_costs_that_process_only() {
        let directory = directory().unwrap();
        let whole = record(0);
        fs::write(directory.path().join("1-0"), &whole).unwrap();
        make_spares(directory.path()).unwrap();
        let cut = directory.path().join("2-0");
        for end in PARTS
            .into_iter()
            .flat_map(|part| [part, part + 1, part + 8])
        {
            let end = end.min(whole.len());
            fs::write(&cut, &whole[..end]).unwrap();
            let mut unmeasured = Unmeasured::default();
            let now = Now::get().unwrap();
            let records = read(directory.path(), now, &mut unmeasured).unwrap();
            let is_whole = end == whole.len();
            // A file without its first word is that of a process that was killed before it began.
            let has_begun = end > 0;
            assert_eq!(records.len(), 1 + usize::from(is_whole), "{end}");
            let damaged = u64::from(has_begun && !is_whole);
            assert_eq!(unmeasured.processes(), damaged, "{end}");
        }
    }

    #[test]
    fn any_numbers_in_a_record_are_read() {
        let directory = directory().unwrap();
        for word in [1, 7, 0x0101_0101_0101_0101, u64::MAX / 2, u64::MAX] {
            let file = directory.path().join("1-0");
            fs::write(&file, record(word)).unwrap();
            let records = read(
                directory.path(),
                Now::get().unwrap(),
                &mut Unmeasured::default(),
            );
            let records = records.unwrap();
            let run = Run {
                command: &["true".into()],
                wall: std::time::Duration::from_secs(1),
                status: ExitStatus::default(),
                is_server: false,
                unmeasured: Unmeasured::default(),
            };
            ProfileReport::new(&records, run, Default::default(), 3).tables(10);
        }
    }
}
