//! Tests of the Rust interface to the C library. `tests/user` tests the locks themselves.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use lockworks::lock_api::{Mutex, RawMutexTimed};
use lockworks::tunables::{self, NumaMode, OutOfRange};
use lockworks::{
    Cancel, Lockref, Node, RawLock, Setting, Settings, ThreadPriority, Tunable, WaitError, find,
    find_lockref, lock_types, lockref_types, statistics, topology,
};

#[test]
fn lock_types_describe_themselves() {
    let names: Vec<_> = lock_types()
        .iter()
        .map(|lock_type| lock_type.name())
        .collect();
    let expected = [
        "tas",
        "ticket",
        "mcs",
        "qspinlock",
        "cna",
        "hq",
        "pv",
        "unfair",
        "mutex",
        "busted",
    ];
    for name in expected {
        assert!(names.contains(&name), "{names:?}");
    }
    for lock_type in lock_types() {
        assert!(!lock_type.summary().is_empty() && !lock_type.origin().is_empty());
        assert!(std::ptr::eq(find(lock_type.name()).unwrap(), *lock_type));
    }
    assert!(find("no such lock").is_none());

    let mcs = find("mcs").unwrap();
    assert_eq!((mcs.size(), mcs.node_size()), (8, 16));
    assert!(mcs.is_fifo() && mcs.spins() && !mcs.is_numa_aware() && !mcs.is_broken());
    let cna = find("cna").unwrap();
    assert_eq!((cna.size(), cna.node_size()), (4, 0));
    assert!(!cna.is_fifo() && cna.spins() && cna.is_numa_aware() && !cna.is_broken());
    let hq = find("hq").unwrap();
    assert_eq!((hq.size(), hq.node_size(), hq.unlocked()), (4, 0, 0x200));
    assert!(!hq.is_fifo() && hq.spins() && hq.is_numa_aware() && !hq.is_broken());
    for name in ["mutex", "pv", "unfair"] {
        let halting = find(name).unwrap();
        assert_eq!((halting.size(), halting.node_size()), (4, 0), "{name}");
        assert!(!halting.spins() && halting.can_time_out(), "{name}");
    }
    assert!(find("busted").unwrap().is_broken());
}

/// A counter that the lock protects, if it excludes.
struct Protected {
    lock: RawLock,
    counter: UnsafeCell<u64>,
}

// SAFETY: threads access the counter only while they hold the lock.
unsafe impl Sync for Protected {}

#[test]
fn locks_exclude() {
    const ROUNDS: u64 = 3_000;
    for lock_type in lock_types()
        .iter()
        .filter(|lock_type| !lock_type.is_broken())
    {
        let protected = Protected {
            lock: RawLock::new(lock_type),
            counter: UnsafeCell::new(0),
        };
        let work = || {
            let protected = &protected;
            let mut node = Node::new(lock_type);
            for _ in 0..ROUNDS {
                protected.lock.lock(&mut node);
                // SAFETY: this thread holds the lock.
                unsafe { *protected.counter.get() += 1 };
                // SAFETY: this thread has locked it above.
                unsafe { protected.lock.unlock(&mut node) };
            }
        };
        thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
        assert_eq!(
            protected.counter.into_inner(),
            2 * ROUNDS,
            "{}",
            lock_type.name()
        );
    }
}

/// A wait with a deadline times out while the lock is held, and succeeds once it is free.
fn times_out<R: RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync>() {
    let lock = &Mutex::<R, _>::new(0);
    let held = lock.lock();
    let soon = Instant::now() + Duration::from_millis(5);
    thread::scope(|scope| {
        let timed = scope.spawn(move || lock.try_lock_until(soon).is_none());
        assert!(timed.join().unwrap() && Instant::now() >= soon);
        let unlimited = scope.spawn(|| *lock.try_lock_for(Duration::MAX).unwrap() = 1);
        thread::sleep(Duration::from_millis(1));
        drop(held);
        unlimited.join().unwrap();
    });
    assert_eq!(*lock.try_lock_for(Duration::ZERO).unwrap(), 1);
}

#[test]
fn mutexes_time_out() {
    times_out::<lockworks::RawMutex>();
    times_out::<lockworks::pv::RawMutex>();
    times_out::<lockworks::unfair::RawMutex>();
}

