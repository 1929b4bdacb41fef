// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pthread_mutex_*() and waits of pthread_cond_*(): measurements around the functions of glibc. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include <lockworks/lockworks.h>

#include "acquisitions.h"
#include "glibc.h"

#define LW_KEY(mutex)  lw_profile_key(mutex, LW_PROFILE_MUTEX)
#define LW_KIND(mutex) ((uint32_t)(mutex)->__data.__kind)

/* Tries to acquire the mutex. If another thread holds it, waits until the deadline. */
#define LW_MEASURE_MUTEX(mutex, clock, deadline)                                              \
	LW_MEASURE(mutex, LW_PROFILE_MUTEX, LW_KIND(mutex), lw_glibc()->mutex_trylock(mutex), \
		   clock, deadline)

LW_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return LW_MEASURE_MUTEX(mutex, CLOCK_MONOTONIC, NULL);
}

LW_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline)
{
	return LW_MEASURE_MUTEX(mutex, CLOCK_REALTIME, deadline);
}

LW_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				      const struct timespec *deadline)
{
	/* glibc refuses these even if the mutex is free; a trylock would hide that. */
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && !lw_is_too_early())
		return lw_glibc()->mutex_clocklock(mutex, clock, deadline);
	return LW_MEASURE_MUTEX(mutex, clock, deadline);
}

LW_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return LW_MEASURE_TRY(LW_KEY(mutex), LW_KIND(mutex), lw_glibc()->mutex_trylock(mutex));
}

LW_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (lw_is_too_early())
		return 0;
	lw_profile_releases(LW_KEY(mutex));
	return lw_glibc()->mutex_unlock(mutex);
}

/* Returns whether this thread holds the mutex after a wait that returned `error`. */
static bool lw_holds_after_wait(int error)
{
	return error != EPERM && error != ENOTRECOVERABLE;
}

/* Records the release of the mutex and its acquisition after the wait, which counts as no wait. */
#define LW_MEASURE_WAIT(mutex, wait)                                                             \
	({                                                                                       \
		int error;                                                                       \
		lw_profile_releases(LW_KEY(mutex));                                              \
		error = (wait);                                                                  \
		if (lw_holds_after_wait(error))                                                  \
			lw_profile_acquired(LW_KEY(mutex), LW_KIND(mutex),                       \
					    __builtin_return_address(0), LW_AFTER_CONDITION, 0); \
		error;                                                                           \
	})

LW_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return LW_MEASURE_WAIT(mutex, lw_glibc()->cond_wait(cond, mutex));
}

LW_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				     const struct timespec *deadline)
{
	return LW_MEASURE_WAIT(mutex, lw_glibc()->cond_timedwait(cond, mutex, deadline));
}

LW_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				     const struct timespec *deadline)
{
	return LW_MEASURE_WAIT(mutex, lw_glibc()->cond_clockwait(cond, mutex, clock, deadline));
}

LW_OLD_NAME(pthread_mutex_lock);
LW_OLD_NAME(pthread_mutex_trylock);
LW_OLD_NAME(pthread_mutex_unlock);
