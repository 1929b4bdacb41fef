// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pthread_mutex_*(), pthread_cond_*() and their C11 forms: measurements around the functions of
 * glibc. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include <lockworks/lockworks.h>

#include "acquisitions.h"
#include "c11.h"
#include "conditions.h"
#include "glibc.h"
#include "steps.h"

#define LW_KEY(mutex)  lw_profile_key(mutex, LW_PROFILE_MUTEX)
#define LW_KIND(mutex) ((uint32_t)(mutex)->__data.__kind)

/* Tries to acquire the mutex. If another thread holds it, waits until the deadline. */
#define LW_MEASURE_MUTEX(mutex, clock, deadline)                                              \
	LW_MEASURE(mutex, LW_PROFILE_MUTEX, LW_KIND(mutex), lw_glibc()->mutex_trylock(mutex), \
		   clock, deadline)

LW_EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	const int error = lw_glibc()->mutex_init(mutex, attr);

	lw_profile_step((enum lw_profile_step_kind)LW_PROFILE_STEP_INITIALISES, LW_PROFILE_MUTEX,
			mutex, LW_CALLER);
	return error;
}

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
	bool wakes;
	int error;

	if (lw_is_too_early())
		return 0;
	/* 2: glibc wakes a thread. */
	wakes = lw_profile_steps && mutex->__data.__lock > 1;
	lw_profile_releases(LW_KEY(mutex));
	lw_profile_forget_woken(mutex);
	error = lw_glibc()->mutex_unlock(mutex);
	if (lw_unlikely(wakes))
		lw_profile_add_step(LW_STEP_RETURNS, 0, NULL, 0);
	if (lw_unlikely(lw_profile_steps != NULL))
		lw_profile_take_room(__builtin_return_address(0));
	return error;
}

/* Returns whether this thread holds the mutex after a wait that returned `error`. */
static bool lw_holds_after_wait(int error)
{
	return error != EPERM && error != ENOTRECOVERABLE;
}

/*
 * The times of the last signals of conditions, which share an entry if they have the same hash. So
 * a time may be too late, and the wait for the mutex longer than it seems.
 */
static struct lw_profile_counter lw_signalled[1024];

static struct lw_profile_counter *lw_signalled_at(const pthread_cond_t *cond)
{
	return &lw_signalled[(uintptr_t)cond * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* Returns how often this thread has slept. Steps do without: they have the time without a CPU. */
static long lw_sleeps(void)
{
	struct rusage usage;

	return lw_profile_steps || getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/*
 * Returns when a wait for a condition, which began at `begun`, became one for the mutex. 0: it did
 * not. A thread sleeps once for the condition, so if it slept again, another thread had the mutex.
 */
static uint64_t lw_begun_after(const pthread_cond_t *cond, long slept, uint64_t begun)
{
	uint64_t signalled = lw_load(&lw_signalled_at(cond)->n, relaxed);

	if (lw_sleeps() - slept < 2)
		return 0;
	return signalled > begun ? signalled : lw_profile_now();
}

/*
 * Records the wait, and the release of the mutex and its acquisition after the wait. The time in
 * which the thread waited for the mutex counts as that only.
 */
#define LW_MEASURE_WAIT(cond, mutex, wait)                                                    \
	({                                                                                    \
		const void *lw_caller = __builtin_return_address(0);                          \
		const long lw_slept = lw_sleeps();                                            \
		const uint64_t lw_begun = lw_profile_now();                                   \
		uint64_t lw_woken;                                                            \
		int lw_error;                                                                 \
		lw_profile_waits_for(cond, mutex, lw_caller);                                 \
		lw_profile_releases(LW_KEY(mutex));                                           \
		lw_error = (wait);                                                            \
		lw_woken = lw_begun_after(cond, lw_slept, lw_begun);                          \
		lw_profile_waited_for(                                                        \
			cond, mutex, lw_caller,                                               \
			lw_profile_elapsed(lw_begun, lw_woken ? lw_woken : lw_profile_now()), \
			lw_error);                                                            \
		if (lw_holds_after_wait(lw_error))                                            \
			lw_profile_acquired(LW_KEY(mutex), LW_KIND(mutex), lw_caller,         \
					    LW_AFTER_CONDITION, lw_woken);                    \
		lw_error;                                                                     \
	})

/* Records the signal. */
#define LW_MEASURE_SIGNAL(cond, signal, is_broadcast)                                \
	({                                                                           \
		int lw_error;                                                        \
		lw_store(&lw_signalled_at(cond)->n, lw_profile_now(), relaxed);      \
		lw_profile_signals(cond, __builtin_return_address(0), is_broadcast); \
		lw_error = lw_glibc()->signal(cond);                                 \
		lw_profile_step(LW_STEP_RETURNS, 0, NULL, NULL);                     \
		lw_error;                                                            \
	})

LW_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	return LW_MEASURE_SIGNAL(cond, cond_signal, false);
}

LW_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	return LW_MEASURE_SIGNAL(cond, cond_broadcast, true);
}

LW_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return LW_MEASURE_WAIT(cond, mutex, lw_glibc()->cond_wait(cond, mutex));
}

