//! The locks that are compared: Lockworks' own and its peers.

use lockworks_peers::{Table, entries};

/// One lock and the loops around it.
pub type Lock = lockworks_peers::Bench;

unsafe extern "C" {
    static bench_bare_locks: Table<Lock>;
    static bench_our_locks: Table<Lock>;
    static bench_references: Table<Lock>;
}

/// The lock that all others are measured against.
pub const BARE: &str = "bare";
/// The locks that have to be ahead.
pub const OURS: [&str; 3] = ["lw_qspinlock", "lw_cna", "lw_hq"];

/// Is it one of Lockworks?
pub fn is_ours(lock: &Lock) -> bool {
    lock.origin() == "Lockworks"
}

/// All locks, in the order in which tables show them.
pub fn all() -> Vec<&'static Lock> {
    // SAFETY: tables of constants that end with NULL.
    let own =
        unsafe { entries(&raw const bench_bare_locks).chain(entries(&raw const bench_our_locks)) };
    own.chain(lockworks_peers::all().map(|peer| peer.bench))
        .collect()
}

/// What gets and puts references rather than to lock and unlock.
pub fn references() -> Vec<&'static Lock> {
    // SAFETY: a table of constants that ends with NULL.
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