#[test]
fn nodes_are_lent_once_and_to_their_own_type() {
    let mcs = find("mcs").unwrap();
    let (lock, other) = (RawLock::new(mcs), RawLock::new(find("ticket").unwrap()));
    let mut node = Node::new(mcs);
    assert!(catch_unwind(AssertUnwindSafe(|| other.lock(&mut node))).is_err());
    assert!(lock.try_lock(&mut node));
    assert!(catch_unwind(AssertUnwindSafe(|| lock.try_lock(&mut node))).is_err());

    let mut second = Node::new(mcs);
    assert!(!lock.try_lock(&mut second));
    // SAFETY: this thread has locked it above.
    unsafe { lock.unlock(&mut node) };
    // A failed attempt leaves the node free.
    assert!(lock.try_lock(&mut second));
    // SAFETY: this thread has locked it above.
    unsafe { lock.unlock(&mut second) };
}

#[test]
fn values_out_of_range_are_refused() {
    assert_eq!(tunables::set_numa_spinlock_threshold(0), Err(OutOfRange));
    assert_eq!(tunables::set_numa_spinlock_threshold(101), Err(OutOfRange));
    assert_eq!(tunables::numa_spinlock_threshold(), 10);
    assert_eq!(tunables::set_numa_spinlock_threshold(100), Ok(()));
    assert_eq!(tunables::numa_spinlock_threshold(), 100);
}

#[test]
fn tunables_keep_what_is_set() {
    for mode in [NumaMode::On, NumaMode::Off, NumaMode::Auto] {
        tunables::set_numa_spinlock(mode);
        assert_eq!(tunables::numa_spinlock(), mode);
        let active = match mode {
            NumaMode::On => true,
            NumaMode::Off => false,
            NumaMode::Auto => topology::nodes() >= 2,
        };
        assert_eq!(tunables::numa_spinlock_active(), active);
    }
    for on in [false, true] {
        tunables::set_shuffle_reduction(on);
        tunables::set_priority_waiters(!on);
        assert_eq!(
            (tunables::shuffle_reduction(), tunables::priority_waiters()),
            (on, !on)
        );
    }
    tunables::set_priority_waiters(true);
}

#[test]
fn tunables_are_set_by_name() {
    for tunable in Tunable::all() {
        let set = |name: &str, value: &str| format!("{name}={value}").parse::<Setting>();
        let (name, highest) = (tunable.name, tunable.maximum.to_string());
        assert_eq!(tunable.get(), tunable.default, "{name}");
        set(name, &highest).unwrap().apply();
        assert_eq!(tunable.get(), tunable.maximum, "{name}");
        let beyond = (tunable.maximum + 1).to_string();
        for value in [&beyond, "-1", "", "1.5"] {
            let error = set(name, value).unwrap_err().to_string();
            let range = format!("{name} cannot be '{value}': it must be 0 to {highest}");
            assert_eq!(error, range);
        }
        assert!(Setting::new(tunable, tunable.maximum + 1).is_err());
        assert_eq!(tunable.get(), tunable.maximum);
        let default = tunable.default.to_string();
        set(name, &default).unwrap().apply();
        assert_eq!(tunable.get(), tunable.default);
    }
    for bad in ["fairness=1", "hqlock_fairness_threshold", "spin=1"] {
        assert!(bad.parse::<Setting>().is_err(), "{bad}");
    }
}

#[test]
fn a_kernel_has_defaults_of_its_own() {
    let (here, kernel) = (Settings::default(), Settings::kernel());
    for tunable in Tunable::all() {
        assert_eq!(here.get(tunable), tunable.default, "{}", tunable.name);
        assert_eq!(kernel.get(tunable), tunable.kernel_default);
    }
    assert_ne!(here, kernel);
    let same = Settings {
        by_name: here.by_name,
        ..kernel
    };
    assert_eq!(same, here);
}

#[test]
fn statistics_have_names_and_differences() {
    let before = statistics();
    let lock = RawLock::new(find("qspinlock").unwrap());
    let mut node = Node::new(lock.lock_type());
    let started = Barrier::new(2);
    lock.lock(&mut node);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut node = Node::new(lock.lock_type());
            assert!(!lock.try_lock(&mut node));
            started.wait();
            lock.lock(&mut node);
            // SAFETY: this thread has locked it above.
            unsafe { lock.unlock(&mut node) };
        });
        started.wait();
        // SAFETY: this thread has locked it above.
        unsafe { lock.unlock(&mut node) };
    });
    let now = statistics();
    for (name, meaning, count) in now.since(&before).iter() {
        assert!(!name.is_empty() && !meaning.is_empty());
        assert_eq!(
            Some(count),
            now.get(name)
                .zip(before.get(name))
                .map(|(now, then)| now - then)
        );
    }
    assert!(now.get("queued_acquisitions").is_some());
    assert!(now.get("no such event").is_none());
}

