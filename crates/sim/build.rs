//! Compiles the locks for the simulator, and the client of tests, which only they are linked with.

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for dir in ["locks", "worlds/sim", "tests/shared"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    cc::Build::new()
        .std("gnu17")
        .warnings_into_errors(true)
        .opt_level(2)
        .include(root.join("locks"))
        .include(root.join("worlds/sim"))
        .file(root.join("worlds/sim/locks.c"))
        .file(root.join("tests/shared/client.c"))
        .compile("lockworks_sim_locks");
}
