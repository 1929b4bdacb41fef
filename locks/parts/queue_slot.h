/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots and nesting: a thread takes a queue node, waits with it in a lock's queue, and returns it.
 *
 * A slot is a CPU in the kernel, the simulator and the checker, and a thread in user space. It has
 * LW_NODES_PER_SLOT nodes, since an interrupt or signal handler may wait for a lock while the code
 * that it interrupted waits for another.
 *
 * A thread without a free node acquires the lock outside of the queue. It has no slot (in user
 * space there may be more threads than slots), or the code that it interrupted uses all its nodes.
 */
#ifndef LW_QUEUE_SLOT_H
#define LW_QUEUE_SLOT_H

#include "queue_node.h"

/* The outcome of a wait, or of a part of it. */
enum lw_wait_outcome {
	/* The lock is ours, and our node is out of the queue. */
	LW_WAIT_ACQUIRED,
	/* We are queue head. */
	LW_WAIT_HEAD,
	/* None of these yet, and we have spun for so long that we should park. */
	LW_WAIT_SPUN,
	/* The wait limit was reached, and our node is out of the queue. */
	LW_WAIT_LEFT,
	/*
	 * The wait limit was reached. Our node stays in the queue. The node and its slot are no
	 * longer ours: a later queue head removes the node and returns the slot.
	 */
	LW_WAIT_ABANDONED,
};

/*
 * The functions with which a lock waits: a compile-time constant, so that every call through it is
 * a direct one. `lock` is the argument of lw_wait().
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

/*
 * Define lw_<id>_wait_policy. `WAIT`, a call with any of `lock`, `tail`, `node` and `limit`, waits
 * in the queue; `NODELESS` is the function that waits without a node.
 */
#define LW_DEFINE_WAIT(id, WAIT, NODELESS)                            \
	static lw_always_inline enum lw_wait_outcome lw_##id##_queue( \
		void *lock, uint32_t tail, struct lw_node *node,      \
		const struct lw_wait_limit *limit)                    \
	{                                                             \
		(void)limit;                                          \
		return WAIT;                                          \
	}                                                             \
	static const struct lw_wait_policy lw_##id##_wait_policy = {  \
		.queue = lw_##id##_queue,                             \
		.nodeless = NODELESS,                                 \
	}

/* Without a free queue node: compete for the lock, but only when its queue is empty. */
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
	/* From this point, an interrupt must see that the node is in use. */
	lw_barrier();

	/* A slot cannot be abandoned while another wait uses it, which was interrupted. */
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
