//! A lock of one's own, compiled from its source when the program runs.
//!
//! The source is a file as those in `locks/`: it includes `operations.h` and `lock_type.h`, and describes
//! the lock by `LW_DESCRIBE()`. Its headers are those beside it, then those of the checkout that it is in,
//! or else part of this program.

use std::ffi::{c_char, c_void};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use include_dir::{Dir, File, include_dir};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use lockworks::LockType;

use crate::locks;
use crate::site::{self, Site};

include!("../flags.rs");

static LOCKS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../locks");
static WORLD: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../worlds/check");

/// The source that was loaded.
static LOADED: OnceLock<PathBuf> = OnceLock::new();

/// A source that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SourceError {
    #[error("cannot read '{path}': {error}")]
    Read { path: String, error: io::Error },
    #[error("'{0}' is no name of a lock in C; name the file as the lock, such as mylock.c")]
    Name(String),
    #[error(
        "--source cannot check '{0}', because its threads are built with it; build the command, and give --lock {0}"
    )]
    HasOwnThreads(String),
    #[error("'{0}' is not as it was when this command was built; build the command again")]
    Differs(String),
    #[error("cannot run the compiler '{compiler}': {error}; install one, or set CC")]
    Compiler { compiler: String, error: io::Error },
    #[error("'{path}' does not compile:\n{lines}")]
    Compile { path: String, lines: String },
    #[error("cannot load what '{path}' was compiled to: {error}")]
    Load {
        path: String,
        error: libloading::Error,
    },
    #[error("'{path}' describes no lock '{name}'; end it with LW_DESCRIBE({name}, ...)")]
    NotDescribed { path: String, name: String },
    #[error("cannot write the headers: {0}")]
    Headers(io::Error),
}

/// The contents of a compiled source, `struct lw_check_source` in C.
#[repr(C)]
struct Contents {
    /// The part of the source that is used: a lock's type, or litmus tests.
    main: *const c_void,
    first: *const Site,
    end: *const Site,
}

/// The C text that defines what a source has.
pub(crate) fn contents_in_c(main: &str) -> String {
    format!(
        "extern const struct lw_check_site __start_lw_check_sites[] __attribute__((weak));\n\
         extern const struct lw_check_site __stop_lw_check_sites[] __attribute__((weak));\n\
         extern const struct lw_check_source {{\n\
         \tconst void *main;\n\
         \tconst struct lw_check_site *first, *end;\n\
         }} lw_check_source;\n\
         const struct lw_check_source lw_check_source = {{\n\
         \t{main}, __start_lw_check_sites, __stop_lw_check_sites}};\n"
    )
}

/// Compiles and loads a lock, and returns its name. At most one is loaded, before anything is checked.
///
/// # Errors
/// See [`SourceError`].
///
/// # Panics
/// If a source has been loaded before.
pub fn load_source(path: &Path) -> Result<&'static str, SourceError> {
    let shown = path.display().to_string();
    let path = fs::canonicalize(path).map_err(|error| SourceError::Read {
        path: shown.clone(),
        error,
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(SourceError::Name(name.into_owned()));
    }
    let has_own_threads = |lock: &LockType| locks::is_rwlock(lock) || lock.is_resilient();
    if locks::lock_types().any(|lock| lock.name() == name && has_own_threads(lock)) {
        return Err(SourceError::HasOwnThreads(name.into_owned()));
    }
    // The type is defined at the end of the source.
    let prelude = format!(
        "#include \"lock_type.h\"\n\
         #include \"surroundings.h\"\n\
         static const struct lw_lock_type lw_{name}_type;\n{}",
        contents_in_c(&format!("&lw_{name}_type"))
    );
    let lock = load(&path, &shown, &prelude)?.cast::<LockType>();
    // SAFETY: the type, whose first field is a pointer. The type is zero if nothing defines it.
    let is_described = unsafe { !lock.cast::<*const c_char>().read().is_null() };
    if !is_described {
        return Err(SourceError::NotDescribed {
            path: shown,
            name: name.into_owned(),
        });
    }
    // SAFETY: a constant of the library.
    let lock = unsafe { &*lock };
    if lock.is_resilient() {
        return Err(SourceError::HasOwnThreads(name.into_owned()));
    }
    locks::add(lock);
    LOADED.set(path).expect("one source is loaded");
    Ok(lock.name())
}

/// Compiles and loads a source behind a prelude, and returns the main part of what it has, which is a
/// constant.
///
/// # Panics
/// If a source has been loaded before.
pub(crate) fn load(path: &Path, shown: &str, prelude: &str) -> Result<*const c_void, SourceError> {
    let directory = tempfile::tempdir().map_err(SourceError::Headers)?;
    let library = compile(path, shown, prelude, directory.path())?;
    // SAFETY: the library is lock code, whose initialisers are constants.
    let library = unsafe { Library::open(Some(&library), RTLD_NOW | RTLD_LOCAL) };
    // SAFETY: the prelude or the source defines this constant.
    let contents = library.and_then(|library| unsafe {
        let contents = library.get::<*const Contents>(b"lw_check_source\0")?;
        let contents = contents.into_raw().cast::<Contents>();
        // Its code and constants stay for as long as the program runs.
        std::mem::forget(library);
        Ok(&*contents)
    });
    let contents = contents.map_err(|error| SourceError::Load {
        path: shown.to_owned(),
        error,
    })?;
    site::add(match contents.first.is_null() {
        // No operation, no section.
        true => &[],
        // SAFETY: the bounds of the section in which the linker has put the sites.
        false => unsafe {
            let count = contents.end.offset_from(contents.first) as usize;
            std::slice::from_raw_parts(contents.first, count)
        },
    });
    Ok(contents.main)
}

