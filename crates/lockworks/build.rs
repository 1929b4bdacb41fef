//! Compiles the C library: the locks, the user world and the public interface.

use lockworks_build::{c_files, compiler, root, watch};

fn main() {
    watch("lib");
    let mut build = compiler("worlds/user");
    build
        .flag("-fvisibility=hidden")
        .include(root().join("lib"))
        .include(root().join("lib/include"));
    for directory in ["locks", "worlds/user", "lib"] {
        build.files(c_files(directory));
    }
    build.compile("lockworks");
    let lists = [
        "hqlock_tunables_list.h",
        "pv_tunables_list.h",
        "tunables_list.h",
    ];
    let tunables: usize = lists.map(tunables).iter().sum();
    println!("cargo::rustc-env=TUNABLES={tunables}");
}

/// How many tunables are in a list, each at the beginning of a line.
fn tunables(list: &str) -> usize {
    let path = root().join("locks/registry").join(list);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .filter(|line| line.starts_with("LW_TUNABLE("))
        .count()
}
