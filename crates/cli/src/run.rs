//! `lockworks run`: a program as it is, whose mutexes are locks of ours.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, bail, ensure};
use lockworks::{LockType, Setting};
use object::elf::{FileHeader64, Machine};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache};

use crate::names::{self, setting};

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

/// What shells give when a program is there but does not run, and when it is not there.
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What a mutex has for the lock.
const ROOM: usize = 4;

const LIBRARY: &str = "liblockworks-preload.so";

/// The loaders of glibc begin so.
const LOADER: &str = "ld-linux";

/// Linux reads so much of a script.
const LONGEST_FIRST_LINE: u64 = 256;

/// A script's interpreter may be a script, and so on; Linux allows four.
const INTERPRETERS: usize = 5;

/// Runs the command.
pub fn command(args: &Args) -> Result<ExitCode> {
    let lock = args.lock.as_deref().map(preloadable).transpose()?;
    let preload = preload(&library()?)?;
    let (name, rest) = args.command.split_first().expect("at least one");
    let Ok(program) = which::which(name) else {
        let name = name.display();
        eprintln!("lockworks: program '{name}' not found; give its path, or one in PATH");
        return Ok(ExitCode::from(NOT_FOUND));
    };
    let Err(error) = check(&program, INTERPRETERS).and_then(|()| {
        let mut command = Command::new(&program);
        command.arg0(name).args(rest).env("LD_PRELOAD", &preload);
        if let Some(lock) = lock {
            command.env("LOCKWORKS_LOCK", lock.name());
        }
        command.envs(args.tune.iter().map(Setting::variable));
        Err::<Infallible, _>(command.exec()).context("the system does not start it")
    });
    eprintln!("lockworks: cannot run '{}': {error:#}", program.display());
    Ok(ExitCode::from(NOT_RUN))
}

/// The lock of that name, if it may be in a mutex.
fn preloadable(name: &str) -> Result<&'static LockType> {
    let fits = |lock: &&LockType| lock.size() <= ROOM && lock.node_size() == 0;
    let all = || lockworks::lock_types().iter().copied();
    let good = || all().filter(fits).filter(|lock| !lock.is_broken());
    if let Some(lock) = good().find(|lock| lock.name() == name) {
        return Ok(lock);
    }
    let names = good().map(LockType::name);
    match all().find(|lock| lock.name() == name) {
        None => Err(names::unknown("lock", name, names)),
        Some(lock) => Err(anyhow!(
            "lock '{name}' cannot be in a mutex: it {}; choose from {}",
            match fits(&lock) {
                true => "does not exclude",
                false => "needs more than 4 bytes",
            },
            names.collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Where the library is: beside the command, where it is installed, or where it is built.
fn library() -> Result<PathBuf> {
    let command = std::env::current_exe().context("cannot tell where this command is")?;
    let here = command.parent().expect("a file is in a directory");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let places = [here.to_owned(), here.join("../lib"), built];
    let found = places.iter().find_map(|place| {
        let path = place.join(LIBRARY);
        path.canonicalize().ok()
    });
    found.ok_or_else(|| {
        anyhow!(
            "no {LIBRARY} beside {} or in ../lib; build it by `make lib`, or install by `make install`",
            command.display()
        )
    })
}

/// `LD_PRELOAD` with the library before what is there already.
fn preload(library: &Path) -> Result<OsString> {
    let separates = |byte: &u8| b" \t\n:$".contains(byte);
    ensure!(
        !library.as_os_str().as_bytes().iter().any(separates),
        "the loader does not take a path with a space, colon or dollar sign: {}; install elsewhere",
        library.display()
    );
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok(preload)
}

/// Would the program, or who interprets it, load the library?
fn check(program: &Path, interpreters: usize) -> Result<()> {
    if let Some(interpreter) = interpreter(program)? {
        ensure!(interpreters > 0, "its interpreters are scripts without end");
        return check(&interpreter, interpreters - 1)
            .with_context(|| format!("its interpreter, {}", interpreter.display()));
    }
    check_privileges(program)?;
    let own = Elf::read(Path::new("/proc/self/exe"))?;
    let elf = Elf::read(program)?;
    ensure!(
        elf.machine == own.machine,
        "it is for another kind of processor than this command"
    );
    let Some(loader) = elf.loader else {
        bail!(
            "it is linked statically, so that no library can be loaded into it; link it dynamically"
        );
    };
    ensure!(
        loader
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with(LOADER)),
        "its loader, {loader}, is not that of glibc"
    );
    Ok(())
}

/// What the first line of a script says; None if it is no script.
fn interpreter(program: &Path) -> Result<Option<PathBuf>> {
    let mut line = Vec::new();
    let file = File::open(program).context("it cannot be read")?;
    BufReader::new(file.take(LONGEST_FIRST_LINE)).read_until(b'\n', &mut line)?;
    let Some(said) = line.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let mut words = said.split(u8::is_ascii_whitespace);
    let path = words
        .find(|word| !word.is_empty())
        .context("its first line, #!, names no interpreter")?;
    Ok(Some(OsStr::from_bytes(path).into()))
}

/// The loader keeps libraries of others out of programs that have more rights than who runs them.
fn check_privileges(program: &Path) -> Result<()> {
    let mode = program.metadata()?.mode();
    let may = match mode {
        _ if mode & 0o4000 != 0 => "set-user-ID",
        _ if mode & 0o2010 == 0o2010 => "set-group-ID",
        _ if has_capabilities(program) => "given file capabilities",
        _ => return Ok(()),
    };
    bail!("it is {may}, and no library may be loaded into such; run a copy that is not")
}

fn has_capabilities(program: &Path) -> bool {
    let mut value = [0; 64];
    rustix::fs::getxattr(program, "security.capability", &mut value[..]).is_ok()
}

/// What matters of an executable.
struct Elf {
    /// Its processor; None if that is one of 32 bits.
    machine: Option<Machine>,
    /// Its dynamic loader.
    loader: Option<String>,
}

impl Elf {
    fn read(path: &Path) -> Result<Self> {
        let data = ReadCache::new(File::open(path)?);
        match object::FileKind::parse(&data) {
            Ok(FileKind::Elf64) => Self::of(&data).context("it is damaged"),
            Ok(FileKind::Elf32) => Ok(Self {
                machine: None,
                loader: None,
            }),
            _ => bail!("it is neither a program nor a script that begins with #!"),
        }
    }

    fn of(data: &ReadCache<File>) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let mut loader = None;
        for segment in header.program_headers(endian, data)? {
            if let Some(path) = segment.interpreter(endian, data)? {
                loader = Some(String::from_utf8_lossy(path).into_owned());
            }
        }
        Ok(Self {
            machine: Some(header.e_machine(endian)),
            loader,
        })
    }
}
