//! Takes the layout of the structures that the library in C writes, and that this crate reads.

use lockworks_build::{Bindings, compiler, root, watch};

fn main() {
    let mut headers = compiler("worlds/user");
    for directory in ["lib/include", "interpose/profile"] {
        watch(directory);
        headers.include(root().join(directory));
    }
    Bindings::of(&["record.h"])
        .constants(&[
            "LW_PROFILE_MAGIC",
            "LW_PROFILE_WAITS",
            "LW_PROFILE_CAUSES",
            "LW_PROFILE_MODULES",
            "LW_PROFILE_LOCKS",
            "LW_PROFILE_SITES",
            "LW_PROFILE_EVENTS",
            "LW_PROFILE_CONDITIONS",
            "LW_PROFILE_STACKS",
            "LW_PROFILE_SPARES",
            "LW_PROFILE_MODE_BITS",
            "LW_PROFILE_MODE_MASK",
        ])
        .enumeration(
            "Mode",
            "enum lw_profile_mode",
            &[
                "LW_PROFILE_MUTEX as Mutex",
                "LW_PROFILE_READ as Read",
                "LW_PROFILE_WRITE as Write",
            ],
        )
        .enumeration(
            "What",
            "enum lw_profile_what",
            &[
                "LW_PROFILE_RAN as Ran",
                "LW_PROFILE_PREEMPTED as Preempted",
                "LW_PROFILE_THROTTLED as Throttled",
                "LW_PROFILE_SLEPT as Slept",
                "LW_PROFILE_FAULTED as Faulted",
                "LW_PROFILE_NESTED as Nested",
                "LW_PROFILE_IN_TURN as InTurn",
                "LW_PROFILE_LATE as Late",
                "LW_PROFILE_UNSEEN as Unseen",
                "LW_PROFILE_UNWATCHED as Unwatched",
            ],
        )
        .structure(
            "Module",
            "struct lw_profile_module",
            &["start", "end", "offset", "path"],
        )
        .structure(
            "Lock",
            "struct lw_profile_lock",
            &[
                "key",
                "hold",
                "since",
                "begun",
                "first_site",
                "holder",
                "depth",
                "looker",
                "last_thread",
                "last_node",
                "kind",
                "stack",
            ],
        )
        .structure(
            "LockSite",
            "struct lw_profile_site",
            &[
                "lock",
                "next_site",
                "caller",
                "acquisitions",
                "contended",
                "after_condition",
                "waited",
                "waited_max",
                "held",
                "held_max",
                "from_same_thread",
                "from_same_node",
                "from_other_node",
                "threads",
            ],
        )
        .structure(
            "Wait",
            "struct lw_profile_wait",
            &["key", "caller", "begun", "thread", "tid"],
        )
        .structure(
            "Cause",
            "struct lw_profile_cause",
            &[
                "state", "what", "key", "caller", "holder", "detail", "ns", "waits",
            ],
        )
        .structure(
            "Event",
            "struct lw_profile_event",
            &[
                "key", "caller", "begun", "acquired", "released", "thread", "node",
            ],
        )
        .structure(
            "Condition",
            "struct lw_profile_condition",
            &[
                "state",
                "is_signal",
                "cond",
                "caller",
                "calls",
                "timed_out",
                "for_nothing",
                "waited",
                "waited_max",
            ],
        )
        .structure(
            "Frames",
            "struct lw_profile_frames",
            &["code", "stack", "frame", "words", "word"],
        )
        .structure(
            "Stack",
            "struct lw_profile_stack",
            &["site", "waited", "stands_for", "acquired", "released"],
        )
        .structure(
            "Profile",
            "struct lw_profile",
            &[
                "magic",
                "size",
                "pid",
                "nodes",
                "has_tsc",
                "time",
                "at_ns",
                "modules",
                "locks",
                "sites",
                "threads",
                "lost",
                "lost_contended",
                "lost_causes",
                "lost_conditions",
                "spun",
                "events",
                "stacks",
                "ended",
                "wait",
                "cause",
                "module",
                "lock",
                "site",
                "event",
                "condition",
                "stack",
            ],
        )
        .write("profile_constants", &headers);
}
