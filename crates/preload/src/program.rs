//! Programs that run with a library of Lockworks loaded into them. Programs that cannot load it are
//! refused before anything starts.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};
use object::elf::{FileHeader64, Machine};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSection, ObjectSymbol, ReadCache};

use crate::library::{Library, OTHER_LOCKS};
use lockworks_ui::terminal;

type ElfFile<'a> = object::read::elf::ElfFile64<'a, Endianness, &'a ReadCache<File>>;

/// The file names of glibc's loaders begin with this.
const LOADER: &str = "ld-linux";

/// Linux reads this many bytes of a script to find its interpreter.
const LONGEST_FIRST_LINE: u64 = 256;

/// The most interpreters to follow when an interpreter is a script itself. Linux follows four.
const INTERPRETERS: usize = 5;

/// The reason why a program is not started.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such program.
    #[error("program '{0}' not found; give its path, or one in PATH")]
    NotFound(String),
    /// The system does not start the program, or no library can be loaded into it.
    #[error("cannot run '{0}'")]
    NotRun(String, #[source] anyhow::Error),
}

impl Refusal {
    /// The exit status with which shells report the same failure. They report no sanitizers, which
    /// are mistakes in how the command is used.
    pub fn status(&self) -> u8 {
        match self {
            Self::NotRun(_, error) if error.is::<HasSanitizer>() => 2,
            Self::NotRun(..) => 126,
            Self::NotFound(_) => 127,
        }
    }
}

/// The reason not to load a library into a program that has a sanitizer.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is built with {0}, which has to be loaded first and watches glibc's mutexes; build it without, \
     or link it with liblockworks"
)]
struct HasSanitizer(&'static str);

/// A program that a library can be loaded into, with its arguments.
pub struct Program<'a> {
    name: &'a OsStr,
    path: PathBuf,
    args: &'a [OsString],
    /// The executable that the system runs: that of the interpreter, if the program is a script.
    elf: Elf,
}

impl<'a> Program<'a> {
    /// Finds the program by its path or by its name in PATH. The other words are its arguments.
    pub fn find(command: &'a [OsString]) -> Result<Self, Refusal> {
        let (name, args) = command.split_first().expect("at least one");
        let path = which::which(name).map_err(|_| match Path::new(name) {
            // PATH is not searched for a name with a slash.
            path if name.as_bytes().contains(&b'/') && path.exists() => Refusal::NotRun(
                path.display().to_string(),
                anyhow!("it is not an executable file"),
            ),
            _ => Refusal::NotFound(name.to_string_lossy().into_owned()),
        })?;
        let elf = check(&path, INTERPRETERS).map_err(|error| not_run(&path, error))?;
        tracing::info!(program = %path.display(), "found");
        Ok(Self {
            name,
            path,
            args,
            elf,
        })
    }

    /// The command that runs the program without a library.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(self.name).args(self.args);
        command
    }

    /// The command that runs the program with the library.
    pub fn command_with(&self, library: &Library) -> Command {
        let mut command = self.command();
        command.env("LD_PRELOAD", library.ld_preload());
        command
    }

    /// The command that runs the program with the library that serves its mutexes. If it serves none
    /// of them, the library says so when the program exits.
    pub fn command_served(&self, library: &Library) -> Command {
        let mut command = self.command_with(library);
        command.env(OTHER_LOCKS, self.other_locks().words());
        command
    }

    /// Warns if its runtime has locks that are not served, though mutexes of other code in it may be.
    pub fn warn_of_runtime(&self) {
        let is_quiet = std::env::var("LOCKWORKS_VERBOSE").is_ok_and(|verbose| verbose == "0");
        if let (Some(runtime @ (Runtime::Go | Runtime::Java)), false) = (self.elf.runtime, is_quiet)
        {
            terminal::warn(&format!(
                "{} is a {runtime:?} program: {} are not served, only pthread mutexes of C code in it",
                self.path.display(),
                runtime.locks().unwrap_or_default()
            ));
        }
    }

    /// The refusal of a program that the system does not start.
    pub fn not_started(&self, error: io::Error) -> Refusal {
        let error = anyhow!(error).context("the system does not start it");
        not_run(&self.path, error)
    }

    /// The file that the system executes: that of the interpreter, if the program is a script.
    pub fn executable(&self) -> &Path {
        &self.elf.path
    }

    /// The locks other than pthread mutexes and rwlocks that the executable is made to use.
    pub fn other_locks(&self) -> OtherLocks {
        OtherLocks {
            runtime: self.elf.runtime.and_then(Runtime::locks),
            calls: self.elf.calls.clone(),
        }
    }
}

