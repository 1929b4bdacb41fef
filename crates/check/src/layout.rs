//! The addresses of a check. They are names that the lock code computes with; no memory is there.

use lockworks_explore::WORD;

use crate::headers::{
    LW_CHECK_LENT_NODES, LW_CHECK_LOCKS, LW_CHECK_SECOND_LOCK, LW_CHECK_THIRD_LOCK,
    LW_NODES_PER_SLOT, NODE, NODE_QUEUES_SIZE,
};

/// The number of locks of a check: the threads' first lock, one for each level of interruption, and
/// the threads' second lock.
pub(crate) const LOCKS: usize = LW_CHECK_LOCKS;
/// The number of the threads' second lock.
pub(crate) const SECOND_LOCK: usize = LW_CHECK_SECOND_LOCK;
/// The number of the threads' third lock, which is that of interruptions at the deepest level.
pub(crate) const THIRD_LOCK: usize = LW_CHECK_THIRD_LOCK;
/// The deepest level of interruptions.
pub(crate) const LEVELS: usize = LOCKS - 2;
/// The number of queue nodes of a slot.
pub(crate) const NODES: usize = LW_NODES_PER_SLOT;
/// The number of nodes that a thread lends to locks.
pub(crate) const LENT: usize = LW_CHECK_LENT_NODES;
/// The most threads: a set of threads is the bits of a `u64`, and the address ranges have room for
/// them.
pub(crate) const THREADS: usize = 64;
/// The most NUMA nodes.
pub(crate) const NUMA_NODES: usize = 8;

const LOCK_BASE: usize = 0x1_0000;
const DATA_BASE: usize = 0x2_0000;
const NODE_BASE: usize = 0x10_0000;
const LENT_BASE: usize = 0x20_0000;
const VARIABLE_BASE: usize = 0x30_0000;
const QUEUE_BASE: usize = 0x1000_0000;
const TABLE_BASE: usize = 0x60_0000;
const WANTED_BASE: usize = 0x70_0000;
const READS_BASE: usize = 0x80_0000;
const HELD_BASE: usize = 0x90_0000;
const LOCAL_BASE: usize = 0xa0_0000;
const GLOBAL_BASE: usize = 0x5000_0000;
/// The memory in which a source's own accesses find values.
pub(crate) const MEMORY: std::ops::Range<usize> = LOCK_BASE..LOCAL_BASE + THREADS * LOCAL_STRIDE;
/// The distance of locks, and so the size of the largest lock.
pub(crate) const LOCK_STRIDE: usize = (DATA_BASE - LOCK_BASE) / LOCKS;
/// The most thread-local variables of a source, in bytes.
pub(crate) const LOCAL_STRIDE: usize = 0x1000;
/// The most static variables of a source, in bytes.
pub(crate) const MOST_GLOBALS: usize = 16 << 20;
/// The distance of nodes that threads lend, and so more than the size of the largest node.
pub(crate) const LENT_STRIDE: usize = 0x400;
/// The distance of other regions that have no size of their own.
pub(crate) const STRIDE: usize = 0x100;

/// A value of a node's cell that its owner has not initialised.
pub(crate) const UNINITIALISED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// A piece of memory of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Region {
    /// A lock.
    Lock(usize),
    /// The data that a lock protects.
    Data(usize),
    /// A queue node of a thread's slot.
    Node { thread: usize, index: usize },
    /// A node that a thread lends.
    Lent { thread: usize, index: usize },
    /// The record of the lock that a thread's slot waits for.
    Wanted { thread: usize },
    /// The announcements of a thread's slot as a reader.
    Reads { thread: usize },
    /// The table of held locks of a thread's slot.
    Held { thread: usize },
    /// The queues of a NUMA node.
    Queue { node: usize },
    /// The table of parked queue heads.
    Table,
    /// The variables of a litmus test.
    Variables,
    /// The thread-local variables of a source.
    Local { thread: usize },
    /// The static variables of a source.
    Global,
}

impl Region {
    /// The thread that a node belongs to, and the node's number: slot nodes first, then lent nodes.
    pub(crate) fn node(self) -> Option<(usize, usize)> {
        match self {
            Self::Node { thread, index } => Some((thread, index)),
            Self::Lent { thread, index } => Some((thread, NODES + index)),
            _ => None,
        }
    }
}

pub(crate) fn lock(i: usize) -> usize {
    LOCK_BASE + i * LOCK_STRIDE
}

/// The number that stands for a lock's address where locks share the queues of NUMA nodes. With
/// this number, all locks use the same queue.
pub(crate) fn identity(address: usize) -> u64 {
    /// The inverse of the factor that scatters lock addresses, `lw_scattered()`, modulo 2^64. With
    /// another factor two locks would not share their queues, and tests/locks.rs would fail.
    const GATHER: u64 = inverse(0x9e37_79b9_7f4a_7c15);
    let lock = (address - LOCK_BASE) / LOCK_STRIDE;
    (lock as u64).wrapping_mul(GATHER) % (1 << 54) * 4
}

/// The inverse of an odd number modulo 2^64, by Newton's method.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut i = 0;
    while i < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        i += 1;
    }
    x
}

pub(crate) fn data(i: usize) -> usize {
    DATA_BASE + i * STRIDE
}

