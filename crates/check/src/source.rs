//! A lock of one's own, compiled from its source when the program runs.
//!
//! The source is C or C++ as it stands, whose functions are found by their names. Or it is a file as those in
//! `locks/`: it includes `operations.h` and `lock_type.h`, and describes the lock by `LW_DESCRIBE()`. Its
//! headers are those beside it, then those of the checkout that it is in, or else part of this program.
//!
//! It is compiled to assembly in which each access is a call (`assembly`), and linked with the functions that
//! are called (`worlds/check/source/accesses.c`).

use std::collections::HashMap;
use std::ffi::{CString, OsStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use include_dir::{Dir, File, include_dir};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use lockworks::{LockDescription, LockFn, LockType, UnlockFn};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, SymbolKind, elf};

use crate::headers::{AcquireFn, Functions, LW_CHECK_COND};
use crate::image::{self, Image, MOST_TOKENS, Start};
use crate::layout;
use crate::locks;
use crate::lost;
use crate::site::{self, Site};

mod assembly;
mod functions;
mod places;

use assembly::Line;
use functions::Lock;
pub use functions::{Kind, Named, Role};
use places::Places;

include!("../flags.rs");

static LOCKS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../locks");
static WORLD: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../worlds/check");

/// A source that was loaded.
struct Loaded {
    path: PathBuf,
    /// The functions that the user named.
    named: Vec<Named>,
    /// Its functions in words, if it describes nothing.
    summary: Option<String>,
    /// What may be the reason of a broken promise.
    hint: Option<&'static str>,
    /// The functions that make the object, before the search.
    makers: Vec<String>,
    has_trylock: bool,
    kind: Kind,
    has_one_writer: bool,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

/// A source that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SourceError {
    #[error("cannot read '{path}': {error}")]
    Read { path: String, error: io::Error },
    #[error("'{0}' is no name of a lock in C; name the file as the lock, such as mylock.c")]
    Name(String),
    #[error(
        "'{0}' is in Rust; only C and C++ can be checked: write its lock and unlock in C, with the same operations and \
         orders"
    )]
    Rust(String),
    #[error(
        "--source cannot check '{0}', because its threads are built with it; build the command, and give --lock {0}"
    )]
    HasOwnThreads(String),
    #[error("'{0}' is not as it was when this command was built; build the command again")]
    Differs(String),
    #[error(
        "this lockworks is linked statically, and a static program cannot load what a compiler makes of a file; \
         check files with the lockworks of a package, of the wheel, or of `make`"
    )]
    Static,
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
    #[error(
        "'{path}' has no lock: no two functions whose names end in lock and unlock, or acquire and release{has}; \
         name them: --functions lock=NAME,unlock=NAME"
    )]
    NoLock { path: String, has: String },
    #[error(
        "'{path}' has no function that releases a reader of {function}(); name it: --functions read_unlock=NAME"
    )]
    NoReadUnlock { path: String, function: String },
    #[error(
        "{function}() of '{path}' has several numbers, and none or more than one is called value, count, initial, \
         tokens or permits; write an init with the tokens only, and name it: --functions init=NAME"
    )]
    Tokens { path: String, function: String },
    #[error(
        "nothing gives the semaphore of '{path}' its tokens; name what does: --functions init=NAME"
    )]
    NoTokens { path: String },
    #[error(
        "{function}() of '{path}' waits with a '{parameter}', which no lock and unlock functions of the file take; \
         name these: --functions lock=NAME,unlock=NAME"
    )]
    NoMutex {
        path: String,
        function: String,
        parameter: String,
    },
    #[error("--functions {named} is no function of a {kind}, which the others of '{path}' make")]
    OtherRole {
        path: String,
        named: String,
        kind: Kind,
    },
    #[error(
        "'{path}' has its lock in a class template, {class}; say which instance is checked, at the end of the file: \
         template class {class}<ARGUMENTS>;"
    )]
    Template { path: String, class: String },
    #[error("'{path}' has several locks; choose {locks}")]
    TwoLocks { path: String, locks: String },
    #[error("'{path}' defines no function '{name}'; it has {known}")]
    NoFunction {
        path: String,
        name: String,
        known: String,
    },
    #[error("'{path}' describes its lock; --functions is for a file without LW_DESCRIBE()")]
    Described { path: String },
    #[error(
        "{function}() of '{path}' takes '{parameter}', which is neither the lock nor the node of the lock function \
         ({known}); give a function with these"
    )]
    Parameter {
        path: String,
        function: String,
        parameter: String,
        known: String,
    },
    #[error(
        "{file}:{line} has inline assembly, which cannot be checked: {text}; write it with <stdatomic.h> or \
         __atomic builtins"
    )]
    Assembly {
        file: String,
        line: u32,
        text: String,
    },
    #[error(
        "{file}:{line} calls {name}(), which is not in '{path}' and cannot be checked; a lock may call its own \
         functions, and sched_yield(), usleep(), nanosleep(), syscall() with a futex, memset() and memcpy()"
    )]
    Call {
        path: String,
        file: String,
        line: u32,
        name: String,
    },
    #[error(
        "'{path}' uses {name}, which it does not define; define it there, or include the file that does"
    )]
    Symbol { path: String, name: String },
    #[error(
        "{function}() of '{path}' takes '{parameter}', whose value is not known; give a file that includes this one, \
         and a function of the lock alone: --functions init=NAME"
    )]
    Argument {
        path: String,
        function: String,
        parameter: String,
    },
    #[error("'{path}' has {size} bytes of {what}; {max} can be checked")]
    Variables {
        path: String,
        what: &'static str,
        size: usize,
        max: usize,
    },
    #[error(
        "cannot map the memory of the check: {0}; a system call limits low addresses (vm.mmap_min_addr)"
    )]
    Memory(io::Error),
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

