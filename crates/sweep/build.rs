//! Computes the version of results, under which `lockworks sweep` stores them: a hash of all sources
//! that results depend on, and of the compilers and the target.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockworks_build::{compiler, root, watch};
use xxhash_rust::xxh3::Xxh3;

/// The files and directories that the results of simulations and checks depend on.
const SOURCES: [&str; 22] = [
    "Cargo.lock",
    "Cargo.toml",
    "clients",
    "crates/build/src",
    "crates/check/build.rs",
    "crates/check/flags.rs",
    "crates/check/src",
    "crates/explore/src",
    "crates/litmus/src",
    "crates/lockworks/build.rs",
    "crates/lockworks/src",
    "crates/machine/src",
    "crates/names/src",
    "crates/measurements/src",
    "crates/sim/build.rs",
    "crates/sim/src",
    "crates/sweep/src/point.rs",
    "experiments/workloads",
    "locks",
    "machines",
    "worlds/check",
    "worlds/sim",
];

fn main() {
    let mut files = BTreeSet::new();
    for source in SOURCES {
        watch(source);
        collect(&root().join(source), &mut files);
    }
    let mut hash = Xxh3::new();
    let mut add = |part: &[u8]| {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    for file in &files {
        let name = file.strip_prefix(root()).expect("a file below the root");
        add(name.as_os_str().as_encoded_bytes());
        add(&fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    // The states of a check depend on the machine code of the locks.
    add(&version(
        compiler("worlds/check").get_compiler().to_command(),
    ));
    add(&version(Command::new(
        env::var_os("RUSTC").expect("cargo sets it"),
    )));
    for variable in ["TARGET", "OPT_LEVEL", "CFLAGS"] {
        println!("cargo::rerun-if-env-changed={variable}");
        let value = env::var(variable).unwrap_or_default();
        let words = value.split_whitespace();
        // Where the sources lie makes no difference.
        let words = words.filter(|word| !word.contains("-prefix-map="));
        add(words.collect::<Vec<_>>().join(" ").as_bytes());
    }
    println!("cargo::rustc-env=LOCKWORKS_SOURCES={:016x}", hash.digest());
}

/// The version that a compiler prints.
fn version(mut compiler: Command) -> Vec<u8> {
    let printed = compiler.arg("--version").output();
    printed
        .unwrap_or_else(|error| panic!("{compiler:?}: {error}"))
        .stdout
}

/// Adds the file at `path`, or all files in the directory there.
fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) {
    if !path.is_dir() {
        files.insert(path.to_owned());
        return;
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for entry in entries {
        collect(&entry.expect("a readable directory").path(), files);
    }
}
