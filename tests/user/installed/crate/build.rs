// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! Compiles `counter.c` with the headers of the crate `lockworks`.

use std::env;

fn main() {
    let headers = env::var_os("DEP_LOCKWORKS_INCLUDE").expect("the headers of lockworks");
    println!("cargo::rerun-if-changed=counter.c");
    cc::Build::new()
        .includes(env::split_paths(&headers))
        .warnings_into_errors(true)
        .file("counter.c")
        .compile("counter");
}
