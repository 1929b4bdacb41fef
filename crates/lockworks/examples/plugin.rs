// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! A plugin, which hosts open with `dlopen`: `cargo build --release --example plugin`.

use lockworks::{Mutex, thread_attach};

static CALLS: Mutex<u32> = Mutex::new(0);

/// Counts the calls of all threads. Returns the slot of the calling one, 0 if none was free.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_use() -> u32 {
    *CALLS.lock() += 1;
    thread_attach().unwrap_or(0)
}
