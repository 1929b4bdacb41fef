//! Takes the layout of the structures that the library in C writes, and that this crate reads.

use lockworks_build::{Bindings, compiler, root, watch};

fn main() {
    let mut headers = compiler("worlds/user");
    for directory in ["lib/include", "interpose/profile"] {
        watch(directory);
        headers.include(root().join(directory));
    }
    Bindings::of(&["record.h", "steps.h"])
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
            "LW_PROFILE_STEPS_MAGIC",
            "LW_PROFILE_BLOCK_STEPS",
            "LW_PROFILE_STEP_MODE",
            "LW_PROFILE_STEP_SLEPT",
            "LW_PROFILE_STEP_TRIED",
            "LW_PROFILE_STEP_INITIALISES",
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
        .enumeration(
            "Kind",
            "enum lw_profile_step_kind",
            &[
                "LW_STEP_BEGINS as Begins",
                "LW_STEP_ENDS as Ends",
                "LW_STEP_WAITS as Waits",
                "LW_STEP_ACQUIRES as Acquires",
                "LW_STEP_FAILS as Fails",
                "LW_STEP_RELEASES as Releases",
                "LW_STEP_AWAITS as Awaits",
                "LW_STEP_WOKEN as Woken",
                "LW_STEP_EXPIRED as Expired",
                "LW_STEP_SIGNALS as Signals",
                "LW_STEP_BROADCASTS as Broadcasts",
                "LW_STEP_RETURNS as Returns",
                "LW_STEP_YIELDS as Yields",
            ],
        )
        .structure(
            "RawStep",
            "struct lw_profile_step",
            &["time", "object", "caller", "away", "cpu", "flags", "kind"],
        )
        .structure(
            "Block",
            "struct lw_profile_block",
            &["thread", "number", "unused", "step"],
        )
        .structure(
            "Steps",
            "struct lw_profile_steps",
            &[
                "magic",
                "size",
                "from",
                "until",
                "knows_away",
                "real_time",
                "most",
                "blocks",
                "lost",
                "unused",
            ],
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
