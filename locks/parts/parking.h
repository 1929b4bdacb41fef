/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue whose waiters park: what pv, pv42 and unfair share. To park is to yield the CPU until
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
 * The word's flag `parked` says that the queue head is in the table of parked heads. No thread that
 * sees it acquires the lock. The thread that clears it removes the head from the table: either the
 * head itself, when it wakes early, or the thread that unlocks.
 *
 *              acquire                    head parks
 *   (*,*,0) ------------> (*,*,1) --------------------------> parked (*,*,1)
 *      ^        unlock       |     <-- head wakes early --           |
 *      |<--------------------'                                       |
 *      `------------ (*,*,2) <-------------- unlock -----------------'
 *                       removes the head from the table, wakes it
 *
 * An unlock has to release the lock and to see `parked` in one atomic step. Where
 * lw_release_is_split(), it is a load followed by a store, because a compare-and-swap would cost
 * most in programs whose waiters never park. A head that parks between the two is missed: the word
 * is then parked (*,*,0), which no thread acquires. Therefore a head that has just parked polls for
 * longer than such a store takes to become visible, and parks for a bounded time only. This is a
 * 1-0 protocol (Dice 2001).
 *
 * `pending` says that arriving threads should not steal the lock. It is advice: the lock is always
 * acquired by a compare-and-swap that expects `locked` to be 0.
 *
 * A wake-up is a hint: a waiter that wakes polls again. So one that comes late, or was meant for
 * another, is harmless.
 *
 * Promises: no waiter is lost. A queue head enters the table before it parks, and the unlock that
 * finds it there wakes it. Where an unlock may miss it, its park is bounded.
 *
 * Orders, besides those of queue_node.h and parked_heads.h:
 *
 *   - `locked` of the word: each acquisition is a compare-and-swap that acquires, each release a
 *     store or a compare-and-swap that releases. `pending` and polls are relaxed.
 *   - `parked`, set by the head itself: lw_head_enter_table() releases. It publishes the entry and
 *     PARKED_HEAD. So the compare-and-swap of lw_word_release() acquires too. Without either order
 *     the thread that unlocks finds no entry, or its HEAD is overwritten by PARKED_HEAD.
 *   - `parked`, set by the holder for its successor (lw_make_head), is relaxed: only the holder
 *     clears it, or the head, which has then read PARKED_HEAD with acquire.
 *   - `parked`, cleared by the head: the head has made the entry, or has read PARKED_HEAD. So
 *     relaxed would suffice.
 *   - HEAD and PARKED_HEAD are stored by a release, and lw_head_woken() loads them with acquire. So
 *     a new head sees the queue as its predecessor left it, and its predecessor out of the table.
 *     The HEAD of the thread that unlocks is a release for the same reason: a head that wakes only
 *     then has not read PARKED_HEAD before.
 *   - The last waiter clears the tail by a release. It pairs with the exchange by which the next
 *     waiter queues, which is queue head at once. Without it, the lock could have two entries.
 *   - ABANDONED is stored by a release. A fence that acquires follows its reading, so the slot is
 *     returned after all that its waiter did to it.
 *   - A head that leaves at its wait limit has a fence that acquires (lw_head_leave). It pairs with
 *     the last store of a thread that unlocks, which reads the head's node until then.
 *   - WAITING and PARKED are relaxed: they publish nothing, and compare-and-swaps on one variable
 *     decide whether waiter or waker was first.
 */
#ifndef LW_PARKING_H
#define LW_PARKING_H

#include "parked_heads.h"
#include "queue_slot.h"

/* Polls after which a release by another CPU has, in practice, become visible. */
#define LW_SETTLE 32
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
 * Parking as queue head
 */

/* parked: 1 -> 0, and our entry is removed. False if the thread that unlocks was first. */
static inline bool lw_head_leave_table(union lw_word *lock)
{
	if (!(lw_field_fetch_and(lock, locked_pending, (uint16_t)(0xffff ^ LW_PARKED), acquire) &
	      LW_PARKED))
		return false;
	lw_parked_take(lock);
	return true;
}

/* Enter the table. False if the lock has become free, or the table is full. */
static inline bool lw_head_enter_table(union lw_word *lock, struct lw_node *node)
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
	/* A release in two steps may have missed that we are parked. Then the lock is free. */
	if (lw_release_is_split() &&
	    !(lw_await_ne_bounded(&lock->val, LW_LOCKED_MASK, LW_LOCKED, LW_SETTLE) &
	      LW_LOCKED_MASK) &&
	    lw_head_leave_table(lock)) {
		lw_store(&node->locked, LW_NODE_HEAD, relaxed);
		return false;
	}
	return true;
}

/* We are queue head, and may be in the table: leave it. */
static inline void lw_head_woken(union lw_word *lock, struct lw_node *node)
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
	lw_wake_arrives(node);
}

/*
 * Park until we are woken or the wait limit is reached. True if the limit is reached. Where a
 * release may miss us, the park also ends when we see the lock free.
 */
static inline bool lw_head_sleep(union lw_word *lock, struct lw_node *node,
				 const struct lw_wait_limit *limit)
{
	uint32_t parks = 0;
	bool limit_reached = false;

	lw_count(halts_at_head);
	do {
		parks += lw_park_bounded(&node->locked, LW_NODE_PARKED_HEAD, limit, parks);
		if (lw_load(&node->locked, relaxed) != LW_NODE_PARKED_HEAD)
			break;
		limit_reached = lw_limit_reached(limit);
	} while (!limit_reached && lw_release_is_split() &&
		 (lw_load(&lock->val, relaxed) & LW_LOCKED));
	lw_head_woken(lock, node);
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

/* Make the waiter of `node` queue head. False if it has abandoned the node. */
static inline bool lw_make_head(union lw_word *lock, struct lw_node *node, enum lw_waking waking)
{
	uint32_t state = LW_NODE_WAITING;

	if (waking == LW_WAKE_NOBODY) {
		lw_mcs_hand_over(node, LW_NODE_HEAD);
		return true;
	}
	while (state != LW_NODE_ABANDONED) {
		bool parked = state == LW_NODE_PARKED;
		uint32_t slot = parked ? lw_tail_slot(lw_load(&node->tail, relaxed)) : 0;
		struct lw_parked_head *entry = NULL;

		if (parked && waking == LW_WAKE_AT_UNLOCK)
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
			lw_wake_begins(node);
		/* WAITING or PARKED -> HEAD */
		if (lw_try_cmpxchg(&node->locked, &state, LW_NODE_HEAD, release)) {
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
 * Our node leaves the front of the queue. The first waiter behind it that has not abandoned its
 * node is queue head. If there is none, others may steal again.
 */
static inline void lw_hand_over(union lw_word *lock, struct lw_node *node, uint32_t tail,
				enum lw_waking waking, bool strict)
{
	struct lw_node *next = lw_queue_next(lock, node, tail);

	while (next && !lw_make_head(lock, next, waking)) {
		struct lw_node *abandoned = next;

		/* acquire: all that the waiter did to the slot that it abandoned */
		lw_fence(acquire);
		tail = lw_load(&abandoned->tail, relaxed);
		next = lw_queue_next(lock, abandoned, tail);
		lw_store(&abandoned->count, 0, relaxed);
		lw_slot_reclaim(lw_tail_slot(tail));
	}
	/* (0,1,*) -> (0,0,*) */
	if (!next && strict)
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

/* Take the head out of the table. NULL only in the child of a fork. */
static inline struct lw_node *lw_unlock_head(union lw_word *lock)
{
	struct lw_node *head = lw_parked_take(lock);

	if (head) {
		lw_wake_begins(head);
		/* PARKED_HEAD -> HEAD */
		lw_store(&head->locked, LW_NODE_HEAD, release);
		lw_count(kicks_at_unlock);
	}
	return head;
}

/* Finish the release, and wake the head. Lock and node may be gone after the release. */
static inline void lw_unlock_parked(union lw_word *lock)
{
	struct lw_node *head = lw_unlock_head(lock);
	uint32_t slot = head ? lw_tail_slot(lw_load(&head->tail, relaxed)) : 0;

	/* (*,*,2) -> (*,*,0) */
	lw_field_store(lock, locked, 0, release);
	if (head)
		lw_wake(head, slot);
}

#endif
