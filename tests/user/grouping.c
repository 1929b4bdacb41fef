// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Grouping by NUMA node in the queue of a mutex whose settings change while threads wait. */
#include "test.h"

#include "parking.h"

static union lw_word word;
/* The last waiter is there only so that none of the others is the end of the queue. */
static struct lw_node nodes[4];

/* A waiter with this node that queues now, on `numa_node`, with grouping for so many waiters. */
static struct lw_waiter queue(struct lw_node *node, uint16_t numa_node,
			      struct lw_parking_policy *policy, uint32_t group)
{
	struct lw_waiter waiter = {.lock = &word, .node = node, .policy = policy};

	*policy = (struct lw_parking_policy){.locality = {.possible = true, .group = group}};
	lw_parking_init_node(&waiter);
	if (group)
		lw_store(&node->numa_node, numa_node, relaxed);
	return waiter;
}

static void link_nodes(void)
{
	lw_store(&nodes[0].next, &nodes[1], relaxed);
	lw_store(&nodes[1].next, &nodes[2], relaxed);
	lw_store(&nodes[2].next, &nodes[3], relaxed);
	lw_store(&nodes[3].numa_node, 3, relaxed);
}

static void check_waiter_of_the_same_numa_node_is_moved_ahead(void)
{
	struct lw_parking_policy policy[3];
	struct lw_waiter head = queue(&nodes[0], 1, &policy[0], 64);

	queue(&nodes[1], 2, &policy[1], 64);
	queue(&nodes[2], 1, &policy[2], 64);
	link_nodes();
	lw_group_by_numa_node(&head);
	CHECK(lw_load(&nodes[0].next, relaxed) == &nodes[2]);
	CHECK(lw_load(&nodes[2].next, relaxed) == &nodes[1]);
	CHECK(lw_load(&nodes[2].run, relaxed) == 1);
}

/* Its node is what an earlier wait on the head's NUMA node has left behind. */
static void check_waiter_that_queued_without_grouping_stays(void)
{
	struct lw_parking_policy policy[3];
	struct lw_waiter head = queue(&nodes[0], 1, &policy[0], 64);

	queue(&nodes[1], 2, &policy[1], 64);
	lw_store(&nodes[2].numa_node, 1, relaxed);
	lw_store(&nodes[2].run, 77, relaxed);
	queue(&nodes[2], 1, &policy[2], 0);
	CHECK(lw_load(&nodes[2].run, relaxed) == 0);
	link_nodes();
	lw_group_by_numa_node(&head);
	CHECK(lw_load(&nodes[0].next, relaxed) == &nodes[1]);
	CHECK(lw_load(&nodes[1].next, relaxed) == &nodes[2]);
}

int main(void)
{
	check_waiter_of_the_same_numa_node_is_moved_ahead();
	check_waiter_that_queued_without_grouping_stays();
	return 0;
}
