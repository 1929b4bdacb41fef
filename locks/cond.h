/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The condition variable: a queue of waiters. Each waiter has a node, so that a signal wakes only
 * threads that began to wait before it. 24 bytes, initialised with zeros. A wait has three steps,
 * and the caller can do anything in between:
 *
 *   lw_cond_begin()   queue, while the mutex that protects the condition is held
 *   lw_cond_sleep()   park until signalled or until the wait limit, with that mutex released
 *   lw_cond_end()     leave the queue, unless a signal has done so for us; true if signalled
 *
 * The state of a waiter:
 *
 *   WAITING ---> SIGNALLED        by the thread that has taken it out of the queue
 *      |             ^
 *      v             |
 *   LEAVING ---> LEFT             by the waiter, when its wait limit is reached; LEFT if it then
 *                                 finds itself out of the queue, and so is signalled all the same
 *
 * A thread that signals accesses neither the condition variable nor a waiter after that waiter has
 * become SIGNALLED. It signals no waiter that may still access the condition variable. So a thread
 * that knows from a wait or a broadcast that no thread waits may destroy the condition variable.
 *
 * Promises: no signal is lost, and none wakes a thread that began to wait later.
 *
 * Orders: the queue is protected by the condition variable's own mutex. SIGNALLED is a release and
 * acquire pair, so that the waiter may return its node; LEFT is one in the other direction.
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
	lw_atomic(struct lw_cond_waiter *) prev; /* itself when not in the queue */
	lw_atomic(uint32_t) state;
};

struct lw_cond {
	struct lw_mutex lock;	   /* protects the queue */
	lw_atomic(uint32_t) users; /* for the caller, who may count threads here */
	lw_atomic(struct lw_cond_waiter *) first;
	lw_atomic(struct lw_cond_waiter *) last;
};

LW_EXPORT void lw_cond_begin(struct lw_cond *cond, struct lw_cond_waiter *waiter);
LW_EXPORT void lw_cond_sleep(struct lw_cond_waiter *waiter, const struct lw_wait_limit *limit);
LW_EXPORT bool lw_cond_end(struct lw_cond *cond, struct lw_cond_waiter *waiter);
/* A signal or broadcast when threads may wait. They return how many waiters were signalled. */
LW_EXPORT unsigned int lw_cond_signal_slow(struct lw_cond *cond);
LW_EXPORT unsigned int lw_cond_broadcast_slow(struct lw_cond *cond);
/* End the use of the condition variable, before its memory is freed. */
LW_EXPORT void lw_cond_destroy(struct lw_cond *cond);

/*
 * The steps of a signal, for a caller that does something in between: take the first waiter out of
 * the queue, or get NULL; notify it, which is the last access to its node; and wake it, if
 * lw_cond_notify() says that it may sleep. The node may be gone when it is woken.
 */
LW_EXPORT struct lw_cond_waiter *lw_cond_take(struct lw_cond *cond);
LW_EXPORT bool lw_cond_notify(struct lw_cond_waiter *waiter);
LW_EXPORT void lw_cond_wake(struct lw_cond_waiter *waiter);

/* Wake one waiter, if there is one. A waiter that began to wait before this call is seen. */
static inline void lw_cond_signal(struct lw_cond *cond)
{
	if (lw_load(&cond->first, relaxed))
		lw_cond_signal_slow(cond);
}

/* Wake all waiters that began to wait before this call. */
static inline void lw_cond_broadcast(struct lw_cond *cond)
{
	if (lw_load(&cond->first, relaxed))
		lw_cond_broadcast_slow(cond);
}

#endif
