//! Compiles the locks for the model checker, with the clients and litmus tests that run in it.

use lockworks_build::{compiler, root, watch};

fn main() {
    watch("clients");
    watch("tests/check");
    let mut build = compiler("worlds/check");
    build
        .warnings_into_errors(true)
        .opt_level(2)
        // A thread's state is its stack: nothing but what the code needs should lie there.
        .flag_if_supported("-fno-stack-protector")
        .flag_if_supported("-fcf-protection=none")
        .include(root().join("clients"));
    // So that it never stands in for the client of another world in a program that has both.
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
        "clients/conformance.c",
        "tests/check/litmus.c",
    ] {
        build.file(root().join(file));
    }
    build.compile("lockworks_check_locks");
}
