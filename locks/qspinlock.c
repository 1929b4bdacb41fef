// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queued spinlock: the second contender waits with the pending bit, all others in an MCS queue.
 *
 *   (0,0,0) -- first thread -------> (0,0,1)
 *   (0,0,1) -- second contender ---> (0,1,1) --> (0,1,0) --> (0,0,1)     pending_bit.h
 *   (0,1,*) -- third and later ----> (n,1,*)                             fifo_queue.h
 *   (n,0,0) -- queue head ---------> (n,0,1), or (0,0,1) if it is the last
 *
 * Promises: mutual exclusion; FIFO among queued waiters; no waiter is lost; no memory is allocated;
 * correct without a free queue node.
 *
 * Orders: `locked` is cleared by a release store. A thread acquires the lock in one of two ways: by
 * a compare-and-swap that acquires; or by a relaxed store or compare-and-swap, after it has seen
 * `locked` 0 by an operation that acquires, a poll or the fetch-or that sets `pending`. Only the
 * pending waiter or the queue head may use the second way, so no other thread acquires the lock in
 * between. The queue's own orders are in queue_node.h.
 */
#include "fifo_queue.h"
#include "lock_type.h"
#include "qspinlock.h"

static inline void lw_qspinlock_init_node(struct lw_node *node, uint32_t tail)
{
	(void)node;
	(void)tail;
}

static inline uint32_t lw_qspinlock_wait_head(struct lw_node *node, uint32_t prev)
{
	(void)node;
	/* In a FIFO queue the predecessor hands over the head's role. */
	if (prev)
		lw_count_handoff(lw_tail_slot(prev));
	return 0;
}

static inline bool lw_qspinlock_try_clear_tail(union lw_word *lock, uint32_t val,
					       struct lw_node *node)
{
	(void)node;
	/* (tail,0,0) -> (0,0,1) */
	return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, relaxed);
}

static inline void lw_qspinlock_handoff(struct lw_node *node, struct lw_node *next, uint32_t plan)
{
	(void)node;
	(void)plan;
	lw_mcs_handoff(next, LW_NODE_HEAD);
}

static const struct lw_fifo_policy lw_qspinlock_fifo_policy = {
	.init_node = lw_qspinlock_init_node,
	.wait_head = lw_qspinlock_wait_head,
	.try_clear_tail = lw_qspinlock_try_clear_tail,
	.handoff = lw_qspinlock_handoff,
};

LW_DEFINE_FIFO_LOCK(qspinlock)

LW_DESCRIBE(qspinlock, struct lw_qspinlock,
	    .summary = "queued spinlock: pending bit, then an MCS queue",
	    .traits = LW_FIFO | LW_SPINS | LW_TAIL_WORD,
	    .origin = "Long and Zijlstra, Linux 4.2; MCS queue of 1991");
