// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_rwlock_*(): counts acquisitions around the functions of glibc. Lockworks serves no
 * rwlocks, so the counts are those of all rwlocks together. Only a wait reads the clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <lockworks/lockworks.h>

#include "glibc.h"
#include "record.h"

static struct lw_profile_rwlocks *lw_rwlocks(struct lw_profile *profile)
{
	return &profile->rwlocks[(unsigned int)sched_getcpu() % LW_PROFILE_RWLOCKS];
}

/* Counts an acquisition, if there was one, and returns `error`. */
static int lw_tried(int error)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);

	if (!error && profile)
		lw_fetch_add(&lw_rwlocks(profile)->acquisitions, 1, relaxed);
	return error;
}

static struct lw_profile_wait *lw_waits(pthread_rwlock_t *rwlock, uint64_t begun)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);

	return profile ? lw_profile_wait_begin(profile, rwlock, NULL, begun) : NULL;
}

/* Counts an acquisition after a wait, if there was one, and returns `error`. */
static int lw_waited(int error, struct lw_profile_wait *wait, uint64_t begun)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);

	lw_profile_wait_end(wait);
	if (!error && profile) {
		struct lw_profile_rwlocks *rwlocks = lw_rwlocks(profile);

		lw_fetch_add(&rwlocks->contended, 1, relaxed);
		lw_fetch_add(&rwlocks->waited_ns, lw_profile_now() - begun, relaxed);
	}
	return lw_tried(error);
}

/* Tries to acquire the rwlock. If another thread holds it, evaluates `lock`, which waits for it. */
#define LW_COUNT(rwlock, try, lock)                                             \
	({                                                                      \
		int error;                                                      \
		if (lw_is_too_early())                                          \
			return 0;                                               \
		error = (try);                                                  \
		if (error == EBUSY) {                                           \
			uint64_t begun = lw_profile_now();                      \
			struct lw_profile_wait *wait = lw_waits(rwlock, begun); \
			error = lw_waited((lock), wait, begun);                 \
		} else {                                                        \
			lw_tried(error);                                        \
		}                                                               \
		error;                                                          \
	})

/* Tries, unless glibc refuses this deadline or clock even for an rwlock that is free. */
#define LW_TRY_UNTIL(rwlock, try, clock, deadline)                                 \
	((deadline)->tv_nsec < 0 || (deadline)->tv_nsec >= 1000000000 ||           \
			 ((clock) != CLOCK_REALTIME && (clock) != CLOCK_MONOTONIC) \
		 ? EBUSY                                                           \
		 : lw_glibc()->try(rwlock))

LW_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	return LW_COUNT(rwlock, lw_glibc()->rwlock_tryrdlock(rwlock),
			lw_glibc()->rwlock_rdlock(rwlock));
}

LW_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	return lw_is_too_early() ? 0 : lw_tried(lw_glibc()->rwlock_tryrdlock(rwlock));
}

LW_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	return LW_COUNT(rwlock, LW_TRY_UNTIL(rwlock, rwlock_tryrdlock, CLOCK_REALTIME, deadline),
			lw_glibc()->rwlock_timedrdlock(rwlock, deadline));
}

LW_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock,
					 const struct timespec *deadline)
{
	return LW_COUNT(rwlock, LW_TRY_UNTIL(rwlock, rwlock_tryrdlock, clock, deadline),
			lw_glibc()->rwlock_clockrdlock(rwlock, clock, deadline));
}

LW_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	return LW_COUNT(rwlock, lw_glibc()->rwlock_trywrlock(rwlock),
			lw_glibc()->rwlock_wrlock(rwlock));
}

LW_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	return lw_is_too_early() ? 0 : lw_tried(lw_glibc()->rwlock_trywrlock(rwlock));
}

LW_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	return LW_COUNT(rwlock, LW_TRY_UNTIL(rwlock, rwlock_trywrlock, CLOCK_REALTIME, deadline),
			lw_glibc()->rwlock_timedwrlock(rwlock, deadline));
}

LW_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock,
					 const struct timespec *deadline)
{
	return LW_COUNT(rwlock, LW_TRY_UNTIL(rwlock, rwlock_trywrlock, clock, deadline),
			lw_glibc()->rwlock_clockwrlock(rwlock, clock, deadline));
}