/// Compiles and loads a lock, and returns its name. At most one is loaded, before anything is checked. `named`:
/// the functions of a lock that is not described, as far as their names do not say it.
///
/// # Errors
/// See [`SourceError`].
///
/// # Panics
/// If a source has been loaded before.
pub fn load_source(path: &Path, named: &[Named]) -> Result<&'static str, SourceError> {
    let shown = path.display().to_string();
    let unread = |error| SourceError::Read {
        path: shown.clone(),
        error,
    };
    let path = fs::canonicalize(path).map_err(unread)?;
    if path.extension().is_some_and(|extension| extension == "rs") {
        return Err(SourceError::Rust(shown));
    }
    let text = String::from_utf8_lossy(&fs::read(&path).map_err(unread)?).into_owned();
    let loaded = Loaded {
        path: path.clone(),
        named: named.to_vec(),
        summary: None,
        hint: None,
        makers: Vec::new(),
        has_trylock: true,
        kind: Kind::Lock,
        has_one_writer: false,
    };
    let (own, loaded) = match text.contains("LW_DESCRIBE") {
        true if !named.is_empty() => return Err(SourceError::Described { path: shown }),
        true => (load_described(&path, &shown, &text)?, loaded),
        false => load_as_it_stands(&path, &shown, &text, loaded)?,
    };
    let name = own.lock.name();
    locks::add(own);
    assert!(LOADED.set(loaded).is_ok(), "one source is loaded");
    Ok(name)
}

/// Loads a lock that `LW_DESCRIBE()` describes.
fn load_described(path: &Path, shown: &str, text: &str) -> Result<locks::Own, SourceError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(SourceError::Name(name.into_owned()));
    }
    if locks::lock_types().any(|lock| lock.name() == name && locks::is_rwlock(lock)) {
        return Err(SourceError::HasOwnThreads(name.into_owned()));
    }
    // A lock whose acquisitions can fail has a function for these.
    let (declared, acquire) = match text.contains("LW_RESILIENT") {
        true => (
            format!("struct lw_{name};\nstatic int lw_{name}_acquire(struct lw_{name} *lock);\n"),
            format!("lw_{name}_acquire"),
        ),
        false => (String::new(), "0".to_owned()),
    };
    // The type is defined at the end of the source.
    let prelude = format!(
        "#include \"lock_type.h\"\n\
         #include \"surroundings.h\"\n\
         static const struct lw_lock_type lw_{name}_type;\n{declared}\
         static const void *const lw_described[] = {{ &lw_{name}_type, {acquire} }};\n{}",
        contents_in_c("lw_described")
    );
    // SAFETY: the table of the prelude, with a type and a function, which is NULL if there is none.
    let (lock, acquire) = unsafe {
        let table = load(path, shown, &prelude)?.cast::<*const LockType>();
        (*table, table.add(1).cast::<Option<AcquireFn>>().read())
    };
    // SAFETY: the type, whose first field is a pointer. The type is zero if nothing defines it.
    let is_described = unsafe { !lock.cast::<*const c_char>().read().is_null() };
    if !is_described {
        return Err(SourceError::NotDescribed {
            path: shown.to_owned(),
            name: name.into_owned(),
        });
    }
    // SAFETY: a constant of the library.
    let lock = unsafe { &*lock };
    let acquire = acquire.filter(|_| lock.is_resilient());
    if lock.is_resilient() && acquire.is_none() {
        return Err(SourceError::HasOwnThreads(name.into_owned()));
    }
    Ok(locks::Own {
        lock,
        kind: Kind::Lock,
        functions: acquire.map(|acquire| {
            let acquire = Some(acquire);
            &*Box::leak(Box::new(Functions {
                acquire,
                ..Functions::default()
            }))
        }),
    })
}

