//! The peers that are not on every machine: the locks of those C and C++ [`LIBRARIES`] that were
//! installed when this crate was built.

use lockworks_torture::peers::{Peer, Table, entries, of_c_library, of_crates};

/// A library that is optional: this crate builds without it.
#[derive(Debug)]
pub struct Library {
    /// The library's name.
    pub name: &'static str,
    /// The Debian package with its headers.
    pub package: &'static str,
    /// The names of the library's locks.
    pub locks: &'static [&'static str],
    /// Whether the library was installed when this crate was built.
    pub built: bool,
}

/// All optional libraries.
pub static LIBRARIES: [Library; 3] = [
    Library {
        name: "Concurrency Kit",
        package: "libck-dev",
        locks: &["ck_mcs", "ck_ticket", "ck_clh", "ck_fas"],
        built: cfg!(ck),
    },
    Library {
        name: "nsync",
        package: "libnsync-dev",
        locks: &["nsync"],
        built: cfg!(nsync),
    },
    Library {
        name: "Abseil",
        package: "libabsl-dev",
        locks: &["abseil"],
        built: cfg!(abseil),
    },
];

/// One line that names the missing libraries and their packages. `None` if no library is missing.
pub fn missing() -> Option<String> {
    let of = |what: fn(&Library) -> &'static str| -> Vec<&str> {
        LIBRARIES
            .iter()
            .filter(|library| !library.built)
            .map(what)
            .collect()
    };
    let names = of(|library| library.name);
    (!names.is_empty()).then(|| {
        format!(
            "built without {}: to compare with them, install {} and build again",
            names.join(", "),
            of(|library| library.package).join(" ")
        )
    })
}

unsafe extern "C" {
    #[cfg(ck)]
    static peer_ck: Table<Peer>;
    #[cfg(nsync)]
    static peer_nsync: Table<Peer>;
    #[cfg(abseil)]
    static peer_abseil: Table<Peer>;
}

/// All peers that this crate was built with, in the order in which tables show them.
pub fn all() -> impl Iterator<Item = &'static Peer> {
    let tables: Vec<*const Table<Peer>> = vec![
        #[cfg(ck)]
        &raw const peer_ck,
        #[cfg(nsync)]
        &raw const peer_nsync,
        #[cfg(abseil)]
        &raw const peer_abseil,
    ];
    let here = tables
        .into_iter()
        // SAFETY: every table has pointers to constants and ends with NULL.
        .flat_map(|table| unsafe { entries(table) });
    of_c_library().chain(here).chain(of_crates())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use lockworks_torture::ELSEWHERE;
    use lockworks_torture::peers::{Order, PeerLock};

    #[test]
    fn names_are_unique_and_complete() {
        let mut names: Vec<_> = all().map(|peer| peer.bench.name()).collect();
        for library in &LIBRARIES {
            for lock in library.locks {
                assert_eq!(names.contains(lock), library.built, "{lock}");
                assert!(ELSEWHERE.contains(lock), "{lock}");
            }
            let said = missing().is_some_and(|line| line.contains(library.package));
            assert_eq!(said, !library.built);
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// Each peer excludes, also when threads exit while the lock still uses what they lent.
    #[test]
    fn peers_exclude() {
        const THREADS: usize = 3;
        for peer in all() {
            // Few where each hand-off may take a time slice.
            let turns = match peer.bench.order {
                Order::Unfair => 10_000,
                Order::Fifo | Order::Bounded => 30,
            };
            let lock = PeerLock::new(peer, THREADS);
            let counter = AtomicUsize::new(0);
            let work = || {
                let mut loan = lock.loan();
                for _ in 0..turns {
                    // SAFETY: the loan is of this lock, which this thread does not hold.
                    unsafe { lock.lock(&mut loan) };
                    counter.store(counter.load(Relaxed) + 1, Relaxed);
                    // SAFETY: this thread has locked it above, with this loan.
                    unsafe { lock.unlock(&mut loan) };
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(work);
                }
            });
            assert_eq!(
                counter.into_inner(),
                THREADS * turns,
                "{}",
                peer.bench.name()
            );
        }
    }
}
