// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_rwlock_*(): lw_rwlock, whatever lock is chosen for mutexes. An rwlock that we serve uses
 * the members of glibc's layout as follows:
 *
 *   __readers, __writers  the lock, of 8 bytes
 *   __cur_writer          the thread that holds it alone; 0 if none does
 *   __shared              what glibc stores there: processes share it, and glibc serves it
 *   __pad2                what a plan has decided: 0 nothing yet, else an enum lw_planned
 *   __flags               the kind, which makes no difference: a thread that reads may read again
 *                         though a writer waits, and nobody starves
 *
 * Zero bytes are an unlocked lock, so static initialisers and pthread_rwlock_init() are glibc's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include "choice.h"
#include "glibc.h"
#include "mutex_parts.h"
#include "plan.h"
#include "reader_slots.h"
#include "rwlock.h"
#include "surroundings.h"

_Static_assert(offsetof(pthread_rwlock_t, __data.__writers) ==
		       offsetof(pthread_rwlock_t, __data.__readers) + 4,
	       "the lock has 8 bytes");
_Static_assert(sizeof(struct lw_rwlock) == 8, "it fits");

static inline struct lw_rwlock *lw_rwlock_in(pthread_rwlock_t *rwlock)
{
	return (struct lw_rwlock *)&rwlock->__data.__readers;
}

/* Returns whether we serve this rwlock, rather than glibc. */
static inline bool lw_rwlock_is_ours(const pthread_rwlock_t *rwlock)
{
	return __atomic_load_n(&rwlock->__data.__shared, __ATOMIC_RELAXED) == 0 &&
	       (!lw_has_plan() ||
		__atomic_load_n(&rwlock->__data.__pad2, __ATOMIC_RELAXED) == LW_PLANNED_LOCK);
}

/* The same for one that a call locks, by which a plan decides at the first such call. */
static inline bool lw_rwlock_locks_ours(pthread_rwlock_t *rwlock, const void *caller)
{
	unsigned int lock;
	unsigned long none = 0;

	if (lw_has_plan() && !__atomic_load_n(&rwlock->__data.__pad2, __ATOMIC_RELAXED) &&
	    !rwlock->__data.__shared) {
		bool planned = lw_plan_find(rwlock, caller, true, &lock) == LW_PLANNED_LOCK;

		__atomic_compare_exchange_n(&rwlock->__data.__pad2, &none,
					    planned ? LW_PLANNED_LOCK : LW_PLANNED_GLIBC, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	return lw_rwlock_is_ours(rwlock);
}

/* Returns false while it is too early for locks, when there is one thread. */
static inline bool lw_rwlock_is_served(void)
{
	if (!lw_chosen())
		return false;
	lw_serves();
	return true;
}

/* Returns whether this thread holds the lock alone. No other thread stores our number. */
static inline bool lw_rwlock_is_mine(const pthread_rwlock_t *rwlock)
{
	int writer = __atomic_load_n(&rwlock->__data.__cur_writer, __ATOMIC_RELAXED);

	return writer && writer == lw_self();
}

static inline void lw_rwlock_set_writer(pthread_rwlock_t *rwlock, int writer)
{
	__atomic_store_n(&rwlock->__data.__cur_writer, writer, __ATOMIC_RELAXED);
}

/* Acquires the lock as a reader, with a wait limit or without one. */
static inline int lw_rwlock_take_read(pthread_rwlock_t *rwlock, const struct lw_wait_limit *limit)
{
	if (!lw_rwlock_is_served())
		return 0;
	if (lw_rwlock_is_mine(rwlock))
		return EDEADLK;
	return lw_rwlock_read_lock_limited(lw_rwlock_in(rwlock), limit) ? 0 : ETIMEDOUT;
}

/* Acquires the lock alone, with a wait limit or without one. */
static inline int lw_rwlock_take_alone(pthread_rwlock_t *rwlock, const struct lw_wait_limit *limit)
{
	if (!lw_rwlock_is_served())
		return 0;
	if (lw_rwlock_is_mine(rwlock))
		return EDEADLK;
	if (!lw_rwlock_lock_limited(lw_rwlock_in(rwlock), limit))
		return ETIMEDOUT;
	lw_rwlock_set_writer(rwlock, lw_self());
	return 0;
}

LW_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	return lw_rwlock_locks_ours(rwlock, LW_CALLER) ? lw_rwlock_take_read(rwlock, NULL)
						       : lw_glibc()->rwlock_rdlock(rwlock);
}

LW_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	if (!lw_rwlock_locks_ours(rwlock, LW_CALLER))
		return lw_glibc()->rwlock_tryrdlock(rwlock);
	return !lw_rwlock_is_served() || lw_rwlock_read_trylock(lw_rwlock_in(rwlock)) ? 0 : EBUSY;
}

