// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The condition variable, see cond.h. */
#include "cond.h"
#include "surroundings.h"

void lw_cond_begin(struct lw_cond *cond, struct lw_cond_waiter *waiter)
{
	struct lw_cond_waiter *last;

	lw_store(&waiter->state, LW_COND_WAITING, relaxed);
	lw_store(&waiter->next, NULL, relaxed);
	lw_mutex_lock(&cond->lock);
	last = lw_load(&cond->last, relaxed);
	lw_store(&waiter->prev, last, relaxed);
	if (last)
		lw_store(&last->next, waiter, relaxed);
	else
		lw_store(&cond->first, waiter, relaxed);
	lw_store(&cond->last, waiter, relaxed);
	lw_mutex_unlock(&cond->lock);
}

/* Take the waiters from `first` to `last` out of the queue. The caller holds cond->lock. */
static void lw_cond_unlink(struct lw_cond *cond, struct lw_cond_waiter *first,
			   struct lw_cond_waiter *last)
{
	struct lw_cond_waiter *prev = lw_load(&first->prev, relaxed);
	struct lw_cond_waiter *next = lw_load(&last->next, relaxed);

	if (prev)
		lw_store(&prev->next, next, relaxed);
	else
		lw_store(&cond->first, next, relaxed);
	if (next)
		lw_store(&next->prev, prev, relaxed);
	else
		lw_store(&cond->last, prev, relaxed);
	lw_store(&last->next, NULL, relaxed);
	for (; first; first = lw_load(&first->next, relaxed))
		lw_store(&first->prev, first, relaxed);
}

void lw_cond_sleep(struct lw_cond_waiter *waiter, const struct lw_wait_limit *limit)
{
	while (lw_load(&waiter->state, relaxed) == LW_COND_WAITING && !lw_limit_reached(limit))
		lw_park(&waiter->state, LW_COND_WAITING, limit);
}

bool lw_cond_end(struct lw_cond *cond, struct lw_cond_waiter *waiter)
{
	uint32_t state = LW_COND_WAITING;
	bool queued;

	/* WAITING -> LEAVING */
	if (!lw_try_cmpxchg(&waiter->state, &state, LW_COND_LEAVING, relaxed)) {
		/*
		 * SIGNALLED by a thread that is done with our node. Not a fence: race detectors do
		 * not see fences.
		 */
		(void)lw_load(&waiter->state, acquire);
		return true;
	}
	lw_mutex_lock(&cond->lock);
	queued = lw_load(&waiter->prev, relaxed) != waiter;
	if (queued)
		lw_cond_unlink(cond, waiter, waiter);
	lw_mutex_unlock(&cond->lock);
	if (queued)
		return false;
	/* LEAVING -> LEFT; release: from here on cond may be destroyed */
	lw_store(&waiter->state, LW_COND_LEFT, release);
	lw_await_eq_soon(&waiter->state, ~0u, LW_COND_SIGNALLED, acquire);
	return true;
}

bool lw_cond_notify(struct lw_cond_waiter *waiter)
{
	uint32_t state = LW_COND_WAITING;

	/* WAITING -> SIGNALLED; release: we are done with its node */
	if (lw_try_cmpxchg(&waiter->state, &state, LW_COND_SIGNALLED, release))
		return true;
	/* acquire: the waiter no longer accesses cond, which our caller may destroy */
	lw_await_eq_soon(&waiter->state, ~0u, LW_COND_LEFT, acquire);
	/* LEFT -> SIGNALLED */
	lw_store(&waiter->state, LW_COND_SIGNALLED, release);
	return false;
}

void lw_cond_wake(struct lw_cond_waiter *waiter)
{
	lw_unpark(&waiter->state, 0);
}

struct lw_cond_waiter *lw_cond_take(struct lw_cond *cond)
{
	struct lw_cond_waiter *first;

	lw_mutex_lock(&cond->lock);
	first = lw_load(&cond->first, relaxed);
	if (first)
		lw_cond_unlink(cond, first, first);
	lw_mutex_unlock(&cond->lock);
	return first;
}

unsigned int lw_cond_signal_slow(struct lw_cond *cond)
{
	struct lw_cond_waiter *first = lw_cond_take(cond);

	if (first && lw_cond_notify(first))
		lw_cond_wake(first);
	return first != NULL;
}

unsigned int lw_cond_broadcast_slow(struct lw_cond *cond)
{
	struct lw_cond_waiter *waiter, *next;
	unsigned int count = 0;

	lw_mutex_lock(&cond->lock);
	waiter = lw_load(&cond->first, relaxed);
	if (waiter)
		lw_cond_unlink(cond, waiter, lw_load(&cond->last, relaxed));
	lw_mutex_unlock(&cond->lock);
	for (; waiter; waiter = next, count++) {
		next = lw_load(&waiter->next, relaxed);
		if (lw_cond_notify(waiter))
			lw_cond_wake(waiter);
	}
	return count;
}

/* A waiter that has left the queue may still be unlocking it. Wait until it is done. */
void lw_cond_destroy(struct lw_cond *cond)
{
	lw_mutex_lock(&cond->lock);
	lw_mutex_unlock(&cond->lock);
}
