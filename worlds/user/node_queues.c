// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <sys/mman.h>

#include "node_queue.h"
#include "node_queues.h"
#include "slots.h"

#define LW_QUEUES_SIZE (LW_NODE_QUEUES * sizeof(struct lw_node))

struct lw_user_node_queues lw_user_node_queues_of[LW_MAX_NUMA_NODES];

/* After one refusal waiters use their own queue nodes. */
static lw_atomic(bool) lw_refused;

struct lw_node *lw_user_map_node_queues(uint32_t numa_node)
{
	struct lw_node *queues, *others = NULL;

	if (lw_load(&lw_refused, relaxed))
		return NULL;
	queues = lw_user_map(LW_QUEUES_SIZE);
	if (!queues) {
		lw_store(&lw_refused, true, relaxed);
		return NULL;
	}
	if (!lw_try_cmpxchg(&lw_user_node_queues_of[numa_node].mapped, &others, queues, acq_rel)) {
		munmap(queues, LW_QUEUES_SIZE);
		queues = others;
	}
	return queues;
}

void lw_user_node_queues_end(void)
{
	lw_store(&lw_refused, true, relaxed);
	for (uint32_t numa_node = 0; numa_node < LW_MAX_NUMA_NODES; numa_node++)
		lw_store(&lw_user_node_queues_of[numa_node].mapped, NULL, relaxed);
}