LW_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				     const struct timespec *deadline)
{
	return LW_MEASURE_WAIT(cond, mutex, lw_glibc()->cond_timedwait(cond, mutex, deadline));
}

LW_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				     const struct timespec *deadline)
{
	return LW_MEASURE_WAIT(cond, mutex,
			       lw_glibc()->cond_clockwait(cond, mutex, clock, deadline));
}

LW_OLD_NAME(pthread_mutex_init);
LW_OLD_NAME(pthread_mutex_lock);
LW_OLD_NAME(pthread_mutex_trylock);
LW_OLD_NAME(pthread_mutex_unlock);

/* C11 */

LW_EXPORT int mtx_lock(mtx_t *mtx)
{
	return lw_thrd(LW_MEASURE_MUTEX(lw_mutex_of(mtx), CLOCK_MONOTONIC, NULL));
}

LW_EXPORT int mtx_timedlock(mtx_t *restrict mtx, const struct timespec *restrict deadline)
{
	return lw_thrd(LW_MEASURE_MUTEX(lw_mutex_of(mtx), CLOCK_REALTIME, deadline));
}

LW_EXPORT int mtx_trylock(mtx_t *mtx)
{
	pthread_mutex_t *mutex = lw_mutex_of(mtx);

	return lw_thrd(
		LW_MEASURE_TRY(LW_KEY(mutex), LW_KIND(mutex), lw_glibc()->mutex_trylock(mutex)));
}

LW_EXPORT int mtx_unlock(mtx_t *mtx)
{
	return lw_thrd(pthread_mutex_unlock(lw_mutex_of(mtx)));
}

LW_EXPORT int cnd_wait(cnd_t *cnd, mtx_t *mtx)
{
	pthread_cond_t *cond = lw_cond_of(cnd);
	pthread_mutex_t *mutex = lw_mutex_of(mtx);

	return lw_thrd(LW_MEASURE_WAIT(cond, mutex, lw_glibc()->cond_wait(cond, mutex)));
}

LW_EXPORT int cnd_timedwait(cnd_t *restrict cnd, mtx_t *restrict mtx,
			    const struct timespec *restrict deadline)
{
	pthread_cond_t *cond = lw_cond_of(cnd);
	pthread_mutex_t *mutex = lw_mutex_of(mtx);

	return lw_thrd(
		LW_MEASURE_WAIT(cond, mutex, lw_glibc()->cond_timedwait(cond, mutex, deadline)));
}

LW_EXPORT int cnd_signal(cnd_t *cnd)
{
	return lw_thrd(LW_MEASURE_SIGNAL(lw_cond_of(cnd), cond_signal, false));
}

LW_EXPORT int cnd_broadcast(cnd_t *cnd)
{
	return lw_thrd(LW_MEASURE_SIGNAL(lw_cond_of(cnd), cond_broadcast, true));
}
