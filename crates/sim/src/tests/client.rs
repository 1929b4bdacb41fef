//! The conformance client of `clients/`, which every world runs, on simulated machines.

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;

use lockworks::LockType;

use super::{brief, lock, made_up, scenario, working_locks};
use crate::hooks::with;
use crate::lock::SimLock;
use crate::program::{Program, Setup};
use crate::thread::{random, work};
use crate::{Placement, Run};

include!(concat!(env!("OUT_DIR"), "/client_constants.rs"));

/// `struct lw_client`.
#[repr(C)]
struct Client {
    lock_type: *const LockType,
    locks: [usize; LW_CLIENT_LOCKS],
    memory: usize,
    nodes: usize,
    threads: u32,
    depth: u32,
    rounds: u32,
    inside: Option<extern "C" fn()>,
    outside: Option<extern "C" fn()>,
}

include!(concat!(env!("OUT_DIR"), "/layout_Client.rs"));

/// A random pause, sometimes so long that the next thread finds the lock free while the last holder
/// still has its line.
extern "C" fn think() {
    let thread = with(|c| c.engine.current);
    work(random(thread, 4000).into());
}

unsafe extern "C" {
    fn lw_client_thread(client: *const Client, thread: u32) -> u32;
}

/// The number of threads that have finished, and the violations that they saw.
#[derive(Default)]
struct Seen {
    finished: Cell<usize>,
    violations: Cell<u32>,
}

struct Threads {
    client: Client,
    seen: Rc<Seen>,
}

impl Program for Threads {
    fn thread(&self, thread: usize) {
        // SAFETY: all that the client points to is zeroed simulated memory of its layout.
        let violations = unsafe { lw_client_thread(&self.client, thread as u32) };
        let seen = &self.seen;
        seen.violations.set(seen.violations.get() + violations);
        seen.finished.set(seen.finished.get() + 1);
    }

    fn locks(&self) -> Vec<&SimLock> {
        Vec::new()
    }
}

fn build(run: &Run, setup: &mut Setup, depth: usize, rounds: u32) -> Client {
    let stride = run.lock.node_size().next_multiple_of(64);
    let mut locks = [0; LW_CLIENT_LOCKS];
    for lock in &mut locks[..depth] {
        *lock = setup.lock("lock").address();
    }
    Client {
        lock_type: ptr::from_ref(run.lock),
        locks,
        memory: setup.allocate("protected data", CLIENT_MEMORY_SIZE),
        nodes: setup.allocate("lent queue nodes", stride * LW_CLIENT_NODES * run.threads),
        threads: run.threads as u32,
        depth: depth as u32,
        rounds,
        inside: None,
        outside: Some(think),
    }
}

/// The number of violations that the threads of `run` see.
fn violations(run: &Run, depth: usize, rounds: u32) -> u32 {
    let seen = Rc::new(Seen::default());
    let outcome = run.run_program(|setup| {
        Ok(Box::new(Threads {
            client: build(run, setup, depth, rounds),
            seen: Rc::clone(&seen),
        }))
    });
    let what = format!("{} with {} threads", run.lock.name(), run.threads);
    outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(seen.finished.get(), run.threads, "{what} finish");
    seen.violations.get()
}

const MACHINES: [&str; 3] = ["oracle-x5-4", "epyc-9654-nps12", "kunpeng-920"];

/// The violations of a lock with 2 to 8 threads and several seeds.
fn all_violations(lock: &'static LockType, machine: &str) -> u32 {
    let scenario = scenario(machine, "locktorture-old");
    let mut sum = 0;
    for threads in 2..=8 {
        for seed in 1..=3 {
            let run = Run {
                seconds: 1.0,
                placement: Placement::Scatter(seed),
                seed,
                ..brief(&scenario, lock, threads)
            };
            sum += violations(&run, 2, 40) + violations(&run, LW_CLIENT_LOCKS, 12);
        }
    }
    sum
}

#[test]
fn every_lock_excludes_on_every_kind_of_machine() {
    for machine in MACHINES {
        for lock in working_locks() {
            assert_eq!(
                all_violations(lock, machine),
                0,
                "{} on {machine}",
                lock.name()
            );
        }
    }
}

#[test]
fn trylock_acquires_a_free_lock() {
    let scenario = scenario("oracle-x5-4", "locktorture-old");
    for lock in working_locks() {
        let run = Run {
            seconds: 1.0,
            ..brief(&scenario, lock, 1)
        };
        assert_eq!(violations(&run, 2, 8), 0, "{}", lock.name());
    }
}

#[test]
fn locks_that_do_not_exclude_are_caught() {
    for machine in MACHINES {
        assert!(all_violations(lock("busted"), machine) > 0);
        assert!(all_violations(&made_up::NONE, machine) > 0);
    }
}

#[test]
fn a_missing_release_matters_on_a_weakly_ordered_machine_only() {
    assert!(all_violations(&made_up::RELAXED, "kunpeng-920") > 0);
    assert_eq!(all_violations(&made_up::RELAXED, "oracle-x5-4"), 0);
}
