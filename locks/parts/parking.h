/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slow path of the locks whose waiters park, from top to bottom:
 *
 *   lw_parking_arrive()       an arriving thread spins shortly, steals, or sets the pending bit
 *   lw_parking_wait()         else it takes a queue node, and queues (lw_parking_queue()):
 *     lw_waiter_wait()          until it is queue head            (parking_waiter.h)
 *     lw_head_wait()            until it has the lock             (parking_head.h)
 *       lw_hand_over_head()       and its successor is head       (parking_queue.h)
 *   lw_parking_unlock_slow()  an unlock wakes a parked head       (parking_release.h)
 *
 * A lock says in a lw_parking_policy (parking_policy.h) how it differs from the others. The states
 * of the lock word are in parking_word.h, those of a queue node in parking_queue.h, those of the
 * queue head in parking_head.h.
 *
 * Promises: mutual exclusion; no waiter is lost; correct without a free queue node. A queue head
 * enters the table of parked heads before it parks, and the unlock that finds it there wakes it.
 * Where an unlock may miss it (parking_word.h), its park is bounded. The order of acquisitions
 * depends on the policy; see the locks.
 *
 * Orders: those of the lock word are explained in parking_word.h, those of the table of parked
 * heads in parked_heads.h, those of the queue in parking_queue.h.
 */
#ifndef LW_PARKING_H
#define LW_PARKING_H

#include "parking_head.h"
#include "parking_release.h"
#include "parking_waiter.h"

/* Acquire the lock without queueing, if the policy and the lock's state allow that. */
static lw_always_inline bool lw_parking_arrive(union lw_word *lock,
					       const struct lw_parking_policy *policy)
{
	uint32_t val = lw_load(&lock->val, relaxed);

	if (policy->stealing.arrival_spin && !(val & LW_PENDING))
		val = lw_poll_lock(lock, policy->stealing.arrival_spin);
	if (policy->stealing.on_arrival && lw_word_steal(lock, val)) {
		lw_count(steals_on_arrival);
		return true;
	}
	if (!policy->pending_bit || (val & (LW_TAIL_MASK | LW_PENDING)))
		return false;
	/* (*,0,*) -> (*,1,*) */
	val = lw_fetch_or(&lock->val, LW_PENDING, relaxed);
	if (val & LW_PENDING)
		return false;
	if (!(val & LW_TAIL_MASK)) {
		val = lw_poll_lock(lock, policy->spin);
		/* (*,1,0) -> (*,0,1) */
		if (!(val & (LW_LOCKED_MASK | LW_PARKED)) && lw_word_acquire(lock, val)) {
			lw_count(pending_acquisitions);
			return true;
		}
	}
	/* (*,1,*) -> (*,0,*) */
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
	return false;
}

/* There is no free queue node, or none that may be abandoned: compete for the lock by stealing. */
static inline bool lw_parking_nodeless(union lw_word *lock, const struct lw_wait_limit *limit,
				       const struct lw_parking_policy *policy)
{
	lw_count(nodeless_acquisitions);
	while (!lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
		if (lw_limit_reached(limit))
			return false;
		lw_pause_long();
		lw_poll_lock(lock, policy->spin);
	}
	return true;
}

static lw_always_inline void lw_parking_init_node(const struct lw_waiter *me)
{
	const struct lw_parking_policy *policy = me->policy;
	struct lw_node *node = me->node;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, LW_NODE_WAITING, relaxed);
	lw_store(&node->tail, me->tail, relaxed);
	if (policy->stealing.from_queue)
		lw_store(&node->place, 0, relaxed);
	if (policy->latencies)
		lw_store(&node->kicked_at, 0, relaxed);
}

/* Wait in the queue: ACQUIRED, LEFT or ABANDONED. */
static lw_always_inline enum lw_wait_outcome lw_parking_queue(union lw_word *lock, uint32_t tail,
							      struct lw_node *node,
							      const struct lw_wait_limit *limit,
							      struct lw_parking_policy policy)
{
	const struct lw_waiter me = {
		.lock = lock, .node = node, .tail = tail, .limit = limit, .policy = &policy};
	enum lw_wait_outcome outcome = LW_WAIT_HEAD;
	uint32_t old;

	lw_parking_init_node(&me);
	old = lw_word_xchg_tail(lock, tail);
	if (old && !lw_is_dead(lw_decode_tail(old))) {
		struct lw_node *prev = lw_decode_tail(old);

		if (policy.stealing.from_queue)
			lw_store(&node->prev, prev, relaxed);
		lw_store(&prev->next, node, release);
		outcome = lw_waiter_wait(&me, prev);
		if (outcome == LW_WAIT_HEAD)
			lw_head_woken(lock, node, &policy);
	} else {
		lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	}
	if (outcome == LW_WAIT_HEAD)
		outcome = lw_head_wait(&me);
	if (outcome == LW_WAIT_ACQUIRED)
		lw_count(queued_acquisitions);
	else
		lw_count(waits_cancelled);
	return outcome;
}

/* Wait until the lock is ours, in its queue if there is a free node. False: the limit was reached.
 */
static lw_always_inline bool lw_parking_wait(union lw_word *lock, const struct lw_wait_limit *limit,
					     struct lw_parking_policy policy)
{
	uint32_t tail = lw_node_take(limit);
	enum lw_wait_outcome outcome;

	if (!tail)
		return lw_parking_nodeless(lock, limit, &policy);
	outcome = lw_parking_queue(lock, tail, lw_decode_tail(tail), limit, policy);
	if (outcome == LW_WAIT_ABANDONED)
		lw_slot_leave(lw_tail_slot(tail));
	else
		lw_node_return(tail);
	return outcome == LW_WAIT_ACQUIRED;
}

#endif
