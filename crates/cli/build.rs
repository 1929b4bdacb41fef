//! Takes the layout of profiles from C. Computes the version of results, under which
//! `lockworks sweep` stores them: a hash of all sources that results depend on, and of the compilers
//! and the target.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockworks_build::{Bindings, compiler, root, watch};
use xxhash_rust::xxh3::Xxh3;

/// The files and directories that the results of simulations and checks depend on.
const SOURCES: [&str; 23] = [
    "Cargo.lock",
    "Cargo.toml",
    "clients",
    "crates/build/src",
    "crates/check/build.rs",
    "crates/check/flags.rs",
    "crates/check/src",
    "crates/cli/src/check/options.rs",
    "crates/cli/src/sim/mod.rs",
    "crates/cli/src/sweep/point.rs",
    "crates/explore/src",
    "crates/litmus/src",
    "crates/lockworks/build.rs",
    "crates/lockworks/src",
    "crates/machine/src",
    "crates/measurements/src",
    "crates/sim/build.rs",
    "crates/sim/src",
    "experiments/workloads",
    "locks",
    "machines",
    "worlds/check",
    "worlds/sim",
];

fn main() {
    // A lock that is compiled when the command runs calls these.
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=lw_check_*");
    take_layout_of_profiles();
    hash_sources();
}

/// The structures that `lockworks profile` reads, and that its library in C writes.
fn take_layout_of_profiles() {
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
                "last_thread",
                "last_node",
                "kind",
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
                "sites",
                "threads",
                "lost",
                "lost_contended",
                "lost_causes",
                "events",
                "ended",
                "wait",
                "cause",
                "module",
                "lock",
                "site",
                "event",
            ],
        )
        .write("profile_constants", &headers);
}

fn hash_sources() {
    let mut files = BTreeSet::new();
    for source in SOURCES {
        watch(source);
        collect(&root().join(source), &mut files);
    }
    let mut hash = Xxh3::new();
    let mut add = |part: &[u8]| {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    for file in &files {
        let name = file.strip_prefix(root()).expect("a file below the root");
        add(name.as_os_str().as_encoded_bytes());
        add(&fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    // The states of a check depend on the machine code of the locks.
    add(&version(
        compiler("worlds/check").get_compiler().to_command(),
    ));
    add(&version(Command::new(
        env::var_os("RUSTC").expect("cargo sets it"),
    )));
    for variable in ["TARGET", "OPT_LEVEL", "CFLAGS"] {
        println!("cargo::rerun-if-env-changed={variable}");
        add(env::var_os(variable).unwrap_or_default().as_encoded_bytes());
    }
    println!("cargo::rustc-env=LOCKWORKS_SOURCES={:016x}", hash.digest());
}

/// What a compiler prints about its version.
fn version(mut compiler: Command) -> Vec<u8> {
    let printed = compiler.arg("--version").output();
    printed
        .unwrap_or_else(|error| panic!("{compiler:?}: {error}"))
        .stdout
}

/// Adds the file at `path`, or all files in the directory there.
fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) {
    if !path.is_dir() {
        files.insert(path.to_owned());
        return;
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for entry in entries {
        collect(&entry.expect("a readable directory").path(), files);
    }
}
