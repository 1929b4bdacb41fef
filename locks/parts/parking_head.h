/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue head: it competes for the lock with threads that may steal it, and parks.
 *
 * After starvation_limit defeats it is starved, and no thread may steal until it has the lock. With
 * a limit of 0 it is starved from the start. A starved head sets the pending bit after each spin
 * that finds it clear, and parks with the bit set.
 *
 * A head ends its wait in one of two ways, and hands over the head's role in both: it acquires the
 * lock, or it reaches its wait limit.
 */
#ifndef LW_PARKING_HEAD_H
#define LW_PARKING_HEAD_H

#include "parking_poll.h"
#include "parking_queue.h"

/* The number of polls after which a release by another CPU has, in practice, become visible. */
#define LW_SETTLE 32
/*
 * The number of lost races that are one defeat. In a lost race the head sees the lock free, but is
 * too late.
 */
#ifndef LW_RACES
#define LW_RACES 1024
#endif

/* parked: 1 -> 0, and our entry is removed. False if the thread that unlocks was first. */
static lw_always_inline bool lw_head_leave_table(union lw_word *lock)
{
	/* The entry is known to us; see the orders in parking_word.h. */
	if (!(lw_field_fetch_and(lock, locked_pending, (uint16_t)(0xffff ^ LW_PARKED), acquire) &
	      LW_PARKED))
		return false;
	lw_parked_take(lock);
	return true;
}

/*
 * We are queue head, and may have been parked as queue head: make sure that we are not in the
 * table.
 */
static lw_always_inline void lw_head_woken(union lw_word *lock, struct lw_node *node,
					   const struct lw_parking_policy *policy)
{
	if (lw_load(&node->locked, acquire) == LW_NODE_PARKED_HEAD) {
		if (lw_head_leave_table(lock)) {
			lw_store(&node->locked, LW_NODE_HEAD, relaxed);
			lw_count(spurious_wakeups);
			return;
		}
		/* The thread that unlocks has removed our entry, and stores HEAD next. */
		lw_await_eq_soon(&node->locked, ~0u, LW_NODE_HEAD, acquire);
	}
	lw_wake_arrives(node, policy);
}

/* Has a release missed that we are parked, so that the lock is free? If so, we leave the table. */
static lw_always_inline bool lw_head_is_missed(union lw_word *lock, struct lw_node *node)
{
	if (!lw_release_is_split() ||
	    lw_await_ne_bounded(&lock->val, LW_LOCKED_MASK, LW_LOCKED, LW_SETTLE) &
		    LW_LOCKED_MASK ||
	    !lw_head_leave_table(lock))
		return false;
	lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	return true;
}

/* Enter the table. False if the lock has become free, or the table is full. */
static lw_always_inline bool lw_head_enter_table(union lw_word *lock, struct lw_node *node)
{
	struct lw_parked_head *entry = lw_parked_insert(lock, node);
	uint16_t seen = LW_LOCKED;

	if (!entry)
		return false;
	/* HEAD -> PARKED_HEAD */
	lw_store(&node->locked, LW_NODE_PARKED_HEAD, relaxed);
	/* (*,*,1), parked: 0 -> 1 */
	while (!lw_field_try_cmpxchg(lock, locked_pending, &seen, seen | LW_PARKED, release))
		if (!(seen & LW_LOCKED)) {
			lw_store(&node->locked, LW_NODE_HEAD, relaxed);
			lw_parked_remove(entry);
			return false;
		}
	return !lw_head_is_missed(lock, node);
}

/*
 * Park until we are woken or the wait limit is reached. True if the limit is reached. Where a
 * release may miss us, the park also ends when we see the lock free.
 */
static inline bool lw_head_sleep(union lw_word *lock, struct lw_node *node,
				 const struct lw_wait_limit *limit)
{
	uint32_t parks = 0;

	do {
		parks += lw_park_bounded(&node->locked, LW_NODE_PARKED_HEAD, limit, parks);
		if (lw_load(&node->locked, relaxed) != LW_NODE_PARKED_HEAD)
			return false;
		if (lw_limit_reached(limit))
			return true;
	} while (lw_release_is_split() && (lw_load(&lock->val, relaxed) & LW_LOCKED));
	return false;
}

/* The lock was seen free, as `val`: acquire it, and hand over the head's role. */
static lw_always_inline bool lw_head_acquire(const struct lw_waiter *me, uint32_t val)
{
	union lw_word *lock = me->lock;

	/* (head,*,0) -> (0,0,1): nobody else queues; release: we are out of the table */
	if ((val & LW_TAIL_MASK) == me->tail)
		return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, acq_rel);
	/* (*,*,0) -> (*,0,1) */
	if (!lw_word_acquire(lock, val))
		return false;
	lw_hand_over_head(lock, me->tail, me->node, true, me->policy);
	return true;
}

/* The wait limit is reached: hand over the head's role, without the lock. */
static lw_always_inline void lw_head_leave(const struct lw_waiter *me)
{
	if (me->policy->stealing.from_queue)
		lw_queue_lock(me->lock);
	/* We have seen that the thread that woke us no longer accesses our node. */
	lw_fence(acquire);
	lw_hand_over_head(me->lock, me->tail, me->node, false, me->policy);
	if (me->policy->stealing.from_queue)
		lw_queue_unlock(me->lock);
}

/* (*,*,*) -> (*,1,*) */
static lw_always_inline void lw_head_disable_stealing(union lw_word *lock)
{
	lw_fetch_or(&lock->val, LW_PENDING, relaxed);
}

/* (*,1,*) -> (*,0,*) */
static lw_always_inline void lw_head_allow_stealing(union lw_word *lock)
{
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
}

/* Wait as queue head: ACQUIRED or LEFT. */
static lw_always_inline enum lw_wait_outcome lw_head_wait(const struct lw_waiter *me)
{
	const struct lw_parking_policy *policy = me->policy;
	union lw_word *lock = me->lock;
	struct lw_node *node = me->node;
	uint32_t defeats = 0, races = 0;
	bool limit_reached = false;

	if (policy->stealing.from_queue)
		lw_store(&node->place, 0, relaxed);
	for (;;) {
		uint32_t val = lw_poll_lock(lock, policy->spin);
		bool free = !(val & LW_LOCKED_MASK);
		bool starved = defeats == policy->stealing.starvation_limit;

		if (free && lw_head_acquire(me, val))
			return LW_WAIT_ACQUIRED;
		/* A pending waiter may have cleared the bit. */
		if (starved && !(val & LW_PENDING))
			lw_head_disable_stealing(lock);
		if (limit_reached || lw_limit_reached(me->limit)) {
			if (starved)
				lw_head_allow_stealing(lock);
			lw_head_leave(me);
			return LW_WAIT_LEFT;
		}
		if (free) {
			races = (races + 1) % LW_RACES;
			if (races)
				continue;
		}
		if (policy->parking.enabled && !free) {
			if (!lw_head_enter_table(lock, node))
				continue;
			lw_count(halts_at_head);
			limit_reached = lw_head_sleep(lock, node, me->limit);
			lw_head_woken(lock, node, policy);
		}
		if (!starved && policy->stealing.starvation_limit != LW_NO_STARVATION_LIMIT)
			defeats++;
	}
}

#endif
