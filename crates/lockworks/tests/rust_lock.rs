//! The seam between Rust and the locks, with an MCS lock that is written in Rust in place of those in
//! C. So Miri can run it, which executes no C: `cargo +nightly miri test -p lockworks --test rust_lock`.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Instant;

use lockworks::{LockDescription, LockType, Node, RawLock, WaitError};

/// The tail of the queue of MCS nodes; NULL: the lock is free.
type Tail = AtomicPtr<McsNode>;

struct McsNode {
    next: AtomicPtr<McsNode>,
    waits: AtomicBool,
}

/// # Safety
/// `lock` is a [`Tail`] and `node` an [`McsNode`] that this thread lends.
unsafe extern "C" fn mcs_lock(lock: *mut c_void, node: *mut c_void) {
    let own: *mut McsNode = node.cast();
    // SAFETY: as the caller promises.
    let (tail, node) = unsafe { (&*lock.cast::<Tail>(), &*own) };
    node.next.store(ptr::null_mut(), Ordering::Relaxed);
    node.waits.store(true, Ordering::Relaxed);
    let predecessor = tail.swap(own, Ordering::AcqRel);
    if !predecessor.is_null() {
        // SAFETY: a node in the queue is lent until its successor has the lock.
        unsafe { &*predecessor }.next.store(own, Ordering::Release);
        while node.waits.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

/// # Safety
/// As for [`mcs_lock`].
unsafe extern "C" fn mcs_try_lock(lock: *mut c_void, node: *mut c_void) -> bool {
    let own: *mut McsNode = node.cast();
    // SAFETY: as the caller promises.
    let (tail, node) = unsafe { (&*lock.cast::<Tail>(), &*own) };
    node.next.store(ptr::null_mut(), Ordering::Relaxed);
    let free = ptr::null_mut();
    tail.compare_exchange(free, own, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// # Safety
/// As for [`mcs_lock`]; this thread holds the lock.
unsafe extern "C" fn mcs_unlock(lock: *mut c_void, node: *mut c_void) {
    let own: *mut McsNode = node.cast();
    // SAFETY: as the caller promises.
    let (tail, node) = unsafe { (&*lock.cast::<Tail>(), &*own) };
    let free = ptr::null_mut();
    if tail
        .compare_exchange(own, free, Ordering::Release, Ordering::Relaxed)
        .is_ok()
    {
        return;
    }
    let mut successor = node.next.load(Ordering::Acquire);
    while successor.is_null() {
        std::thread::yield_now();
        successor = node.next.load(Ordering::Acquire);
    }
    // SAFETY: the successor waits until this store.
    unsafe { &*successor }.waits.store(false, Ordering::Release);
}

/// Reads the deadline, and reports that it has come.
///
/// # Safety
/// `limit` is a `struct lw_wait_limit` with a deadline, whose address is its first member.
unsafe extern "C" fn time_out(_lock: *mut c_void, limit: *const c_void) -> bool {
    // SAFETY: as the caller promises; a `struct timespec` is seconds and nanoseconds.
    let [seconds, nanoseconds] = unsafe { **limit.cast::<*const [i64; 2]>() };
    assert!(seconds >= 0 && (0..1_000_000_000).contains(&nanoseconds));
    false
}

const DESCRIPTION: LockDescription = LockDescription {
    name: c"mcs in Rust".as_ptr(),
    summary: c"the queue lock of 1991".as_ptr(),
    origin: c"Mellor-Crummey and Scott".as_ptr(),
    tunables: ptr::null(),
    size: size_of::<Tail>(),
    node_size: size_of::<McsNode>(),
    traits: 0,
    unlocked: 0,
    lock: mcs_lock,
    try_lock: mcs_try_lock,
    unlock: mcs_unlock,
    lock_limited: Some(time_out),
    read_lock: None,
    read_try_lock: None,
    read_unlock: None,
    read_lock_limited: None,
};

// SAFETY: the functions are those of an MCS lock.
static MCS: LockType = unsafe { LockType::new(DESCRIPTION) };

/// A number that only the holder of the lock may use.
#[derive(Default)]
struct Protected(UnsafeCell<u32>);

// SAFETY: the lock orders all uses.
unsafe impl Sync for Protected {}

impl Protected {
    /// # Safety
    /// This thread holds the lock.
    unsafe fn increment(&self) {
        // SAFETY: as the caller promises.
        unsafe { *self.0.get() += 1 }
    }
}

#[test]
fn threads_exclude_each_other() {
    const THREADS: u32 = 3;
    const ACQUISITIONS: u32 = 20;
    let (lock, number) = (RawLock::new(&MCS), Protected::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut node = Node::new(&MCS);
                for turn in 0..ACQUISITIONS {
                    if turn % 4 != 0 || !lock.try_lock(&mut node) {
                        lock.lock(&mut node);
                    }
                    // SAFETY: this thread holds the lock.
                    unsafe { number.increment() };
                    // SAFETY: this thread has locked it above, with this node.
                    unsafe { lock.unlock(&mut node) };
                }
            });
        }
    });
    assert_eq!(number.0.into_inner(), THREADS * ACQUISITIONS);
}

#[test]
fn a_lent_node_may_move() {
    let (lock, mut node) = (RawLock::new(&MCS), Node::new(&MCS));
    lock.lock(&mut node);
    let mut moved = Box::new(node);
    // SAFETY: this thread has locked it above, with this node.
    unsafe { lock.unlock(&mut moved) };
    assert!(lock.try_lock(&mut moved));
    // SAFETY: the same.
    unsafe { lock.unlock(&mut moved) };
}

#[test]
fn a_wait_has_a_deadline() {
    let (lock, mut holder) = (RawLock::new(&MCS), Node::new(&MCS));
    lock.lock(&mut holder);
    let mut node = Node::new(&MCS);
    let waited = lock.lock_until(&mut node, Some(Instant::now()), None);
    assert_eq!(waited, Err(WaitError::TimedOut));
    // SAFETY: this thread has locked it above, with this node.
    unsafe { lock.unlock(&mut holder) };
    assert_eq!(lock.lock_until(&mut node, None, None), Ok(()));
    // SAFETY: the same.
    unsafe { lock.unlock(&mut node) };
}

#[test]
fn a_description_has_texts() {
    assert_eq!(MCS.name(), "mcs in Rust");
    assert!(MCS.summary().contains("1991") && MCS.origin().contains("Scott"));
}
