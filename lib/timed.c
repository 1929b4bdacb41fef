// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Waits with a limit, and condition variables. */
#include <errno.h>

#include <lockworks/lockworks.h>

#include "park.h"

/* The result of a wait with a limit that has been reached. */
static int lw_why_ended(struct lw_cancel *cancel)
{
	return cancel && lw_load(&cancel->cancelled, acquire) ? ECANCELED : ETIMEDOUT;
}

/* In all of these, a free lock is acquired before the arguments are checked. */

int lw_mutex_lock_until(struct lw_mutex *mutex, clockid_t clock, const struct timespec *deadline,
			struct lw_cancel *cancel)
{
	const struct lw_wait_limit limit = {deadline, cancel, clock};

	if (lw_mutex_trylock(mutex))
		return 0;
	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	return lw_mutex_lock_limited(mutex, &limit) ? 0 : lw_why_ended(cancel);
}

int lw_pv_lock_until(struct lw_pv *lock, clockid_t clock, const struct timespec *deadline,
		     struct lw_cancel *cancel)
{
	const struct lw_wait_limit limit = {deadline, cancel, clock};

	if (lw_pv_trylock(lock))
		return 0;
	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	return lw_pv_lock_limited(lock, &limit) ? 0 : lw_why_ended(cancel);
}

int lw_unfair_lock_until(struct lw_unfair *lock, clockid_t clock, const struct timespec *deadline,
			 struct lw_cancel *cancel)
{
	const struct lw_wait_limit limit = {deadline, cancel, clock};

	if (lw_unfair_trylock(lock))
		return 0;
	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	return lw_unfair_lock_limited(lock, &limit) ? 0 : lw_why_ended(cancel);
}

int lw_rwlock_lock_until(struct lw_rwlock *lock, clockid_t clock, const struct timespec *deadline,
			 struct lw_cancel *cancel)
{
	const struct lw_wait_limit limit = {deadline, cancel, clock};

	if (lw_rwlock_trylock(lock))
		return 0;
	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	return lw_rwlock_lock_limited(lock, &limit) ? 0 : lw_why_ended(cancel);
}

int lw_rwlock_read_lock_until(struct lw_rwlock *lock, clockid_t clock,
			      const struct timespec *deadline, struct lw_cancel *cancel)
{
	const struct lw_wait_limit limit = {deadline, cancel, clock};

	if (lw_rwlock_read_trylock(lock))
		return 0;
	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	return lw_rwlock_read_lock_limited(lock, &limit) ? 0 : lw_why_ended(cancel);
}

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
