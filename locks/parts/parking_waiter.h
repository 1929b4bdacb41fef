/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A waiter that is not queue head: it spins on its own node, steals the lock if it may, parks, and
 * abandons its node when its wait limit is reached.
 */
#ifndef LW_PARKING_WAITER_H
#define LW_PARKING_WAITER_H

#include "parking_poll.h"
#include "parking_queue.h"

/* The number of polls of the own node between two polls of the predecessor's node. */
#define LW_PREV_CHECK 256
/*
 * The number of polls of its own node after which the successor of the queue head polls the lock.
 * The waiter behind it polls the lock after twice this number, and so on up to the fourth place. If
 * few of them run, the one at the fourth place may be the only one to see the lock free.
 */
#define LW_STEAL_CHECK 8
#ifndef LW_PLACES
#define LW_PLACES 4
#endif

static inline void lw_count_steal(uint32_t place)
{
	if (place <= 1)
		lw_count(steals_behind_head);
	else if (place == 2)
		lw_count(steals_third);
	else if (place == 3)
		lw_count(steals_fourth);
	else
		lw_count(steals_further_back);
}

/* Spin on our node for a bounded time: HEAD, SPUN, or ACQUIRED (stolen, still queued). */
static lw_always_inline enum lw_wait_outcome lw_waiter_spin(const struct lw_waiter *me,
							    struct lw_node *prev)
{
	const struct lw_parking_policy *policy = me->policy;
	union lw_word *lock = me->lock;
	struct lw_node *node = me->node;
	uint32_t left = policy->spin;

	do {
		uint32_t place = 0, polls = left;

		if (policy->parking.early && polls > LW_PREV_CHECK)
			polls = LW_PREV_CHECK;
		if (policy->stealing.from_queue) {
			prev = lw_load(&node->prev, relaxed);
			place = lw_hint(&prev->place, LW_PLACES) + 1;
			lw_store(&node->place, place, relaxed);
			if (polls > (uint32_t)LW_STEAL_CHECK << place)
				polls = (uint32_t)LW_STEAL_CHECK << place;
		}
		if (lw_await_ne_bounded(&node->locked, ~0u, LW_NODE_WAITING, polls) !=
		    LW_NODE_WAITING)
			return LW_WAIT_HEAD;
		if (policy->stealing.from_queue &&
		    lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
			lw_count_steal(place);
			return LW_WAIT_ACQUIRED;
		}
		if (policy->parking.early && lw_seems_parked(prev)) {
			lw_count(halts_early);
			return LW_WAIT_SPUN;
		}
		left -= polls;
	} while (left);
	return LW_WAIT_SPUN;
}

/* Wait behind `prev`: HEAD, ACQUIRED (out of the queue) or ABANDONED. */
static lw_always_inline enum lw_wait_outcome lw_waiter_wait(const struct lw_waiter *me,
							    struct lw_node *prev)
{
	struct lw_node *node = me->node;

	for (;;) {
		enum lw_wait_outcome spun = lw_waiter_spin(me, prev);
		uint32_t state = LW_NODE_WAITING;

		if (spun == LW_WAIT_HEAD)
			return LW_WAIT_HEAD;
		if (spun == LW_WAIT_ACQUIRED) {
			lw_leave_queue_with_lock(me);
			return LW_WAIT_ACQUIRED;
		}
		if (lw_limit_reached(me->limit)) {
			/* WAITING -> ABANDONED; release: all that we did to the slot */
			if (lw_slot_abandon(lw_tail_slot(me->tail),
					    lw_try_cmpxchg(&node->locked, &state, LW_NODE_ABANDONED,
							   release)))
				return LW_WAIT_ABANDONED;
			return LW_WAIT_HEAD;
		}
		if (!me->policy->parking.enabled)
			continue;
		/* WAITING -> PARKED */
		if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_PARKED, relaxed))
			return LW_WAIT_HEAD;
		lw_count(halts_in_queue);
		lw_park(&node->locked, LW_NODE_PARKED, me->limit);
		state = LW_NODE_PARKED;
		/* Awake before the head's role has come: PARKED -> WAITING */
		if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_WAITING, relaxed))
			return LW_WAIT_HEAD;
		lw_count(spurious_wakeups);
	}
}

#endif
