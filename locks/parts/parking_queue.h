/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue of waiters that park: the states of a queue node, and all steps that change the shape
 * of the queue or the head of it.
 *
 * `locked` of a queue node:
 *
 *   WAITING --> HEAD            the predecessor, or the holder, hands over the head's role
 *      |  ^
 *      v  |
 *   PARKED ---> HEAD            the same, and wakes the waiter
 *      |
 *      `------> PARKED_HEAD     the same, and enters it into the table: the unlock wakes it
 *                 ^     |
 *          HEAD --'     `----> HEAD   woken by the thread that unlocks, or awake early
 *
 *   ABANDONED   was WAITING when the wait limit was reached. The thread that would hand over the
 *               head's role takes the node out of the queue and returns its slot.
 *   DEAD        user space: its thread did not survive a fork
 *
 * Apart from arrivals at its end, only one thread at a time changes the queue. It is the queue
 * head, which hands over its role when it has the lock or leaves; or a waiter that has stolen the
 * lock and removes itself. A queue head that leaves at its wait limit does not have the lock, so
 * these two could change the queue at the same time. Where wait limits exist, a bit of the lock
 * word is therefore a lock of the queue.
 *
 * Orders, besides those of any queue (queue_node.h):
 *
 *   - HEAD and PARKED_HEAD are stored by a release; lw_head_woken() loads them with acquire. So a
 *     new head sees the queue as its predecessor left it, and sees that the predecessor is out of
 *     the table. The HEAD of the thread that unlocks is a release for the same reason: a head that
 *     wakes only then has not read PARKED_HEAD before. Without the order, a lock could have two
 *     entries in the table, and the head would follow links that are out of date.
 *   - The last waiter clears the tail by a release. It pairs with the exchange by which the next
 *     waiter queues, since that waiter is queue head at once. Without it, the lock could again
 *     have two entries.
 *   - ABANDONED is stored by a release; lw_hand_over_head() has a fence that acquires after it has
 *     read it. So the slot is returned after all that the waiter did to it. The next owner takes
 *     the slot by an acquire, so the count is set by a relaxed store.
 *   - A head that leaves at its wait limit has a fence that acquires (lw_head_leave). It pairs with
 *     the last store of a thread that unlocks, which reads the head's node until then. Without it,
 *     the node could be written for its next use while it is still read.
 *   - The `queue` bit is acquired and released as any lock. Where there are no wait limits, the
 *     thread that takes itself out holds the lock, and so does the head that hands over.
 *   - WAITING and PARKED are relaxed: they publish nothing, and the compare-and-swaps of waiter and
 *     waker decide on one variable which of them was first.
 *   - A link that is cut at the end of the queue is stored before the tail is swapped back, by a
 *     release: a waiter that queues there links itself after that store, not before it.
 */
#ifndef LW_PARKING_QUEUE_H
#define LW_PARKING_QUEUE_H

#include "parked_heads.h"
#include "parking_policy.h"
#include "parking_wake.h"

/*
 * True if the waiter of this node does not run. A hint: the node may belong to another wait by now.
 */
static lw_always_inline bool lw_seems_parked(struct lw_node *node)
{
	return lw_hint(&node->locked, LW_NODE_ABANDONED + 1) >= LW_NODE_PARKED;
}

static inline void lw_queue_lock(union lw_word *lock)
{
	/* queue: 0 -> 1; acquire: the last thread's changes to the queue */
	while (lw_field_fetch_or(lock, pending, LW_QUEUE_LOCKED >> 8, acquire) &
	       (LW_QUEUE_LOCKED >> 8))
		lw_await_eq_soon(&lock->val, LW_QUEUE_LOCKED, 0, relaxed);
}

static inline void lw_queue_unlock(union lw_word *lock)
{
	/* queue: 1 -> 0 */
	lw_field_fetch_and(lock, pending, 0xff ^ LW_QUEUE_LOCKED >> 8, release);
}

/* The successor of `node`, whose tail is `tail`. NULL if there is none; then the queue is empty. */
static lw_always_inline struct lw_node *lw_queue_next(union lw_word *lock, struct lw_node *node,
						      uint32_t tail)
{
	struct lw_node *next = lw_load(&node->next, dependency);
	uint16_t last = (uint16_t)(tail >> LW_TAIL_SHIFT);

	/* (node,*,*) -> (0,*,*); release: the queue head has left the table */
	if (!next && !lw_field_try_cmpxchg(lock, tail, &last, 0, release))
		next = lw_await_ne_soon(&node->next, ~(uintptr_t)0, 0, dependency);
	return next;
}

/*
 * Take `node` out from behind `prev`: prev -> node -> next  becomes  prev -> next. Gives `next`, or
 * NULL if `node` was the last.
 */
