// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queued unfair lock: any thread that runs takes the lock when it is free. Its waiters may park
 * (parking.h).
 *
 *   free    (*,0,0) -- an arriving thread, the head, or a waiter near it --> held (*,0,1)
 *   held    (*,*,1) -- unlock, the queue head runs                       --> free (*,*,0)
 *   parked  (*,*,1) -- unlock: the queue head is woken --> (*,*,2)       --> free (*,*,0)
 *   starved (*,1,0) -- only the queue head acquires                      --> held (*,0,1)
 *
 * Arriving threads may steal, and so may queued waiters. A waiter tries more often, the closer it
 * is to the queue head. A waiter that steals leaves the queue from its place in the middle. So the
 * lock is never idle because a waiter does not run, few threads compete for it at a time, and the
 * waiters that do not steal are served in order.
 *
 * In a kernel this lock is for guests without paravirt spinlocks, and waiters only spin. In user
 * space they park (tunable unfair_park).
 *
 * No waiter starves. The queue head competes whenever it runs. After unfair_starvation_limit
 * defeats (parks, or unfair_spin polls) it sets the pending bit, which disables stealing until it
 * has acquired the lock. With a limit of 0 it does so from the start, and whoever acquires the lock
 * sets the bit for the next head.
 *
 * Promises: mutual exclusion; no waiter is lost, and none starves; correct without a free node.
 *
 * Orders, besides those of stealing.h:
 *
 *   - A waiter that leaves the queue from the middle changes its neighbours' links while it holds
 *     the lock, and so does the head that hands over its role. Each has acquired the lock after the
 *     one before it. A head that leaves at its wait limit does not hold the lock. Where wait limits
 *     exist, a bit of the word (`queue`) is therefore a lock of the queue, acquired and released as
 *     any lock.
 *   - A link that is cut at the end of the queue is stored before the tail is swapped back, by a
 *     release: a waiter that queues there links itself after that store, not before it.
 */
#include "lock_type.h"
#include "stealing.h"
#include "unfair.h"

/*
 * The successor of the queue head polls the lock after twice this number of polls of its own node.
 * Each further waiter polls the lock half as often as the one before it, up to a number of places.
 * So the lock is polled about as often with a long queue as with a short one, but for the first
 * looks of waiters that only spin.
 */
#define LW_UNFAIR_CHECK 64
/* No variable: in a check it is the constant 1, so that no place is chosen. */
#define LW_UNFAIR_PLACES(ends) lw_constant((ends) ? 16 : 7, 1)

/* With a limit of 0, no thread may steal from a queue head. */
static inline bool lw_unfair_is_strict(void)
{
	return !lw_tunable(unfair_starvation_limit);
}

/* How a waiter gets the head's role. Where it neither parks nor leaves, that takes one store. */
static inline enum lw_waking lw_unfair_waking(void)
{
	return lw_tunable(unfair_park) || lw_limits_exist() ? LW_WAKE_AT_UNLOCK : LW_WAKE_NOBODY;
}

/*
 * On arrival: steal the lock. Poll it for a while if nobody queues. Otherwise those near the head
 * of the queue do so, and further threads that poll would only delay them.
 */
static bool lw_unfair_steal(union lw_word *lock)
{
	uint32_t spin = (uint32_t)lw_tunable(unfair_arrival_spin);
	uint32_t val = lw_load(&lock->val, relaxed);

	if (spin && !(val & (LW_PENDING | LW_TAIL_MASK)))
		val = lw_poll_lock(lock, spin);
	if (!lw_word_steal(lock, val))
		return false;
	lw_count(steals_on_arrival);
	return true;
}

/*
 * The lock of the queue
 */

static inline void lw_queue_lock(union lw_word *lock)
{
	/* queue: 0 -> 1; acquire: the last thread's changes to the queue */
	while (lw_limits_exist() &&
	       (lw_field_fetch_or(lock, pending, LW_QUEUE_LOCKED >> 8, acquire) &
		(LW_QUEUE_LOCKED >> 8)))
		lw_await_eq_soon(&lock->val, LW_QUEUE_LOCKED, 0, relaxed);
}

