//! The declarations of the C headers in the world of the checker. The build script generates the
//! constants, and asserts that the structures and enumerations are those of the headers.

use std::ffi::{c_char, c_int, c_void};

use lockworks::{LockType, LockrefType};

include!(concat!(env!("OUT_DIR"), "/constants.rs"));

/// The size of a queue node and the offsets of its fields, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct NodeLayout {
    pub(crate) size: usize,
    pub(crate) next: usize,
    pub(crate) locked: usize,
    pub(crate) count: usize,
    pub(crate) secondary_head: usize,
    /// Not 0 while the queue of a NUMA node is in use.
    pub(crate) waiters: usize,
}

/// The layout of queue nodes, `struct lw_node` in C.
pub(crate) const NODE: NodeLayout = NodeLayout {
    size: NODE_SIZE,
    next: NODE_NEXT,
    locked: NODE_LOCKED,
    count: NODE_COUNT,
    secondary_head: NODE_SECONDARY_HEAD,
    waiters: NODE_WAITERS,
};

/// The size of the queues of a NUMA node, in bytes.
pub(crate) const NODE_QUEUES_SIZE: usize = LW_NODE_QUEUES * NODE.size;

/// The bits of a lock's word.
#[derive(Clone, Copy)]
pub(crate) struct WordLayout {
    /// The lock is an HQ-spinlock.
    pub(crate) hq: u32,
    /// The HQ-spinlock is in NUMA mode.
    pub(crate) hq_numa: u32,
    /// All bits that describe the kind and mode of the lock.
    pub(crate) service: u32,
    /// All bits that say how the lock is held.
    pub(crate) locked_mask: u32,
    /// The greatest value of these bits.
    pub(crate) locked: u32,
    /// A waiter is pending.
    pub(crate) pending: u32,
    /// The queue is locked.
    pub(crate) queue_locked: u32,
    /// The queue head is parked.
    pub(crate) parked: u32,
    /// The tail, that is, the last waiter: all bits from `tail_shift` on.
    pub(crate) tail: u32,
    pub(crate) tail_shift: u32,
    /// The flags of a mutex' word: the queue head sleeps, any thread may acquire, the last holder has
    /// acquired again, and, if all its bits are set, only a waiter may acquire: fewer count those who have passed over the head.
    pub(crate) head_asleep: u32,
    pub(crate) open: u32,
    pub(crate) retaken: u32,
    pub(crate) starved: u32,
    /// What may stay in a mutex' word when nobody holds the mutex or waits for it.
    pub(crate) left: u32,
    /// The greatest value of `locked_mask` in a mutex' word.
    pub(crate) off_cpu: u32,
}

/// The bits of a lock's word, as `locks/parts/lock_word.h` has them.
pub(crate) const WORD: WordLayout = WordLayout {
    hq: LW_HQ as u32,
    hq_numa: LW_HQ_NUMA as u32,
    service: LW_SERVICE_MASK as u32,
    locked_mask: LW_LOCKED_MASK as u32,
    locked: LW_UNLOCKING as u32,
    pending: LW_PENDING as u32,
    queue_locked: LW_QUEUE_LOCKED as u32,
    parked: LW_PARKED as u32,
    tail: u32::MAX << LW_TAIL_SHIFT,
    tail_shift: LW_TAIL_SHIFT as u32,
    head_asleep: LW_HEAD_ASLEEP as u32,
    open: LW_OPEN as u32,
    retaken: LW_RETAKEN as u32,
    starved: LW_STARVED as u32,
    left: (LW_MAY_STAY | LW_LOCKED_MASK ^ LW_LOCKED) as u32,
    off_cpu: LW_OFF_CPU as u32,
};

/// The bits of a reader-writer lock's second word that are 0 while nobody holds it.
pub(crate) const READERS: u64 = (u32::MAX << LW_RWLOCK_ONE.trailing_zeros()
    | (LW_RWLOCK_WRITER | LW_RWLOCK_HELD) as u32) as u64;

