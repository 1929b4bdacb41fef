/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MCS: an explicit queue of nodes lent by the callers from lock to unlock. Each
 * waiter spins on its own node, so a hand-off costs a constant number of line
 * transfers. FIFO. The lock is the pointer to the last node, NULL when free.
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
	/* NULL -> node; release: whoever finds us there may link to us */
	return lw_try_cmpxchg(&lock->tail, &tail, node, acq_rel);
}

static inline void lw_mcs_lock(struct lw_mcs *lock, struct lw_mcs_node *node)
{
	struct lw_mcs_node *prev;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, 0, relaxed);
	/* tail -> node; release: our node is set up before anyone finds it */
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

		/* node -> NULL, if nobody came */
		if (lw_try_cmpxchg(&lock->tail, &tail, NULL, release))
			return;
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	}
	lw_store(&next->locked, 1, release);
}

#endif
