//! Functions for the build scripts of the other crates: where the lock files are, how a world
//! compiles them, and the layouts and constants that Rust takes from their headers.

mod bindings;

pub use bindings::Bindings;

use std::path::{Path, PathBuf};

/// The directories of `locks/` that lock files include from by bare name.
const LOCK_DIRECTORIES: [&str; 4] = ["locks", "locks/contract", "locks/parts", "locks/registry"];

/// The directory of the historic locks.
const HISTORIC: &str = "locks/historic";

/// From a crate's directory to the root of the repository. The crate that is packaged by itself has a
/// directory that stands for it.
fn to_root() -> &'static str {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("a build script");
    match Path::new(&manifest).join("c").exists() {
        true => "c",
        false => "../..",
    }
}

/// The root of the repository that contains the crate of the running build script.
///
/// The path is read when the script runs, not when this crate is compiled: a checkout may be copied
/// together with its build directory, and Cargo then runs the old build of this crate.
///
/// # Panics
///
/// If the caller is not a build script: Cargo sets `CARGO_MANIFEST_DIR` only for those.
pub fn root() -> PathBuf {
    let crate_directory = std::env::var_os("CARGO_MANIFEST_DIR").expect("a build script");
    Path::new(&crate_directory).join(to_root())
}

/// A C compiler that finds the lock headers and the headers in `world`, a directory relative to the
/// repository's root. Cargo runs the build script again when a file changes in either.
pub fn compiler(world: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build.std("gnu17").warnings(true).extra_warnings(true);
    watch("locks");
    for directory in LOCK_DIRECTORIES {
        build.include(root().join(directory));
    }
    watch(world);
    build.include(root().join(world));
    find_linux_headers(&mut build);
    build
}

/// Debian's musl comes without the headers of Linux, but those of the system are behind its own.
fn find_linux_headers(build: &mut cc::Build) {
    let variable = |name| std::env::var(name).expect("Cargo sets it for build scripts");
    let processor = variable("CARGO_CFG_TARGET_ARCH");
    if variable("CARGO_CFG_TARGET_ENV") == "musl" && variable("HOST").starts_with(&processor) {
        let of_processor = format!("/usr/include/{processor}-linux-gnu");
        for directory in ["/usr/include", &of_processor] {
            build.flag("-idirafter").flag(directory);
        }
    }
}

/// Adds the historic locks to what `build` compiles: their headers, and their lines in the lists of
/// locks and tunables. Returns the directory of their C files.
pub fn with_historic(build: &mut cc::Build) -> &'static str {
    build
        .define("LW_WITH_HISTORIC", None)
        .include(root().join(HISTORIC));
    HISTORIC
}

/// Makes Cargo run the build script again when a file in `directory` changes. The directory is
/// relative to the repository's root.
pub fn watch(directory: &str) {
    println!("cargo::rerun-if-changed={}/{directory}", to_root());
}

/// The C files in `directory`, sorted by name. The directory is relative to the repository's root.
///
/// # Panics
///
/// If the directory cannot be read.
pub fn c_files(directory: &str) -> Vec<PathBuf> {
    let directory = root().join(directory);
    let entries = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

/// Lets a file that `build` compiles include all lock files by `#include "lock_files.h"`, as one
/// translation unit. An operation in a header that several locks include then exists once. Historic
/// locks are among them.
///
/// # Panics
///
/// If `OUT_DIR` cannot be written.
pub fn include_lock_files(build: &mut cc::Build) {
    let historic = with_historic(build);
    let files = ["locks", historic].map(c_files).concat();
    let lines: String = files
        .iter()
        .map(|file| format!("#include \"{}\"\n", file.display()))
        .collect();
    build.include(generate("lock_files.h", &lines).with_file_name(""));
}

/// Writes a file into `OUT_DIR`, and returns its path.
fn generate(name: &str, text: &str) -> PathBuf {
    let path =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("a build script has OUT_DIR")).join(name);
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}
