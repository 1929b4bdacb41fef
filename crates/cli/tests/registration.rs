//! Tests that every public lock is complete: callable from C, C++ and Rust, exported, documented,
//! and with mutants.
//!
//! Programs can call a lock if lockworks.h declares its functions. All other locks of locks_list.h
//! are experimental or historic, and need none of this.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lockworks::LockType;
use lockworks_check::mutants::Mutants;
use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs a compiler of `language` on `source`; returns its output if it succeeds.
fn compile(compiler: &str, language: &str, options: &[&str], source: &str) -> Option<String> {
    let includes = [
        "locks",
        "locks/contract",
        "locks/parts",
        "locks/registry",
        "worlds/user",
        "lib/include",
    ];
    let mut child = Command::new(compiler)
        .args(options)
        .args(includes.map(|directory| format!("-I{directory}")))
        .args(["-x", language, "-"])
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let mut to = child.stdin.take().expect("a pipe");
    to.write_all(source.as_bytes())
        .expect("a compiler that reads");
    drop(to);
    let done = child.wait_with_output().expect("a compiler that ends");
    done.status
        .success()
        .then(|| String::from_utf8(done.stdout).expect("source is UTF-8"))
}

/// The declarations and macros of lockworks.h, preprocessed.
fn public_header() -> String {
    compile(
        "cc",
        "c",
        &["-E", "-dD"],
        "#include <lockworks/lockworks.h>\n",
    )
    .expect("lockworks.h without errors")
}

/// The locks whose functions a header declares.
fn public<'a>(
    header: &str,
    locks: &'a [&'static LockType],
) -> impl Iterator<Item = &'a &'static LockType> {
    let pattern = Regex::new(r"\blw_(\w+)_lock ?\(").expect("a pattern");
    let declared: BTreeSet<String> = pattern
        .captures_iter(header)
        .map(|found| found[1].to_owned())
        .collect();
    locks
        .iter()
        .filter(move |lock| declared.contains(lock.name()))
}

/// The functions of a lock that the header exports; inline functions are not among them.
fn exported<'a>(header: &'a str, lock: &str) -> BTreeSet<&'a str> {
    let pattern = format!(r#"visibility\("default"\)\)\)[^;{{}}()=]*\b(lw_{lock}_\w+) ?\("#);
    Regex::new(&pattern)
        .expect("a pattern")
        .captures_iter(header)
        .map(|found| found.get(1).expect("the name").as_str())
        .collect()
}

/// Whether a page has a heading with the lock's name, or its name in bold. In code, `#` begins no
/// heading.
fn documents(page: &str, lock: &str) -> bool {
    let code = Regex::new(r"(?ms)^```.*?^```").expect("a pattern");
    let named = Regex::new(&format!(r"(?m)^#.*\b{lock}\b|\*\*`{lock}`\*\*")).expect("a pattern");
    named.is_match(&code.replace_all(page, ""))
}

/// Whether a page below `directory` documents the lock.
fn documented(directory: &Path, lock: &str) -> bool {
    fs::read_dir(directory)
        .expect("documentation")
        .map(|entry| entry.expect("documentation").path())
        .any(|path| {
            if path.is_dir() {
                documented(&path, lock)
            } else {
                path.extension().is_some_and(|extension| extension == "md")
                    && documents(&fs::read_to_string(&path).expect("a page"), lock)
            }
        })
}

/// The list of what public locks lack. A test that returns it prints no backtrace, which a panic may
/// print.
struct Missing(Vec<String>);

impl fmt::Debug for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "add:\n  {}", self.0.join("\n  "))
    }
}

#[test]
fn public_locks_are_there_for_all_programs() -> Result<(), Missing> {
    let header = public_header();
    let mutants = Mutants::all().expect("the list of mutants");
    let exports = read("lib/lockworks.map");
    let mut missing = Vec::new();
    let mut public_locks = 0;
    for lock in public(&header, lockworks::lock_types()) {
        let name = lock.name();
        public_locks += 1;
        let mut want = |there: bool, what: String| {
            if !there {
                missing.push(what);
            }
        };
        let init = format!("#define LW_{}_INIT", name.to_uppercase());
        want(
            header.contains(&format!("{init} ")),
            format!("lib/include/lockworks/lockworks.h: {init} {{...}}, an unlocked {name}"),
        );
        for function in exported(&header, name) {
            want(
                exports.contains(&format!("\t{function};\n")),
                format!("lib/lockworks.map: {function};"),
            );
        }
        let class = format!("#include <lockworks/lockworks.hpp>\nlockworks::{name} lock;\n");
        want(
            compile("c++", "c++", &["-std=c++17", "-fsyntax-only"], &class).is_some(),
            format!(
                "lib/include/lockworks/lockworks.hpp: LW_LOCKABLE({name}, ..., LW_{}_INIT);",
                name.to_uppercase()
            ),
        );
        // Rust code lends queue nodes through RawLock only.
        want(
            lock.node_size() > 0 || lockworks::MODULES.contains(&name),
            format!("crates/lockworks/src/locks.rs: {name}: lw_{name}_type, ... in locks!"),
        );
        want(
            documented(&root().join("docs"), name),
            format!("docs: a page with {name} in its heading, or **`{name}`** in a list of locks"),
        );
        want(
            lock.is_broken()
                || mutants
                    .mutants
                    .iter()
                    .any(|mutant| mutant.lock == name && !mutant.configurations.is_empty()),
            format!("crates/check/mutants/{name}.toml: its mutants, see README.md there"),
        );
    }
    assert!(public_locks >= 9, "only {public_locks} locks are public");
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Missing(missing)),
    }
}

#[test]
fn a_lock_is_documented_by_a_heading_or_its_name_in_bold() {
    assert!(documents("Text.\n\n# The lock turn\n", "turn"));
    assert!(documents("- **`turn`**: a ticket lock\n", "turn"));
    assert!(!documents("# The lock turns\n\nNo turn.\n", "turn"));
    assert!(!documents(
        "```c file=turn.c\n#include \"turn.h\"\n```\n",
        "turn"
    ));
    assert!(documents("```c\n```\n\n# turn\n\n```c\n```\n", "turn"));
}

#[test]
fn a_lock_is_public_by_its_declarations() {
    let names = |header: &str| -> Vec<&str> {
        public(header, lockworks::lock_types())
            .map(|lock| lock.name())
            .collect()
    };
    assert_eq!(
        names("static inline void lw_cna_lock(struct lw_cna *lock)"),
        ["cna"]
    );
    assert_eq!(
        names("void lw_cna_lock_slow(int); void lw_mutex_lock_until(int)"),
        [""; 0]
    );
    let all = public_header();
    for lock in lockworks::lock_types() {
        let is_for_tools = lock.is_broken() || lock.is_historic();
        assert!(
            !is_for_tools || !names(&all).contains(&lock.name()),
            "{}",
            lock.name()
        );
    }
    let slow =
        "__attribute__((visibility(\"default\"))) void lw_cna_lock_slow(struct lw_cna *lock);";
    assert_eq!(exported(slow, "cna"), BTreeSet::from(["lw_cna_lock_slow"]));
}
