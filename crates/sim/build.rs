//! Compiles the locks for the simulator, and the client of tests, which only they are linked with.

use lockworks_build::{compiler, include_lock_files, root, watch};

fn main() {
    watch("clients");
    watch("experiments/workloads");
    let mut build = compiler("worlds/sim");
    include_lock_files(&mut build);
    build
        .warnings_into_errors(true)
        .opt_level(2)
        .file(root().join("worlds/sim/locks.c"))
        .file(root().join("clients/conformance.c"))
        .compile("lockworks_sim_locks");
}
