//! Compiles the locks for the simulator, and the client of tests, which only they are linked with.

use lockworks_build::{compiler, root, watch};

fn main() {
    watch("clients");
    watch("experiments/workloads");
    compiler("worlds/sim")
        .warnings_into_errors(true)
        .opt_level(2)
        .file(root().join("worlds/sim/locks.c"))
        .file(root().join("clients/conformance.c"))
        .compile("lockworks_sim_locks");
}
