/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stealing from a queue whose waiters park: what pv, pv42 and unfair share beside parking.h, which
 * is how they use the word.
 *
 * An unlock has to release the lock and to see `parked` in one atomic step. If it is set, the lock
 * is released in two:
 *
 *              acquire                    head parks
 *   (*,*,0) ------------> (*,*,1) --------------------------> parked (*,*,1)
 *      ^        unlock       |     <-- head wakes early --           |
 *      |<--------------------'                                       |
 *      `------------ (*,*,2) <-------------- unlock -----------------'
 *                       removes the head from the table, wakes it
 *
 * No thread that sees `parked` acquires the lock. `pending` says that arriving threads should not
 * steal the lock. It is advice: the lock is always acquired by a compare-and-swap that expects
 * `locked` to be 0.
 *
 * Orders, besides those of parking.h:
 *
 *   - `locked` of the word: each acquisition is a compare-and-swap that acquires, each release a
 *     store or a compare-and-swap that releases. `pending` and polls are relaxed.
 *   - A head that leaves at its wait limit has a fence that acquires (lw_head_leave). It pairs with
 *     the last store of a thread that unlocks, which reads the head's node until then.
 */
#ifndef LW_STEALING_H
#define LW_STEALING_H

#include "parking.h"

/* The number of times that the head sees the lock free, but is too late, which is one defeat. */
#define LW_RACES lw_constant(1024, 1)
/* A number of defeats: the queue head never disables stealing. */
#define LW_NO_STARVATION_LIMIT UINT32_MAX

/* The outcome of a wait, or of a part of it. */
enum lw_wait_outcome {
	LW_WAIT_ACQUIRED,  /* the lock is ours, and our node is out of the queue */
	LW_WAIT_HEAD,	   /* we are queue head */
	LW_WAIT_LONGER,	   /* we wait behind others */
	LW_WAIT_LEFT,	   /* the wait limit is reached, and our node is out of the queue */
	LW_WAIT_ABANDONED, /* the same, but node and slot are no longer ours */
};

/*
 * Acquiring
 */

/* Poll until the lock is free, or `polls` times. Returns the word of the last poll. */
static inline uint32_t lw_poll_lock(union lw_word *lock, uint32_t polls)
{
	uint32_t val = lw_await_ne_backoff(&lock->val, LW_LOCKED, LW_LOCKED, polls);

	if ((val & LW_LOCKED_MASK) == LW_UNLOCKING)
		val = lw_await_ne_soon(&lock->val, LW_LOCKED_MASK, LW_UNLOCKING, relaxed);
	return val;
}

/* lw_word_take(), if the word, which was seen as `val`, allows stealing. */
static inline bool lw_word_steal(union lw_word *lock, uint32_t val)
{
	return !(val & (LW_LOCKED_PENDING_MASK | LW_PARKED)) && lw_word_take(lock);
}

/* (*,*,0) -> (*,0,1), or (*,1,1) if `strict`. The word was seen as `val`, free and not parked. */
static inline bool lw_word_acquire(union lw_word *lock, uint32_t val, bool strict)
{
	uint16_t free = (uint16_t)(val & LW_PENDING);

	return lw_field_try_cmpxchg(lock, locked_pending, &free,
				    strict ? LW_LOCKED | LW_PENDING : LW_LOCKED, acquire);
}

/* There is no free queue node, or none that may be abandoned: compete for the lock by stealing. */
static inline bool lw_steal_nodeless(union lw_word *lock, const struct lw_wait_limit *limit,
				     uint32_t polls)
{
	lw_count(nodeless_acquisitions);
	while (!lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
		if (lw_limit_reached(limit))
			return false;
		lw_pause_long();
		lw_poll_lock(lock, polls);
	}
	return true;
}

/*
 * Waiting behind others
 */

/* Join the queue. Returns our predecessor, or NULL if we are queue head. */
static inline struct lw_node *lw_queue_join(union lw_word *lock, struct lw_node *node,
					    uint32_t tail)
{
	struct lw_node *prev;
	uint32_t old;

	lw_node_init(node);
	lw_store(&node->tail, tail, relaxed);
	lw_store(&node->kicked_at, 0, relaxed);
	old = lw_word_xchg_tail(lock, tail);
	prev = old ? lw_decode_tail(old) : NULL;
	if (!prev || lw_is_dead(prev)) {
		lw_store(&node->locked, LW_NODE_HEAD, relaxed);
		return NULL;
	}
	lw_store(&node->prev, prev, relaxed);
	lw_store(&prev->next, node, release);
	return prev;
}

/*
 * We have polled for long enough. If the wait limit is reached, abandon our node. Otherwise park,
 * if `parks`. LONGER, HEAD or ABANDONED.
 */
static inline enum lw_wait_outcome lw_queue_sleep(struct lw_node *node, uint32_t tail,
						  const struct lw_wait_limit *limit, bool parks)
{
	uint32_t state = LW_NODE_WAITING;

	if (lw_limit_reached(limit)) {
		/* WAITING -> ABANDONED; release: all that we did to the slot */
		if (lw_slot_abandon(lw_tail_slot(tail), lw_try_cmpxchg(&node->locked, &state,
								       LW_NODE_ABANDONED, release)))
			return LW_WAIT_ABANDONED;
		return LW_WAIT_HEAD;
	}
	if (!parks)
		return LW_WAIT_LONGER;
	/* WAITING -> PARKED */
	if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_PARKED, relaxed))
		return LW_WAIT_HEAD;
	lw_count(halts_in_queue);
	lw_park(&node->locked, LW_NODE_PARKED, limit);
	state = LW_NODE_PARKED;
	/* Awake before the head's role has come: PARKED -> WAITING */
	if (!lw_try_cmpxchg(&node->locked, &state, LW_NODE_WAITING, relaxed))
		return LW_WAIT_HEAD;
	lw_count(spurious_wakeups);
	return LW_WAIT_LONGER;
}

/*
 * Acquiring and leaving as queue head
 */

/*
 * Our node leaves the front of the queue. The first waiter behind it that has not abandoned its
 * node is queue head. If there is none, others may steal again.
 */
static inline void lw_hand_over(union lw_word *lock, struct lw_node *node, uint32_t tail,
				enum lw_waking waking, bool strict)
{
	bool passed = lw_pass_role(lock, lw_queue_next(lock, node, tail), waking, 0);

	/* (0,1,*) -> (0,0,*) */
	if (!passed && strict)
		lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
}

/*
 * We are queue head, and saw the lock free, as `val`: acquire it, and hand over the head's role.
 * `strict`: no thread may steal from the new head, not even while it wakes up.
 */
static inline bool lw_head_acquire(union lw_word *lock, struct lw_node *node, uint32_t tail,
				   uint32_t val, enum lw_waking waking, bool strict)
{
	struct lw_node *next;

	/* (head,*,0) -> (0,0,1): nobody else queues; release: we are out of the table */
	if ((val & LW_TAIL_MASK) == tail)
		return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, acq_rel);
	/* Fetch the successor's node at the same time as the word. */
	next = lw_load(&node->next, relaxed);
	if (next)
		lw_prefetch_write(&next->locked);
	if (!lw_word_acquire(lock, val, strict))
		return false;
	lw_hand_over(lock, node, tail, waking, strict);
	return true;
}

/* The wait limit is reached: hand over the head's role, without the lock. */
static inline void lw_head_leave(union lw_word *lock, struct lw_node *node, uint32_t tail,
				 bool strict)
{
	/* acquire: the thread that woke us no longer accesses our node */
	lw_fence(acquire);
	lw_hand_over(lock, node, tail, LW_WAKE_NOW, strict);
}

/* (*,*,*) -> (*,1,*) */
static inline void lw_disable_stealing(union lw_word *lock)
{
	lw_fetch_or(&lock->val, LW_PENDING, relaxed);
}

/* (*,1,*) -> (*,0,*) */
static inline void lw_allow_stealing(union lw_word *lock)
{
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
}

/*
 * Unlocking: lw_word_release() has returned true, and the word is (*,*,2)
 */

/* Finish the release, and wake the head. Lock and node may be gone after the release. */
static inline void lw_unlock_parked(union lw_word *lock)
{
	uint32_t slot = 0;
	struct lw_node *head = lw_unlock_head(lock, &slot);

	/* (*,*,2) -> (*,*,0) */
	lw_field_store(lock, locked, 0, release);
	if (head)
		lw_wake(head, slot);
}

#endif
