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

/* A queue node that a thread has taken. */
struct lw_own_node {
	struct lw_node *node;
	struct lw_node *nodes; /* those of its slot */
	uint32_t index;	       /* in `nodes` */
	uint32_t tail;	       /* the node as the tail of a lock word */
};

/*
 * Take a free queue node. False if there is none. With a wait limit only the slot's first node will
 * do, and only if one more slot may be abandoned.
 */
static lw_always_inline bool lw_node_take(const struct lw_wait_limit *limit,
					  struct lw_own_node *own)
{
	uint32_t slot = lw_slot_enter();

	if (slot) {
		struct lw_node *nodes = lw_slot_nodes(slot);
		uint32_t index = lw_load(&nodes->count, relaxed);

		/* A slot cannot be abandoned while another wait uses it, which was interrupted. */
		if (limit ? !index && lw_slot_may_be_abandoned() : index < LW_NODES_PER_SLOT) {
			lw_store(&nodes->count, index + 1, relaxed);
			/* From this point, an interrupt must see that the node is in use. */
			lw_barrier();
			*own = (struct lw_own_node){&nodes[index], nodes, index,
						    lw_encode_tail(slot, index)};
			return true;
		}
	}
	lw_slot_leave(slot);
	return false;
}

/* Return a queue node that is in no queue any more. */
static lw_always_inline void lw_node_return(const struct lw_own_node *own)
{
	lw_barrier();
	lw_store(&own->nodes->count, own->index, relaxed);
	lw_slot_leave(lw_tail_slot(own->tail));
}

/* Without a free queue node: compete for the lock, but only when its queue is empty. */
static inline void lw_spin_nodeless(union lw_word *lock)
{
	lw_count(nodeless_acquisitions);
	while (!lw_word_trylock(lock))
		lw_await_eq(&lock->val, ~LW_SERVICE_MASK, 0, relaxed);
}

#endif
