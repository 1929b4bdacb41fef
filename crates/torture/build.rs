//! Compiles the locks of the C library together with the benchmark's loops.

use lockworks_build::Bindings;

fn main() {
    println!("cargo::rerun-if-changed=c");
    let mut c = cc::Build::new();
    c.std("gnu17")
        .include("c")
        .warnings(true)
        .extra_warnings(true)
        .opt_level(2)
        .force_frame_pointer(false)
        // The address of a loop must not influence its speed.
        .flag_if_supported("-falign-loops=64");
    bindings().write("constants", &c);
    c.file("c/posix.c").compile("lockworks_torture");
}

/// The declarations of the C headers that this crate repeats.
fn bindings() -> Bindings {
    Bindings::of(&["peer.h"])
        .enumeration(
            "Order",
            "enum bench_order",
            &[
                "BENCH_UNFAIR as Unfair",
                "BENCH_FIFO as Fifo",
                "BENCH_BOUNDED as Bounded",
            ],
        )
        .structure(
            "Counters",
            "struct bench_counters",
            &["first", "unused", "second"],
        )
        .structure(
            "Bench",
            "struct bench_lock",
            &[
                "name",
                "origin",
                "order",
                "state_size",
                "thread_size",
                "init",
                "pure",
                "counted",
                "contended",
            ],
        )
        .structure(
            "Peer",
            "struct peer",
            &["bench", "lock", "unlock", "read_lock", "read_unlock"],
        )
}
