//! The layout of the C structures that a check reads: their sizes, offsets and bits, as the C
//! compiler has them.

unsafe extern "C" {
    safe static lw_check_node_size: usize;
    safe static lw_check_node_queues_size: usize;
    safe static lw_check_parked_head_size: usize;
    safe static lw_check_cond_size: usize;
    safe static lw_check_node_next: usize;
    safe static lw_check_node_locked: usize;
    safe static lw_check_node_count: usize;
    safe static lw_check_node_secondary_head: usize;
    safe static lw_check_node_waiters: usize;
    safe static lw_check_word_hq: u32;
    safe static lw_check_word_hq_numa: u32;
    safe static lw_check_word_service: u32;
    safe static lw_check_word_locked: u32;
    safe static lw_check_word_queue: u32;
    safe static lw_check_word_parked: u32;
    safe static lw_check_word_tail: u32;
    safe static lw_check_word_first_queue: u32;
}

/// The size of a queue node and the offsets of its fields, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct NodeLayout {
    pub(crate) size: usize,
    pub(crate) next: usize,
    pub(crate) locked: usize,
    pub(crate) count: usize,
    pub(crate) secondary_head: usize,
    pub(crate) waiters: usize,
}

pub(crate) fn node_layout() -> NodeLayout {
    NodeLayout {
        size: lw_check_node_size,
        next: lw_check_node_next,
        locked: lw_check_node_locked,
        count: lw_check_node_count,
        secondary_head: lw_check_node_secondary_head,
        waiters: lw_check_node_waiters,
    }
}

/// The bits of a lock's word.
#[derive(Clone, Copy)]
pub(crate) struct WordLayout {
    /// The lock is an HQ-spinlock.
    pub(crate) hq: u32,
    /// The HQ-spinlock is in NUMA mode.
    pub(crate) hq_numa: u32,
    /// All bits that describe the kind and mode of the lock.
    pub(crate) service: u32,
    /// The lock is held.
    pub(crate) locked: u32,
    /// The queue is locked.
    pub(crate) queue_locked: u32,
    /// The queue head is parked.
    pub(crate) parked: u32,
    /// The last waiter.
    pub(crate) tail: u32,
    /// The tail that stands for the queue of the first NUMA node; those of the others follow.
    pub(crate) first_queue: u32,
}

pub(crate) fn word_layout() -> WordLayout {
    WordLayout {
        hq: lw_check_word_hq,
        hq_numa: lw_check_word_hq_numa,
        service: lw_check_word_service,
        locked: lw_check_word_locked,
        queue_locked: lw_check_word_queue,
        parked: lw_check_word_parked,
        tail: lw_check_word_tail,
        first_queue: lw_check_word_first_queue,
    }
}

/// The size of an entry of the table of parked queue heads, in bytes.
pub(crate) fn parked_head_size() -> usize {
    lw_check_parked_head_size
}

/// The size of a condition variable, in bytes.
pub(crate) fn cond_size() -> usize {
    lw_check_cond_size
}

/// The size of the queues of a NUMA node, in bytes.
pub(crate) fn node_queues_size() -> usize {
    lw_check_node_queues_size
}
