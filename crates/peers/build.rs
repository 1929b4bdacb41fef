//! Compiles the locks of C and C++ libraries together with the benchmark's loops.
//!
//! A library that is not installed is left out.

use std::process::{Command, Stdio};

/// The headers of all peers.
const SHARED: &str = "../torture/c";

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed={SHARED}");
    let mut c = loops();
    c.std("gnu17");
    let ck = has("ck", "ck_spinlock.h");
    if ck {
        c.file("c/ck.c");
    }
    let nsync = has("nsync", "nsync.h");
    if nsync {
        c.file("c/nsync.c");
    }
    if ck || nsync {
        c.compile("lockworks_peers");
    }
    if nsync {
        println!("cargo::rustc-link-lib=nsync");
    }
    if has("abseil", "absl/synchronization/mutex.h") {
        loops()
            .cpp(true)
            .std("gnu++17")
            // Abseil's own headers have unused parameters.
            .flag("-Wno-unused-parameter")
            .file("c/abseil.cc")
            .compile("lockworks_peers_cpp");
        pkg_config::probe_library("absl_synchronization")
            .unwrap_or_else(|error| panic!("Abseil has headers but cannot be linked: {error}"));
    }
}

/// The compiler settings of all code that is measured.
fn loops() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .include(SHARED)
        .warnings(true)
        .extra_warnings(true)
        .opt_level(2)
        .force_frame_pointer(false)
        // The address of a loop must not influence its speed.
        .flag_if_supported("-falign-loops=64");
    build
}

/// Whether the compiler finds a library's header. If it does, the cfg `library` is set.
fn has(library: &str, header: &str) -> bool {
    println!("cargo::rustc-check-cfg=cfg({library})");
    // Build again once the library is installed.
    println!("cargo::rerun-if-changed=/usr/include/{header}");
    let mut compiler = cc::Build::new().cpp(true).get_compiler().to_command();
    let found = preprocesses(compiler.args(["-x", "c++", "-E", "-include", header, "/dev/null"]));
    if found {
        println!("cargo::rustc-cfg={library}");
    }
    found
}

fn preprocesses(compiler: &mut Command) -> bool {
    compiler
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
