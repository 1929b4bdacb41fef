// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pthread_mutex_*(): finds out whether we serve a mutex, records owners, calls the chosen lock. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "choice.h"
#include "glibc.h"
#include "mutex_parts.h"
#include "not_served.h"
#include "plan.h"
#include "surroundings.h"

_Static_assert(sizeof(((pthread_mutex_t *)0)->__data.__lock) == 4, "a lock has 4 bytes");

/* The lock */

/* Returns whether the default lock serves this mutex, which is ours. */
static inline bool lw_is_default(const pthread_mutex_t *mutex)
{
	return (lw_mutex_kind(mutex) & ~(LW_KIND_NO_ELISION | LW_KIND_WAKE | 3)) ==
	       lw_load(&lw_choice.plain, relaxed);
}

/* Returns the lock that serves this mutex, which is ours; NULL while it is too early for locks. */
static inline const struct lw_lock_type *lw_lock_of(const pthread_mutex_t *mutex)
{
	int kind = lw_mutex_kind(mutex);

	if (!lw_has_plan())
		return lw_chosen();
	return kind & LW_KIND_SERVED ? lw_lock_types[(kind & LW_KIND_LOCKS) / LW_KIND_LOCK] : NULL;
}

/* Returns whether this is the common case: a normal mutex, and the default lock serves. */
static inline bool lw_is_plain(const pthread_mutex_t *mutex)
{
	return __builtin_expect(lw_mutex_kind(mutex) == lw_load(&lw_choice.plain, relaxed), 1);
}

static inline void lw_take(pthread_mutex_t *mutex)
{
	const struct lw_lock_type *type;

	if (lw_is_default(mutex)) {
		lw_default_lock(&mutex->__data.__lock);
	} else if ((type = lw_lock_of(mutex))) {
		lw_serves();
		(lw_has_plan() ? type->lock
			       : lw_load(&lw_choice.lock, relaxed))(&mutex->__data.__lock, NULL);
	}
}

static inline bool lw_try(pthread_mutex_t *mutex)
{
	const struct lw_lock_type *type;

	if (lw_is_default(mutex))
		return lw_default_trylock(&mutex->__data.__lock);
	type = lw_lock_of(mutex);
	if (!type)
		return true;
	lw_serves();
	return type->trylock(&mutex->__data.__lock, NULL);
}

static inline void lw_release(pthread_mutex_t *mutex)
{
	const struct lw_lock_type *type;

	if (lw_is_default(mutex)) {
		lw_default_unlock(&mutex->__data.__lock);
		return;
	}
	type = lw_lock_of(mutex);
	if (type)
		type->unlock(&mutex->__data.__lock, NULL);
}

/*
 * Returns whether a thread holds the mutex. A word may have other bits of threads that wait or that
 * were not in the child of a fork, and trylock may fail for them. A free lw_mutex keeps the mark of
 * its last holder's CPU.
 */
static bool lw_is_held(pthread_mutex_t *mutex)
{
	const struct lw_lock_type *type = lw_lock_of(mutex);
	union lw_word *word = (union lw_word *)&mutex->__data.__lock;

	if (type && type->traits & LW_TAIL_WORD)
		return lw_field_load(word, locked, acquire) &
		       (type->traits & LW_MUTEX_WORD ? LW_LOCKED : LW_LOCKED_MASK);
	return !lw_try(mutex);
}

static int lw_take_until(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	const struct lw_wait_limit limit = {deadline, NULL, clock};
	const struct lw_lock_type *type = lw_lock_of(mutex);

	if (lw_try(mutex))
		return 0;
	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	if (type->lock_limited)
		return type->lock_limited(&mutex->__data.__lock, &limit) ? 0 : ETIMEDOUT;
	while (!lw_try(mutex)) {
		if (lw_limit_reached(&limit))
			return ETIMEDOUT;
		lw_pause_long();
	}
	return 0;
}

/* The owner */

__thread pid_t lw_own_tid;