/// The slot, from 1, and the number of its queue node that a tail stands for.
pub(crate) fn slot_and_node(tail: usize) -> (usize, usize) {
    const { assert!(LW_NODES_PER_SLOT == 1 << (LW_TAIL_SLOT_SHIFT - LW_TAIL_SHIFT)) }
    (tail / LW_NODES_PER_SLOT, tail % LW_NODES_PER_SLOT)
}

/// The client of a check, `struct lw_check_client` in C.
#[repr(C)]
pub(crate) struct Client {
    pub(crate) lock: *const LockType,
    pub(crate) locks: [usize; LW_CHECK_LOCKS],
    pub(crate) data: [usize; LW_CHECK_LOCKS],
    pub(crate) threads: u32,
    pub(crate) acquisitions: u32,
    pub(crate) readers: u32,
    pub(crate) lock_count: u32,
    pub(crate) trylock: bool,
    pub(crate) cancel: bool,
    pub(crate) lockref: *const LockrefType,
    pub(crate) object: usize,
    pub(crate) litmus: *const LitmusTest,
    pub(crate) variables: usize,
    /// NULL: the object has those of the lock's type only.
    pub(crate) functions: *const Functions,
    /// Those of a semaphore; 0: it is none.
    pub(crate) tokens: u32,
}

include!(concat!(env!("OUT_DIR"), "/layout_Client.rs"));

/// A function of a condition variable, which gets the mutex, its queue node and the condition variable.
type CondFn = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void);

/// A function that acquires a resilient lock; 0: it has.
pub(crate) type AcquireFn = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The functions of an object of a source that is no lock, `struct lw_check_functions` in C.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Functions {
    pub(crate) read_begin: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
    pub(crate) read_retry: Option<unsafe extern "C" fn(*mut c_void, u64) -> bool>,
    pub(crate) wait: Option<CondFn>,
    pub(crate) signal: Option<CondFn>,
    pub(crate) broadcast: Option<CondFn>,
    pub(crate) acquire: Option<AcquireFn>,
}

include!(concat!(env!("OUT_DIR"), "/layout_Functions.rs"));

// SAFETY: nobody writes to a client, and its pointers are to constants.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// A litmus test, `struct lw_litmus` in C.
#[repr(C)]
pub(crate) struct LitmusTest {
    pub(crate) name: *const c_char,
    pub(crate) summary: *const c_char,
    pub(crate) c11: *const c_char,
    pub(crate) sc: *const c_char,
    pub(crate) threads: [Option<unsafe extern "C" fn(*mut c_void)>; LW_LITMUS_THREADS],
    pub(crate) arm: *const c_char,
    pub(crate) kernel: *const c_char,
    pub(crate) kernel62: *const c_char,
    pub(crate) tso: *const c_char,
    pub(crate) riscv: *const c_char,
    /// NULL: all variables are 0 at first, and their final values are no results.
    pub(crate) initial: *const u64,
    pub(crate) variables: u32,
}

include!(concat!(env!("OUT_DIR"), "/layout_LitmusTest.rs"));

impl LitmusTest {
    /// The initial values of its variables, if it has any.
    pub(crate) fn variables(&self) -> &'static [u64] {
        match self.initial.is_null() {
            true => &[],
            // SAFETY: a constant with so many elements.
            false => unsafe { std::slice::from_raw_parts(self.initial, self.variables as usize) },
        }
    }
}

/// A point in an acquisition, `enum lw_check_mark` in C.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "made by C code only")]
pub(crate) enum Mark {
    Begin,
    Acquired,
    Reads,
    Release,
    Released,
    Destroyed,
}

include!(concat!(env!("OUT_DIR"), "/layout_Mark.rs"));

/// How far a thread is with a lock, `enum lw_check_had` in C.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Had {
    Nothing,
    Tries,
    Held,
}

include!(concat!(env!("OUT_DIR"), "/layout_Had.rs"));
