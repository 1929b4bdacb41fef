//! Computes the version of results, under which `lockworks sweep` stores them: the version of the
//! package, and a hash of all sources that results depend on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lockworks_build::{root, watch};
use xxhash_rust::xxh3::Xxh3;

/// The files and directories that the results of simulations and checks depend on.
const SOURCES: [&str; 20] = [
    "Cargo.lock",
    "clients",
    "crates/build/src",
    "crates/check/build.rs",
    "crates/check/src",
    "crates/cli/src/check/mod.rs",
    "crates/cli/src/simulation.rs",
    "crates/cli/src/sweep/checks.rs",
    "crates/cli/src/sweep/simulations.rs",
    "crates/lockworks/build.rs",
    "crates/lockworks/src",
    "crates/machine/src",
    "crates/measurements/src",
    "crates/sim/build.rs",
    "crates/sim/src",
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
    for file in &files {
        let contents = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(root()).expect("a file below the root");
        hash.update(name.as_os_str().as_encoded_bytes());
        hash.update(&(contents.len() as u64).to_le_bytes());
        hash.update(&contents);
    }
    println!("cargo::rustc-env=LOCKWORKS_SOURCES={:016x}", hash.digest());
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
