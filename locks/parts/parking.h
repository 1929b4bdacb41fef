/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue whose waiters park: that of mutex, pv, pv42 and unfair. To park is to yield the CPU until
 * another thread wakes the waiter. In a guest the virtual CPU halts and is kicked.
 *
 * `locked` of a queue node:
 *
 *   WAITING --> HEAD          the predecessor hands over the head's role
 *   WAITING <-> PARKED        the waiter parks, and wakes by itself
 *   PARKED  --> HEAD          its role has come, and it is woken
 *   PARKED  --> PARKED_HEAD   its role has come; it is in the table of parked heads, and the unlock
 *                             wakes it
 *   HEAD    --> PARKED_HEAD   the head parks
 *   PARKED_HEAD --> HEAD      woken by the thread that unlocks, or awake early
 *   WAITING --> ABANDONED     the wait limit is reached: who would hand over the head's role
 *                             removes the node and returns its slot
 *   DEAD                      user space: its thread did not survive a fork
 *
 * Apart from arrivals at its end, only one thread at a time changes the queue: the queue head, when
 * it acquires the lock or leaves at its wait limit. (unfair.c has one more.)
 *
 * The word's flag `parked` says that the queue head is in the table of parked heads. The thread
 * that clears it removes the head from the table: either the head itself, when it wakes early, or
 * the thread that unlocks. A lock may set and clear other flags `with` it, in the same step.
 *
 * An unlock has to release the lock and to see `parked` in one atomic step. Where
 * lw_release_is_split(), it is a load followed by a store, because a compare-and-swap would cost
 * most in programs whose waiters never park. A head that parks between the two is missed: the word
 * is then parked (*,*,0). Therefore a head that has just parked polls for longer than such a store
 * takes to become visible, and parks for a bounded time only. This is a 1-0 protocol (Dice 2001).
 *
 * A wake-up is a hint: a waiter that wakes polls again. So one that comes late, or was meant for
 * another, is harmless.
 *
 * Promises: no waiter is lost. A queue head enters the table before it parks, and the unlock that
 * finds it there wakes it. Where an unlock may miss it, its park is bounded.
 *
 * Orders, besides those of queue_node.h and parked_heads.h:
 *
 *   - `parked`, set by the head itself: lw_head_enter_table() releases. It publishes the entry and
 *     PARKED_HEAD. So the compare-and-swap by which the thread that unlocks clears it acquires.
 *     Without either order that thread finds no entry, or its HEAD is overwritten by PARKED_HEAD.
 *   - `parked`, set by the holder for its successor (lw_make_head), is relaxed: only the holder
 *     clears it, or the head, which has then read PARKED_HEAD with acquire.
 *   - `parked`, cleared by the head, is relaxed: the head has made the entry, or has read
 *     PARKED_HEAD.
 *   - HEAD and PARKED_HEAD are stored by a release, and lw_head_woken() loads them with acquire. So
 *     a new head sees the queue as its predecessor left it, and its predecessor out of the table.
 *     The HEAD of the thread that unlocks is a release for the same reason: a head that wakes only
 *     then has not read PARKED_HEAD before.
 *   - The last waiter clears the tail by a release. It pairs with the exchange by which the next
 *     waiter queues, which is queue head at once. Without it, the lock could have two entries.
 *   - ABANDONED is stored by a release. A fence that acquires follows its reading, so the slot is
 *     returned after all that its waiter did to it.
 *   - WAITING and PARKED are relaxed: they publish nothing, and compare-and-swaps on one variable
 *     decide whether waiter or waker was first.
 */
#ifndef LW_PARKING_H
#define LW_PARKING_H

#include "parked_heads.h"
#include "queue_slot.h"

/* Polls after which a release by another CPU has, in practice, become visible. */
#define LW_SETTLE 32
/*
 * Waking, and measuring the time that this takes
 */

static inline void lw_wake_begins(struct lw_node *node)
{
	if (lw_tunable(pv_latencies))
		lw_store(&node->kicked_at, lw_timestamp(), relaxed);
}

