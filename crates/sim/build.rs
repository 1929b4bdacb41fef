//! Compiles the locks for the simulator, and the client of tests, which only they are linked with.

use lockworks_build::{Bindings, compiler, include_lock_files, root, watch};

fn main() {
    watch("clients");
    watch("experiments/workloads");
    let mut build = compiler("worlds/sim");
    include_lock_files(&mut build);
    build
        .warnings_into_errors(true)
        .opt_level(2)
        .include(root().join("clients"));
    locks().write("constants", &build);
    client().write("client_constants", &build);
    build
        .file(root().join("worlds/sim/locks.c"))
        .file(root().join("clients/conformance.c"))
        .compile("lockworks_sim_locks");
}

/// The constants of the locks' headers that the hooks use.
fn locks() -> Bindings {
    Bindings::of(&[
        "events.h",
        "held_locks.h",
        "tunables.h",
        "node_queue.h",
        "parked_heads.h",
        "world_surroundings.h",
    ])
    .constants(&["LW_NODES_PER_SLOT", "LW_NODE_QUEUES"])
    .constant("TUNABLE_MUTEX_SLICE", "LW_TUNABLE_mutex_slice")
    .constant("EVENT_SLICES_GRANTED", "LW_EVENT_slices_granted")
    .constant("EVENT_SLICES_YIELDED", "LW_EVENT_slices_yielded")
    .constant("EVENT_SLICES_EXPIRED", "LW_EVENT_slices_expired")
    .constant("NODE_SIZE", "sizeof(struct lw_node)")
    .constant("HELD_SIZE", "sizeof(struct lw_held)")
    .constant(
        "PARKED_HEADS_SIZE",
        "sizeof(struct lw_parked_head) << LW_SIM_PARKED_HEADS_BITS",
    )
    .constant("ORDER_RELEASE", "LW_SIM_release")
    .constant("ORDER_SEQ_CST", "LW_SIM_seq_cst")
}

/// The declarations of the conformance client, which tests repeat.
fn client() -> Bindings {
    Bindings::of(&["conformance.h"])
        .constants(&["LW_CLIENT_LOCKS", "LW_CLIENT_NODES"])
        .constant("CLIENT_MEMORY_SIZE", "sizeof(struct lw_client_memory)")
        .structure(
            "Client",
            "struct lw_client",
            &[
                "type as lock_type",
                "locks",
                "memory",
                "nodes",
                "threads",
                "depth",
                "rounds",
                "inside",
                "outside",
            ],
        )
}
