//! Compiles the loops that are measured, with the locks inlined as their C users get them.

use std::path::Path;

fn main() {
    let root = Path::new("../..");
    let mut build = cc::Build::new();
    build
        .std("gnu17")
        .warnings(true)
        .extra_warnings(true)
        .opt_level(2)
        .force_frame_pointer(false)
        // Where a loop happens to lie must not be what is measured.
        .flag_if_supported("-falign-loops=64");
    for dir in ["lib/include", "locks", "worlds/user", "crates/peers/c"].map(|dir| root.join(dir)) {
        println!("cargo::rerun-if-changed={}", dir.display());
        build.include(dir);
    }
    for file in ["bare.c", "ours.c", "references.c"] {
        build.file(Path::new("c").join(file));
    }
    println!("cargo::rerun-if-changed=c");
    build.compile("lockworks_bench");
}
