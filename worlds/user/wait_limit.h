/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How long a thread waits for a lock: until a time, or until it is told to give up. */
#ifndef LW_USER_WAIT_LIMIT_H
#define LW_USER_WAIT_LIMIT_H

#include <time.h>

#include "world.h"

/* Tells a waiter to give up: lw_cancel(). */
struct lw_cancel {
	lw_atomic(bool) cancelled;
	lw_atomic(uint32_t) slot; /* of the waiter, while it sleeps */
};

struct lw_wait_limit {
	const struct timespec *deadline; /* NULL: none */
	struct lw_cancel *cancel;	 /* NULL: nobody tells */
	clockid_t clock;		 /* of the deadline: CLOCK_MONOTONIC or CLOCK_REALTIME */
};

bool lw_user_limit_passed(const struct lw_wait_limit *limit) __attribute__((visibility("hidden")));

/* A time that can be waited for? */
bool lw_user_is_deadline(clockid_t clock, const struct timespec *deadline)
	__attribute__((visibility("hidden")));

static inline bool lw_user_limit_reached(const struct lw_wait_limit *limit)
{
	return limit && lw_user_limit_passed(limit);
}

#endif
