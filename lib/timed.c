// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Waits with a limit, and condition variables. */
#include <errno.h>

#include <lockworks/lockworks.h>

#include "park.h"

/* `op` is empty or read_. A free lock is acquired before the arguments are checked. */
#define LW_LOCK_UNTIL(type, op)                                                                \
	int lw_##type##_##op##lock_until(struct lw_##type *lock, clockid_t clock,              \
					 const struct timespec *deadline,                      \
					 struct lw_cancel *cancel)                             \
	{                                                                                      \
		const struct lw_wait_limit limit = {deadline, cancel, clock};                  \
                                                                                               \
		if (lw_##type##_##op##trylock(lock))                                           \
			return 0;                                                              \
		if (!lw_user_is_deadline(clock, deadline))                                     \
			return EINVAL;                                                         \
		if (lw_##type##_##op##lock_limited(lock, &limit))                              \
			return 0;                                                              \
		return cancel && lw_load(&cancel->cancelled, acquire) ? ECANCELED : ETIMEDOUT; \
	}

LW_LOCK_UNTIL(mutex, )
LW_LOCK_UNTIL(pv, )
LW_LOCK_UNTIL(unfair, )
LW_LOCK_UNTIL(rwlock, )
LW_LOCK_UNTIL(rwlock, read_)

void lw_cancel(struct lw_cancel *cancel)
{
	lw_user_cancel(cancel);
}

void lw_cond_wait(struct lw_cond *cond, struct lw_mutex *mutex)
{
	lw_cond_wait_until(cond, mutex, CLOCK_MONOTONIC, NULL);
}

int lw_cond_wait_until(struct lw_cond *cond, struct lw_mutex *mutex, clockid_t clock,
		       const struct timespec *deadline)
{
	const struct lw_wait_limit limit = {deadline, NULL, clock};
	struct lw_cond_waiter waiter;
	bool signalled;

	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	lw_cond_begin(cond, &waiter);
	lw_mutex_unlock(mutex);
	lw_cond_sleep(&waiter, &limit);
	signalled = lw_cond_end(cond, &waiter);
	lw_mutex_lock(mutex);
	return signalled ? 0 : ETIMEDOUT;
}
