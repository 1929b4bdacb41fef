//! Unmodified programs under every lock that suits any program give the same results as under glibc.
//! `make test` installs the programs.

use std::path::Path;
use std::thread;

use lockworks::{LockType, Mutex};
use lockworks_programs::{
    Leveldb, Mariadb, Memcached, Program, Python, Redis, RocksDb, Runner, Size, StressNg, Unbound,
};

const LOCKWORKS: &str = env!("CARGO_BIN_EXE_lockworks");

/// Held by tests that must not run beside each other: stress-ng's real-time threads may keep every CPU
/// for most of a second, and CPython's tests then miss their timeouts.
static CPUS: Mutex<()> = Mutex::new(());

/// The bytes of a pthread mutex in which the lock must fit.
const ROOM: usize = 4;

/// The locks that programs may run under and whose waiters park.
fn locks() -> impl Iterator<Item = &'static str> {
    let all = lockworks::lock_types().iter().copied();
    let suits = |lock: &&LockType| {
        let fits = lock.size() <= ROOM && lock.node_size() == 0;
        fits && !lock.spins() && !lock.is_broken() && !lock.is_historic()
    };
    all.filter(suits).map(LockType::name)
}

fn results(program: &dyn Program, lock: Option<&str>) -> String {
    let runner = Runner {
        lockworks: Path::new(LOCKWORKS),
        lock,
    };
    let clients = program.clients(Size::Small)[0];
    match program.run(&runner, clients, Size::Small) {
        Ok(outcome) => outcome.results,
        Err(error) => panic!("{} under {}: {error:#}", program.name(), runner.name()),
    }
}

fn same_results(program: &dyn Program) {
    let expected = results(program, None);
    for lock in locks() {
        assert_eq!(results(program, Some(lock)), expected, "under {lock}");
    }
}

#[test]
fn the_locks_are_these() {
    let locks: Vec<_> = locks().collect();
    assert_eq!(locks, ["pv", "unfair", "mutex"]);
}

#[test]
fn memcached() {
    same_results(&Memcached);
}

#[test]
fn leveldb() {
    same_results(&Leveldb);
}

#[test]
fn redis() {
    same_results(&Redis);
}

#[test]
fn mariadb() {
    same_results(&Mariadb);
}

#[test]
fn rocksdb() {
    same_results(&RocksDb);
}

#[test]
fn unbound() {
    same_results(&Unbound);
}

#[test]
fn stress_ng() {
    let _alone = CPUS.lock();
    same_results(&StressNg);
}

/// These tests sleep most of the time, so the locks are tested at the same time.
#[test]
fn python() {
    let _alone = CPUS.lock();
    thread::scope(|scope| {
        let expected = scope.spawn(|| results(&Python, None));
        let others: Vec<_> = locks()
            .map(|lock| (lock, scope.spawn(move || results(&Python, Some(lock)))))
            .collect();
        let expected = expected.join().expect("under glibc");
        for (lock, results) in others {
            let results = results.join().expect("under our lock");
            assert_eq!(results, expected, "under {lock}");
        }
    });
}
