//! The libraries of Lockworks that are loaded into programs, and the locks that fit into a mutex.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use lockworks::LockType;

use lockworks_names::command_line as names;

/// The file name of the library that puts locks of Lockworks into mutexes.
pub const LIBRARY: &str = "liblockworks-preload.so";

/// The lock that this library puts into mutexes by default.
pub const DEFAULT: &str = "mutex";

/// The environment variable that tells this library to use another lock.
pub const LOCK: &str = "LOCKWORKS_LOCK";

/// The environment variable that tells this library which other locks the program uses.
pub const OTHER_LOCKS: &str = "LOCKWORKS_OTHER_LOCKS";

/// The variable that names a file of one byte. A process that has threads and is served sets it.
pub const SERVED_FILE: &str = "LOCKWORKS_SERVED_FILE";

/// The bytes of a pthread mutex in which the lock must fit.
const ROOM: usize = 4;

/// The locks that programs may run under: those that fit into a mutex, are not broken deliberately,
/// and are in the library.
pub fn preloadables() -> impl Iterator<Item = &'static LockType> + Clone {
    let all = lockworks::lock_types().iter().copied();
    all.filter(|lock| fits(lock) && !lock.is_broken() && !lock.is_historic())
}

fn fits(lock: &LockType) -> bool {
    lock.size() <= ROOM && lock.node_size() == 0
}

/// The lock of that name, if it is among [`preloadables`].
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
                _ if lock.is_historic() => "is kept for comparison, and not in the library",
                true => "does not exclude",
                false => "needs more than 4 bytes",
            },
            names.collect::<Vec<_>>().join(", ")
        )),
    }
}

/// A library that the dynamic loader loads before the program's own libraries.
pub struct Library {
    /// The value of `LD_PRELOAD`: the library, then what is there already.
    preload: OsString,
}

impl Library {
    /// The library of that file name.
    pub fn find(name: &str) -> Result<Self> {
        let path = find(name)?;
        tracing::info!(library = %path.display(), "found");
        let preload = preload(&path)?;
        Ok(Self { preload })
    }

    /// Whether `LD_PRELOAD` in the environment already has the library of that file name.
    pub fn is_loaded(name: &str) -> bool {
        let loaded = std::env::var("LD_PRELOAD").unwrap_or_default();
        loaded
            .split([':', ' '])
            .any(|path| Path::new(path).file_name().is_some_and(|file| file == name))
    }

    /// The value of `LD_PRELOAD` that loads the library.
    pub fn ld_preload(&self) -> &OsString {
        &self.preload
    }
}

/// The path of the library: beside the command, where it is installed, or where it is built.
fn find(name: &str) -> Result<PathBuf> {
    let command = std::env::current_exe().context("cannot find the path of this command")?;
    let here = command.parent().expect("a file is in a directory");
    let installed = [here.to_owned(), here.join("../lib/lockworks")];
    let built = lockworks_programs::checkout().map(|checkout| checkout.join("build"));
    let found = installed.iter().chain(&built).find_map(|directory| {
        let path = directory.join(name);
        path.canonicalize().ok()
    });
    found.ok_or_else(|| {
        anyhow!(
            "no {name} beside {} or in ../lib/lockworks; build it with `make lib`, or install it with \
             `make install`",
            command.display()
        )
    })
}

/// The value of `LD_PRELOAD` with the library before what is there already.
fn preload(library: &Path) -> Result<OsString> {
    let separates = |byte: &u8| b" \t\n:$".contains(byte);
    ensure!(
        !library.as_os_str().as_bytes().iter().any(separates),
        "the path {} has a space, a colon or a dollar sign, which the loader does not take; install \
         Lockworks elsewhere",
        library.display()
    );
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok(preload)
}
