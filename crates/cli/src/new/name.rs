//! Checks the name of a new lock: an identifier of C, C++ and Rust that nothing else has.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use regex::Regex;

use super::{Checkout, LOCKS_LIST};

/// Words that C17, C23, C++20 or Rust reserve: a lock is a class of C++ and a module of Rust too.
const RESERVED: &str = "\
    abstract alignas alignof and and_eq as asm async auto await become bitand bitor bool box \
    break case catch char char16_t char32_t char8_t class co_await co_return co_yield compl \
    concept const const_cast consteval constexpr constinit continue crate decltype default \
    delete detail do double dyn dynamic_cast else enum explicit export extern false final float \
    fn for friend gen goto i386 if impl in inline int let linux long loop macro main match mod \
    move mut mutable namespace new noexcept not not_eq nullptr operator or or_eq override priv \
    private protected pub public ref register reinterpret_cast requires restrict return self \
    short signed sizeof static static_assert static_cast std struct super switch template this \
    thread_local throw trait true try type typedef typeid typename typeof typeof_unqual union \
    unix unsafe unsigned unsized use using virtual void volatile wchar_t where while xor xor_eq \
    yield";

/// The longest name, for lines and file names of a usual length.
const MAX_LENGTH: usize = 40;

/// Directories whose C files are compiled together with the locks, or include them.
const C_DIRECTORIES: [&str; 6] = ["locks", "worlds", "lib", "interpose", "clients", "tests"];

/// Refuses a name that a new lock cannot have.
pub fn check(name: &str, checkout: &Checkout) -> Result<()> {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !begins || !name.chars().all(allowed) {
        let name = name.escape_debug();
        bail!(
            "'{name}' cannot name a lock: a name is of lower-case letters, digits and _, and begins \
             with a letter"
        );
    }
    if name.len() > MAX_LENGTH {
        bail!(
            "'{name}' cannot name a lock: it has {} letters; at most {MAX_LENGTH} are allowed",
            name.len()
        );
    }
    if let Some(rest) = name.strip_prefix("lw_") {
        bail!(
            "'{name}' cannot name a lock: its functions would be {}; try '{rest}'",
            format_args!("lw_{name}_lock() and so on")
        );
    }
    if RESERVED.split(' ').any(|word| word == name) {
        bail!("'{name}' cannot name a lock: C, C++ or Rust reserves the word; choose another");
    }
    let list = checkout.read(LOCKS_LIST)?;
    if listed(&list).any(|lock| lock == name) {
        bail!("'{name}' is a lock already; `lockworks locks {name}` describes it");
    }
    if let Some(lock) = listed(&list).find(|lock| is_function_of(name, lock)) {
        bail!("'{name}' is taken: the lock {lock} has lw_{name}(); choose another name");
    }
    if name == "glibc" || lockworks_peers::all().any(|peer| peer.bench.name() == name) {
        bail!("'{name}' is taken by a lock that Lockworks is compared with; choose another name");
    }
    if let Some(place) = file_or_symbol(name, checkout)? {
        bail!("'{name}' is taken: {place}; choose another name");
    }
    if system_has_header(name) {
        bail!(
            "'{name}' is taken: programs include <{name}.h> of the system, which locks/{name}.h would \
             hide; choose another name"
        );
    }
    Ok(())
}

/// The locks in the text of the list of locks.
pub fn listed(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter_map(|line| line.strip_prefix("LW_LOCK(")?.strip_suffix(')'))
}

/// Whether `lw_NAME()` is a function of a lock. Macros define these, so no file spells them out.
fn is_function_of(name: &str, lock: &str) -> bool {
    name.strip_prefix(lock)
        .is_some_and(|rest| ["_lock", "_trylock", "_unlock"].contains(&rest))
}

/// The file or symbol of the checkout's C code whose name the new lock's files would have or
/// define.
fn file_or_symbol(name: &str, checkout: &Checkout) -> Result<Option<String>> {
    let upper = name.to_uppercase();
    let symbols = Regex::new(&format!(
        r"\b(lw_{name}(_lock|_lock_slow|_trylock|_unlock|_init|_type)?|LW_{upper}(_H|_INIT)?)\b"
    ))
    .context("a name makes a pattern")?;
    for directory in C_DIRECTORIES {
        let mut waiting = vec![checkout.root.join(directory)];
        while let Some(directory) = waiting.pop() {
            let entries = fs::read_dir(&directory)
                .with_context(|| format!("cannot read {}", directory.display()))?;
            for entry in entries {
                let path = entry.context("cannot read a directory")?.path();
                if path.is_dir() {
                    waiting.push(path);
                } else if let Some(found) = taken_in(&path, name, &symbols)? {
                    let file = path.strip_prefix(&checkout.root).unwrap_or(&path);
                    return Ok(Some(match found {
                        Taken::File => format!("{} exists", file.display()),
                        Taken::Symbol(symbol) => format!("{} has {symbol}", file.display()),
                    }));
                }
            }
        }
    }
    Ok(None)
}

enum Taken {
    File,
    Symbol(String),
}

fn taken_in(path: &Path, name: &str, symbols: &Regex) -> Result<Option<Taken>> {
    let is_c = path.extension().is_some_and(|e| e == "c" || e == "h");
    if !is_c {
        return Ok(None);
    }
    // Headers and lock files are found by name alone. A test finds the header beside it first, and
    // its object file is in a directory for tests.
    let by_name = !path.components().any(|part| part.as_os_str() == "tests");
    if by_name && path.file_stem().is_some_and(|stem| stem == name) {
        return Ok(Some(Taken::File));
    }
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(symbols
        .find(&text)
        .map(|symbol| Taken::Symbol(symbol.as_str().to_owned())))
}

/// Whether the C compiler finds a header of that name. Without a compiler nothing is found.
fn system_has_header(name: &str) -> bool {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let preprocess = || {
        let mut child = Command::new(compiler)
            .args(["-E", "-x", "c", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let source = format!("#include <{name}.h>\n");
        let fed = child
            .stdin
            .take()
            .map(|mut to| to.write_all(source.as_bytes()));
        let status = child.wait()?;
        fed.transpose()?;
        std::io::Result::Ok(status.success())
    };
    preprocess().unwrap_or(false)
}
