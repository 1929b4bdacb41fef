// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_cond_*(): ours unless shared between processes. Of glibc's members __wrefs is kept, whose
 * lowest bits say that it is shared, and by which clock it goes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "cond_queue.h"
#include "glibc.h"
#include "mutex.h"

#define LW_COND_SHARED	  1u
#define LW_COND_MONOTONIC 2u

_Static_assert(sizeof(struct lw_cond) <= offsetof(pthread_cond_t, __data.__wrefs),
	       "the flags of glibc are behind ours");

static bool lw_cond_is_shared(const pthread_cond_t *cond)
{
	return cond->__data.__wrefs & LW_COND_SHARED;
}

static struct lw_cond *lw_cond_of(pthread_cond_t *cond)
{
	return (struct lw_cond *)cond;
}

/* The mutex, of whomever it is */

struct lw_cond_mutex {
	pthread_mutex_t *mutex;
	unsigned int count; /* how often it was held, if it is ours */
	int error;	    /* of locking it again */
};

static void lw_cond_mutex_unlock(void *arg)
{
	struct lw_cond_mutex *of = arg;

	if (lw_mutex_is_ours(of->mutex))
		of->count = lw_mutex_release_whole(of->mutex);
	else
		of->error = lw_glibc()->mutex_unlock(of->mutex);
}

static void lw_cond_mutex_lock(void *arg)
{
	struct lw_cond_mutex *of = arg;

	if (lw_mutex_is_ours(of->mutex))
		lw_mutex_take_whole(of->mutex, of->count);
	else if (!of->error)
		of->error = lw_glibc()->mutex_lock(of->mutex);
}

/* Waiting */

/* A condition variable of glibc cannot unlock a mutex of ours; but any wait may end early. */
static int lw_cond_wait_briefly(pthread_mutex_t *mutex, clockid_t clock,
				const struct timespec *deadline)
{
	const struct timespec brief = {0, 1000000};
	struct lw_cond_mutex of = {.mutex = mutex};
	struct timespec now = {0, 0};

	lw_cond_mutex_unlock(&of);
	pthread_cleanup_push(lw_cond_mutex_lock, &of);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &brief, NULL);
	pthread_cleanup_pop(1);
	if (deadline)
		clock_gettime(clock, &now);
	return deadline && (now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec
							   : now.tv_nsec >= deadline->tv_nsec)
		       ? ETIMEDOUT
		       : 0;
}

static int lw_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			      const struct timespec *deadline)
{
	struct lw_cond_mutex of = {.mutex = mutex};
	const struct lw_cond_lock lock = {lw_cond_mutex_unlock, lw_cond_mutex_lock, &of};
	int result;

	if (deadline && (deadline->tv_nsec < 0 || deadline->tv_nsec > 999999999))
		return EINVAL;
	if (lw_mutex_is_ours(mutex) && !lw_mutex_is_held(mutex))
		return EPERM;
	if (lw_cond_is_shared(cond))
		return lw_cond_wait_briefly(mutex, clock, deadline);
	result = lw_cond_wait_on(lw_cond_of(cond), &lock, clock, deadline);
	return of.error ? of.error : result;
}

static bool lw_cond_is_for_glibc(const pthread_cond_t *cond, const pthread_mutex_t *mutex)
{
	return lw_cond_is_shared(cond) && !lw_mutex_is_ours(mutex);
}

static clockid_t lw_cond_clock(const pthread_cond_t *cond)
{
	return cond->__data.__wrefs & LW_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* What programs call */

LW_EXPORT int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	if (attr)
		return lw_glibc()->cond_init(cond, attr);
	memset(cond, 0, sizeof(*cond));
	return 0;
}

LW_EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
	return lw_cond_is_shared(cond) ? lw_glibc()->cond_destroy(cond) : 0;
}

LW_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (lw_cond_is_for_glibc(cond, mutex))
		return lw_glibc()->cond_wait(cond, mutex);
	return lw_cond_wait_until(cond, mutex, CLOCK_REALTIME, NULL);
}

LW_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				     const struct timespec *deadline)
{
	if (lw_cond_is_for_glibc(cond, mutex))
		return lw_glibc()->cond_timedwait(cond, mutex, deadline);
	return lw_cond_wait_until(cond, mutex, lw_cond_clock(cond), deadline);
}

LW_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				     const struct timespec *deadline)
{
	if (lw_cond_is_for_glibc(cond, mutex))
		return lw_glibc()->cond_clockwait(cond, mutex, clock, deadline);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	return lw_cond_wait_until(cond, mutex, clock, deadline);
}

LW_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	if (lw_cond_is_shared(cond))
		return lw_glibc()->cond_signal(cond);
	lw_cond_signal(lw_cond_of(cond));
	return 0;
}

LW_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	if (lw_cond_is_shared(cond))
		return lw_glibc()->cond_broadcast(cond);
	lw_cond_broadcast(lw_cond_of(cond));
	return 0;
}
