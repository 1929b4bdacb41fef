// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! Counts that many threads write. The reader skips a report rather than wait for long:
//! `cargo run --release --example hits`.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use lockworks::{Mutex, statistics};

const THREADS: u64 = 4;
const REQUESTS: u64 = 20_000;

/// Hits of each page.
static HITS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn serve(thread: u64) {
    for request in 0..REQUESTS {
        *HITS.lock().entry((request + thread) % 5).or_default() += 1;
    }
}

fn main() {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || serve(thread));
        }
        match HITS.try_lock_for(Duration::from_millis(1)) {
            Some(hits) => println!("so far: {hits:?}"),
            None => println!("so far: too busy to say"),
        }
    });
    let hits = HITS.lock();
    println!("at the end: {hits:?}");
    for (event, meaning, count) in statistics().iter().filter(|event| event.2 > 0) {
        println!("{count} {event}: {meaning}");
    }
    assert_eq!(hits.values().sum::<u64>(), THREADS * REQUESTS);
}