static inline void lw_queue_unlock(union lw_word *lock)
{
	/* queue: 1 -> 0 */
	if (lw_limits_exist())
		lw_field_fetch_and(lock, pending, 0xff ^ LW_QUEUE_LOCKED >> 8, release);
}

/*
 * Waiting behind others
 */

/* prev -> node -> next  becomes  prev -> next. */
static void lw_unfair_unlink(union lw_word *lock, struct lw_node *node, uint32_t tail)
{
	struct lw_node *prev = lw_load(&node->prev, relaxed);
	struct lw_node *next = lw_load(&node->next, dependency);

	if (!next) {
		uint16_t last = (uint16_t)(tail >> LW_TAIL_SHIFT);
		uint16_t left = (uint16_t)(lw_load(&prev->tail, relaxed) >> LW_TAIL_SHIFT);

		lw_store(&prev->next, NULL, relaxed);
		/*
		 * (node,*,*) -> (prev,*,*); release: a waiter that queues behind prev finds its
		 * next NULL
		 */
		if (lw_field_try_cmpxchg(lock, tail, &last, left, release))
			return;
		next = lw_await_ne_soon(&node->next, ~(uintptr_t)0, 0, dependency);
	}
	lw_store(&prev->next, next, relaxed);
	lw_store(&next->prev, prev, relaxed);
}

/* We have stolen the lock from our place in the queue: leave the queue. */
static void lw_unfair_leave(union lw_word *lock, struct lw_node *node, uint32_t tail)
{
	lw_queue_lock(lock);
	if (lw_load(&node->locked, relaxed) == LW_NODE_WAITING)
		lw_unfair_unlink(lock, node, tail);
	else /* The head's role was handed over to us meanwhile. */
		lw_hand_over(lock, node, tail, lw_unfair_waking(), lw_unfair_is_strict());
	lw_queue_unlock(lock);
}

static inline void lw_unfair_count_steal(uint32_t place)
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

/*
 * Poll our node, and the lock now and then: HEAD, ACQUIRED (stolen, still queued) or LONGER.
 *
 * Where waiters only spin, those before us may have no CPU. So a waiter polls the lock often at
 * first, then half as often each time, down to what its place has. Even that is often enough to see
 * a free lock within its time slice.
 */
static enum lw_wait_outcome lw_unfair_spin(union lw_word *lock, struct lw_node *node)
{
	bool ends = lw_unfair_waking() != LW_WAKE_NOBODY; /* to park, or at the wait limit */
	uint32_t left = (uint32_t)lw_tunable(unfair_spin), looks = 0;

	do {
		struct lw_node *prev = lw_load(&node->prev, relaxed);
		uint32_t place = lw_hint(&prev->place, LW_UNFAIR_PLACES(ends)) + 1;
		uint32_t doublings = ends || looks > place ? place : looks++;
		uint32_t polls = (uint32_t)LW_UNFAIR_CHECK << doublings;

		if (ends && polls > left)
			polls = left;
		lw_store(&node->place, place, relaxed);
		if (lw_await_ne_bounded(&node->locked, ~0u, LW_NODE_WAITING, polls) !=
		    LW_NODE_WAITING)
			return LW_WAIT_HEAD;
		if (lw_word_steal(lock, lw_load(&lock->val, relaxed))) {
			lw_unfair_count_steal(place);
			return LW_WAIT_ACQUIRED;
		}
		left -= ends ? polls : 0;
	} while (left);
	return LW_WAIT_LONGER;
}

/* Wait behind others: HEAD, ACQUIRED or ABANDONED. */
static enum lw_wait_outcome lw_unfair_wait(union lw_word *lock, struct lw_node *node, uint32_t tail,
					   const struct lw_wait_limit *limit)
{
	enum lw_wait_outcome outcome = LW_WAIT_LONGER;

	while (outcome == LW_WAIT_LONGER) {
		outcome = lw_unfair_spin(lock, node);
		if (outcome == LW_WAIT_LONGER)
			outcome = lw_queue_sleep(node, tail, limit, lw_tunable(unfair_park));
	}
	if (outcome == LW_WAIT_ACQUIRED)
		lw_unfair_leave(lock, node, tail);
	if (outcome == LW_WAIT_HEAD)
		lw_head_woken(lock, node, 0);
	return outcome;
}

