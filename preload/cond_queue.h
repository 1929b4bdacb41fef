/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A condition variable for any lock: a queue of waiters, which sleep each on a word of its own. */
#ifndef LW_COND_QUEUE_H
#define LW_COND_QUEUE_H

#include <time.h>

#include "pv.h"

struct lw_cond_waiter;

struct lw_cond {
	struct lw_pv lock; /* of what follows */
	lw_atomic(uint32_t) forks;
	lw_atomic(struct lw_cond_waiter *) first;
	struct lw_cond_waiter *last;
};

/* The lock that a waiter holds, and releases meanwhile. */
struct lw_cond_lock {
	void (*unlock)(void *lock);
	void (*lock)(void *lock);
	void *of;
};

/* 0, or ETIMEDOUT when the time of that clock has come; NULL stands for never. */
int lw_cond_wait_on(struct lw_cond *cond, const struct lw_cond_lock *lock, clockid_t clock,
		    const struct timespec *deadline);
void lw_cond_signal(struct lw_cond *cond);
void lw_cond_broadcast(struct lw_cond *cond);

#endif