#[test]
fn threads_attach() {
    let slot = lockworks::thread_attach().expect("a free slot");
    assert_eq!(lockworks::thread_attach(), Some(slot));
    let other = thread::spawn(lockworks::thread_attach).join().unwrap();
    assert!(other.is_some() && other != Some(slot));
    for priority in [
        ThreadPriority::On,
        ThreadPriority::Off,
        ThreadPriority::Auto,
    ] {
        lockworks::thread_set_priority(priority);
    }
}

#[test]
fn topology_has_this_node() {
    assert!(topology::nodes() >= 1);
    assert!(topology::current_node() < topology::nodes());
    assert_eq!(topology::node_of_cpu(u32::MAX), 0);
    assert!(topology::warning().is_none_or(|warning| warning.contains("all CPUs")));
}

#[test]
fn lockrefs_count() {
    for lockref_type in lockref_types() {
        assert!(std::ptr::eq(
            find_lockref(lockref_type.name()).expect("its own name"),
            *lockref_type
        ));
        let lockref = Lockref::new(lockref_type, 0);
        assert!(!lockref.get_not_zero());
        let held = lockref.lock();
        assert!(lockref.try_lock().is_none());
        assert_eq!(lockref.put_return(), None);
        drop(held);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        assert!(lockref.get_not_dead());
                        let mut guard = lockref.lock();
                        let count = guard.count();
                        guard.set_count(count + 1);
                    }
                });
            }
        });
        assert_eq!(lockref.count(), 4000, "{}", lockref_type.name());
        assert!(lockref.put_not_zero());
        lockref.get();
        while lockref.count() > 1 {
            assert!(lockref.put_or_lock().is_none());
        }
        lockref.put_or_lock().expect("the last one").mark_dead();
        assert!(!lockref.get_not_dead() && !lockref.get_not_zero() && lockref.count() < 0);
        assert!(lockref.try_lock().is_some());
    }
}

#[test]
fn waits_end_by_deadline_or_cancellation() {
    for name in ["mutex", "pv", "unfair"] {
        assert!(find(name).unwrap().can_time_out(), "{name}");
    }
    for lock_type in lock_types().iter().filter(|lock| lock.can_time_out()) {
        let lock = &RawLock::new(lock_type);
        let cancel = &Cancel::new();
        let wait = |deadline, cancel| {
            let mut node = Node::new(lock_type);
            let waited = lock.lock_until(&mut node, deadline, cancel);
            if waited.is_ok() {
                // SAFETY: this thread has just locked it, with this node.
                unsafe { lock.unlock(&mut node) };
            }
            waited
        };
        let past = Some(Instant::now());
        assert_eq!(wait(past, None), Ok(()));

        let mut node = Node::new(lock_type);
        lock.lock(&mut node);
        let soon = Instant::now() + Duration::from_millis(20);
        let far = Some(Instant::now() + Duration::from_secs(u64::MAX >> 2));
        thread::scope(|scope| {
            let timed = scope.spawn(move || wait(Some(soon), None));
            let cancelled = scope.spawn(move || wait(far, Some(cancel)));
            assert_eq!(timed.join().unwrap(), Err(WaitError::TimedOut));
            assert!(soon <= Instant::now() && !cancel.is_cancelled());
            cancel.cancel();
            assert_eq!(cancelled.join().unwrap(), Err(WaitError::Cancelled));
            assert_eq!(
                scope
                    .spawn(move || wait(None, Some(cancel)))
                    .join()
                    .unwrap(),
                Err(WaitError::Cancelled)
            );
            let waits_long = scope.spawn(move || wait(far, None));
            // SAFETY: this thread has locked it above, with this node.
            unsafe { lock.unlock(&mut node) };
            assert_eq!(waits_long.join().unwrap(), Ok(()));
        });
        assert_eq!(wait(None, Some(cancel)), Ok(()));
    }
    let qspinlock = find("qspinlock").unwrap();
    let lock = RawLock::new(qspinlock);
    let limited = || lock.lock_until(&mut Node::new(qspinlock), None, None);
    assert!(catch_unwind(AssertUnwindSafe(limited)).is_err());
}

