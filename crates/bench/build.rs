//! Compiles the loops that are measured, with the locks inlined as their C users get them.

use std::path::Path;

use lockworks_build::{compiler, root, watch};

fn main() {
    let mut build = compiler("worlds/user");
    build
        .opt_level(2)
        .force_frame_pointer(false)
        // Where a loop happens to lie must not be what is measured.
        .flag_if_supported("-falign-loops=64");
    for directory in ["lib/include", "crates/peers/c"] {
        watch(directory);
        build.include(root().join(directory));
    }
    for file in ["bare.c", "ours.c", "references.c"] {
        build.file(Path::new("c").join(file));
    }
    println!("cargo::rerun-if-changed=c");
    build.compile("lockworks_bench");
}
