// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "node_queue.h"
#include "node_queues.h"

#define LW_QUEUES_SIZE (LW_NODE_QUEUES * sizeof(struct lw_node))

struct lw_user_node_queues lw_user_node_queues_of[LW_MAX_NUMA_NODES];

struct lw_node *lw_user_map_node_queues(uint32_t numa_node)
{
	static lw_atomic(bool) refused;
	struct lw_node *queues, *others = NULL;
	int saved = errno;

	/* After one refusal waiters use their own queue nodes. */
	if (lw_load(&refused, relaxed))
		return NULL;
	queues = mmap(NULL, LW_QUEUES_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (queues == MAP_FAILED) {
		lw_store(&refused, true, relaxed);
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

void lw_user_node_queues_empty(void)
{
	for (uint32_t numa_node = 0; numa_node < LW_MAX_NUMA_NODES; numa_node++) {
		struct lw_node *queues =
			lw_load(&lw_user_node_queues_of[numa_node].mapped, relaxed);

		/* This makes the pages zero again: they are private and have no file. */
		if (queues)
			madvise(queues, LW_QUEUES_SIZE, MADV_DONTNEED);
	}
}