/// Whether a file is C++.
fn is_cpp(path: &Path) -> bool {
    let ends = ["cc", "cpp", "cxx", "hpp", "hh", "hxx", "C"];
    path.extension()
        .and_then(OsStr::to_str)
        .is_some_and(|end| ends.contains(&end))
}

/// A lock has no such function; nobody calls this one.
unsafe extern "C" fn never(_: *mut c_void, _: *mut c_void) -> bool {
    false
}

unsafe extern "C" fn never_reads(_: *mut c_void) -> bool {
    false
}

/// The readers of a seqlock do not acquire it; nobody calls this one.
unsafe extern "C" fn never_acquires(_: *mut c_void) {}

/// Loads a lock, or another object, whose functions are found by their names, and adds what it is to `loaded`.
fn load_as_it_stands(
    path: &Path,
    shown: &str,
    text: &str,
    loaded: Loaded,
) -> Result<(locks::Own, Loaded), SourceError> {
    let directory = tempfile::tempdir().map_err(SourceError::Headers)?;
    let compiler = Compiler::new(path, directory.path())?;
    let preprocessed = run(compiler.only("-E", path), &compiler.name, shown)?.stdout;
    let functions = functions::functions(
        &String::from_utf8_lossy(&preprocessed),
        &path.to_string_lossy(),
    );
    let lock = Lock::find(shown, text, &functions, &loaded.named);
    if lock.is_err() {
        // What is not C may be why nothing is found.
        run(compiler.only("-fsyntax-only", path), &compiler.name, shown)?;
    }
    let lock = lock?;
    if lock.lacks_tokens() {
        return Err(SourceError::NoTokens {
            path: shown.to_owned(),
        });
    }
    let ending = if compiler.is_cpp { "cc" } else { "c" };
    let main = directory.path().join(format!("source.{ending}"));
    let new = if compiler.is_cpp {
        "#include <new>\n"
    } else {
        ""
    };
    let text = format!(
        "{new}#include \"{}\"\n{}",
        path.display(),
        lock.glue(shown, compiler.is_cpp)?
    );
    fs::write(&main, text).map_err(SourceError::Headers)?;
    let prelude = format!("#include \"world.h\"\n{}", contents_in_c("0"));
    let library = link(
        &compiler,
        &main,
        shown,
        (None, &prelude),
        path,
        directory.path(),
    )?;
    let function = |name: &str| library.symbol::<*mut c_void>(&format!("lw_source_{name}"));
    let kind = lock.kind().expect("it is complete");
    // SAFETY: the glue defines these functions with these types.
    let makes = unsafe {
        Makes {
            lock: function("init").map(|f| std::mem::transmute::<*const *mut c_void, _>(f)),
            cond: function("cond_init").map(|f| std::mem::transmute::<*const *mut c_void, _>(f)),
            counts: kind == Kind::Semaphore && lock.is_told_tokens(),
        }
    };
    library.finish(shown, &makes)?;
    // SAFETY: the constant that the glue defines.
    let [size, node_size, cond_size] = unsafe {
        *library
            .symbol::<[c_ulong; 3]>("lw_source_sizes")
            .expect("defined")
    };
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // A condition variable and lockrefs are no locks.
    let is_taken = stem == crate::COND || stem.starts_with("lockref-");
    let name = if is_taken {
        format!("{stem}.{ending}")
    } else {
        stem
    };
    let constant = |text: &str| -> *const c_char {
        CString::new(text.replace('\0', ""))
            .unwrap_or_default()
            .into_raw()
    };
    let kernel = match compiler.is_kernel {
        true => "; with the operations of Linux, whose model is --memory lkmm",
        false => "",
    };
    let loaded = Loaded {
        summary: Some(lock.summary() + kernel),
        hint: compiler.is_kernel.then_some(LINUX_HINT),
        makers: lock.makers(),
        has_trylock: lock.can_be_tried(),
        kind,
        has_one_writer: lock.has_one_writer(),
        ..loaded
    };
    let is_seqlock = kind == Kind::Seqlock;
    // SAFETY: the glue defines these functions with these types.
    let (lock, functions) = unsafe {
        use std::mem::transmute;
        type Symbol = *const *mut c_void;
        let get = |role: Role| function(&role.to_string());
        let of = |role: Option<Role>| role.and_then(get);
        let functions = Functions {
            read_begin: get(Role::ReadBegin).map(|f| transmute(f)),
            read_retry: get(Role::ReadRetry).map(|f| transmute(f)),
            wait: get(Role::Wait).map(|f| transmute(f)),
            signal: get(Role::Signal).map(|f| transmute(f)),
            broadcast: get(Role::Broadcast).map(|f| transmute(f)),
            acquire: None,
        };
        let lock = LockDescription {
            name: constant(&name),
            summary: constant(""),
            origin: constant(shown),
            tunables: std::ptr::null(),
            size: size.max(cond_size) as usize,
            node_size: node_size as usize,
            traits: 0 as c_uint,
            unlocked: 0,
            lock: transmute::<Symbol, LockFn>(of(lock.acquires()).expect("found")),
            try_lock: of(lock.tries()).map_or(never, |f| transmute(f)),
            unlock: transmute::<Symbol, UnlockFn>(of(lock.releases()).expect("found")),
            lock_limited: None,
            read_lock: match is_seqlock {
                true => Some(never_acquires),
                false => get(Role::ReadLock).map(|f| transmute(f)),
            },
            read_try_lock: get(Role::ReadLock)
                .map(|_| get(Role::ReadTryLock).map_or(never_reads as _, |f| transmute(f))),
            read_unlock: get(Role::ReadUnlock).map(|f| transmute(f)),
            read_lock_limited: None,
        };
        // The check sees each access of the functions.
        (LockType::new(lock), functions)
    };
    let own = locks::Own {
        lock: Box::leak(Box::new(lock)),
        kind,
        functions: matches!(kind, Kind::Seqlock | Kind::Cond)
            .then(|| &*Box::leak(Box::new(functions))),
    };
    Ok((own, loaded))
}