/*
 * Wait as queue head: ACQUIRED or LEFT. A defeat is a park, unfair_spin polls where waiters do not
 * park, or LW_RACES lost races: we see the lock free, but are too late.
 */
static enum lw_wait_outcome lw_unfair_head(union lw_word *lock, struct lw_node *node, uint32_t tail,
					   const struct lw_wait_limit *limit)
{
	uint32_t starvation_limit = (uint32_t)lw_tunable(unfair_starvation_limit);
	uint32_t defeats = 0, races = 0;
	enum lw_waking waking = lw_unfair_waking();
	bool strict = lw_unfair_is_strict(), limit_reached = false;

	lw_store(&node->place, 0, relaxed);
	for (;;) {
		uint32_t val = lw_poll_lock(lock, (uint32_t)lw_tunable(unfair_spin));
		bool free, starved = defeats >= starvation_limit;

		if (val & LW_QUEUE_LOCKED)
			val = lw_await_eq_soon(&lock->val, LW_QUEUE_LOCKED, 0, relaxed);
		free = !(val & LW_LOCKED_MASK);
		if (free && lw_head_acquire(lock, node, tail, val, waking, strict))
			return LW_WAIT_ACQUIRED;
		/* A starved head before us may have cleared the bit. */
		if (starved && !(val & LW_PENDING))
			lw_disable_stealing(lock);
		if (limit_reached || lw_limit_reached(limit)) {
			if (starved && !strict)
				lw_allow_stealing(lock);
			lw_queue_lock(lock);
			lw_head_leave(lock, node, tail, strict);
			lw_queue_unlock(lock);
			return LW_WAIT_LEFT;
		}
		if (free) {
			races = (races + 1) % LW_RACES;
			if (races)
				continue;
		} else if (lw_tunable(unfair_park)) {
			if (!lw_head_enter_table(lock, node, 0))
				continue;
			limit_reached = lw_head_sleep(lock, node, 0, limit);
		}
		if (!starved && starvation_limit != LW_NO_STARVATION_LIMIT)
			defeats++;
	}
}

/* Wait in the queue: ACQUIRED, LEFT or ABANDONED. */
static enum lw_wait_outcome lw_unfair_queue(union lw_word *lock, uint32_t tail,
					    const struct lw_wait_limit *limit)
{
	struct lw_node *node = lw_decode_tail(tail);
	enum lw_wait_outcome outcome = LW_WAIT_HEAD;

	lw_store(&node->place, 0, relaxed);
	if (lw_queue_join(lock, node, tail))
		outcome = lw_unfair_wait(lock, node, tail, limit);
	if (outcome == LW_WAIT_HEAD)
		outcome = lw_unfair_head(lock, node, tail, limit);
	if (outcome == LW_WAIT_ACQUIRED)
		lw_count(queued_acquisitions);
	else
		lw_count(waits_cancelled);
	return outcome;
}

bool lw_unfair_lock_limited(struct lw_unfair *unfair, const struct lw_wait_limit *limit)
{
	union lw_word *lock = &unfair->word;
	enum lw_wait_outcome outcome;
	struct lw_own_node own;

	if (lw_unfair_steal(lock))
		return true;
	if (!lw_node_take(limit, &own))
		return lw_steal_nodeless(lock, limit, (uint32_t)lw_tunable(unfair_spin));
	outcome = lw_unfair_queue(lock, own.tail, limit);
	if (outcome == LW_WAIT_ABANDONED)
		lw_slot_leave(lw_tail_slot(own.tail));
	else
		lw_node_return(&own);
	return outcome == LW_WAIT_ACQUIRED;
}

void lw_unfair_lock_slow(struct lw_unfair *lock)
{
	lw_unfair_lock_limited(lock, NULL);
}

void lw_unfair_unlock_slow(struct lw_unfair *lock)
{
	lw_unlock_parked(&lock->word);
}

LW_DESCRIBE_LIMITED(unfair, struct lw_unfair,
		    .summary = "queued unfair lock: arrivals and waiters may steal",
		    .traits = LW_TAIL_WORD, .tunables = "unfair_ pv_latencies",
		    .origin = "Long, queued unfair lock, pvqspinlock series of 2014 and 2015");
