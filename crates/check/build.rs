//! Compiles the locks for the model checker, with the clients and litmus tests that run in it.

use lockworks_build::{Bindings, compiler, include_lock_files, root, watch};

include!("flags.rs");

fn main() {
    watch("clients");
    // Embedded by `include_dir`, which does not tell Cargo about new files.
    watch("crates/check/mutants");
    watch("crates/check/variants");
    watch("crates/check/flags.rs");
    // Code that is compiled when a test runs calls these.
    println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol=lw_check_*");
    let mut build = compiler("worlds/check");
    build
        .warnings_into_errors(true)
        .opt_level(2)
        .force_frame_pointer(false)
        .include(root().join("clients"));
    for flag in FLAGS {
        build.flag_if_supported(flag);
    }
    include_lock_files(&mut build);
    bindings().write("constants", &build);
    for file in [
        "worlds/check/locks.c",
        "worlds/check/client.c",
        "worlds/check/lockref_client.c",
        "worlds/check/seqlock_client.c",
        "worlds/check/litmus.c",
    ] {
        build.file(root().join(file));
    }
    build.compile("lockworks_check_locks");
}

/// The declarations and constants of the C headers that this crate repeats.
fn bindings() -> Bindings {
    Bindings::of(&[
        "client.h",
        "cond.h",
        "hq.h",
        "litmus.h",
        "node_queue.h",
        "parked_heads.h",
        "reader_slots.h",
        "rwlock.h",
    ])
    .constants(&[
        "LW_CHECK_LOCKS",
        "LW_CHECK_SECOND_LOCK",
        "LW_CHECK_THIRD_LOCK",
        "LW_CHECK_COND",
        "LW_CHECK_LENT_NODES",
        "LW_LITMUS_THREADS",
        "LW_NODES_PER_SLOT",
        "LW_NODE_QUEUES",
        "LW_HQ",
        "LW_HQ_NUMA",
        "LW_NODE_HEAD",
        "LW_NODE_PARKED_HEAD",
        "LW_SERVICE_MASK",
        "LW_UNLOCKING",
        "LW_LOCKED",
        "LW_LOCKED_MASK",
        "LW_PENDING",
        "LW_QUEUE_LOCKED",
        "LW_PARKED",
        "LW_TAIL_SHIFT",
        "LW_HEAD_ASLEEP",
        "LW_OPEN",
        "LW_RETAKEN",
        "LW_STARVED",
        "LW_MAY_STAY",
        "LW_OFF_CPU",
        "LW_TAIL_SLOT_SHIFT",
        "LW_RWLOCK_ONE",
        "LW_RWLOCK_WRITER",
        "LW_RWLOCK_HELD",
    ])
    .constant("NODE_SIZE", "sizeof(struct lw_node)")
    .constant("NODE_NEXT", "offsetof(struct lw_node, next)")
    .constant("NODE_LOCKED", "offsetof(struct lw_node, locked)")
    .constant("NODE_COUNT", "offsetof(struct lw_node, count)")
    .constant(
        "NODE_SECONDARY_HEAD",
        "offsetof(struct lw_node, secondary_head)",
    )
    .constant(
        "NODE_WAITERS",
        "offsetof(struct lw_node, own) + offsetof(struct lw_hq_part, waiters)",
    )
    .constant("READ_SIZE", "sizeof(struct lw_read)")
    .constant("PARKED_HEAD_SIZE", "sizeof(struct lw_parked_head)")
    .constant("COND_SIZE", "sizeof(struct lw_cond)")
    .structure(
        "Client",
        "struct lw_check_client",
        &[
            "type as lock",
            "locks",
            "data",
            "threads",
            "acquisitions",
            "readers",
            "lock_count",
            "trylock",
            "cancel",
            "lockref",
            "object",
            "litmus",
            "variables",
            "functions",
            "tokens",
        ],
    )
    .structure(
        "Functions",
        "struct lw_check_functions",
        &[
            "read_begin",
            "read_retry",
            "wait",
            "signal",
            "broadcast",
            "acquire",
        ],
    )
    .structure(
        "LitmusTest",
        "struct lw_litmus",
        &[
            "name",
            "summary",
            "c11",
            "sc",
            "threads",
            "arm",
            "kernel",
            "kernel62",
            "tso",
            "riscv",
            "initial",
            "variables",
        ],
    )
    .enumeration(
        "Mark",
        "enum lw_check_mark",
        &[
            "LW_CHECK_BEGIN as Begin",
            "LW_CHECK_ACQUIRED as Acquired",
            "LW_CHECK_READS as Reads",
            "LW_CHECK_RELEASE as Release",
            "LW_CHECK_RELEASED as Released",
            "LW_CHECK_DESTROYED as Destroyed",
        ],
    )
    .enumeration(
        "Had",
        "enum lw_check_had",
        &[
            "LW_CHECK_NOTHING as Nothing",
            "LW_CHECK_TRIES as Tries",
            "LW_CHECK_HELD as Held",
        ],
    )
    .structure(
        "Site",
        "struct lw_check_site",
        &[
            "file", "function", "operand", "line", "kind", "order", "size", "failure",
        ],
    )
    .enumeration(
        "OperationKind",
        "enum lw_check_kind",
        &[
            "LW_CHECK_LOAD as Load",
            "LW_CHECK_STORE as Store",
            "LW_CHECK_XCHG as Exchange",
            "LW_CHECK_CMPXCHG as CompareExchange",
            "LW_CHECK_OR as Or",
            "LW_CHECK_AND as And",
            "LW_CHECK_ADD as Add",
            "LW_CHECK_FENCE as Fence",
            "LW_CHECK_AWAIT_EQ as AwaitEqual",
            "LW_CHECK_AWAIT_NE as AwaitNotEqual",
            "LW_CHECK_AWAIT_EQ_BOUNDED as AwaitEqualBounded",
            "LW_CHECK_AWAIT_NE_BOUNDED as AwaitNotEqualBounded",
            "LW_CHECK_PAUSE as Pause",
            "LW_CHECK_PARK as Park",
            "LW_CHECK_UNPARK as Unpark",
            "LW_CHECK_PLAIN_READ as PlainRead",
            "LW_CHECK_PLAIN_WRITE as PlainWrite",
            "LW_CHECK_CLOCK as Clock",
            "LW_CHECK_CHOOSE as Choose",
        ],
    )
    .enumeration(
        "Order",
        "enum lw_check_order",
        &[
            "LW_CHECK_plain as Plain",
            "LW_CHECK_relaxed as Relaxed",
            "LW_CHECK_dependency as Dependency",
            "LW_CHECK_acquire as Acquire",
            "LW_CHECK_release as Release",
            "LW_CHECK_acq_rel as AcqRel",
            "LW_CHECK_seq_cst as SeqCst",
        ],
    )
}
