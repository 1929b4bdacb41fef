//! `lockworks run`: runs an unmodified program with locks of Lockworks in its mutexes.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use lockworks::Setting;

use crate::locks::check_settings;
use lockworks_names::command_line::setting;
use lockworks_preload::plan::{PLAN, Plan};
use lockworks_preload::{DEFAULT, LIBRARY, LOCK, Library, Program, preloadable};

/// Run a program with a lock of Lockworks in its pthread mutexes, condition variables and C11
/// mutexes.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct RunArgs {
    /// The lock in the program's mutexes, by name [default: that of LOCKWORKS_LOCK, or else mutex]
    #[arg(short, long, value_name = "LOCK")]
    lock: Option<String>,

    /// A plan: a file that says which mutexes get which lock; glibc serves all others
    #[arg(long, value_name = "FILE", conflicts_with = "lock")]
    plan: Option<PathBuf>,

    /// Set a tunable of the lock, such as mutex_spin=1000; `lockworks locks mutex` lists those of
    /// mutex
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    tune: Vec<Setting>,

    /// Ask the kernel for a few microseconds more when the time slice of a thread ends while it holds
    /// a mutex (Linux 7.0 or later)
    #[arg(long)]
    slice: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
The program is not changed. A library is loaded before its own (LD_PRELOAD), into the program and \
into all programs that it starts. The lock serves mutexes of type normal, recursive, error \
checking and adaptive, and condition variables with them. The lock rwlock serves rwlocks, whatever \
lock is chosen. glibc still serves mutexes that are robust, or inherit or protect priorities, all that \
is shared between processes, barriers and semaphores. Locks that are part of the program itself do not change, as in programs \
written in Go or Rust.

Only locks of 4 bytes can be chosen. mutex, pv and unfair suit any program, because their waiters \
park. Waiters of the others spin, so these suit programs with no more threads than CPUs. If a \
program has more, one line on standard error warns. If a program with threads locks no mutex that \
is served, a line says so when it exits, and names what it uses instead.

--slice is for programs with more threads than CPUs, whose mutexes are held for microseconds. A holder \
that loses its CPU holds up all others until it has a CPU again. With LOCKWORKS_VERBOSE=1, a line at \
exit says how often an extension was granted, and how often it ended before the release. If the \
kernel has no extensions, a line says why, and the program runs without. The C library must leave \
rseq to Lockworks, unless it registers rseq in the size that Linux 7.0 needs; so the command sets \
GLIBC_TUNABLES.

With --plan, a line of the file names the mutex, or the call that initialises it or locks it first, by its \
address in an executable or library of this build. docs/reference/plans.md has the format. If the plan is for \
another build, glibc serves all.

Environment variables, which work without this command too:
  LOCKWORKS_LOCK=LOCK: the lock; LOCKWORKS_PLAN=FILE: the plan
  LOCKWORKS_VERBOSE=1: report which lock serves, and at exit what is left to glibc; 0 turns \
warnings off
  LOCKWORKS_NAME=VALUE: a tunable; NAME is its name in capitals

Examples:
  lockworks run -- redis-server --io-threads 4
  lockworks run --lock unfair -- mariadbd --user=mysql
  lockworks run --plan redis.plan -- redis-server --io-threads 4
  lockworks run --tune mutex_spin=1000 -- memcached -t 8
  LOCKWORKS_VERBOSE=1 lockworks run --slice -- memcached -t 8
  LOCKWORKS_VERBOSE=1 lockworks run -- python3 -m test test_threading";

/// The environment variable with the tunables of glibc, which colons separate.
const GLIBC_TUNABLES: &str = "GLIBC_TUNABLES";

/// The tunables of glibc with which it does not register rseq, since the kernel takes one
/// registration for each thread.
fn without_rseq() -> OsString {
    let mut tunables = std::env::var_os(GLIBC_TUNABLES).unwrap_or_default();
    if !tunables.is_empty() {
        tunables.push(":");
    }
    // The last one counts.
    tunables.push("glibc.pthread.rseq=0");
    tunables
}

/// Runs the command.
pub fn command(args: &RunArgs) -> Result<ExitCode> {
    let name = match args.plan {
        Some(_) => None,
        None => args.lock.clone().or_else(|| std::env::var(LOCK).ok()),
    };
    let lock = name.as_deref().map(preloadable).transpose()?;
    let lock_name = lock.map_or(DEFAULT, |lock| lock.name());
    ensure!(
        !args.slice || lock_name == DEFAULT,
        "--slice is for the lock {DEFAULT}; leave out --lock {lock_name}, or --slice"
    );
    let library = Library::find(LIBRARY)?;
    let program = Program::find(&args.command)?;
    let plan = args
        .plan
        .as_deref()
        .map(|path| Plan::open_for(path, &program));
    let plan = plan.transpose()?;
    let locks = match &plan {
        Some((plan, _)) => plan.locks().collect(),
        None => vec![lock_name],
    };
    check_settings(&args.tune, &locks)?;
    program.warn_of_runtime();
    let mut command = program.command_served(&library);
    if let Some((_, path)) = plan {
        command.env(PLAN, path);
    }
    if let Some(lock) = lock {
        command.env(LOCK, lock.name());
    }
    if args.lock.is_some() {
        command.env_remove(PLAN);
    }
    command.envs(args.tune.iter().map(Setting::variable));
    if args.slice {
        let (name, value) = ("mutex_slice=1".parse::<Setting>())?.variable();
        command.env(name, value);
        command.env(GLIBC_TUNABLES, without_rseq());
    }
    tracing::info!(lock = lock_name, "this process becomes the program");
    Err(program.not_started(command.exec()).into())
}