#[test]
fn types_have_the_traits_of_those_of_std() {
    use std::fmt::{Debug, Display};
    use std::panic::{RefUnwindSafe, UnwindSafe};

    use lockworks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    fn lock<T: Send + Sync + Debug + Default + From<u32>>() {}
    fn guard<T: Sync + Debug + Display>() {}
    fn condvar<T: Send + Sync + Debug + Default + UnwindSafe + RefUnwindSafe>() {}

    static LOCKS: [Mutex<u32>; 2] = [const { Mutex::new(1) }; 2];
    static RWLOCK: RwLock<u32> = RwLock::new(1);
    static CHANGED: Condvar = Condvar::new();

    lock::<Mutex<u32>>();
    lock::<RwLock<u32>>();
    guard::<MutexGuard<'static, u32>>();
    guard::<RwLockReadGuard<'static, u32>>();
    guard::<RwLockWriteGuard<'static, u32>>();
    condvar::<Condvar>();
    CHANGED.notify_all();
    assert_eq!(*LOCKS[0].lock() + *RWLOCK.read(), 2);

    let unsized_value: Box<Mutex<dyn Debug + Send>> = Box::new(Mutex::new(3));
    assert_eq!(format!("{unsized_value:?}"), "Mutex { data: 3 }");
    let held = unsized_value.lock();
    assert_eq!(
        format!("{unsized_value:?} {held:?}"),
        "Mutex { data: <locked> } 3"
    );
    assert_eq!(format!("{CHANGED:?}"), "Condvar { .. }");
}

#[test]
fn a_panic_releases_the_lock_and_does_not_poison_it() {
    let (mutex, rwlock) = (lockworks::Mutex::new(1), lockworks::RwLock::new(1));
    let panics = || {
        let (_number, _other) = (mutex.lock(), rwlock.write());
        std::panic::resume_unwind(Box::new("not printed"));
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(mutex.try_lock().is_some() && rwlock.try_write().is_some());
}

#[test]
fn each_item_reaches_one_waiter() {
    const WAITERS: u32 = 3;
    const ITEMS: u32 = 1000;
    let (items, filled) = (lockworks::Mutex::new(0), lockworks::Condvar::new());
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| {
                for _ in 0..ITEMS {
                    let mut items = items.lock();
                    filled.wait_while(&mut items, |items| *items == 0);
                    *items -= 1;
                }
            });
        }
        for _ in 0..WAITERS * ITEMS {
            *items.lock() += 1;
            filled.notify_one();
        }
    });
    assert_eq!(items.into_inner(), 0);
}

#[test]
fn notifications_reach_waiters_in_the_order_of_their_waits() {
    // The threads that have begun to wait, and those whose wait has ended.
    let threads = lockworks::Mutex::new((vec![], vec![]));
    let changed = lockworks::Condvar::new();
    let wait = |number: u32| {
        let mut threads = threads.lock();
        threads.0.push(number);
        changed.wait(&mut threads);
        threads.1.push(number);
    };
    assert!(!changed.notify_one());
    assert_eq!(changed.notify_all(), 0);
    // Failures are told after the scope, which waits for its threads.
    let (first, second, others) = thread::scope(|scope| {
        // A thread that is in the list and does not hold the mutex waits.
        let begin = |number| {
            scope.spawn(move || wait(number));
            while !threads.lock().0.contains(&number) {
                thread::yield_now();
            }
        };
        let notify_one = |count| {
            let is_notified = changed.notify_one();
            begin(3 + count as u32);
            loop {
                let ended = threads.lock().1.clone();
                if ended.len() >= count {
                    break (is_notified, ended);
                }
                thread::yield_now();
            }
        };
        (1..=3).for_each(begin);
        (notify_one(1), notify_one(2), changed.notify_all())
    });
    assert_eq!(first, (true, vec![1]));
    assert_eq!(second, (true, vec![1, 2]));
    // Each notification has woken one thread: the third still waited, and both that came later.
    assert_eq!(others, 3);
    assert_eq!(threads.lock().1.len(), 5);
    assert!(!changed.notify_one());
}

#[test]
fn waits_for_a_condition_end() {
    let brief = Duration::from_millis(2);
    let (is_set, changed) = (lockworks::Mutex::new(false), lockworks::Condvar::new());
    let mut guard = is_set.lock();
    let begun = Instant::now();
    assert!(changed.wait_for(&mut guard, brief).timed_out());
    assert!(begun.elapsed() >= brief && is_set.try_lock().is_none());
    assert!(changed.wait_until(&mut guard, begun).timed_out());
    assert!(
        changed
            .wait_while_for(&mut guard, |is_set| !*is_set, brief)
            .timed_out()
    );
    assert!(
        changed
            .wait_while_until(&mut guard, |is_set| !*is_set, begun)
            .timed_out()
    );
    for forever in [Duration::from_secs(3600), Duration::MAX] {
        *guard = false;
        thread::scope(|scope| {
            scope.spawn(|| {
                *is_set.lock() = true;
                changed.notify_all();
            });
            let waited = changed.wait_while_for(&mut guard, |is_set| !*is_set, forever);
            assert!(!waited.timed_out() && *guard);
        });
    }
}
