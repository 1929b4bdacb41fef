/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots and nesting: a thread takes a queue node, waits with it in a lock's queue, and returns it.
 *
 * A slot is a CPU in the kernel, the simulator and the checker, and a thread in user space. It has
 * LW_NODES_PER_SLOT nodes, since an interrupt or signal handler may wait for a lock while the code
 * that it interrupted waits for another.
 *
 * Correct without a free node: a thread that has no slot (user space: more threads than slots), or
 * that is nested too deeply, acquires the lock outside of the queue.
 */
#ifndef LW_QUEUE_SLOT_H
#define LW_QUEUE_SLOT_H

#include "queue_node.h"

/* Where a wait, or a part of it, ended. */
enum lw_wait_outcome {
	/* The lock is ours, and our node is out of the queue. */
	LW_WAIT_ACQUIRED,
	/* We are queue head. */
	LW_WAIT_HEAD,
	/* We are neither yet, and have spun for so long that it is better to park. */
	LW_WAIT_SPUN,
	/* The wait limit was reached, and our node is out of the queue. */
	LW_WAIT_LEFT,
	/*
	 * The wait limit was reached. Our node, and its slot, stay in the queue and are not ours
	 * any more: the thread that meets the node there returns the slot.
	 */
	LW_WAIT_ABANDONED,
};

/*
 * How a lock waits: a compile-time constant, so that every call through it is a direct one. `lock`
 * is what lw_wait() was given.
 */
struct lw_wait_policy {
	/*
	 * Wait in the queue with `node`, which is `tail` in the lock word: ACQUIRED, LEFT or
	 * ABANDONED.
	 */
	enum lw_wait_outcome (*queue)(void *lock, uint32_t tail, struct lw_node *node,
				      const struct lw_wait_limit *limit);
	/* Wait without a node. False if the wait limit was reached before the lock was ours. */
	bool (*nodeless)(void *lock, const struct lw_wait_limit *limit);
};

/* There is no free queue node: compete for the lock, but only when its queue is empty. */
static inline bool lw_spin_nodeless(void *word, const struct lw_wait_limit *limit)
{
	union lw_word *lock = word;

	(void)limit;
	lw_count(nodeless_acquisitions);
	while (!lw_word_trylock(lock))
		lw_await_eq(&lock->val, ~LW_SERVICE_MASK, 0, relaxed);
	return true;
}

static lw_always_inline bool lw_wait_in_slot(void *lock, uint32_t slot,
					     const struct lw_wait_limit *limit,
					     const struct lw_wait_policy *policy)
{
	struct lw_node *nodes = lw_slot_nodes(slot);
	uint32_t index = lw_load(&nodes->count, relaxed);
	enum lw_wait_outcome outcome = LW_WAIT_LEFT;

	lw_store(&nodes->count, index + 1, relaxed);
	/* An interrupt from here on has to see the node as taken. */
	lw_barrier();

	/* A slot cannot be abandoned while it has another wait, which was interrupted. */
	if (limit ? !index && lw_slot_may_be_abandoned() : index < LW_NODES_PER_SLOT) {
		outcome = policy->queue(lock, lw_encode_tail(slot, index), &nodes[index], limit);
		if (outcome == LW_WAIT_ABANDONED)
			return false;
	} else if (policy->nodeless(lock, limit)) {
		outcome = LW_WAIT_ACQUIRED;
	}

	lw_barrier();
	lw_store(&nodes->count, index, relaxed);
	return outcome == LW_WAIT_ACQUIRED;
}

/* Wait for the lock, in its queue if there is a free node. False if the wait limit was reached. */
static lw_always_inline bool lw_wait(void *lock, const struct lw_wait_limit *limit,
				     const struct lw_wait_policy *policy)
{
	uint32_t slot = lw_slot_enter();
	bool acquired =
		slot ? lw_wait_in_slot(lock, slot, limit, policy) : policy->nodeless(lock, limit);

	lw_slot_leave(slot);
	return acquired;
}

#endif