/* The waiter may have woken and ended its wait already, so its node is not accessed. */
static inline void lw_wake(struct lw_node *node, uint32_t slot)
{
	uint64_t begun = lw_tunable(pv_latencies) ? lw_timestamp() : 0;

	lw_unpark(&node->locked, slot);
	if (lw_tunable(pv_latencies))
		lw_count_by(kick_nanoseconds, lw_timestamp() - begun);
}

/* Called by the waiter when it has woken. */
static inline void lw_wake_arrives(struct lw_node *node)
{
	uint64_t kicked_at = lw_tunable(pv_latencies) ? lw_load(&node->kicked_at, relaxed) : 0;

	if (kicked_at) {
		lw_store(&node->kicked_at, 0, relaxed);
		lw_count(wakeups);
		lw_count_by(wakeup_nanoseconds, lw_timestamp() - kicked_at);
	}
}

/*
 * Parking as queue head
 */

/* parked and `with`: 1 -> 0, and our entry is removed. False if the thread that unlocks was first.
 */
static inline bool lw_head_leave_table(union lw_word *lock, uint32_t with)
{
	if (!(lw_field_fetch_and(lock, pending, (uint8_t)(0xff ^ ((LW_PARKED | with) >> 8)),
				 relaxed) &
	      (LW_PARKED >> 8)))
		return false;
	lw_parked_take(lock);
	return true;
}

/* Enter the table. False if the lock has become free, or the table is full. */
static inline bool lw_head_enter_table(union lw_word *lock, struct lw_node *node, uint32_t with)
{
	struct lw_parked_head *entry = lw_parked_insert(lock, node);
	uint16_t seen = lw_field_load(lock, locked_pending, relaxed);

	if (!entry)
		return false;
	/* HEAD -> PARKED_HEAD */
	lw_store(&node->locked, LW_NODE_PARKED_HEAD, relaxed);
	do {
		if (!(seen & LW_LOCKED)) {
			lw_store(&node->locked, LW_NODE_HEAD, relaxed);
			lw_parked_remove(entry);
			return false;
		}
		/* (*,*,1), parked and `with`: 0 -> 1 */
	} while (!lw_field_try_cmpxchg(lock, locked_pending, &seen,
				       (uint16_t)(seen | LW_PARKED | with), release));
	/* A release in two steps may have missed that we are parked. Then the lock is free. */
	if (!lw_release_is_split() ||
	    (lw_await_ne_bounded(&lock->val, LW_LOCKED, LW_LOCKED, LW_SETTLE) & LW_LOCKED) ||
	    !lw_head_leave_table(lock, with))
		return true;
	lw_store(&node->locked, LW_NODE_HEAD, relaxed);
	return false;
}

/* We are queue head, and may be in the table: leave it. */
static inline void lw_head_woken(union lw_word *lock, struct lw_node *node, uint32_t with)
{
	uint32_t state = lw_load(&node->locked, acquire);

	if ((state & LW_NODE_STATE) == LW_NODE_PARKED_HEAD) {
		if (lw_head_leave_table(lock, with)) {
			lw_store(&node->locked, state ^ LW_NODE_TO_HEAD, relaxed);
			lw_count(spurious_wakeups);
			return;
		}
		/* The thread that unlocks has removed our entry, and stores HEAD next. */
		lw_await_eq_soon(&node->locked, LW_NODE_STATE, LW_NODE_HEAD, acquire);
	}
	lw_wake_arrives(node);
}

/*
 * Park until we are woken or the wait limit is reached. True if the limit is reached. Where a
 * release may miss us, the park also ends when we see the lock free.
 */
static inline bool lw_head_sleep(union lw_word *lock, struct lw_node *node, uint32_t with,
				 const struct lw_wait_limit *limit)
{
	uint32_t parks = 0;
	bool limit_reached = false;

	lw_count(halts_at_head);
	do {
		uint32_t state = lw_load(&node->locked, relaxed);

		if ((state & LW_NODE_STATE) != LW_NODE_PARKED_HEAD)
			break;
		limit_reached = lw_limit_reached(limit);
		if (limit_reached)
			break;
		parks += lw_park_bounded(&node->locked, state, limit, parks);
	} while (!lw_release_is_split() || (lw_load(&lock->val, relaxed) & LW_LOCKED));
	lw_head_woken(lock, node, with);
	return limit_reached;
}

