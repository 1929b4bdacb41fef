/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the tests of locks with queues of NUMA nodes: waiters that queue one after the other.
 */
#ifndef LW_TEST_ORDER_H
#define LW_TEST_ORDER_H

#include "node_queue.h"
#include "test.h"

#define MAX_WAITERS 8
#define NODES	    3

static pthread_t threads[MAX_WAITERS];
static char order[MAX_WAITERS + 1];
static size_t waiting, served;

static uint32_t tail_of(union lw_word *word)
{
	return lw_load(&word->val, acquire) & LW_TAIL_MASK;
}

/* Returns the `waiters` word of a node's queue for the lock. */
static uint64_t waiters_of(union lw_word *word, int numa_node)
{
	struct lw_node *queues = lw_load(&lw_user_node_queues_of[numa_node].mapped, acquire);
	uint64_t queue = lw_lock_key(word) >> LW_LOCK_ID_BITS;

	return queues ? lw_load(&lw_hq_part(&queues[queue])->waiters, acquire) : 0;
}

/*
 * Ends the lock's being busy. Checks that all waiters acquire it in the expected order. The lock's
 * memory may be gone afterwards.
 */
static void serve(union lw_word *word, const char *expected)
{
	end_busy(word);
	for (size_t i = 0; i < waiting; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	order[served] = '\0';
	if (strcmp(order, expected) != 0)
		fprintf(stderr, "expected %s, not %s\n", expected, order);
	CHECK(strcmp(order, expected) == 0);
	for (int node = 0; node < NODES; node++)
		CHECK(!waiters_of(word, node));
	CHECK_COUNTED(queued_acquisitions, waiting);
	CHECK(since(LW_EVENT_node_queues_taken) == since(LW_EVENT_node_queues_released));
}

#endif
