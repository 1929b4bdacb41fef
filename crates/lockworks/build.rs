//! Compiles the C library: the locks, the user world and the public interface.

use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new("../..");
    let mut build = cc::Build::new();
    build
        .std("gnu17")
        .warnings(true)
        .extra_warnings(true)
        .flag("-fvisibility=hidden")
        .include(root.join("lib/include"));
    for dir in ["locks", "worlds/user", "lib"].map(|dir| root.join(dir)) {
        println!("cargo::rerun-if-changed={}", dir.display());
        build.include(&dir).files(c_files(&dir));
    }
    build.compile("lockworks");
    let lists = [
        "hqlock_tunables_list.h",
        "pv_tunables_list.h",
        "tunables_list.h",
    ];
    let tunables: usize = lists
        .map(|list| entries(&root.join("locks").join(list)))
        .iter()
        .sum();
    println!("cargo::rustc-env=TUNABLES={tunables}");
}

/// How many entries a list of tunables has, each at the beginning of a line.
fn entries(list: &Path) -> usize {
    let text =
        std::fs::read_to_string(list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let entries = text.lines().filter(|line| line.starts_with("LW_TUNABLE("));
    entries.count()
}

fn c_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}