/// Compiles and loads a source behind a prelude, and returns the main part of what it has, which is a
/// constant.
///
/// # Panics
/// If a source has been loaded before.
pub(crate) fn load(path: &Path, shown: &str, prelude: &str) -> Result<*const c_void, SourceError> {
    let directory = tempfile::tempdir().map_err(SourceError::Headers)?;
    let compiler = Compiler::new(path, directory.path())?;
    let file = directory.path().join("prelude.h");
    fs::write(&file, prelude).map_err(SourceError::Headers)?;
    let library = link(
        &compiler,
        path,
        shown,
        (Some(&file), ""),
        path,
        directory.path(),
    )?;
    library.finish(shown, &Makes::default())?;
    Ok(library.contents().main)
}

/// The functions by which a source makes objects of memory, before the check.
#[derive(Default)]
struct Makes {
    /// It makes a lock, or a semaphore with so many tokens.
    lock: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, c_ulong)>,
    /// It makes a condition variable.
    cond: Option<unsafe extern "C" fn(*mut c_void)>,
    /// The lock is a semaphore whose function is told the number of its tokens.
    counts: bool,
}

impl Makes {
    /// Makes all locks of a check. `globals`: the static variables.
    fn start(&self, tokens: usize, globals: &std::ops::Range<usize>) -> Start {
        lost::initialises(true);
        let locks = std::array::from_fn(|i| {
            let lock = layout::lock(i) as *mut c_void;
            // SAFETY: memory is mapped there.
            unsafe {
                lock.cast::<u8>().write_bytes(0, layout::LOCK_STRIDE);
                match (self.cond, self.lock) {
                    (Some(make), _) if i == LW_CHECK_COND => make(lock),
                    (_, Some(make)) => make(lock, std::ptr::null_mut(), tokens as c_ulong),
                    _ => {}
                }
            }
            bytes(layout::lock(i)..layout::lock(i) + layout::LOCK_STRIDE)
        });
        lost::initialises(false);
        let is_made = self.lock.is_some() || self.cond.is_some();
        Start {
            globals: bytes(globals.clone()),
            locks: is_made.then_some(locks),
        }
    }

    /// What memory may hold at the start: once, or for each number of tokens that the function is told.
    fn starts(&self, globals: &std::ops::Range<usize>) -> Vec<Start> {
        let before = bytes(globals.clone());
        let most = if self.counts { MOST_TOKENS } else { 1 };
        let mut starts = Vec::new();
        for tokens in 1..=most {
            if tokens > 1 {
                // SAFETY: the memory from which these bytes are; the source may write to it.
                unsafe {
                    let to = globals.start as *mut u8;
                    to.copy_from_nonoverlapping(before.as_ptr(), before.len());
                }
            }
            starts.push(self.start(tokens, globals));
        }
        starts
    }
}

/// A library that a source was compiled to. Its code and constants stay for as long as the program runs.
struct Compiled {
    path: PathBuf,
    /// The source.
    given: PathBuf,
    library: std::mem::ManuallyDrop<Library>,
    /// The numbers of sites of its calls.
    sites: Vec<usize>,
}

impl Compiled {
    fn symbol<T>(&self, name: &str) -> Option<*const T> {
        // SAFETY: only its address is asked for.
        let symbol = unsafe { self.library.get::<*const T>(name.as_bytes()) };
        symbol
            .ok()
            .map(|symbol| symbol.into_raw().cast::<T>().cast_const())
    }

