/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The policy of a lock whose waiters park, and the state of a waiter during its wait.
 *
 * To park is to yield the CPU until another thread wakes the waiter. In a guest the virtual CPU
 * halts and is kicked.
 */
#ifndef LW_PARKING_POLICY_H
#define LW_PARKING_POLICY_H

#include "queue_slot.h"

/* The outcome of a wait, or of a part of it. */
enum lw_wait_outcome {
	/* The lock is ours, and our node is out of the queue. */
	LW_WAIT_ACQUIRED,
	/* We are queue head. */
	LW_WAIT_HEAD,
	/* None of these yet, and we have spun for so long that we should park. */
	LW_WAIT_SPUN,
	/* The wait limit was reached, and our node is out of the queue. */
	LW_WAIT_LEFT,
	/*
	 * The wait limit was reached. Our node stays in the queue. The node and its slot are no
	 * longer ours: a later queue head removes the node and returns the slot.
	 */
	LW_WAIT_ABANDONED,
};

/* A value of `starvation_limit`: the queue head never disables stealing. */
#define LW_NO_STARVATION_LIMIT UINT32_MAX

/*
 * A thread makes it from the tunables when it arrives, again when it queues, and when it unlocks.
 * It does not change in between. All calls that take it are inlined.
 */
struct lw_parking_policy {
	/* The number of polls of a waiter, or of the queue head, before it parks. */
	uint32_t spin;
	/* While nobody queues, the first contender waits with the pending bit, without a node. */
	bool pending_bit;
	/* Measure how long wake-ups take. */
	bool latencies;

	struct {
		/* Arriving threads steal: they take a free lock although others queue. */
		bool on_arrival;
		/* Queued waiters steal. A waiter tries more often, the closer it is to the head. */
		bool from_queue;
		/* The number of polls of an arriving thread before it queues, if it may steal. */
		uint32_t arrival_spin;
		/*
		 * The number of defeats after which the queue head disables stealing until it has
		 * the lock. A defeat is a park, a spin where waiters do not park, or LW_RACES lost
		 * races.
		 */
		uint32_t starvation_limit;
	} stealing;

	struct {
		/* Waiters park. */
		bool enabled;
		/* A waiter parks as soon as its predecessor has. */
		bool early;
		/*
		 * A waiter that is parked when it becomes queue head is woken at the unlock only.
		 */
		bool wake_at_unlock;
		/* The number of parked waiters behind the queue head that are woken with it. */
		uint32_t wake_ahead;
	} parking;
};

/* A waiter with a queue node. */
struct lw_waiter {
	union lw_word *lock;
	struct lw_node *node;
	uint32_t tail; /* the node as the tail of a lock word */
	const struct lw_wait_limit *limit;
	const struct lw_parking_policy *policy;
};

#endif
