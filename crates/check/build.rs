//! Compiles the locks for the model checker, with the clients and litmus tests that run in it.

use lockworks_build::{compiler, include_lock_files, root, watch};

fn main() {
    watch("clients");
    // Embedded by `include_dir`, which does not tell Cargo about new files.
    watch("crates/check/mutants");
    let mut build = compiler("worlds/check");
    build
        .warnings_into_errors(true)
        .opt_level(2)
        // A thread's state is its stack, which must hold only what the code needs.
        .flag_if_supported("-fno-stack-protector")
        .flag_if_supported("-fcf-protection=none")
        .include(root().join("clients"));
    include_lock_files(&mut build);
    // Other worlds have these functions too, and a program may contain several worlds.
    for name in ["thread", "memory_size"] {
        build.define(
            &format!("lw_client_{name}"),
            format!("lw_check_client_{name}").as_str(),
        );
    }
    for file in [
        "worlds/check/locks.c",
        "worlds/check/client.c",
        "worlds/check/lockref_client.c",
        "worlds/check/litmus.c",
        "clients/conformance.c",
    ] {
        build.file(root().join(file));
    }
    build.compile("lockworks_check_locks");
}