    fn contents(&self) -> &'static Contents {
        let contents = self
            .symbol::<Contents>("lw_check_source")
            .expect("the prelude defines it");
        // SAFETY: that constant.
        unsafe { &*contents }
    }

    /// Makes its operations and its memory those of the check.
    fn finish(&self, shown: &str, makes: &Makes) -> Result<(), SourceError> {
        let file = fs::read(&self.path).map_err(SourceError::Headers)?;
        let elf: ElfFile64<Endianness> = ElfFile64::parse(&*file)
            .map_err(|error| SourceError::Headers(io::Error::other(error)))?;
        let own = elf
            .dynamic_symbols()
            .find(|s| s.name() == Ok("lw_check_source"));
        let own = own.map_or(0, |symbol| symbol.address());
        let base = std::ptr::from_ref(self.contents()) as usize - own as usize;
        self.add_sites(base);
        let endian = elf.endian();
        let (mut globals, mut constants, mut locals) = (0..0, 0, None);
        for header in elf.elf_program_headers() {
            let start = header.p_vaddr(endian) as usize;
            let range = base + start..base + start + header.p_memsz(endian) as usize;
            match header.p_type(endian) {
                elf::PT_LOAD if header.p_flags(endian) & elf::PF_W == elf::PF_W => globals = range,
                elf::PT_GNU_RELRO => constants = range.end,
                elf::PT_TLS => locals = Some((range, header.p_filesz(endian) as usize)),
                _ => {}
            }
        }
        globals.start = globals.start.max(constants).min(globals.end);
        let too_large = |what, size, max| SourceError::Variables {
            path: shown.to_owned(),
            what,
            size,
            max,
        };
        if globals.len() > layout::MOST_GLOBALS {
            return Err(too_large(
                "static variables",
                globals.len(),
                layout::MOST_GLOBALS,
            ));
        }
        let mut of_locals = Vec::new();
        if let Some((range, in_file)) = locals {
            if range.len() > layout::LOCAL_STRIDE {
                return Err(too_large(
                    "thread-local variables",
                    range.len(),
                    layout::LOCAL_STRIDE,
                ));
            }
            of_locals = bytes(range.start..range.start + in_file);
            of_locals.resize(range.len(), 0);
        }
        image::map().map_err(SourceError::Memory)?;
        if !of_locals.is_empty() {
            // SAFETY: the memory that was mapped, of the thread that initialises.
            unsafe {
                let to = layout::local(0) as *mut u8;
                to.copy_from_nonoverlapping(of_locals.as_ptr(), of_locals.len());
            }
        }
        let starts = makes.starts(&globals);
        let names = elf
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Data);
        let names = names.filter_map(|symbol| {
            let offset = (base + symbol.address() as usize).checked_sub(globals.start)?;
            Some((
                offset,
                symbol.size() as usize,
                symbol.name().ok()?.to_owned(),
            ))
        });
        image::set(Image {
            names: names.collect(),
            globals,
            module: module_at(base),
            of_locals,
            starts,
        });
        Ok(())
    }

    /// Adds its operations to the sites, with their places.
    fn add_sites(&self, base: usize) {
        let contents = self.contents();
        let mut places = Places::new(
            &self.path,
            &self.given,
            self.path.parent().unwrap_or(Path::new("/")),
        );
        if let Some(calls) = self.symbol::<[*const Call; 1]>("lw_check_calls") {
            // SAFETY: the table, whose length is the number of calls that were given sites, each with as many
            // sites. Nobody reads them yet.
            unsafe {
                let calls = (*calls)[0];
                for (i, count) in self.sites.iter().enumerate() {
                    let Call { address, sites } = *calls.add(i);
                    let place = places.of((address - base) as u64);
                    for site in 0..*count {
                        let site = &mut *sites.add(site);
                        site.set_place(place.file, place.function, place.operand, place.line);
                    }
                }
            }
        }
        site::add(match contents.first.is_null() {
            // No operation, no section.
            true => &[],
            // SAFETY: the bounds of the section in which the linker has put the sites.
            false => unsafe {
                let count = contents.end.offset_from(contents.first) as usize;
                std::slice::from_raw_parts(contents.first, count)
            },
        });
    }
}

/// A call and its sites, `struct lw_check_return` in C.
#[repr(C)]
#[derive(Clone, Copy)]
struct Call {
    address: usize,
    sites: *mut Site,
}

/// The bytes at these addresses, which are readable.
fn bytes(range: std::ops::Range<usize>) -> Vec<u8> {
    // SAFETY: a segment of the library, or memory that was mapped. Nobody writes to it meanwhile.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }.to_vec()
}

/// The number by which the system knows the thread-local variables of the library at this address.
fn module_at(base: usize) -> usize {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: of the library, and the pair below.
        unsafe {
            let found = &mut *found.cast::<[usize; 2]>();
            if (*info).dlpi_addr as usize == found[0] {
                found[1] = (*info).dlpi_tls_modid;
            }
        }
        0
    }
    let mut found = [base, 0];
    // SAFETY: the function has this type.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found[1]
}