/// The nodes of a slot, from 1.
pub(crate) fn slot_nodes(slot: usize) -> usize {
    NODE_BASE + slot * NODES * NODE.size
}

/// The record of the lock that a slot, from 1, waits for.
pub(crate) fn slot_wanted(slot: usize) -> usize {
    WANTED_BASE + slot * STRIDE
}

/// The announcements of readers of a slot, from 1.
pub(crate) fn slot_reads(slot: usize) -> usize {
    READS_BASE + slot * STRIDE
}

/// The table of held locks of a slot, from 1.
pub(crate) fn slot_held(slot: usize) -> usize {
    HELD_BASE + slot * STRIDE
}

pub(crate) fn lent(thread: usize, i: usize) -> usize {
    LENT_BASE + (thread * LENT + i) * LENT_STRIDE
}

/// The queues of a NUMA node.
pub(crate) fn node_queues(node: usize) -> usize {
    QUEUE_BASE + node * NODE_QUEUES_SIZE
}

/// The table of parked queue heads.
pub(crate) fn parked_heads() -> usize {
    TABLE_BASE
}

/// The thread-local variables of a source.
pub(crate) fn local(thread: usize) -> usize {
    LOCAL_BASE + thread * LOCAL_STRIDE
}

/// The static variable of a source at an offset.
pub(crate) fn global(offset: usize) -> usize {
    GLOBAL_BASE + offset
}

pub(crate) const fn variables() -> usize {
    VARIABLE_BASE
}

/// The most variables of a litmus test from a file.
pub(crate) const LITMUS_VARIABLES: usize = STRIDE / WORD;

/// The address that stands for the same piece of the nodes of all threads.
pub(crate) fn class(address: usize, threads: usize) -> usize {
    match resolve(address, threads) {
        Some((Region::Node { .. }, offset)) => slot_nodes(1) + offset,
        Some((Region::Lent { .. }, offset)) => lent(0, 0) + offset,
        Some((Region::Reads { .. }, offset)) => slot_reads(1) + offset,
        Some((Region::Held { .. }, offset)) => slot_held(1) + offset,
        Some((Region::Local { .. }, offset)) => local(0) + offset,
        _ => address,
    }
}

/// The address after threads were renamed: the same place in the node of the new thread. Addresses
/// outside of nodes stay the same.
pub(crate) fn renamed(address: usize, to: &[u8]) -> usize {
    let within = |base: usize, stride: usize| {
        let offset = address.checked_sub(base)?;
        let new = usize::from(*to.get(offset / stride)?);
        Some(base + new * stride + offset % stride)
    };
    let slot = NODES * NODE.size;
    within(slot_nodes(1), slot)
        .or_else(|| within(LENT_BASE, LENT * LENT_STRIDE))
        .or_else(|| within(slot_reads(1), STRIDE))
        .or_else(|| within(slot_held(1), STRIDE))
        .or_else(|| within(LOCAL_BASE, LOCAL_STRIDE))
        .unwrap_or(address)
}

/// The region of an address, and the offset in it.
pub(crate) fn resolve(address: usize, threads: usize) -> Option<(Region, usize)> {
    let within = |base: usize, stride: usize, n: usize| {
        let offset = address.checked_sub(base)?;
        (offset < n * stride).then_some((offset / stride, offset % stride))
    };
    let size = NODE.size;
    if let Some((i, offset)) = within(LOCK_BASE, LOCK_STRIDE, LOCKS) {
        return Some((Region::Lock(i), offset));
    }
    if let Some((i, offset)) = within(DATA_BASE, STRIDE, LOCKS) {
        return Some((Region::Data(i), offset));
    }
    if let Some((i, offset)) = within(slot_nodes(1), size, threads * NODES) {
        let (thread, index) = (i / NODES, i % NODES);
        return Some((Region::Node { thread, index }, offset));
    }
    if let Some((i, offset)) = within(LENT_BASE, LENT_STRIDE, threads * LENT) {
        let (thread, index) = (i / LENT, i % LENT);
        return Some((Region::Lent { thread, index }, offset));
    }
    if let Some((thread, offset)) = within(slot_wanted(1), STRIDE, threads) {
        return Some((Region::Wanted { thread }, offset));
    }
    if let Some((thread, offset)) = within(slot_reads(1), STRIDE, threads) {
        return Some((Region::Reads { thread }, offset));
    }
    if let Some((thread, offset)) = within(slot_held(1), STRIDE, threads) {
        return Some((Region::Held { thread }, offset));
    }
    if let Some((i, offset)) = within(QUEUE_BASE, size, NUMA_NODES * NODE_QUEUES_SIZE / size) {
        let node = i * size / NODE_QUEUES_SIZE;
        return Some((Region::Queue { node }, offset));
    }
    if let Some((thread, offset)) = within(LOCAL_BASE, LOCAL_STRIDE, threads) {
        return Some((Region::Local { thread }, offset));
    }
    if let Some((_, offset)) = within(GLOBAL_BASE, MOST_GLOBALS, 1) {
        return Some((Region::Global, offset));
    }
    if let Some((_, offset)) = within(TABLE_BASE, STRIDE, 1) {
        return Some((Region::Table, offset));
    }
    within(VARIABLE_BASE, STRIDE, 1).map(|(_, offset)| (Region::Variables, offset))
}
