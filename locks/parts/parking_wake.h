/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waking a parked waiter, and measuring the time that this takes. A wake-up is a hint: a waiter
 * that wakes polls its node again, so a wake-up that comes late, or was meant for another, is
 * harmless.
 */
#ifndef LW_PARKING_WAKE_H
#define LW_PARKING_WAKE_H

#include "parking_policy.h"

/* The waiter may have woken and ended its wait already, so its node is not accessed. */
static lw_always_inline void lw_wake(struct lw_node *node, uint32_t slot,
				     const struct lw_parking_policy *policy)
{
	uint64_t begun = policy->latencies ? lw_timestamp() : 0;

	lw_unpark(&node->locked, slot);
	if (policy->latencies)
		lw_count_by(kick_nanoseconds, lw_timestamp() - begun);
}

static lw_always_inline void lw_wake_begins(struct lw_node *node,
					    const struct lw_parking_policy *policy)
{
	if (policy->latencies)
		lw_store(&node->kicked_at, lw_timestamp(), relaxed);
}

/* Called by the waiter when it has woken. */
static lw_always_inline void lw_wake_arrives(struct lw_node *node,
					     const struct lw_parking_policy *policy)
{
	uint64_t kicked_at = policy->latencies ? lw_load(&node->kicked_at, relaxed) : 0;

	if (kicked_at) {
		lw_store(&node->kicked_at, 0, relaxed);
		lw_count(wakeups);
		lw_count_by(wakeup_nanoseconds, lw_timestamp() - kicked_at);
	}
}

#endif