/// A thread-local variable of the program, which a source may use.
///
/// # Safety
/// As `__tls_get_addr` of the system.
pub(crate) unsafe fn thread_local_of_program(index: *const [usize; 2]) -> usize {
    type Get = unsafe extern "C" fn(*const [usize; 2]) -> usize;
    // SAFETY: the system's function, if it has one, has this type.
    unsafe {
        let get = libc::dlsym(libc::RTLD_DEFAULT, c"__tls_get_addr".as_ptr());
        match get.is_null() {
            true => 0,
            false => std::mem::transmute::<*mut c_void, Get>(get)(index),
        }
    }
}

/// The file of the source that was loaded.
pub fn loaded_source() -> Option<&'static Path> {
    LOADED.get().map(|loaded| loaded.path.as_path())
}

/// The options by which the source was loaded.
pub fn loaded_options() -> Option<String> {
    let loaded = LOADED.get()?;
    let path = loaded.path.to_string_lossy().into_owned();
    let path = shlex::try_quote(&path).unwrap_or_default();
    let named: Vec<String> = loaded.named.iter().map(Named::to_string).collect();
    Some(match named.is_empty() {
        true => format!("--source {path}"),
        false => format!("--source {path} --functions {}", named.join(",")),
    })
}

/// Whether the lock of the source that was loaded can be tried.
pub fn loaded_has_trylock() -> bool {
    LOADED.get().is_some_and(|loaded| loaded.has_trylock)
}

/// What the source that was loaded has, if there is one.
pub fn loaded_kind() -> Option<Kind> {
    LOADED.get().map(|loaded| loaded.kind)
}

/// Whether its semaphore is told the number of its tokens.
pub fn loaded_has_tokens() -> bool {
    image::has_tokens()
}

/// Whether its seqlock has no lock between writers.
pub fn loaded_has_one_writer() -> bool {
    LOADED.get().is_some_and(|loaded| loaded.has_one_writer)
}

/// Of a lock in the operations of Linux.
const LINUX_HINT: &str = "If Linux' own memory model allows less: --memory lkmm. By default, its operations are judged as those of C11.";

/// What may be the reason why the source that was loaded breaks a promise.
pub fn loaded_hint() -> Option<&'static str> {
    LOADED.get()?.hint
}

/// Whether a function makes the object of the source that was loaded, which is done before the search.
pub fn loaded_makes(function: &str) -> bool {
    let makers = LOADED.get().map(|loaded| &loaded.makers);
    makers.is_some_and(|makers| makers.iter().any(|maker| maker == function))
}

/// The functions of the source that was loaded, in words, if it does not describe its lock.
pub fn loaded_summary() -> Option<&'static str> {
    LOADED.get()?.summary.as_deref()
}

