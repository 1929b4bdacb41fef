// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The queued spinlock: the shared slow path with nothing changed, a plain MCS queue. */
#include "lock_type.h"
#include "qspinlock.h"
#include "queued.h"

static inline void lw_native_init_node(struct lw_node *node, uint32_t tail)
{
	(void)node;
	(void)tail;
}

static inline uint32_t lw_native_wait_head(struct lw_node *node, uint32_t prev)
{
	(void)node;
	/* In a FIFO queue the head's role comes from the predecessor. */
	if (prev)
		lw_count_handoff(lw_tail_slot(prev));
	return 0;
}

static inline bool lw_native_try_clear_tail(union lw_word *lock, uint32_t val, struct lw_node *node)
{
	(void)node;
	/* (tail,0,0) -> (0,0,1) */
	return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, relaxed);
}

static inline void lw_native_handoff(struct lw_node *node, struct lw_node *next, uint32_t plan)
{
	(void)node;
	(void)plan;
	lw_mcs_handoff(next, LW_NODE_HEAD);
}

static const struct lw_queue_policy lw_native_policy = {
	.init_node = lw_native_init_node,
	.wait_head = lw_native_wait_head,
	.try_clear_tail = lw_native_try_clear_tail,
	.handoff = lw_native_handoff,
};

static lw_always_inline enum lw_queue_end lw_native_queue(union lw_word *lock, uint32_t tail,
							  struct lw_node *node,
							  const struct lw_wait_limit *limit)
{
	(void)limit;
	lw_queue_and_wait(lock, tail, node, &lw_native_policy);
	return LW_QUEUE_ACQUIRED;
}

void lw_qspinlock_lock_slow(struct lw_qspinlock *lock, uint32_t val)
{
	lw_queued_slowpath(&lock->word, val, lw_native_queue);
}

LW_DESCRIBE(qspinlock, struct lw_qspinlock,
	    .summary = "queued spinlock: pending bit, then an MCS queue",
	    .traits = LW_FIFO | LW_SPINS | LW_TAIL_WORD,
	    .origin = "Long and Zijlstra, Linux 4.2; MCS queue of 1991");