fn not_run(program: &Path, error: anyhow::Error) -> Refusal {
    Refusal::NotRun(program.display().to_string(), error)
}

/// Locks other than pthread mutexes and rwlocks.
#[derive(Clone, Default, serde::Serialize)]
pub struct OtherLocks {
    /// The locks of the program's runtime. None: it has none that is known.
    pub runtime: Option<&'static str>,
    /// The kinds of glibc's locks that the executable calls.
    calls: Vec<&'static str>,
}

impl OtherLocks {
    /// Adds the locks of a library, by the name of its file.
    pub fn add_library(&mut self, name: &str) {
        if name == "libjvm.so" {
            self.runtime = Runtime::Java.locks();
        }
    }

    /// Words that name the locks, or guess where none is known, for a sentence on the program.
    pub fn words(&self) -> String {
        let all: Vec<&str> = self.runtime.iter().chain(&self.calls).copied().collect();
        match all.as_slice() {
            [] => "it may use atomics, or futexes of its own".to_owned(),
            [one] => format!("it uses {one}"),
            [others @ .., last] => format!("it uses {} and {last}", others.join(", ")),
        }
    }
}

/// The executable of the program, or of the interpreter of a script. Fails if it would not load the
/// library.
fn check(program: &Path, interpreters: usize) -> Result<Elf> {
    if let Some(interpreter) = interpreter(program)? {
        ensure!(
            interpreters > 0,
            "its interpreter is a script, whose interpreter is a script, without end"
        );
        return check(&interpreter, interpreters - 1)
            .with_context(|| format!("its interpreter, {}", interpreter.display()));
    }
    check_privileges(program)?;
    let own = Elf::read(Path::new("/proc/self/exe"))?;
    let elf = Elf::read(program)?;
    ensure!(
        elf.machine == own.machine,
        "it is built for another kind of processor than this command"
    );
    let Some(loader) = &elf.loader else {
        ensure!(
            elf.runtime != Some(Runtime::Go),
            "it is a Go program, and Go's runtime has locks of its own, which no library replaces"
        );
        bail!("it is linked statically, so no library can be loaded into it; link it dynamically");
    };
    if let Some(Runtime::Sanitizer(name)) = elf.runtime {
        bail!(HasSanitizer(name));
    }
    ensure!(
        loader
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with(LOADER)),
        "its loader, {loader}, is not that of glibc; build it for glibc"
    );
    Ok(elf)
}

/// The interpreter that the first line of a script names. None: the program is not a script.
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
        .context("its first line begins with #! but names no interpreter")?;
    Ok(Some(OsStr::from_bytes(path).into()))
}

/// Fails if the program gets more rights than the user has who runs it: the dynamic loader then
/// ignores `LD_PRELOAD`.
fn check_privileges(program: &Path) -> Result<()> {
    let mode = program.metadata()?.mode();
    let privileged = match mode {
        _ if mode & 0o4000 != 0 => "set-user-ID",
        _ if mode & 0o2010 == 0o2010 => "set-group-ID",
        _ if has_capabilities(program) => "privileged by file capabilities",
        _ => return Ok(()),
    };
    bail!("it is {privileged}, so the loader loads no library into it; run a copy that is not")
}

fn has_capabilities(program: &Path) -> bool {
    let mut value = [0; 64];
    rustix::fs::getxattr(program, "security.capability", &mut value[..]).is_ok()
}

