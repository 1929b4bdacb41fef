/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Grouping by NUMA node: while the queue head waits, it moves one waiter of its own NUMA node to
 * the place behind it, so that lock and data stay on the node. (Shuffling: Kashyap and others,
 * ShflLock, 2019.)
 *
 * At most policy->locality.group waiters in a row are moved ahead of another waiter. `run` in the
 * queue node of the last one counts them.
 *
 * Orders: the links are relaxed. A waiter reads its own link when it is queue head, and the
 * hand-overs of the head's role come in between. The end of the queue is as in lw_queue_unlink().
 */
#ifndef LW_PARKING_LOCALITY_H
#define LW_PARKING_LOCALITY_H

#include "parking_queue.h"

/* The number of waiters behind the queue head among which it searches for one of its NUMA node. */
#ifndef LW_GROUP_REACH
#define LW_GROUP_REACH 16
#endif

/* By the queue head. node -> first -> ... -> found   becomes   node -> found -> first -> ... */
static lw_always_inline void lw_group_by_numa_node(const struct lw_waiter *head)
{
	union lw_word *lock = head->lock;
	struct lw_node *node = head->node;
	struct lw_node *first = lw_load(&node->next, dependency), *prev = first, *found;
	uint16_t here = lw_load(&node->numa_node, relaxed);
	uint32_t run = lw_load(&node->run, relaxed);

	if (!first || run >= head->policy->locality.group ||
	    lw_load(&first->numa_node, relaxed) == here)
		return;
	for (uint32_t reach = 1; reach < LW_GROUP_REACH; reach++) {
		found = lw_load(&prev->next, dependency);
		if (!found)
			return;
		if (lw_load(&found->numa_node, relaxed) == here &&
		    lw_load(&found->locked, relaxed) == LW_NODE_WAITING) {
			lw_queue_unlink(lock, prev, found);
			lw_store(&found->next, first, relaxed);
			lw_store(&found->run, run + 1, relaxed);
			lw_store(&node->next, found, relaxed);
			lw_count(waiters_grouped);
			return;
		}
		prev = found;
	}
}

#endif
