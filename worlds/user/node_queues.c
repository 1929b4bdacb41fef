// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "node_queue.h"
#include "node_queues.h"

#define LW_QUEUES_SIZE (LW_NODE_QUEUES * sizeof(struct lw_node))

struct lw_user_node_queues lw_user_node_queues_of[LW_MAX_NUMA_NODES];

/* After one refusal waiters use their own queue nodes. */
static lw_atomic(bool) lw_refused;

struct lw_node *lw_user_map_node_queues(uint32_t numa_node)
{
	struct lw_node *queues, *others = NULL;
	int saved = errno;

	if (lw_load(&lw_refused, relaxed))
		return NULL;
	queues = mmap(NULL, LW_QUEUES_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (queues == MAP_FAILED) {
		lw_store(&lw_refused, true, relaxed);
		errno = saved;
		return NULL;
	}
	if (!lw_try_cmpxchg(&lw_user_node_queues_of[numa_node].mapped, &others, queues, acq_rel)) {
		munmap(queues, LW_QUEUES_SIZE);
		queues = others;
	}
	errno = saved;
	return queues;
}

void lw_user_node_queues_end(void)
{
	lw_store(&lw_refused, true, relaxed);
	for (uint32_t numa_node = 0; numa_node < LW_MAX_NUMA_NODES; numa_node++)
		lw_store(&lw_user_node_queues_of[numa_node].mapped, NULL, relaxed);
}
