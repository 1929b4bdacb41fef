/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queues of NUMA nodes: LW_NODE_QUEUES cache lines for each node. They are mapped when the
 * first thread of the node queues, so that they lie in the node's memory.
 */
#ifndef LW_USER_NODE_QUEUES_H
#define LW_USER_NODE_QUEUES_H

#include "lock_word.h"
#include "operations.h"

struct lw_node;

struct lw_user_node_queues {
	lw_atomic(struct lw_node *) mapped; /* NULL: not mapped yet */
};

extern struct lw_user_node_queues lw_user_node_queues_of[LW_MAX_NUMA_NODES]
	__attribute__((visibility("hidden")));

/* Maps the queues of a node. Returns NULL if the system refuses; then it is not asked again. */
struct lw_node *lw_user_map_node_queues(uint32_t numa_node);
/*
 * Gives no queues any more. Called in the child of a fork if threads waited at the fork: lock words
 * may name queues of NUMA nodes whose waiters are not in the child. Their memory stays, since the
 * forking thread may have forked in a signal handler that interrupted its wait.
 */
void lw_user_node_queues_end(void);

/* The contract's lw_node_queues(). */
static inline struct lw_node *lw_user_node_queues(uint32_t numa_node)
{
	struct lw_node *queues;

	if (numa_node >= LW_MAX_NUMA_NODES)
		return NULL;
	queues = lw_load(&lw_user_node_queues_of[numa_node].mapped, dependency);
	return lw_unlikely(!queues) ? lw_user_map_node_queues(numa_node) : queues;
}

#endif
