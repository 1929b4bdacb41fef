//! Programs of others, found and judged before anything is started, and the libraries of ours that
//! are loaded into them.

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
use object::{Endianness, FileKind, ReadCache};

/// The loaders of glibc begin so.
const LOADER: &str = "ld-linux";

/// Linux reads so much of a script.
const LONGEST_FIRST_LINE: u64 = 256;

/// A script's interpreter may be a script, and so on; Linux allows four.
const INTERPRETERS: usize = 5;

/// Why a program is not started.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is none.
    #[error("program '{0}' not found; give its path, or one in PATH")]
    NotFound(String),
    /// It does not run, or no library could be loaded into it.
    #[error("cannot run '{0}'")]
    NotRun(String, #[source] anyhow::Error),
}

impl Refusal {
    /// The exit status, which is that of shells.
    pub fn status(&self) -> u8 {
        match self {
            Self::NotRun(..) => 126,
            Self::NotFound(_) => 127,
        }
    }
}

/// A program that a library may be loaded into, and what it is given.
pub struct Program<'a> {
    name: &'a OsStr,
    path: PathBuf,
    args: &'a [OsString],
}

impl<'a> Program<'a> {
    /// The program, by its name in PATH or its path, and its arguments.
    pub fn find(command: &'a [OsString]) -> Result<Self, Refusal> {
        let (name, args) = command.split_first().expect("at least one");
        let path = which::which(name).map_err(|_| match Path::new(name) {
            // PATH is searched for names alone.
            path if name.as_bytes().contains(&b'/') && path.exists() => Refusal::NotRun(
                path.display().to_string(),
                anyhow!("it is no file that may be executed"),
            ),
            _ => Refusal::NotFound(name.to_string_lossy().into_owned()),
        })?;
        let program = Self { name, path, args };
        match check(&program.path, INTERPRETERS) {
            Ok(()) => Ok(program),
            Err(error) => Err(program.not_run(error)),
        }
    }

    /// How it is run as it is.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(self.name).args(self.args);
        command
    }

    /// How it is run with the library.
    pub fn command_with(&self, library: &Library) -> Command {
        let mut command = self.command();
        command.env("LD_PRELOAD", &library.preload);
        command
    }

    /// The system has refused it.
    pub fn not_started(&self, error: io::Error) -> Refusal {
        self.not_run(anyhow!(error).context("the system does not start it"))
    }

    fn not_run(&self, error: anyhow::Error) -> Refusal {
        Refusal::NotRun(self.path.display().to_string(), error)
    }
}

/// A library to be loaded into programs before their own.
pub struct Library {
    /// `LD_PRELOAD` with it before what is there already.
    preload: OsString,
}

impl Library {
    /// The library of that file name.
    pub fn find(name: &str) -> Result<Self> {
        let preload = preload(&library(name)?)?;
        Ok(Self { preload })
    }

    /// Is every program that is started given the library of that file name already?
    pub fn is_loaded(name: &str) -> bool {
        let loaded = std::env::var("LD_PRELOAD").unwrap_or_default();
        loaded
            .split([':', ' '])
            .any(|path| Path::new(path).file_name().is_some_and(|file| file == name))
    }
}

/// Where the library is: beside the command, where it is installed, or where it is built.
fn library(name: &str) -> Result<PathBuf> {
    let command = std::env::current_exe().context("cannot tell where this command is")?;
    let here = command.parent().expect("a file is in a directory");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    let places = [here.to_owned(), here.join("../lib"), built];
    let found = places.iter().find_map(|place| {
        let path = place.join(name);
        path.canonicalize().ok()
    });
    found.ok_or_else(|| {
        anyhow!(
            "no {name} beside {} or in ../lib; build it by `make lib`, or install by `make install`",
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
