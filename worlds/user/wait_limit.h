/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait limits: a deadline or a cancellation ends a wait for a lock early. */
#ifndef LW_USER_WAIT_LIMIT_H
#define LW_USER_WAIT_LIMIT_H

#include <time.h>

#include "world.h"

/* Cancels one wait. Its members are private; lw_cancel() sets them. LW_CANCEL_INIT at first. */
struct lw_cancel {
	lw_atomic(bool) cancelled;
	lw_atomic(uint32_t) slot; /* of the waiter while it is parked; 0 while it is not */
};

/* The limit of one wait, which ends at `deadline` or by `cancel`, whichever comes first. */
struct lw_wait_limit {
	const struct timespec *deadline; /* a time of `clock`; NULL: no deadline */
	struct lw_cancel *cancel;	 /* NULL: the wait cannot be cancelled */
	clockid_t clock;		 /* CLOCK_MONOTONIC or CLOCK_REALTIME */
};

/* Returns whether the deadline has passed or the wait has been cancelled. */
bool lw_user_limit_passed(const struct lw_wait_limit *limit) __attribute__((visibility("hidden")));

/* Returns whether a wait can have this deadline, by this clock. NULL is no deadline: true. */
bool lw_user_is_deadline(clockid_t clock, const struct timespec *deadline)
	__attribute__((visibility("hidden")));

/* Cancels the wait that has `cancel` in its limit, now or later. */
void lw_user_cancel(struct lw_cancel *cancel) __attribute__((visibility("hidden")));

/* The contract's lw_limit_reached(): false for a wait without a limit, whose `limit` is NULL. */
static inline bool lw_user_limit_reached(const struct lw_wait_limit *limit)
{
	return limit && lw_user_limit_passed(limit);
}

#endif
