// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! Counts in C, by threads of Rust.

use std::ffi::c_long;
use std::thread;

// Nothing in Rust uses the crate. This links it all the same, for the C code.
use lockworks as _;

unsafe extern "C" {
    safe fn count_up() -> c_long;
}

fn main() {
    const TIMES: c_long = 10_000;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..TIMES).for_each(|_| _ = count_up()));
        }
    });
    assert_eq!(count_up(), 2 * TIMES + 1);
}