/// The file of the source that was loaded.
pub fn loaded_source() -> Option<&'static Path> {
    LOADED.get().map(PathBuf::as_path)
}

/// The files that a check of the loaded source depends on: the source and, in a checkout, the headers there.
pub(crate) fn loaded_files() -> Vec<PathBuf> {
    let Some(source) = LOADED.get() else {
        return Vec::new();
    };
    let mut files = vec![source.clone()];
    let checkout = checkout(source).map(|root| root.join("locks"));
    for root in source.parent().into_iter().chain(checkout.as_deref()) {
        let headers = files_in(&LOCKS).map(|file| root.join(file.path()));
        let is_header = |path: &PathBuf| path.extension().is_some_and(|end| end == "h");
        files.extend(headers.filter(|path| is_header(path) && path.exists()));
    }
    files
}

/// The root of the checkout that a file is in.
fn checkout(path: &Path) -> Option<&Path> {
    path.ancestors()
        .find(|root| root.join("locks/contract/operations.h").exists())
}

fn files_in(directory: &'static Dir) -> impl Iterator<Item = &'static File<'static>> {
    let mut left = vec![directory];
    let directories = std::iter::from_fn(move || {
        let next = left.pop()?;
        left.extend(next.dirs());
        Some(next)
    });
    directories.flat_map(Dir::files)
}

/// Files on which this program depends too: the world, the contract, the lists, and the layouts of words and
/// nodes.
const SHARED: [&str; 8] = [
    "contract",
    "registry",
    "parts/held_locks.h",
    "parts/lock_word.h",
    "parts/node_queue.h",
    "parts/parked_heads.h",
    "parts/queue_node.h",
    "parts/reader_slots.h",
];

/// The files of the locks that this program shares with a lock.
fn shared() -> impl Iterator<Item = &'static File<'static>> {
    let is_shared = |file: &&File| SHARED.iter().any(|shared| file.path().starts_with(shared));
    files_in(&LOCKS).filter(is_shared)
}

/// Fails if a file is not as it was when the program was built.
fn compare(path: &Path, file: &File) -> Result<(), SourceError> {
    match fs::read(path).ok().as_deref() == Some(file.contents()) {
        true => Ok(()),
        false => Err(SourceError::Differs(path.display().to_string())),
    }
}

/// Fails if a file of the checkout that this program shares with a lock is not as it was when the program
/// was built.
fn compare_checkout(root: &Path) -> Result<(), SourceError> {
    let of_locks = shared().map(|file| ("locks", file));
    let of_world = files_in(&WORLD).map(|file| ("worlds/check", file));
    for (part, file) in of_locks.chain(of_world) {
        compare(&root.join(part).join(file.path()), file)?;
    }
    Ok(())
}

/// Fails if such a file stands beside the source, and is another one.
fn compare_beside(directory: &Path) -> Result<(), SourceError> {
    let beside = shared().map(|file| (directory.join(file.path()), file));
    for (path, file) in beside.filter(|(path, _)| path.exists()) {
        compare(&path, file)?;
    }
    Ok(())
}

/// The command that calls a compiler. As in a makefile, there may be words before it, such as `ccache`, and
/// options behind it.
fn command_of(compiler: &str) -> Command {
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// Whether a compiler has an option; gcc has some that clang has not.
fn is_supported(compiler: &str, flag: &str) -> bool {
    let mut command = command_of(compiler);
    command.args(["-Werror", "-E", flag, "-xc", "/dev/null"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// Compiles a source to a library in `directory`.
fn compile(path: &Path, shown: &str, text: &str, directory: &Path) -> Result<PathBuf, SourceError> {
    let prelude = directory.join("prelude.h");
    // A lock of a checkout is compiled with the headers that are there.
    let root = checkout(path).unwrap_or(directory);
    if root != directory {
        compare_checkout(root)?;
    }
    let beside = path.parent().unwrap_or(Path::new("/"));
    compare_beside(beside)?;
    let write = || -> io::Result<()> {
        for (part, files) in [("locks", &LOCKS), ("worlds/check", &WORLD)] {
            if root == directory {
                fs::create_dir_all(root.join(part))?;
                files.extract(root.join(part))?;
            }
        }
        fs::write(&prelude, text)
    };
    write().map_err(SourceError::Headers)?;
    let library = directory.join("source.so");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = command_of(&compiler);
    command.args(["-std=gnu17", "-O2", "-shared", "-fPIC", "-Wall"]);
    command.args(FLAGS.iter().filter(|flag| is_supported(&compiler, flag)));
    let parts = ["", "contract", "parts", "registry"];
    for part in parts.map(|part| beside.join(part)) {
        if part.is_dir() {
            command.arg("-I").arg(part);
        }
    }
    command.arg("-I").arg(root.join("worlds/check"));
    for part in parts {
        command.arg("-I").arg(root.join("locks").join(part));
    }
    let historic = root.join("locks/historic");
    if path.starts_with(&historic) {
        command.arg("-DLW_WITH_HISTORIC").arg("-I").arg(historic);
    }
    command.arg("-include").arg(&prelude);
    command.arg(path).arg("-o").arg(&library);
    let Output { status, stderr, .. } =
        command.output().map_err(|error| SourceError::Compiler {
            compiler: compiler.clone(),
            error,
        })?;
    let lines = String::from_utf8_lossy(&stderr);
    if !status.success() {
        return Err(SourceError::Compile {
            path: shown.to_owned(),
            lines: lines.trim_end().to_owned(),
        });
    }
    // Warnings, as the compiler shows them.
    eprint!("{lines}");
    Ok(library)
}