/*
 * Handing over the head's role
 */

/* How a waiter gets the head's role. */
enum lw_waking {
	LW_WAKE_NOBODY,	   /* no waiter parks or abandons its node, so a store suffices */
	LW_WAKE_NOW,	   /* a parked waiter is woken */
	LW_WAKE_AT_UNLOCK, /* it is woken by the next unlock, that of the caller */
};

/*
 * Make the waiter of `node` queue head, after `run` hand-overs within its NUMA node. False if it
 * has abandoned the node.
 */
static inline bool lw_make_head(union lw_word *lock, struct lw_node *node, uint32_t run,
				enum lw_waking waking, uint32_t with)
{
	uint32_t head = LW_NODE_HEAD | run << LW_NODE_RUN_SHIFT, state = LW_NODE_WAITING;

	if (waking == LW_WAKE_NOBODY) {
		lw_mcs_hand_over(node, head);
		return true;
	}
	while (state != LW_NODE_ABANDONED) {
		bool parked = state == LW_NODE_PARKED;
		uint32_t slot = parked ? lw_tail_slot(lw_load(&node->tail, relaxed)) : 0;
		struct lw_parked_head *entry = NULL;

		if (parked && waking == LW_WAKE_AT_UNLOCK)
			entry = lw_parked_insert(lock, node);
		if (entry) {
			if (with)
				lw_note_time(&lw_parked_first(lock)->since, lw_timestamp());
			/* parked and `with`: 0 -> 1 */
			lw_field_fetch_or(lock, pending, (uint8_t)((LW_PARKED | with) >> 8),
					  relaxed);
			/* PARKED -> PARKED_HEAD */
			if (lw_try_cmpxchg(&node->locked, &state, head ^ LW_NODE_TO_HEAD, release))
				return true;
			/* The waiter has woken, parked and `with`: 1 -> 0 */
			lw_field_fetch_and(lock, pending,
					   (uint8_t)(0xff ^ ((LW_PARKED | with) >> 8)), relaxed);
			lw_parked_remove(entry);
			continue;
		}
		if (parked)
			lw_wake_begins(node);
		/* WAITING or PARKED -> HEAD */
		if (lw_try_cmpxchg(&node->locked, &state, head, release)) {
			if (parked) {
				lw_count(kicks_at_handoff);
				lw_wake(node, slot);
			}
			return true;
		}
	}
	return false;
}

/* The successor of `node`, whose tail is `tail`. NULL if there is none; then the queue is empty. */
static inline struct lw_node *lw_queue_next(union lw_word *lock, struct lw_node *node,
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
 * `next`, or the first behind it that has not abandoned its node, gets the head's role. False if
 * there is none; then the queue is empty.
 */
static inline bool lw_pass_role(union lw_word *lock, struct lw_node *next, enum lw_waking waking,
				uint32_t with)
{
	while (next && !lw_make_head(lock, next, 0, waking, with)) {
		struct lw_node *abandoned = next;
		uint32_t tail;

		/* acquire: all that the waiter did to the slot that it abandoned */
		lw_fence(acquire);
		tail = lw_load(&abandoned->tail, relaxed);
		next = lw_queue_next(lock, abandoned, tail);
		lw_store(&abandoned->count, 0, relaxed);
		lw_slot_reclaim(lw_tail_slot(tail));
	}
	return next;
}

/*
 * Take the head out of the table: its node and slot. NULL only in the child of a fork. The head may
 * leave at its wait limit, so after HEAD its node is not accessed.
 */
static inline struct lw_node *lw_unlock_head(union lw_word *lock, uint32_t *slot)
{
	struct lw_node *head = lw_parked_take(lock);

	if (head) {
		lw_wake_begins(head);
		*slot = lw_tail_slot(lw_load(&head->tail, relaxed));
		/* PARKED_HEAD -> HEAD */
		lw_store(&head->locked, lw_load(&head->locked, relaxed) ^ LW_NODE_TO_HEAD, release);
		lw_count(kicks_at_unlock);
	}
	return head;
}

#endif
