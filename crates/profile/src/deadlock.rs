//! Threads that wait for each other in a circle.

use std::collections::HashMap;

use serde::Serialize;

use crate::places::Places;
use crate::record::{Acquisition, Record};

/// A thread of a deadlock. The next one holds the lock that it waits for: a mutex, or an rwlock
/// alone.
#[derive(Serialize)]
pub struct Deadlocked {
    /// The number of the thread, from 1.
    pub thread: u64,
    /// The lock that it waits for.
    pub waits_for: String,
    /// Where it waits.
    pub waits_at: String,
    /// The thread that holds this lock.
    pub held_by: u64,
    /// Where that thread locked it.
    pub held_since: String,
}

/// The first circle of waiting threads in a process. Empty: there is none.
pub fn of(record: &Record, places: &mut Places) -> Vec<Deadlocked> {
    let holds = holds(&record.acquisitions);
    let circle = circle_of(&record.acquisitions).into_iter();
    circle
        .map(|wait| {
            let hold = holds[&wait.lock];
            Deadlocked {
                thread: wait.thread,
                waits_for: places.lock(record, wait.lock),
                waits_at: places.name(record, wait.call),
                held_by: hold.thread,
                held_since: places.name(record, hold.call),
            }
        })
        .collect()
}

/// The locks that threads hold, by address.
fn holds(acquisitions: &[Acquisition]) -> HashMap<u64, &Acquisition> {
    let holds = acquisitions
        .iter()
        .filter(|one| one.acquired.is_some() && one.released.is_none());
    holds.map(|one| (one.lock, one)).collect()
}

/// The waits of the threads of the first circle. Empty: there is none.
pub fn circle_of(acquisitions: &[Acquisition]) -> Vec<&Acquisition> {
    let waits: HashMap<u64, &Acquisition> = acquisitions
        .iter()
        .filter(|one| one.acquired.is_none() && one.call.is_some())
        .map(|one| (one.thread, one))
        .collect();
    let holds = holds(acquisitions);
    let next = |thread: u64| Some(holds.get(&waits.get(&thread)?.lock)?.thread);
    let mut threads: Vec<u64> = waits.keys().copied().collect();
    threads.sort_unstable();
    let circle = threads.into_iter().find_map(|first| circle(first, next));
    let circle = circle.unwrap_or_default().into_iter();
    circle.map(|thread| waits[&thread]).collect()
}

/// The circle that a thread is in: it, the thread that it waits for, and so on.
fn circle(first: u64, next: impl Fn(u64) -> Option<u64>) -> Option<Vec<u64>> {
    let mut circle = vec![first];
    loop {
        let thread = next(*circle.last()?)?;
        if thread == first {
            return Some(circle);
        }
        if circle.contains(&thread) {
            return None;
        }
        circle.push(thread);
    }
}

#[cfg(test)]
mod tests {
    use super::circle;

    #[test]
    fn a_circle_is_told_from_a_row_that_leads_into_one() {
        let next = |thread| [None, Some(2), Some(3), Some(2), Some(5), None][thread as usize];
        assert_eq!(circle(1, next), None);
        assert_eq!(circle(2, next), Some(vec![2, 3]));
        assert_eq!(circle(4, next), None);
        assert_eq!(circle(1, |_| Some(1)), Some(vec![1]));
    }
}
