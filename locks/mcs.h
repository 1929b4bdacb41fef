/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MCS lock: a queue of nodes that the callers lend from lock to unlock. The lock is a pointer to
 * the last node, NULL when free.
 *
 *   NULL -- first thread --> node -- others queue --> last node
 *   a thread that unlocks: NULL if it was the last, else its successor has the lock
 *
 * Each waiter polls its own node, so a hand-off costs a constant number of cache line transfers.
 *
 * Promises: mutual exclusion; FIFO.
 *
 * Orders: the exchange of the tail releases the node's initialisation and acquires the last
 * holder's critical section if the lock was free; `next` and `locked` are a release and acquire
 * pair each.
 */
#ifndef LW_MCS_H
#define LW_MCS_H

#include "operations.h"

struct lw_mcs_node {
	lw_atomic(struct lw_mcs_node *) next;
	lw_atomic(uint32_t) locked; /* 0 while waiting, 1 once handed over */
};

struct lw_mcs {
	lw_atomic(struct lw_mcs_node *) tail;
};

static inline bool lw_mcs_trylock(struct lw_mcs *lock, struct lw_mcs_node *node)
{
	struct lw_mcs_node *tail = NULL;

	lw_store(&node->next, NULL, relaxed);
	/* NULL -> node; release: a thread that finds our node links its own to it */
	return lw_try_cmpxchg(&lock->tail, &tail, node, acq_rel);
}

static inline void lw_mcs_lock(struct lw_mcs *lock, struct lw_mcs_node *node)
{
	struct lw_mcs_node *prev;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, 0, relaxed);
	/* tail -> node; release: our node is initialised before another thread finds it */
	prev = lw_xchg(&lock->tail, node, acq_rel);
	if (prev) {
		lw_store(&prev->next, node, release);
		lw_await_ne(&node->locked, ~0u, 0, acquire);
	}
}

static inline void lw_mcs_unlock(struct lw_mcs *lock, struct lw_mcs_node *node)
{
	struct lw_mcs_node *next = lw_load(&node->next, dependency);

	if (!next) {
		struct lw_mcs_node *tail = node;

		/* node -> NULL, if no thread has queued behind us */
		if (lw_try_cmpxchg(&lock->tail, &tail, NULL, release))
			return;
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	}
	lw_store(&next->locked, 1, release);
}

#endif
