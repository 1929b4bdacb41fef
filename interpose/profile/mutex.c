// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_mutex_*() and the waits of pthread_cond_*(): measurements around the functions of glibc.
 *
 * An acquisition tries trylock first, so every acquisition that had to wait is counted. Measuring
 * allocates no memory and takes no lock. Its only system call is the clock, where that is one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include <lockworks/lockworks.h>

#include "glibc.h"
#include "record.h"

static void lw_add(uint64_t ns, uint64_t *sum, uint64_t *max)
{
	*sum += ns;
	if (*max < ns)
		*max = ns;
}

/* The record */

/*
 * Returns the entry of a mutex; with `add`, makes one if there is none. Returns NULL if there is no
 * entry, or no room for one near its place.
 */
static struct lw_profile_mutex *lw_find(struct lw_profile *profile, pthread_mutex_t *mutex,
					bool add)
{
	const uint64_t address = (uintptr_t)mutex;
	uint64_t at = address * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (int probes = 0; probes < 64; probes++, at++) {
		struct lw_profile_mutex *of = &profile->mutex[at % LW_PROFILE_MUTEXES];
		uint64_t found = lw_load(&of->address, relaxed);

		/* Another thread may take this entry, but only for another mutex: we hold ours. */
		if (!found && (!add || lw_try_cmpxchg(&of->address, &found, address, relaxed)))
			return add ? of : NULL;
		if (found == address)
			return of;
	}
	return NULL;
}

static struct lw_profile_site *lw_site_new(struct lw_profile *profile, struct lw_profile_mutex *of,
					   uint64_t caller)
{
	uint64_t taken = lw_load(&profile->sites, relaxed) < LW_PROFILE_SITES
				 ? lw_fetch_add(&profile->sites, 1, relaxed)
				 : LW_PROFILE_SITES;
	struct lw_profile_site *site = &profile->site[taken];

	if (taken >= LW_PROFILE_SITES)
		return NULL;
	site->mutex = (uint32_t)(of - profile->mutex);
	site->caller = caller;
	site->next_site = of->first_site;
	of->first_site = (uint32_t)taken + 1;
	lw_profile_add_module_of(profile, caller);
	return site;
}

/* Returns the site of a mutex for `caller`, moved to the front of its list. NULL: no room. */
static struct lw_profile_site *lw_site(struct lw_profile *profile, struct lw_profile_mutex *of,
				       uint64_t caller)
{
	uint32_t *link = &of->first_site;

	while (*link) {
		struct lw_profile_site *site = &profile->site[*link - 1];
		uint32_t number = *link;

		if (site->caller == caller) {
			*link = site->next_site;
			site->next_site = of->first_site;
			of->first_site = number;
			return site;
		}
		link = &site->next_site;
	}
	return lw_site_new(profile, of, caller);
}

enum lw_acquisition { LW_AT_ONCE, LW_CONTENDED, LW_AFTER_WAIT };

static void lw_count_lost(struct lw_profile *profile, enum lw_acquisition how)
{
	lw_fetch_add(&profile->lost, 1, relaxed);
	if (how == LW_CONTENDED)
		lw_fetch_add(&profile->lost_contended, 1, relaxed);
}

static void lw_count(struct lw_profile_mutex *of, struct lw_profile_site *site, uint32_t self,
		     enum lw_acquisition how, uint64_t waited)
{
	site->acquisitions++;
	site->threads[self % 256 / 64] |= UINT64_C(1) << self % 64;
	if (how == LW_CONTENDED) {
		site->contended++;
		lw_add(waited, &site->waited_ns, &site->waited_max_ns);
	} else if (how == LW_AFTER_WAIT) {
		site->after_wait++;
	}
	if (!of->last_thread)
		return;
	if (of->last_thread == self)
		site->from_same_thread++;
	else if (of->last_node == lw_current_node())
		site->from_same_node++;
	else
		site->from_other_node++;
}

/* Records an acquisition by this thread, which has waited since `begun`. */
static void lw_acquired(pthread_mutex_t *mutex, const void *caller, enum lw_acquisition how,
			uint64_t begun)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	struct lw_profile_mutex *of;
	struct lw_profile_site *site;
	uint32_t self;

	if (!profile)
		return;
	self = lw_profile_self(profile);
	of = lw_find(profile, mutex, true);
	if (of && of->depth && of->holder == self &&
	    (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE) {
		of->depth++;
		return;
	}
	site = of ? lw_site(profile, of, (uintptr_t)caller) : NULL;
	if (!site) {
		if (of)
			of->depth = 0;
		lw_count_lost(profile, how);
		return;
	}
	of->begun = begun;
	of->since = lw_profile_now();
	lw_count(of, site, self, how, of->since - begun);
	of->holder = self;
	of->depth = 1;
	of->kind = (uint32_t)mutex->__data.__kind;
}