static void lw_forget_tid(void)
{
	lw_own_tid = 0;
}

__attribute__((constructor(101))) static void lw_mutex_start(void)
{
	pthread_atfork(NULL, NULL, lw_forget_tid);
}

/* Returns whether the mutex depends on its owner: it is recursive or error checking. */
static inline bool lw_checks_owner(const pthread_mutex_t *mutex)
{
	int type = lw_mutex_kind(mutex) & 3;

	return type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
}

/*
 * Returns whether this thread, `self`, holds the mutex. Other threads may change the owner at the
 * same time, but neither from this thread nor to it.
 */
static inline bool lw_is_owner(const pthread_mutex_t *mutex, int self)
{
	return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == self;
}

static inline bool lw_owns(const pthread_mutex_t *mutex)
{
	return lw_chosen() && lw_is_owner(mutex, lw_self());
}

/*
 * Returns this thread's number in the common case of a mutex that depends on its owner: the default
 * lock serves, and the number is known. Otherwise 0.
 */
static inline int lw_owning_self(const pthread_mutex_t *mutex)
{
	int type = lw_mutex_kind(mutex) ^ lw_load(&lw_choice.plain, relaxed);

	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
		return lw_own_tid;
	return 0;
}

/* The mutex is held. */
static inline void lw_set_owner(pthread_mutex_t *mutex, int owner)
{
	__atomic_store_n(&mutex->__data.__owner, owner, __ATOMIC_RELAXED);
}

#define LW_NOT_HELD -1

/*
 * Handles an acquisition by the thread that holds the mutex already. Returns what the call then
 * returns: `error` for a mutex that is not recursive. Returns LW_NOT_HELD if it does not hold it.
 */
static inline int lw_hold_again(pthread_mutex_t *mutex, int error)
{
	if (!lw_checks_owner(mutex) || !lw_owns(mutex))
		return LW_NOT_HELD;
	if ((lw_mutex_kind(mutex) & 3) == PTHREAD_MUTEX_ERRORCHECK)
		return error;
	if (mutex->__data.__count == UINT_MAX)
		return EAGAIN;
	mutex->__data.__count++;
	return 0;
}

static inline void lw_hold(pthread_mutex_t *mutex, unsigned int count)
{
	if (!lw_chosen())
		return;
	mutex->__data.__count = count;
	lw_set_owner(mutex, lw_self());
}

bool lw_mutex_is_held(pthread_mutex_t *mutex)
{
	return !lw_checks_owner(mutex) || !lw_chosen() || lw_owns(mutex);
}

/* The mutex is held, so one thread at a time counts. */
static inline void lw_count_users(pthread_mutex_t *mutex, unsigned int change)
{
	__atomic_store_n(&mutex->__data.__nusers, mutex->__data.__nusers + change,
			 __ATOMIC_RELAXED);
}

bool lw_mutex_is_mine(pthread_mutex_t *mutex)
{
	return lw_mutex_is_ours(mutex) && lw_owns(mutex);
}

bool lw_mutex_wake_at_unlock(pthread_mutex_t *mutex, struct lw_cond_waiter *waiter)
{
	int kind = lw_mutex_kind(mutex);

	if (kind & LW_KIND_WAKE)
		return false;
	mutex->__data.__list.__next = (void *)waiter;
	__atomic_store_n(&mutex->__data.__kind, kind | LW_KIND_WAKE, __ATOMIC_RELAXED);
	return true;
}

/* Releases the mutex, and then wakes the waiter that was signalled while it was held, if any. */
static void lw_let_go(pthread_mutex_t *mutex)
{
	int kind = lw_mutex_kind(mutex);
	struct lw_cond_waiter *waiter = NULL;

	if (kind & LW_KIND_WAKE) {
		waiter = (void *)mutex->__data.__list.__next;
		__atomic_store_n(&mutex->__data.__kind, kind & ~LW_KIND_WAKE, __ATOMIC_RELAXED);
	}
	lw_set_owner(mutex, 0);
	lw_release(mutex);
	if (waiter)
		lw_cond_wake(waiter);
}