/// The files that a check of the loaded source depends on: the source and, in a checkout, the headers there.
pub(crate) fn loaded_files() -> Vec<PathBuf> {
    let Some(source) = LOADED.get() else {
        return Vec::new();
    };
    let source = &source.path;
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
fn words_of(compiler: &str) -> Command {
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// The same, without the warnings of clang about options that a call does not need.
fn command_of(compiler: &str) -> Command {
    let mut command = words_of(compiler);
    if is_supported(compiler, "-Wunused-command-line-argument") {
        command.arg("-Wno-unused-command-line-argument");
    }
    command
}

/// Whether a compiler has an option; gcc has some that clang has not.
fn is_supported(compiler: &str, flag: &str) -> bool {
    let mut command = words_of(compiler);
    command.args(["-Werror", "-E", "-xc"]);
    command.args(flag.split(' ')).arg("/dev/null");
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs a compiler, and shows its warnings.
fn run(mut command: Command, compiler: &str, shown: &str) -> Result<Output, SourceError> {
    let output = command.output().map_err(|error| SourceError::Compiler {
        compiler: compiler.to_owned(),
        error,
    })?;
    let lines = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(SourceError::Compile {
            path: shown.to_owned(),
            lines: lines.trim_end().to_owned(),
        });
    }
    eprint!("{lines}");
    Ok(output)
}

/// The options with which each access of a source is a call, and calls stay where they are.
const INSTRUMENTED: [&str; 16] = [
    "-fsanitize=thread",
    // The checker knows fences.
    "-Wno-tsan",
    "--param=tsan-instrument-func-entry-exit=0",
    "-mllvm -tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
    "-mllvm -tsan-distinguish-volatile=1",
    "-mllvm -tsan-instrument-read-before-write=1",
    "-fno-optimize-sibling-calls",
    "-fno-crossjumping",
    "-fno-tree-tail-merge",
    "-fno-reorder-blocks-and-partition",
    "-fno-ipa-reference",
    "-fno-builtin-memset",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-exceptions",
];

/// The compiler of a source, and its headers.
struct Compiler {
    name: String,
    is_cpp: bool,
    includes: Vec<PathBuf>,
    /// The headers of this program, or those of a checkout.
    root: PathBuf,
    is_historic: bool,
    /// The source uses the operations of Linux.
    is_kernel: bool,
}

/// Whether a source uses the operations of Linux, by its headers, or without any. `preprocess` is the source
/// behind the preprocessor, without these operations.
fn is_of_kernel(text: &str, preprocess: impl FnOnce() -> Option<String>) -> bool {
    const WORDS: [&str; 6] = [
        "READ_ONCE",
        "WRITE_ONCE",
        "smp_mb",
        "smp_store_release",
        "smp_load_acquire",
        "atomic_t",
    ];
    let is_ours = |line: &str| {
        let name = line
            .trim()
            .strip_prefix("#include <")
            .and_then(|rest| rest.split('>').next());
        name.is_some_and(|name| WORLD.get_file(format!("source/kernel/{name}")).is_some())
    };
    let names = |text: &str| -> Vec<&'static str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c| !is_word(c));
        let words: Vec<&str> = words.filter(|word| WORDS.contains(word)).collect();
        WORDS
            .into_iter()
            .filter(|word| words.contains(word))
            .collect()
    };
    if text.lines().any(is_ours) {
        return true;
    }
    if names(text).is_empty() {
        return false;
    }
    // Its own headers may include those of Linux, which are not there yet.
    let Some(text) = preprocess() else {
        return true;
    };
    let functions = functions::functions(&text, "");
    // No comments are left, and no macros that the source defines.
    names(&text).into_iter().any(|name| {
        let is_function = functions.iter().any(|function| function.name == name);
        let is_type = text.contains(&format!(" {name};"));
        !is_function && !is_type
    })
}

impl Compiler {
    fn new(path: &Path, directory: &Path) -> Result<Self, SourceError> {
        if cfg!(target_feature = "crt-static") {
            return Err(SourceError::Static);
        }
        let is_cpp = is_cpp(path);
        let (variable, usual) = if is_cpp { ("CXX", "c++") } else { ("CC", "cc") };
        let name = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
        // A lock of a checkout is compiled with the headers that are there.
        let root = checkout(path).unwrap_or(directory).to_owned();
        if root != directory {
            compare_checkout(&root)?;
        }
        let beside = path.parent().unwrap_or(Path::new("/"));
        compare_beside(beside)?;
        for (part, files) in [("locks", &LOCKS), ("worlds/check", &WORLD)] {
            if root == directory {
                let write = fs::create_dir_all(root.join(part));
                let write = write.and_then(|()| files.extract(root.join(part)));
                write.map_err(SourceError::Headers)?;
            }
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let parts = ["", "contract", "parts", "registry"];
        let own = parts.map(|part| beside.join(part));
        let mut includes: Vec<PathBuf> = own.into_iter().filter(|part| part.is_dir()).collect();
        includes.push(root.join("worlds/check"));
        includes.extend(parts.map(|part| root.join("locks").join(part)));
        let historic = root.join("locks/historic");
        let is_historic = path.starts_with(&historic);
        if is_historic {
            includes.push(historic);
        }
        let mut compiler = Self {
            name,
            is_cpp,
            includes,
            is_kernel: false,
            root,
            is_historic,
        };
        compiler.is_kernel = is_of_kernel(&text, || compiler.preprocessed(path));
        Ok(compiler)
    }

    /// The compiler with the headers.
    fn command(&self) -> Command {
        let mut command = command_of(&self.name);
        command.args([
            "-O2",
            "-g",
            "-fPIC",
            "-Wall",
            "-Wno-unused-function",
            "-Wno-unused-parameter",
            "-Wno-misleading-indentation",
        ]);
        for include in &self.includes {
            command.arg("-I").arg(include);
        }
        if self.is_historic {
            command.arg("-DLW_WITH_HISTORIC");
        }
        if self.is_kernel {
            let headers = self.root.join("worlds/check/source/kernel");
            command.arg("-isystem").arg(&headers);
            command
                .arg("-include")
                .arg(headers.join("lockworks_kernel.h"));
        }
        command
    }

    /// The command that makes only a step of compiling a source: `-E`, or `-fsyntax-only`.
    fn only(&self, step: &str, path: &Path) -> Command {
        let mut command = self.command();
        command.args(["-w", step]).args(self.language()).arg(path);
        command
    }

    /// A source without its macros and comments, if all its headers are there.
    fn preprocessed(&self, path: &Path) -> Option<String> {
        let output = self.only("-E", path).output().ok();
        let output = output.filter(|output| output.status.success());
        Some(String::from_utf8_lossy(&output?.stdout).into_owned())
    }

    /// The options that say the language, which a header's name does not.
    fn language(&self) -> [&str; 2] {
        ["-x", if self.is_cpp { "c++" } else { "c" }]
    }
}

/// Compiles a source to a library in `directory`, behind a prelude. `text`: what is compiled besides it.
/// `given`: the file of the user's that it is, or that it includes.
fn link(
    compiler: &Compiler,
    path: &Path,
    shown: &str,
    (prelude, text): (Option<&Path>, &str),
    given: &Path,
    directory: &Path,
) -> Result<Compiled, SourceError> {
    let supported = |flags: &[&'static str], compiler: &str| -> Vec<&'static str> {
        let flags = flags
            .iter()
            .copied()
            .filter(|flag| is_supported(compiler, flag));
        flags.flat_map(|flag| flag.split(' ')).collect()
    };
    let mut command = compiler.command();
    command.args(supported(FLAGS, &compiler.name));
    command.args(supported(&INSTRUMENTED, &compiler.name));
    if let Some(prelude) = prelude {
        command.arg("-std=gnu17").arg("-include").arg(prelude);
    }
    let file = directory.join("source.s");
    command
        .args(compiler.language())
        .arg("-S")
        .arg(path)
        .arg("-o")
        .arg(&file);
    run(command, &compiler.name, shown)?;
    let rewritten = assembly::rewrite(&fs::read_to_string(&file).map_err(SourceError::Headers)?);
    fs::write(&file, &rewritten.text).map_err(SourceError::Headers)?;
    if let Some((Line { file, number }, text)) = rewritten.inline.first() {
        return Err(SourceError::Assembly {
            file: file.clone(),
            line: *number,
            text: text.trim().replace('\n', "; ").replace('\t', " "),
        });
    }

    let accesses = directory.join("accesses.c");
    fs::write(
        &accesses,
        format!("{text}\n#include \"source/accesses.c\"\n"),
    )
    .map_err(SourceError::Headers)?;
    let library = directory.join("source.so");
    let mut command = command_of(&compiler.name);
    command.args([
        "-std=gnu17",
        "-O2",
        "-fPIC",
        "-shared",
        "-Wl,-Bsymbolic",
        "-Wl,--no-gc-sections",
    ]);
    command.args(supported(FLAGS, &compiler.name));
    for part in [
        "worlds/check",
        "locks",
        "locks/contract",
        "locks/parts",
        "locks/registry",
    ] {
        command.arg("-I").arg(compiler.root.join(part));
    }
    command.arg("-x").arg("c").arg(&accesses);
    command
        .arg("-x")
        .arg("assembler")
        .arg(&file)
        .arg("-o")
        .arg(&library);
    run(command, &compiler.name, shown)?;
    check_calls(&library, shown, &rewritten.calls)?;
    // SAFETY: the library is lock code, whose initialisers are constants.
    let loaded = unsafe { Library::open(Some(&library), RTLD_NOW | RTLD_LOCAL) };
    let loaded = loaded.map_err(|error| SourceError::Load {
        path: shown.to_owned(),
        error,
    })?;
    Ok(Compiled {
        path: library,
        given: given.to_owned(),
        library: std::mem::ManuallyDrop::new(loaded),
        sites: rewritten.sites,
    })
}

/// Fails if a library calls a function that is neither its own nor of the checker.
fn check_calls(
    library: &Path,
    shown: &str,
    calls: &HashMap<String, Line>,
) -> Result<(), SourceError> {
    /// The beginnings of names that compilers and linkers use.
    const KNOWN: [&str; 9] = [
        "lw_check_",
        "__cxa_atexit",
        "__cxa_finalize",
        "__gxx_",
        "_Unwind_",
        "_ITM_",
        "__gmon_",
        "_ZTV",
        "_ZSt",
    ];
    let file = fs::read(library).map_err(SourceError::Headers)?;
    let elf: ElfFile64<Endianness> =
        ElfFile64::parse(&*file).map_err(|error| SourceError::Headers(io::Error::other(error)))?;
    let missing = elf
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    let mut names: Vec<&str> = missing.filter_map(|symbol| symbol.name().ok()).collect();
    names.sort_unstable();
    names.retain(|name| !name.is_empty() && !KNOWN.iter().any(|known| name.starts_with(known)));
    let Some(name) = names.first() else {
        return Ok(());
    };
    let Some(at) = calls.get(*name).cloned() else {
        return Err(SourceError::Symbol {
            path: shown.to_owned(),
            name: (*name).to_owned(),
        });
    };
    Err(SourceError::Call {
        path: shown.to_owned(),
        file: at.file,
        line: at.number,
        name: (*name).to_owned(),
    })
}