/// The properties of an executable that decide whether a library can be loaded, and is of use.
struct Elf {
    /// The file.
    path: PathBuf,
    /// The 64-bit processor that the executable is built for. None: it is built for 32 bits.
    machine: Option<Machine>,
    /// The path of its dynamic loader. None: the executable is linked statically.
    loader: Option<String>,
    /// The runtime that it is built with, if locks depend on it.
    runtime: Option<Runtime>,
    /// The kinds of locks in glibc that it calls, other than mutexes and rwlocks.
    calls: Vec<&'static str>,
}

/// A runtime in an executable that has locks of its own, or that watches locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    Go,
    Java,
    Rust,
    Sanitizer(&'static str),
}

/// The functions by which sanitizers are known.
const SANITIZERS: [(&str, &str); 3] = [
    ("__asan_init", "AddressSanitizer"),
    ("__tsan_init", "ThreadSanitizer"),
    ("__msan_init", "MemorySanitizer"),
];

/// The beginnings of the names of glibc's functions for locks other than mutexes and rwlocks.
const CALLS: [(&str, &str); 3] = [
    ("pthread_spin_", "pthread spinlocks"),
    ("pthread_barrier_", "barriers"),
    ("sem_", "semaphores"),
];

impl Runtime {
    /// The runtime of an executable, by its sections and symbols.
    fn of(elf: &ElfFile) -> Option<Self> {
        if elf.section_by_name(".go.buildinfo").is_some() {
            return Some(Self::Go);
        }
        let mut found = None;
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if let Some((_, sanitizer)) = SANITIZERS.iter().find(|(init, _)| *init == name) {
                return Some(Self::Sanitizer(sanitizer));
            }
            match name {
                // Without symbols, the functions of glibc remain that only sanitizers replace.
                "pthread_mutexattr_getpshared" if symbol.is_definition() => {
                    return Some(Self::Sanitizer("a sanitizer"));
                }
                "rust_eh_personality" => found = Some(Self::Rust),
                // The launcher of Java, and a program that has Java in it.
                "JLI_Launch" | "JNI_CreateJavaVM" => found = Some(Self::Java),
                _ => {}
            }
        }
        // Compilers leave their names in the executable, also in one without symbols.
        let comment = elf.section_by_name(".comment");
        let comment = comment.and_then(|section| section.uncompressed_data().ok());
        let rustc = comment.filter(|text| String::from_utf8_lossy(text).contains("rustc version"));
        found.or(rustc.map(|_| Self::Rust))
    }

    /// The locks of the runtime. None: it has none of its own.
    fn locks(self) -> Option<&'static str> {
        match self {
            Self::Go => Some("the locks of Go's runtime"),
            Self::Java => Some("the monitors of Java"),
            Self::Rust => Some(
                "the mutexes of Rust's standard library, of parking_lot or of the crate lockworks, which are \
                 futexes of their own",
            ),
            Self::Sanitizer(_) => None,
        }
    }
}

impl Elf {
    fn read(path: &Path) -> Result<Self> {
        let data = ReadCache::new(File::open(path)?);
        // Symbolic links may have other names.
        let path = path.canonicalize()?;
        match object::FileKind::parse(&data) {
            Ok(FileKind::Elf64) => Self::of(path, &data).context("it is damaged"),
            Ok(FileKind::Elf32) => Ok(Self {
                path,
                machine: None,
                loader: None,
                runtime: None,
                calls: Vec::new(),
            }),
            _ => bail!("it is neither a program nor a script that begins with #!"),
        }
    }

    fn of(path: PathBuf, data: &ReadCache<File>) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let mut loader = None;
        for segment in header.program_headers(endian, data)? {
            if let Some(path) = segment.interpreter(endian, data)? {
                loader = Some(String::from_utf8_lossy(path).into_owned());
            }
        }
        let elf = ElfFile::parse(data)?;
        let calls = |(prefix, kind): (&str, &'static str)| {
            let mut symbols = elf.dynamic_symbols();
            symbols
                .any(|symbol| {
                    symbol.is_undefined()
                        && symbol.name().is_ok_and(|name| name.starts_with(prefix))
                })
                .then_some(kind)
        };
        Ok(Self {
            path,
            machine: Some(header.e_machine(endian)),
            loader,
            runtime: Runtime::of(&elf),
            calls: CALLS.into_iter().filter_map(calls).collect(),
        })
    }
}