static lw_always_inline struct lw_node *lw_queue_unlink(union lw_word *lock, struct lw_node *prev,
							struct lw_node *node)
{
	struct lw_node *next = lw_load(&node->next, dependency);

	if (!next) {
		uint16_t last = (uint16_t)(lw_load(&node->tail, relaxed) >> LW_TAIL_SHIFT);
		uint16_t left = (uint16_t)(lw_load(&prev->tail, relaxed) >> LW_TAIL_SHIFT);

		lw_store(&prev->next, NULL, relaxed);
		/*
		 * (node,*,*) -> (prev,*,*); release: a waiter that queues behind prev finds its
		 * next NULL
		 */
		if (lw_field_try_cmpxchg(lock, tail, &last, left, release))
			return NULL;
		next = lw_await_ne_soon(&node->next, ~(uintptr_t)0, 0, dependency);
	}
	lw_store(&prev->next, next, relaxed);
	return next;
}

/*
 * Make the waiter of `node` queue head. False if it has abandoned the node. `holds_lock`: the
 * caller has the lock, and will unlock it.
 */
static lw_always_inline bool lw_make_head(union lw_word *lock, struct lw_node *node,
					  bool holds_lock, const struct lw_parking_policy *policy)
{
	uint32_t state = lw_load(&node->locked, relaxed);

	while (state != LW_NODE_ABANDONED) {
		bool parked = state == LW_NODE_PARKED;
		uint32_t slot = parked ? lw_tail_slot(lw_load(&node->tail, relaxed)) : 0;
		struct lw_parked_head *entry = NULL;

		if (parked && holds_lock && policy->parking.wake_at_unlock)
			entry = lw_parked_insert(lock, node);
		if (entry) {
			/* parked: 0 -> 1 */
			lw_field_fetch_or(lock, locked_pending, LW_PARKED, relaxed);
			/* PARKED -> PARKED_HEAD */
			if (lw_try_cmpxchg(&node->locked, &state, LW_NODE_PARKED_HEAD, release))
				return true;
			/* The waiter has woken, parked: 1 -> 0 */
			lw_field_fetch_and(lock, locked_pending, (uint16_t)(0xffff ^ LW_PARKED),
					   relaxed);
			lw_parked_remove(entry);
			continue;
		}
		if (parked)
			lw_wake_begins(node, policy);
		/* WAITING or PARKED -> HEAD */
		if (lw_try_cmpxchg(&node->locked, &state, LW_NODE_HEAD, release)) {
			if (parked) {
				lw_count(kicks_at_handoff);
				lw_wake(node, slot, policy);
			}
			return true;
		}
	}
	return false;
}

/*
 * The queue head, whose node is `node` and `tail`, leaves the queue. Make the first waiter behind
 * it that has not abandoned its node the new head, and remove the abandoned nodes before that.
 */
static lw_always_inline void lw_hand_over_head(union lw_word *lock, uint32_t tail,
					       struct lw_node *node, bool holds_lock,
					       const struct lw_parking_policy *policy)
{
	/* No thread may steal from the new head, not even while the head wakes up. */
	bool strict = !policy->stealing.starvation_limit;

	node = lw_queue_next(lock, node, tail);
	/* (*,0,*) -> (*,1,*) */
	if (node && strict)
		lw_fetch_or(&lock->val, LW_PENDING, relaxed);
	while (node && !lw_make_head(lock, node, holds_lock, policy)) {
		struct lw_node *next;

		/* acquire: all that the waiter did to the slot that it abandoned */
		lw_fence(acquire);
		tail = lw_load(&node->tail, relaxed);
		next = lw_queue_next(lock, node, tail);
		lw_store(&node->count, 0, relaxed);
		lw_slot_reclaim(lw_tail_slot(tail));
		node = next;
	}
	/* (0,1,*) -> (0,0,*) */
	if (!node && strict)
		lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
}

/* A waiter has stolen the lock: take it out of the queue. */
static lw_always_inline void lw_leave_queue_with_lock(const struct lw_waiter *me)
{
	union lw_word *lock = me->lock;
	struct lw_node *node = me->node;

	if (lw_limits_exist())
		lw_queue_lock(lock);
	if (lw_load(&node->locked, relaxed) == LW_NODE_WAITING) {
		struct lw_node *prev = lw_load(&node->prev, relaxed);
		struct lw_node *next = lw_queue_unlink(lock, prev, node);

		if (next)
			lw_store(&next->prev, prev, relaxed);
	} else {
		/* The head's role was handed over to us meanwhile. */
		lw_hand_over_head(lock, me->tail, node, true, me->policy);
	}
	if (lw_limits_exist())
		lw_queue_unlock(lock);
}

#endif
