//! `lockworks run`: a program as it is, whose mutexes are locks of ours.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use lockworks::{LockType, Setting};

use crate::names::{self, setting};
use crate::program::{Library, Program};

/// Run a program with a lock of ours in its pthread mutexes, condition variables and C11 mutexes.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The lock in its mutexes, by name [default: LOCKWORKS_LOCK, or else mutex]
    #[arg(short, long, value_name = "LOCK")]
    lock: Option<String>,

    /// Set a lock's tunable, as mutex_spin=1000; `lockworks locks mutex` lists its own
    #[arg(long, visible_alias = "tunable", value_name = "NAME=VALUE", value_parser = setting)]
    tune: Vec<Setting>,

    /// The program, and what it is given
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const HELP: &str = "\
The program is not changed: a library is loaded before its own (LD_PRELOAD), into it and all that it
starts. Mutexes of type normal, recursive, error checking and adaptive are served by the lock, and
condition variables go with them; those that are shared between processes, robust, or inherit or
protect priorities go to glibc as ever, and so do rwlocks, barriers and semaphores. What takes no
part: programs that bring their own locks, as those written in Go or Rust do.

Locks that may serve have 4 bytes. Those whose waiters sleep suit any program: mutex, pv, unfair. The
others spin, and are for programs with no more threads than CPUs; one line on standard error warns
when that does not hold.

The environment, which has effect without this command too:
  LOCKWORKS_LOCK=LOCK       the lock
  LOCKWORKS_VERBOSE=1       say which lock serves; 0: no warnings
  LOCKWORKS_NAME=VALUE      a tunable, its name in capitals

Exit status: that of the program. 2 an option is wrong, 126 the program cannot be run so, 127 it is
not found; one line says why, and nothing has been started then.

Examples:
  lockworks run -- redis-server --io-threads 4
  lockworks run --lock unfair -- mariadbd --user=mysql
  lockworks run --tune mutex_spin=1000 -- memcached -t 8
  lockworks run --lock cna -- ./server        with no more threads than CPUs
  LOCKWORKS_VERBOSE=1 lockworks run -- python3 -m test test_threading";

/// The library that puts locks of ours in mutexes.
pub const LIBRARY: &str = "liblockworks-preload.so";

/// The lock that it puts there if not told otherwise.
pub const DEFAULT: &str = "mutex";

/// What tells it which lock.
pub const LOCK: &str = "LOCKWORKS_LOCK";

/// What a mutex has for the lock.
const ROOM: usize = 4;

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let name = args.lock.clone().or_else(|| std::env::var(LOCK).ok());
    let lock = name.as_deref().map(preloadable).transpose()?;
    let library = Library::find(LIBRARY)?;
    let program = Program::find(&args.command)?;
    let mut command = program.command_with(&library);
    if let Some(lock) = lock {
        command.env(LOCK, lock.name());
    }
    command.envs(args.tune.iter().map(Setting::variable));
    Err(program.not_started(command.exec()).into())
}

/// The locks that may be in a mutex.
pub fn preloadables() -> impl Iterator<Item = &'static LockType> + Clone {
    let all = lockworks::lock_types().iter().copied();
    all.filter(|lock| fits(lock) && !lock.is_broken())
}

fn fits(lock: &LockType) -> bool {
    lock.size() <= ROOM && lock.node_size() == 0
}

/// The lock of that name, if it may be in a mutex.
pub fn preloadable(name: &str) -> Result<&'static LockType> {
    if let Some(lock) = preloadables().find(|lock| lock.name() == name) {
        return Ok(lock);
    }
    let names = preloadables().map(LockType::name);
    match lockworks::find(name) {
        None => Err(names::unknown("lock", name, names)),
        Some(lock) => Err(anyhow!(
            "lock '{name}' cannot be in a mutex: it {}; choose from {}",
            match fits(lock) {
                true => "does not exclude",
                false => "needs more than 4 bytes",
            },
            names.collect::<Vec<_>>().join(", ")
        )),
    }
}
