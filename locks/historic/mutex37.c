// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The mutex of Linux 3.7, whose waiters park, and the same with the "read first" of Linux 3.10.
 *
 *   count   1 --- acquire ---> 0 --- an arrival finds it held ---> -1, -2, ...
 *           ^                  |                                       |
 *           |<--- release -----'   the first thread that waits: -1     |
 *           `--- release under wait_lock, wakes the first waiter <-----'
 *
 * An arriving thread decrements the count, and has the mutex if the count was 1. Otherwise it spins
 * on the count for as long as the owner runs, together with all other threads that spin. Then it
 * queues under wait_lock, sets the count to -1 and parks. A release that finds the count negative
 * sets it to 1 under wait_lock and wakes the first waiter. The waiter competes like any other
 * thread, and threads that run already are faster.
 *
 * mutex37 writes without reading first. Each round of spinning that sees no owner is a
 * compare-and-swap. A waiter tests the count by an exchange, twice before it first parks. mutex310
 * reads first, and writes only if that changes the value. As on x86, a release acts on any negative
 * count as on -1.
 *
 * Promises: mutual exclusion; no waiter is lost. Before a waiter parks it is in the list, and it
 * has seen under wait_lock that the count is negative. From then until it is awake, the mutex is
 * released under wait_lock only, or by a thread that took it after the waiter had been woken.
 *
 * Orders: every change of the count that acquires the mutex is an acquire, every one that releases
 * it a release. The list and its nodes are protected by wait_lock. `owner` is relaxed: it only
 * tells threads that spin whether that is still worth while. `locked` of a parked waiter is relaxed
 * too, since the waiter takes wait_lock before it goes on.
 */
#include "historic.h"
#include "lock_type.h"
#include "mutex37.h"
#include "queue_slot.h"

/* `locked` of a waiter's queue node. */
#define LW_MUTEX_PARKED 0
#define LW_MUTEX_WOKEN	1

#define LW_MUTEX_FREE	 1u
#define LW_MUTEX_HELD	 0u
#define LW_MUTEX_WAITERS UINT32_MAX /* -1 */

/* Polls of the owner field between two checks that the owner still runs. */
#define LW_OWNER_POLLS 64

static inline bool lw_count_mutex_shows_waiters(uint32_t count)
{
	return (int32_t)count < 0;
}

static inline bool lw_count_mutex_trylock(struct lw_count_mutex *mutex)
{
	uint32_t count = LW_MUTEX_FREE;

	/* 1 -> 0 */
	if (!lw_try_cmpxchg(&mutex->count, &count, LW_MUTEX_HELD, acquire))
		return false;
	lw_store(&mutex->owner, lw_runner(), relaxed);
	return true;
}

static inline bool lw_count_mutex_trylock_spinning(struct lw_count_mutex *mutex, bool read_first)
{
	return (!read_first || lw_load(&mutex->count, relaxed) == LW_MUTEX_FREE) &&
	       lw_count_mutex_trylock(mutex);
}

/* Spin while the owner runs. True if the mutex is ours. */
static bool lw_count_mutex_spin(struct lw_count_mutex *mutex, bool read_first)
{
	for (uint32_t rounds = (uint32_t)lw_tunable(mutex37_spin); rounds > 0; rounds--) {
		uintptr_t owner = lw_load(&mutex->owner, relaxed);

		if (owner) {
			uintptr_t now;

			if (!lw_is_running(owner) || lw_should_yield())
				return false;
			now = lw_await_ne_bounded(&mutex->owner, ~(uintptr_t)0, owner,
						  LW_OWNER_POLLS);
			if (now == owner)
				continue;
			/* The mutex went to another thread: too many threads compete. */
			if (now)
				return false;
		}
		if (lw_count_mutex_trylock_spinning(mutex, read_first))
			return true;
		/*
		 * A thread that has acquired the mutex, but not set `owner` yet, may need this CPU.
		 */
		if (!owner && lw_should_yield())
			return false;
		lw_pause(1);
	}
	return false;
}

/* Under wait_lock: is the mutex ours? If not, its release will wake a waiter. */
static inline bool lw_count_mutex_ask(struct lw_count_mutex *mutex, bool read_first)
{
	if (read_first && lw_count_mutex_shows_waiters(lw_load(&mutex->count, relaxed)))
		return false;
	/* * -> -1 */
	return lw_xchg(&mutex->count, LW_MUTEX_WAITERS, acquire) == LW_MUTEX_FREE;
}

static inline void lw_count_mutex_enlist(struct lw_count_mutex *mutex, struct lw_node *node)
{
	struct lw_node *last = lw_load(&mutex->last, relaxed);

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->prev, last, relaxed);
	if (last)
		lw_store(&last->next, node, relaxed);
	else
		lw_store(&mutex->first, node, relaxed);
	lw_store(&mutex->last, node, relaxed);
}

/* Any waiter that is awake may leave. True if no other thread waits. */
static inline bool lw_count_mutex_delist(struct lw_count_mutex *mutex, struct lw_node *node)
{
	struct lw_node *prev = lw_load(&node->prev, relaxed);
	struct lw_node *next = lw_load(&node->next, relaxed);

	if (prev)
		lw_store(&prev->next, next, relaxed);
	else
		lw_store(&mutex->first, next, relaxed);
	if (next)
		lw_store(&next->prev, prev, relaxed);
	else
		lw_store(&mutex->last, prev, relaxed);
	return !prev && !next;
}

static void lw_count_mutex_wait(struct lw_count_mutex *mutex, uint32_t tail, bool read_first)
{
	struct lw_node *node = lw_decode_tail(tail);
	bool acquired;

	lw_store(&node->tail, tail, relaxed);
	lw_ticket_lock(&mutex->wait_lock);
	lw_count_mutex_enlist(mutex, node);
	acquired = lw_count_mutex_ask(mutex, read_first);
	while (!acquired && !lw_count_mutex_ask(mutex, read_first)) {
		lw_store(&node->locked, LW_MUTEX_PARKED, relaxed);
		lw_ticket_unlock(&mutex->wait_lock);
		lw_count(halts_in_queue);
		lw_park(&node->locked, LW_MUTEX_PARKED, NULL);
		lw_ticket_lock(&mutex->wait_lock);
	}
	lw_store(&mutex->owner, lw_runner(), relaxed);
	if (lw_count_mutex_delist(mutex, node))
		/* -1 -> 0; a thread that has decremented it meanwhile will ask under wait_lock */
		lw_store(&mutex->count, LW_MUTEX_HELD, relaxed);
	lw_ticket_unlock(&mutex->wait_lock);
	lw_count(queued_acquisitions);
}

static void lw_count_mutex_nodeless(struct lw_count_mutex *mutex)
{
	lw_count(nodeless_acquisitions);
	while (!lw_count_mutex_trylock(mutex))
		lw_await_eq_soon(&mutex->count, ~0u, LW_MUTEX_FREE, relaxed);
}

static lw_always_inline void lw_count_mutex_lock(struct lw_count_mutex *mutex, bool read_first)
{
	struct lw_own_node own;

	/* 1 -> 0, or one less */
	if (lw_fetch_add(&mutex->count, (uint32_t)-1, acquire) == LW_MUTEX_FREE) {
		lw_store(&mutex->owner, lw_runner(), relaxed);
		return;
	}
	if (lw_count_mutex_spin(mutex, read_first)) {
		lw_count(steals_on_arrival);
		return;
	}
	if (!lw_node_take(NULL, &own)) {
		lw_count_mutex_nodeless(mutex);
		return;
	}
	lw_count_mutex_wait(mutex, own.tail, read_first);
	lw_node_return(&own);
}

static void lw_count_mutex_unlock_slow(struct lw_count_mutex *mutex)
{
	struct lw_node *first;

	lw_ticket_lock(&mutex->wait_lock);
	/* 0 or negative -> 1 */
	lw_store(&mutex->count, LW_MUTEX_FREE, release);
	first = lw_load(&mutex->first, relaxed);
	if (first) {
		/* It may be awake already, but stays in the list until it gets wait_lock. */
		lw_store(&first->locked, LW_MUTEX_WOKEN, relaxed);
		lw_count(kicks_at_unlock);
		lw_unpark(&first->locked, lw_tail_slot(lw_load(&first->tail, relaxed)));
	}
	lw_ticket_unlock(&mutex->wait_lock);
}

static inline void lw_count_mutex_unlock(struct lw_count_mutex *mutex)
{
	lw_store(&mutex->owner, 0, relaxed);
	/* 0 -> 1, or one more while waiters keep it negative */
	if (lw_count_mutex_shows_waiters(lw_fetch_add(&mutex->count, 1, release)))
		lw_count_mutex_unlock_slow(mutex);
}

void lw_mutex37_lock(struct lw_mutex37 *lock)
{
	lw_count_mutex_lock(&lock->mutex, false);
}

bool lw_mutex37_trylock(struct lw_mutex37 *lock)
{
	return lw_count_mutex_trylock(&lock->mutex);
}

void lw_mutex37_unlock(struct lw_mutex37 *lock)
{
	lw_count_mutex_unlock(&lock->mutex);
}

void lw_mutex310_lock(struct lw_mutex310 *lock)
{
	lw_count_mutex_lock(&lock->mutex, true);
}

bool lw_mutex310_trylock(struct lw_mutex310 *lock)
{
	return lw_count_mutex_trylock(&lock->mutex);
}

void lw_mutex310_unlock(struct lw_mutex310 *lock)
{
	lw_count_mutex_unlock(&lock->mutex);
}

LW_DESCRIBE(mutex37, struct lw_mutex37, .unlocked = LW_MUTEX_FREE,
	    .summary = "sleeping mutex that counts, as it was in Linux 3.7",
	    .traits = LW_NOT_IN_HANDLERS | LW_HISTORIC, .tunables = "mutex37_",
	    .origin = "Molnar 2005; Zijlstra 2009 (spinning), Linux 3.7");

LW_DESCRIBE(mutex310, struct lw_mutex310, .unlocked = LW_MUTEX_FREE,
	    .summary = "mutex37 that reads before it writes, as in Linux 3.10",
	    .traits = LW_NOT_IN_HANDLERS | LW_HISTORIC, .tunables = "mutex37_",
	    .origin = "Long 2013, Linux 3.10");
