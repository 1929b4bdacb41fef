/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queues of NUMA nodes (hq.c): each is a queue node in the memory of its NUMA node. And the
 * part of a queue node that is for HQ alone.
 */
#ifndef LW_NODE_QUEUE_H
#define LW_NODE_QUEUE_H

#include "queue_node.h"

/* Each NUMA node has this number of queues. About as many locks can use them at once. */
#define LW_NODE_QUEUE_BITS 12
#define LW_NODE_QUEUES	   (1u << LW_NODE_QUEUE_BITS)

struct lw_hq_part {
	lw_atomic(uint64_t) history; /* hand-overs that led to this head */
	/* queue of a NUMA node: the lock it serves, and its last waiter */
	lw_atomic(uint64_t) waiters;
};

/* A lock uses the part of a queue node that is for one lock at a time. */
static inline struct lw_hq_part *lw_hq_part(struct lw_node *node)
{
	return (struct lw_hq_part *)node->own;
}

#endif