unsigned int lw_mutex_release_whole(pthread_mutex_t *mutex)
{
	unsigned int count = mutex->__data.__count;

	lw_count_users(mutex, 1);
	lw_let_go(mutex);
	return count;
}

/*
 * After a wait for a condition, the holder of the mutex may wait for our CPU to release it: it has
 * woken others too. Yielding lets it run; spinning would delay both. This is how often we yield
 * before we wait for the mutex.
 */
#define LW_YIELDS 2

void lw_mutex_take_whole(pthread_mutex_t *mutex, unsigned int count)
{
	bool taken = lw_try(mutex);

	for (int yields = 0; !taken && yields < LW_YIELDS; yields++) {
		sched_yield();
		taken = lw_try(mutex);
	}
	if (!taken)
		lw_take(mutex);
	lw_count_users(mutex, -1u);
	lw_hold(mutex, count);
}

/* The plan */

/* Returns whether the plan has not decided yet who serves this mutex, and may have a lock for it.
 */
static inline bool lw_is_undecided(const pthread_mutex_t *mutex)
{
	return lw_has_plan() && !(lw_mutex_kind(mutex) & ~(LW_KIND_NO_ELISION | 3));
}

/*
 * Decides by the mutex and by the call. If no line names either, a call that locks the mutex leaves
 * it to glibc, and one that initialises it decides nothing. Of several threads, the first decides.
 */
static void lw_decide(pthread_mutex_t *mutex, const void *caller, bool locks)
{
	int kind = lw_mutex_kind(mutex);
	unsigned int lock;

	switch (lw_plan_find(mutex, caller, false, &lock)) {
	case LW_PLANNED_LOCK:
		__atomic_compare_exchange_n(&mutex->__data.__kind, &kind,
					    lw_planned_kind(lock) | (kind & 3), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		lw_serves();
		return;
	case LW_PLANNED_NOT:
		if (!locks)
			return;
		/* fallthrough */
	case LW_PLANNED_GLIBC:
		__atomic_compare_exchange_n(&mutex->__data.__kind, &kind, kind | LW_KIND_LEFT,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void lw_mutex_decide(pthread_mutex_t *mutex, const void *caller)
{
	if (lw_is_undecided(mutex))
		lw_decide(mutex, caller, true);
}

/* Returns whether glibc serves a mutex that a call locks, and counts that. */
static inline bool lw_locks_glibcs(pthread_mutex_t *mutex, const void *caller)
{
	lw_mutex_decide(mutex, caller);
	if (lw_mutex_is_ours(mutex))
		return false;
	lw_count_left(mutex);
	return true;
}

/* The functions that programs call */

int lw_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr, const void *caller)
{
	const struct lw_lock_type *type;

	if (attr) {
		int error = lw_glibc()->mutex_init(mutex, attr);

		if (error)
			return error;
	} else {
		memset(mutex, 0, sizeof(*mutex));
	}
	if (lw_is_undecided(mutex))
		lw_decide(mutex, caller, false);
	if (!lw_mutex_is_ours(mutex))
		return 0;
	mutex->__data.__kind &= ~LW_KIND_NO_ELISION;
	type = lw_lock_of(mutex);
	if (type)
		mutex->__data.__lock = (int)type->unlocked;
	return 0;
}

LW_EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	return lw_mutex_init(mutex, attr, LW_CALLER);
}

LW_EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	if (!lw_mutex_is_ours(mutex))
		return lw_glibc()->mutex_destroy(mutex);
	if (lw_is_held(mutex) || __atomic_load_n(&mutex->__data.__nusers, __ATOMIC_RELAXED))
		return EBUSY;
	/* The type of a destroyed mutex, as in glibc. */
	mutex->__data.__kind = -1;
	return 0;
}

static __attribute__((noinline)) int lw_mutex_lock_any(pthread_mutex_t *mutex, const void *caller)
{
	int held, self;

	if (lw_mutex_kind(mutex) & LW_KIND_LEFT)
		return lw_glibc()->mutex_lock(mutex);
	self = lw_owning_self(mutex);
	if (self && !lw_is_owner(mutex, self)) {
		lw_default_lock(&mutex->__data.__lock);
		mutex->__data.__count = 1;
		lw_set_owner(mutex, self);
		return 0;
	}
	if (lw_locks_glibcs(mutex, caller))
		return lw_glibc()->mutex_lock(mutex);
	held = lw_hold_again(mutex, EDEADLK);
	if (held != LW_NOT_HELD)
		return held;
	lw_take(mutex);
	lw_hold(mutex, 1);
	return 0;
}

LW_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!lw_is_plain(mutex))
		return lw_mutex_lock_any(mutex, LW_CALLER);
	lw_default_lock(&mutex->__data.__lock);
	lw_set_owner(mutex, lw_self());
	return 0;
}

