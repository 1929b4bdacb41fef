//! The locks that are compared: those of Lockworks and its peers.

use lockworks_torture::peers::{Bench, Table, entries};

/// One lock and the loops around it.
pub type Lock = Bench;

unsafe extern "C" {
    static bench_bare_locks: Table<Lock>;
    static bench_our_locks: Table<Lock>;
    static bench_references: Table<Lock>;
}

/// The reference of uncontended measurements, which costs the least.
pub const BARE: &str = "bare";
/// The queued spinlocks of Lockworks, which have to be faster than their peers.
pub const OURS: [&str; 3] = ["lw_qspinlock", "lw_cna", "lw_hq"];

/// Whether a lock is one of Lockworks'.
pub fn is_ours(lock: &Lock) -> bool {
    lock.origin() == "Lockworks"
}

/// All locks, in the order in which tables show them.
pub fn all() -> Vec<&'static Lock> {
    // SAFETY: both tables have pointers to constants and end with NULL.
    let own =
        unsafe { entries(&raw const bench_bare_locks).chain(entries(&raw const bench_our_locks)) };
    own.chain(lockworks_peers::all().map(|peer| peer.bench))
        .collect()
}

/// All lockrefs and reference counts. Their loops get and put references instead of locking.
pub fn references() -> Vec<&'static Lock> {
    // SAFETY: the table has pointers to constants and ends with NULL.
    unsafe { entries(&raw const bench_references) }.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_complete() {
        let mut names: Vec<_> = all().iter().map(|lock| lock.name()).collect();
        assert_eq!(names[0], BARE);
        for ours in OURS {
            assert!(names.contains(&ours));
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
