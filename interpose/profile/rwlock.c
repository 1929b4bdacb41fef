// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pthread_rwlock_*(): measurements of readers and of writers around the functions of glibc. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include <lockworks/lockworks.h>

#include "acquisitions.h"
#include "glibc.h"
#include "steps.h"

#define LW_KEY(rwlock, mode) lw_profile_key(rwlock, LW_PROFILE_##mode)
#define LW_KIND(rwlock)	     ((rwlock)->__data.__shared ? LW_PROFILE_SHARED : 0)

/* Evaluates `try`. If another thread has the rwlock, waits until the deadline. */
#define LW_MEASURE_RWLOCK(rwlock, mode, try, clock, deadline) \
	LW_MEASURE(rwlock, LW_PROFILE_##mode, LW_KIND(rwlock), try, clock, deadline)

/* Tries, unless glibc refuses this deadline or clock even for an rwlock that is free. */
#define LW_TRY_UNTIL(rwlock, try, clock, deadline)                                 \
	((deadline)->tv_nsec < 0 || (deadline)->tv_nsec >= 1000000000 ||           \
			 ((clock) != CLOCK_REALTIME && (clock) != CLOCK_MONOTONIC) \
		 ? EBUSY                                                           \
		 : lw_glibc()->try(rwlock))

LW_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	return LW_MEASURE_RWLOCK(rwlock, READ, lw_glibc()->rwlock_tryrdlock(rwlock),
				 CLOCK_MONOTONIC, NULL);
}

LW_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	return LW_MEASURE_TRY(LW_KEY(rwlock, READ), LW_KIND(rwlock),
			      lw_glibc()->rwlock_tryrdlock(rwlock));
}

LW_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	return LW_MEASURE_RWLOCK(rwlock, READ,
				 LW_TRY_UNTIL(rwlock, rwlock_tryrdlock, CLOCK_REALTIME, deadline),
				 CLOCK_REALTIME, deadline);
}

LW_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock,
					 const struct timespec *deadline)
{
	return LW_MEASURE_RWLOCK(rwlock, READ,
				 LW_TRY_UNTIL(rwlock, rwlock_tryrdlock, clock, deadline), clock,
				 deadline);
}

LW_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	return LW_MEASURE_RWLOCK(rwlock, WRITE, lw_glibc()->rwlock_trywrlock(rwlock),
				 CLOCK_MONOTONIC, NULL);
}

LW_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	return LW_MEASURE_TRY(LW_KEY(rwlock, WRITE), LW_KIND(rwlock),
			      lw_glibc()->rwlock_trywrlock(rwlock));
}

LW_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	return LW_MEASURE_RWLOCK(rwlock, WRITE,
				 LW_TRY_UNTIL(rwlock, rwlock_trywrlock, CLOCK_REALTIME, deadline),
				 CLOCK_REALTIME, deadline);
}

LW_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock,
					 const struct timespec *deadline)
{
	return LW_MEASURE_RWLOCK(rwlock, WRITE,
				 LW_TRY_UNTIL(rwlock, rwlock_trywrlock, clock, deadline), clock,
				 deadline);
}

LW_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	int error;

	if (lw_is_too_early())
		return 0;
	lw_profile_releases_rwlock(rwlock);
	error = lw_glibc()->rwlock_unlock(rwlock);
	if (lw_unlikely(lw_profile_steps != NULL))
		lw_profile_take_room(__builtin_return_address(0));
	return error;
}

LW_OLD_NAME(pthread_rwlock_rdlock);
LW_OLD_NAME(pthread_rwlock_tryrdlock);
LW_OLD_NAME(pthread_rwlock_wrlock);
LW_OLD_NAME(pthread_rwlock_trywrlock);
LW_OLD_NAME(pthread_rwlock_unlock);
