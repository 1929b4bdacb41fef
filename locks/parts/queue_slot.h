/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots and nesting: a thread takes a queue node, waits with it in a lock's queue, and returns it.
 *
 * A slot is a CPU in the kernel, the simulator and the checker, and a thread in user space. It has
 * LW_NODES_PER_SLOT nodes, since an interrupt or signal handler may wait for a lock while the code
 * that it interrupted waits for another.
 *
 * A thread without a free node acquires the lock outside of the queue. Either it has no slot,
 * because there are more threads than slots in user space, or the code that it interrupted uses all
 * nodes of its slot.
 */
#ifndef LW_QUEUE_SLOT_H
#define LW_QUEUE_SLOT_H

#include "queue_node.h"

/*
 * Take a free queue node. Returns it as a tail, and its slot's nodes in *all; or 0 if there is
 * none. With a wait limit only the slot's first node will do, and only if one more slot may be
 * abandoned.
 */
static lw_always_inline uint32_t lw_node_take(const struct lw_wait_limit *limit,
					      struct lw_node **all)
{
	uint32_t slot = lw_slot_enter();

	if (slot) {
		struct lw_node *nodes = lw_slot_nodes(slot);
		uint32_t index = lw_load(&nodes->count, relaxed);

		*all = nodes;
		/* A slot cannot be abandoned while another wait uses it, which was interrupted. */
		if (limit ? !index && lw_slot_may_be_abandoned() : index < LW_NODES_PER_SLOT) {
			lw_store(&nodes->count, index + 1, relaxed);
			/* From this point, an interrupt must see that the node is in use. */
			lw_barrier();
			return lw_encode_tail(slot, index);
		}
	}
	lw_slot_leave(slot);
	return 0;
}

/* Return the queue node that lw_node_take() has given, and that is in no queue any more. */
static lw_always_inline void lw_node_return(struct lw_node *nodes, uint32_t tail)
{
	lw_barrier();
	lw_store(&nodes->count, lw_tail_index(tail), relaxed);
	lw_slot_leave(lw_tail_slot(tail));
}

/* Without a free queue node: compete for the lock, but only when its queue is empty. */
static inline void lw_spin_nodeless(union lw_word *lock)
{
	lw_count(nodeless_acquisitions);
	while (!lw_word_trylock(lock))
		lw_await_eq(&lock->val, ~LW_SERVICE_MASK, 0, relaxed);
}

#endif
