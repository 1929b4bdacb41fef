/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait limits in user space, for the contract and the public functions. Programs include world.h,
 * so the declarations of parking are there.
 */
#ifndef LW_USER_PARK_H
#define LW_USER_PARK_H

#include <lockworks/wait_limit.h>

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
