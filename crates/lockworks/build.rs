//! Compiles the C library: the locks, the user world and the public interface.

use std::env;

#[path = "c/build/lib.rs"]
#[expect(dead_code, reason = "other build scripts use more of it")]
mod shared;

use shared::{Bindings, c_files, compiler, root, watch, with_historic};

fn main() {
    watch("lib");
    let mut build = compiler("worlds/user");
    build
        .flag("-fvisibility=hidden")
        .include(root().join("lib"))
        .include(root().join("lib/include"));
    for directory in ["locks", "worlds/user", "lib"] {
        build.files(c_files(directory));
    }
    // The published crate does not have the historic locks.
    let of_world = "worlds/user/historic";
    if root().join(of_world).exists() {
        build.include(root().join(of_world));
        for directory in [with_historic(&mut build), of_world] {
            build.files(c_files(directory));
        }
    }
    bindings().write("constants", &build);
    build.compile("lockworks");
    // Build scripts of crates that depend on this one find the C headers in DEP_LOCKWORKS_INCLUDE.
    let headers = [
        "lib/include",
        "locks",
        "locks/contract",
        "locks/parts",
        "locks/registry",
        "worlds/user",
    ];
    let headers = env::join_paths(headers.map(|directory| root().join(directory)))
        .expect("a path without a colon");
    let headers = headers.to_str().expect("paths in UTF-8");
    println!("cargo::metadata=include={headers}");
}

/// The declarations and constants of the C headers that this crate repeats.
fn bindings() -> Bindings {
    Bindings::of(&["lockworks/lockworks.h"])
        .constants(&[
            "LW_TUNABLE_COUNT",
            "LW_EVENT_COUNT",
            "LW_NUMA_THRESHOLD_DEFAULT_MS",
            "LW_HQ",
            "LW_FIFO",
            "LW_SPINS",
            "LW_NUMA_AWARE",
            "LW_BROKEN",
            "LW_TAIL_WORD",
            "LW_MUTEX_WORD",
            "LW_HISTORIC",
            "LW_RESILIENT",
            "LW_NUMA_AUTO",
            "LW_NUMA_ON",
            "LW_NUMA_OFF",
            "LW_PRIORITY_AUTO",
            "LW_PRIORITY_ON",
            "LW_PRIORITY_OFF",
            "LW_NEAR_NODE",
            "LW_NEAR_LLC",
        ])
        .structure(
            "LockDescription",
            "struct lw_lock_type",
            &[
                "name",
                "summary",
                "origin",
                "tunables",
                "size",
                "node_size",
                "traits",
                "unlocked",
                "lock",
                "trylock as try_lock",
                "unlock",
                "lock_limited",
                "read_lock",
                "read_trylock as read_try_lock",
                "read_unlock",
                "read_lock_limited",
            ],
        )
        .structure(
            "LockrefType",
            "struct lw_lockref_type",
            &[
                "name",
                "lock",
                "init",
                "get",
                "get_not_zero",
                "get_not_dead",
                "put_or_lock",
                "put_not_zero",
                "put_return",
                "count",
                "set_count",
                "mark_dead",
            ],
        )
        .structure(
            "Description",
            "struct lw_tunable_description",
            &[
                "name",
                "default_value as default",
                "kernel_default",
                "maximum",
                "meaning",
            ],
        )
        .structure(
            "Settings",
            "struct lw_tunables",
            &[
                "numa_aware",
                "numa_threshold_ms",
                "shuffle_reduction",
                "priority_waiters",
            ],
        )
        .structure(
            "Words",
            "struct lw_cond",
            &["lock", "users", "first", "last"],
        )
        .structure("CancelWords", "struct lw_cancel", &["cancelled", "slot"])
        .structure(
            "WaitLimit",
            "struct lw_wait_limit",
            &["deadline", "cancel", "clock"],
        )
}
