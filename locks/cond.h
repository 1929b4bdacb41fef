/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The condition variable: a queue of waiters, each with a node of its own, so that a signal is for
 * those who waited before it and for nobody else. 24 bytes, all zero at first. Part of a wait in
 * between can be anything; the steps are
 *
 *   lw_cond_begin()   queue, with the lock held that protects the condition
 *   lw_cond_sleep()   with that lock released, until signalled or `limit` ends
 *   lw_cond_end()     leave the queue if that has not been done for us; true if signalled
 *
 * A waiter's state:
 *
 *   WAITING ---> SIGNALLED        by who has taken it out of the queue
 *      |             ^
 *      v             |
 *   LEAVING ---> LEFT             by itself, when its limit has ended; LEFT if it then finds
 *                                 that it is out of the queue, so it is signalled all the same
 *
 * Who signals touches the condition variable no more once any waiter is SIGNALLED, nor a waiter
 * that is; and signals none that may touch the condition variable still. So whoever learns from a
 * wait or a broadcast that nobody waits may destroy it.
 */
#ifndef LW_COND_H
#define LW_COND_H

#include "mutex.h"

struct lw_wait_limit;

#define LW_COND_WAITING	  0u
#define LW_COND_SIGNALLED 1u
#define LW_COND_LEAVING	  2u
#define LW_COND_LEFT	  3u

struct lw_cond_waiter {
	lw_atomic(struct lw_cond_waiter *) next;
	lw_atomic(struct lw_cond_waiter *) prev; /* itself if it is not in the queue */
	lw_atomic(uint32_t) state;
};

struct lw_cond {
	struct lw_mutex lock; /* of the queue */
	lw_atomic(struct lw_cond_waiter *) first;
	lw_atomic(struct lw_cond_waiter *) last;
};

LW_EXPORT void lw_cond_begin(struct lw_cond *cond, struct lw_cond_waiter *waiter);
LW_EXPORT void lw_cond_sleep(struct lw_cond_waiter *waiter, const struct lw_wait_limit *limit);
LW_EXPORT bool lw_cond_end(struct lw_cond *cond, struct lw_cond_waiter *waiter);
LW_EXPORT void lw_cond_signal_slow(struct lw_cond *cond);
LW_EXPORT void lw_cond_broadcast_slow(struct lw_cond *cond);
LW_EXPORT void lw_cond_destroy(struct lw_cond *cond);

/* Who began to wait before us, as we know by the lock or otherwise, is seen in `first`. */
static inline void lw_cond_signal(struct lw_cond *cond)
{
	if (lw_load(&cond->first, relaxed))
		lw_cond_signal_slow(cond);
}

static inline void lw_cond_broadcast(struct lw_cond *cond)
{
	if (lw_load(&cond->first, relaxed))
		lw_cond_broadcast_slow(cond);
}

#endif
