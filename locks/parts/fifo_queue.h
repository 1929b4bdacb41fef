/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The MCS queue of qspinlock, cna and cna13. Waiters queue in order. The queue head polls the lock
 * word, takes the lock, and hands the head's role to its successor. Words are (tail, pending,
 * locked):
 *
 *   (n,*,*)  --  head waits for the holder and for a pending waiter  -->  (n,0,0)
 *   (n,0,0)  --  head takes the lock, hands over the head's role     -->  (n,0,1)
 *   (n,0,0)  --  head is the last in the queue                       -->  (0,0,1)
 *
 * A lock says in a lw_fifo_policy which of four steps it does differently.
 *
 * Promises: mutual exclusion; no waiter is lost; FIFO among queued waiters, unless the policy
 * reorders them; no memory is allocated; correct without a free queue node.
 *
 * Orders: those of the lock word are explained in qspinlock.c, those of the queue in queue_node.h.
 */
#ifndef LW_FIFO_QUEUE_H
#define LW_FIFO_QUEUE_H

#include "pending_bit.h"

/* A compile-time constant, so that every call through it is a direct one. */
struct lw_fifo_policy {
	/* Initialise the policy's own fields of a node, before another thread can find the node. */
	void (*init_node)(struct lw_node *node, uint32_t tail);
	/*
	 * We are queue head. `prev` is the tail behind which we queued, or 0. Reorder the queue
	 * while the lock is held. Returns a plan for `handoff`.
	 */
	uint32_t (*wait_head)(struct lw_node *node, uint32_t prev);
	/*
	 * The word is (our tail,0,0). If nobody else waits, take the lock and remove our tail.
	 * False if another thread waits.
	 */
	bool (*try_clear_tail)(union lw_word *lock, uint32_t val, struct lw_node *node);
	/* We have the lock, and `next` follows us: hand over the head's role. */
	void (*handoff)(struct lw_node *node, struct lw_node *next, uint32_t plan);
};

static lw_always_inline enum lw_wait_outcome lw_fifo_wait(union lw_word *lock, uint32_t tail,
							  struct lw_node *node,
							  const struct lw_fifo_policy *policy)
{
	struct lw_node *next = NULL;
	uint32_t val, old, plan;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, LW_NODE_WAITING, relaxed);
	policy->init_node(node, tail);

	/* To fetch the node's lines may have taken long. Has the lock become free meanwhile? */
	if (lw_word_trylock(lock))
		return LW_WAIT_ACQUIRED;

	old = lw_word_xchg_tail(lock, tail);
	if (old) {
		lw_store(&lw_decode_tail(old)->next, node, release);
		lw_mcs_wait(node);
		next = lw_load(&node->next, dependency);
		if (next)
			lw_prefetch_write(&next->locked);
	}

	lw_count(queued_acquisitions);
	plan = policy->wait_head(node, old);

	/* (*,*,*) -> (*,0,0): a holder or a pending waiter may be ahead of us */
	while (val = lw_await_eq(&lock->val, LW_LOCKED_PENDING_MASK, 0, acquire),
	       (val & LW_TAIL_MASK) == tail) {
		/* (tail,0,0) -> (0,0,1) */
		if (policy->try_clear_tail(lock, val, node))
			return LW_WAIT_ACQUIRED;
		/*
		 * Another thread has set the pending bit. If it has a node it will be our
		 * successor. If not, it clears the bit, and we are still the last: poll again.
		 */
	}
	/* (n,0,0) -> (n,0,1): only the queue head may do this while there is a tail */
	lw_field_store(lock, locked, LW_LOCKED, relaxed);
	if (!next)
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	policy->handoff(node, next, plan);
	return LW_WAIT_ACQUIRED;
}

/*
 * Define lw_<id>_lock_slow(), which takes struct lw_<id>, from lw_<id>_fifo_policy.
 */
#define LW_DEFINE_FIFO_LOCK(id)                                                    \
	LW_DEFINE_WAIT(id, lw_fifo_wait(lock, tail, node, &lw_##id##_fifo_policy), \
		       lw_spin_nodeless);                                          \
	void lw_##id##_lock_slow(struct lw_##id *lock, uint32_t val)               \
	{                                                                          \
		lw_pending_or_queue(&lock->word, val, &lw_##id##_wait_policy);     \
	}

#endif
