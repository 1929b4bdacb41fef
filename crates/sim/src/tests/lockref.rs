//! Tests of lockrefs with each lock: no reference is lost, and the lock is acquired when necessary.

use std::cell::Cell;
use std::rc::Rc;

use super::{brief, lock, scenario, working_locks};
use crate::lock::{SimLock, SimLockref};
use crate::program::{Program, Setup};
use crate::thread::{random, work};
use crate::{Run, RunError};

const ROUNDS: usize = 50;
const AT_FIRST: u64 = 1;

/// Threads that get a reference and put it, again and again.
struct References {
    object: SimLockref,
    finished: Cell<usize>,
    threads: usize,
    /// The reference count after the last put.
    left: Rc<Cell<u64>>,
}

impl Program for References {
    fn thread(&self, thread: usize) {
        for _ in 0..ROUNDS {
            self.object.get(thread);
            work(random(thread, 500).into());
            self.object.put(thread);
        }
        self.finished.set(self.finished.get() + 1);
        if self.finished.get() == self.threads {
            self.left.set(self.object.count());
        }
    }

    fn locks(&self) -> Vec<&SimLock> {
        vec![self.object.lock()]
    }
}

/// The reference count after a run, and the number of acquisitions of the lock.
fn count_and_acquisitions(run: &Run) -> (u64, u64) {
    let left = Rc::new(Cell::new(u64::MAX));
    let build = |setup: &mut Setup| -> Result<Box<dyn Program>, RunError> {
        Ok(Box::new(References {
            object: setup.lockref("object", AT_FIRST),
            finished: Cell::new(0),
            threads: run.threads,
            left: Rc::clone(&left),
        }))
    };
    let outcome = run.run_program(build).unwrap();
    assert_eq!(outcome.violations, 0, "{}", run.lock.name());
    (left.get(), outcome.acquisitions)
}

#[test]
fn no_reference_is_lost() {
    for machine in ["oracle-x5-4", "kunpeng-920"] {
        let scenario = scenario(machine, "nginx");
        for lock in working_locks() {
            for threads in [1, 8, 80] {
                let run = Run {
                    seconds: 1.0,
                    ..brief(&scenario, lock, threads)
                };
                let (left, _) = count_and_acquisitions(&run);
                assert_eq!(left, AT_FIRST, "{}, {threads} threads", lock.name());
            }
        }
    }
}

#[test]
fn the_lock_is_taken_after_too_many_lost_races_only() {
    let scenario = scenario("kunpeng-920", "nginx");
    let acquisitions = |name, threads| {
        let run = Run {
            seconds: 1.0,
            ..brief(&scenario, lock(name), threads)
        };
        count_and_acquisitions(&run).1
    };
    assert_eq!(acquisitions("qspinlock", 8), 0);
    assert!(acquisitions("qspinlock", 80) > 1000);
    // Such a lock leaves no room for the count in the word.
    assert_eq!(acquisitions("mcs", 1), 2 * ROUNDS as u64);
}