static __attribute__((noinline)) int lw_mutex_trylock_any(pthread_mutex_t *mutex,
							  const void *caller)
{
	int held, self = lw_owning_self(mutex);

	if (self && !lw_is_owner(mutex, self)) {
		if (!lw_default_trylock(&mutex->__data.__lock))
			return EBUSY;
		mutex->__data.__count = 1;
		lw_set_owner(mutex, self);
		return 0;
	}
	if (lw_locks_glibcs(mutex, caller))
		return lw_glibc()->mutex_trylock(mutex);
	held = lw_hold_again(mutex, EBUSY);
	if (held != LW_NOT_HELD)
		return held;
	if (!lw_try(mutex))
		return EBUSY;
	lw_hold(mutex, 1);
	return 0;
}

LW_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (!lw_is_plain(mutex))
		return lw_mutex_trylock_any(mutex, LW_CALLER);
	if (!lw_default_trylock(&mutex->__data.__lock))
		return EBUSY;
	lw_set_owner(mutex, lw_self());
	return 0;
}

LW_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				      const struct timespec *deadline)
{
	int held, error;

	if (lw_locks_glibcs(mutex, LW_CALLER))
		return lw_glibc()->mutex_clocklock(mutex, clock, deadline);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	held = lw_hold_again(mutex, EDEADLK);
	if (held != LW_NOT_HELD)
		return held;
	error = lw_take_until(mutex, clock, deadline);
	if (!error)
		lw_hold(mutex, 1);
	return error;
}

LW_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline)
{
	if (lw_locks_glibcs(mutex, LW_CALLER))
		return lw_glibc()->mutex_timedlock(mutex, deadline);
	return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, deadline);
}

static __attribute__((noinline)) int lw_mutex_unlock_any(pthread_mutex_t *mutex)
{
	int self = lw_owning_self(mutex);

	if (self && lw_is_owner(mutex, self) && mutex->__data.__count == 1) {
		lw_set_owner(mutex, 0);
		lw_default_unlock(&mutex->__data.__lock);
		return 0;
	}
	if (!lw_mutex_is_ours(mutex))
		return lw_glibc()->mutex_unlock(mutex);
	if (lw_checks_owner(mutex) && lw_chosen()) {
		if (!lw_owns(mutex))
			return EPERM;
		if (--mutex->__data.__count)
			return 0;
	}
	lw_let_go(mutex);
	return 0;
}

LW_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!lw_is_plain(mutex))
		return lw_mutex_unlock_any(mutex);
	lw_set_owner(mutex, 0);
	lw_default_unlock(&mutex->__data.__lock);
	return 0;
}

LW_OLD_NAME(pthread_mutex_init);
LW_OLD_NAME(pthread_mutex_destroy);
LW_OLD_NAME(pthread_mutex_lock);
LW_OLD_NAME(pthread_mutex_trylock);
LW_OLD_NAME(pthread_mutex_unlock);
