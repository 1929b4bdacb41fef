//! Compiles the loops of the benchmarks, into which the locks are inlined from the C headers.

use std::path::Path;

use lockworks_build::{compiler, root, watch};

fn main() {
    const LOOPS: &str = "src/bench/c";

    let mut build = compiler("worlds/user");
    build
        .opt_level(2)
        .force_frame_pointer(false)
        // The address of a loop must not influence its speed.
        .flag_if_supported("-falign-loops=64");
    for directory in ["lib/include", "crates/torture/c"] {
        watch(directory);
        build.include(root().join(directory));
    }
    for file in ["bare.c", "ours.c", "references.c"] {
        build.file(Path::new(LOOPS).join(file));
    }
    println!("cargo::rerun-if-changed={LOOPS}");
    build.compile("lockworks_bench");
}
