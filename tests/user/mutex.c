// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The order in which threads acquire the mutex on several NUMA nodes, and the mutex in the child of
 * a fork. The NUMA nodes are made up: the test puts all CPUs into one, and a waiter that queues
 * then is of that node.
 */
#include "order.h"

/* Fewer hand-overs within a NUMA node than in the library. */
#define LW_MUTEX_RUN	    2
#define LW_MUTEX_RUN_WINDOW 1
#include "../../locks/mutex.c"

#define TURNS 100

static struct lw_mutex mutex;
static unsigned int turns_taken;

static void be_on_node(int numa_node)
{
	CHECK(lw_user_topology_parse(numa_node ? "8100:0-8000" : "0-8000:8101"));
}

static void *wait_for_mutex(void *number)
{
	lw_mutex_lock(&mutex);
	order[served++] = (char)('0' + (uintptr_t)number);
	lw_mutex_unlock(&mutex);
	return NULL;
}

/* Starts a waiter on this node, and waits until it has queued behind the last one. */
static void let_queue(uintptr_t number, uint32_t numa_node)
{
	uint64_t waiters = waiters_of(&mutex.word, (int)numa_node);
	uint32_t before = tail_of(&mutex.word);
	struct lw_node *last = waiters	? lw_decode_tail((uint32_t)waiters << LW_TAIL_SHIFT)
			       : before ? lw_decode_place(&mutex.word, before)
					: NULL;

	be_on_node((int)numa_node);
	thread_start(&threads[number], 0, wait_for_mutex, (void *)number);
	while (waiters ? waiters_of(&mutex.word, (int)numa_node) == waiters
		       : tail_of(&mutex.word) == before)
		usleep(100);
	while (last && !lw_load(&last->next, acquire))
		usleep(100);
}

/* Makes the mutex busy and lets waiters queue on these nodes, one after the other. */
static void queue_up(const char *numa_nodes)
{
	start_counting();
	served = 0;
	waiting = strlen(numa_nodes);
	make_busy(&mutex.word);
	for (size_t i = 0; i < waiting; i++)
		let_queue(i, (uint32_t)(numa_nodes[i] - '0'));
}

static void check_order(const char *numa_nodes, const char *expected)
{
	queue_up(numa_nodes);
	serve(&mutex.word, expected);
	CHECK(!tail_of(&mutex.word));
}

static void *take_turns(void *unused)
{
	for (int turn = 0; turn < TURNS; turn++) {
		lw_mutex_lock(&mutex);
		turns_taken++;
		lw_mutex_unlock(&mutex);
	}
	return unused;
}

/* The forking thread holds the mutex. The waiters, one with the pending bit, are not here. */
static void child(void *arg)
{
	(void)arg;
	CHECK(tail_of(&mutex.word) >= LW_FIRST_QUEUE_TAIL);
	CHECK(!lw_node_queues(0) && !lw_node_queues(1));
	lw_mutex_unlock(&mutex);
	for (int i = 0; i < 3; i++)
		thread_start(&threads[i], 0, take_turns, NULL);
	take_turns(NULL);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(turns_taken == 4 * TURNS);
	CHECK(lw_mutex_trylock(&mutex));
}

int main(void)
{
	/* Waiters of a node acquire the mutex in a row; nodes come in the order of their first. */
	check_order("01010", "02413");
	CHECK_COUNTED(node_queues_taken, 2);
	CHECK_COUNTED(local_handoffs, 3);
	/* After LW_MUTEX_RUN hand-overs the next node is served; the others queue again. */
	check_order("00001", "01243");
	check_order("0000100", "0124356");
	/* Without another node there is no such bound. */
	check_order("000000", "012345");

	queue_up("00110");
	CHECK(in_child(child, NULL) == 0);
	/* In this process nothing has changed. */
	serve(&mutex.word, "01423");
	CHECK(!tail_of(&mutex.word));
	return 0;
}