/* Adds the acquisition that ends now to the ring of events. */
static void lw_add_event(struct lw_profile *profile, const struct lw_profile_mutex *of,
			 uint64_t caller, uint64_t now)
{
	uint64_t at = lw_fetch_add(&profile->events, 1, relaxed);

	profile->event[at % LW_PROFILE_EVENTS] = (struct lw_profile_event){
		.address = lw_load(&of->address, relaxed),
		.caller = caller,
		.begun = of->begun,
		.acquired = of->since,
		.released = now,
		.thread = lw_profile_thread,
		.node = lw_current_node(),
	};
}

/* Records a release, just before it happens. */
static void lw_releases(pthread_mutex_t *mutex)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	struct lw_profile_mutex *of = profile ? lw_find(profile, mutex, false) : NULL;
	struct lw_profile_site *site;
	uint64_t now;

	/* The caller may not hold an error-checking mutex. */
	if (!of || of->holder != lw_profile_thread || !of->depth || --of->depth)
		return;
	site = &profile->site[of->first_site - 1];
	now = lw_profile_now();
	lw_add(now - of->since, &site->held_ns, &site->held_max_ns);
	if (lw_unlikely(lw_profile_own.has_events))
		lw_add_event(profile, of, site->caller, now);
	of->last_thread = lw_profile_thread;
	of->last_node = lw_current_node();
}

static bool lw_holds(int error)
{
	return error == 0 || error == EOWNERDEAD;
}

/* The functions that programs call */

static struct lw_profile_wait *lw_waits(pthread_mutex_t *mutex, const void *caller, uint64_t begun)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);

	return profile ? lw_profile_wait_begin(profile, mutex, caller, begun) : NULL;
}

/* Tries to acquire the mutex. If another thread holds it, evaluates `lock`, which waits for it. */
#define LW_MEASURE(mutex, lock)                                                        \
	({                                                                             \
		const void *caller = __builtin_return_address(0);                      \
		int error;                                                             \
		if (lw_is_too_early())                                                 \
			return 0;                                                      \
		error = lw_glibc()->mutex_trylock(mutex);                              \
		if (error == EBUSY) {                                                  \
			uint64_t begun = lw_profile_now();                             \
			struct lw_profile_wait *wait = lw_waits(mutex, caller, begun); \
			error = (lock);                                                \
			lw_profile_wait_end(wait);                                     \
			if (lw_holds(error))                                           \
				lw_acquired(mutex, caller, LW_CONTENDED, begun);       \
		} else if (lw_holds(error)) {                                          \
			lw_acquired(mutex, caller, LW_AT_ONCE, 0);                     \
		}                                                                      \
		error;                                                                 \
	})

LW_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return LW_MEASURE(mutex, lw_glibc()->mutex_lock(mutex));
}

LW_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline)
{
	return LW_MEASURE(mutex, lw_glibc()->mutex_timedlock(mutex, deadline));
}

LW_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				      const struct timespec *deadline)
{
	/* glibc refuses these even if the mutex is free; a trylock would hide that. */
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && !lw_is_too_early())
		return lw_glibc()->mutex_clocklock(mutex, clock, deadline);
	return LW_MEASURE(mutex, lw_glibc()->mutex_clocklock(mutex, clock, deadline));
}

LW_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int error;

	if (lw_is_too_early())
		return 0;
	error = lw_glibc()->mutex_trylock(mutex);
	if (lw_holds(error))
		lw_acquired(mutex, __builtin_return_address(0), LW_AT_ONCE, 0);
	return error;
}

LW_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (lw_is_too_early())
		return 0;
	lw_releases(mutex);
	return lw_glibc()->mutex_unlock(mutex);
}

/* Returns whether this thread holds the mutex after a wait that returned `error`. */
static bool lw_holds_after_wait(int error)
{
	return error != EPERM && error != ENOTRECOVERABLE;
}

/* Records the release of the mutex and its acquisition after the wait, which counts as no wait. */
#define LW_MEASURE_WAIT(mutex, wait)                                  \
	({                                                            \
		const void *caller = __builtin_return_address(0);     \
		int error;                                            \
		lw_releases(mutex);                                   \
		error = (wait);                                       \
		if (lw_holds_after_wait(error))                       \
			lw_acquired(mutex, caller, LW_AFTER_WAIT, 0); \
		error;                                                \
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