LW_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	return lw_rwlock_locks_ours(rwlock, LW_CALLER) ? lw_rwlock_take_alone(rwlock, NULL)
						       : lw_glibc()->rwlock_wrlock(rwlock);
}

LW_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	if (!lw_rwlock_locks_ours(rwlock, LW_CALLER))
		return lw_glibc()->rwlock_trywrlock(rwlock);
	if (!lw_rwlock_is_served())
		return 0;
	if (!lw_rwlock_trylock(lw_rwlock_in(rwlock)))
		return EBUSY;
	lw_rwlock_set_writer(rwlock, lw_self());
	return 0;
}

/* As glibc does, we refuse a wrong deadline even if the lock is free. */
static int lw_rwlock_read_until(pthread_rwlock_t *rwlock, clockid_t clock,
				const struct timespec *deadline)
{
	const struct lw_wait_limit limit = {deadline, NULL, clock};

	return lw_user_is_deadline(clock, deadline) ? lw_rwlock_take_read(rwlock, &limit) : EINVAL;
}

static int lw_rwlock_write_until(pthread_rwlock_t *rwlock, clockid_t clock,
				 const struct timespec *deadline)
{
	const struct lw_wait_limit limit = {deadline, NULL, clock};

	return lw_user_is_deadline(clock, deadline) ? lw_rwlock_take_alone(rwlock, &limit) : EINVAL;
}

LW_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	return lw_rwlock_locks_ours(rwlock, LW_CALLER)
		       ? lw_rwlock_read_until(rwlock, CLOCK_REALTIME, deadline)
		       : lw_glibc()->rwlock_timedrdlock(rwlock, deadline);
}

LW_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock,
					 const struct timespec *deadline)
{
	return lw_rwlock_locks_ours(rwlock, LW_CALLER)
		       ? lw_rwlock_read_until(rwlock, clock, deadline)
		       : lw_glibc()->rwlock_clockrdlock(rwlock, clock, deadline);
}

LW_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	return lw_rwlock_locks_ours(rwlock, LW_CALLER)
		       ? lw_rwlock_write_until(rwlock, CLOCK_REALTIME, deadline)
		       : lw_glibc()->rwlock_timedwrlock(rwlock, deadline);
}

LW_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock,
					 const struct timespec *deadline)
{
	return lw_rwlock_locks_ours(rwlock, LW_CALLER)
		       ? lw_rwlock_write_until(rwlock, clock, deadline)
		       : lw_glibc()->rwlock_clockwrlock(rwlock, clock, deadline);
}

/* Returns whether anybody reads the lock: it may have been acquired while it was too early. */
static bool lw_rwlock_is_read(struct lw_rwlock *lock)
{
	uint32_t readers = lw_load(&lock->readers, relaxed), from = 0;
	int32_t count = lw_rwlock_count(readers);

	if (count > 0)
		return true;
	return readers & LW_RWLOCK_SPREAD &&
	       (lw_read_find(lw_own_reads(), lw_read_of(lock)) ||
		lw_reads_beyond(lw_read_of(lock), (uint32_t)-count, &from));
}

LW_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	if (!lw_rwlock_is_ours(rwlock))
		return lw_glibc()->rwlock_unlock(rwlock);
	if (!lw_chosen())
		return 0;
	if (lw_rwlock_is_mine(rwlock)) {
		lw_rwlock_set_writer(rwlock, 0);
		lw_rwlock_unlock(lw_rwlock_in(rwlock));
	} else if (lw_rwlock_is_read(lw_rwlock_in(rwlock))) {
		lw_rwlock_read_unlock(lw_rwlock_in(rwlock));
	}
	return 0;
}

LW_OLD_NAME(pthread_rwlock_rdlock);
LW_OLD_NAME(pthread_rwlock_tryrdlock);
LW_OLD_NAME(pthread_rwlock_wrlock);
LW_OLD_NAME(pthread_rwlock_trywrlock);
LW_OLD_NAME(pthread_rwlock_unlock);
