// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include <lockworks/lockworks.h>

#include "acquisitions.h"
#include "stacks.h"
#include "steps.h"

/* Whether other threads may use the entry of this key at the same time. */
static inline bool lw_is_shared(uint64_t key)
{
	return (key & LW_PROFILE_MODE_MASK) == LW_PROFILE_READ;
}

/* Adds to a counter. If it is not shared, one thread at a time does so. */
static inline void lw_add(struct lw_profile_counter *counter, uint64_t value, bool is_shared)
{
	if (is_shared)
		lw_fetch_add(&counter->n, value, relaxed);
	else
		lw_store(&counter->n, lw_load(&counter->n, relaxed) + value, relaxed);
}

/* Adds a time to a sum and to the longest time. */
static void lw_add_time(uint64_t time, struct lw_profile_counter *sum,
			struct lw_profile_counter *max, bool is_shared)
{
	uint64_t longest = lw_load(&max->n, relaxed);

	lw_add(sum, time, is_shared);
	while (longest < time && !lw_try_cmpxchg(&max->n, &longest, time, relaxed)) {
	}
}

/* Locks and sites */

struct lw_profile_lock *lw_profile_find(struct lw_profile *profile, uint64_t key, bool add)
{
	uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (int probes = 0; probes < 64; probes++, at++) {
		struct lw_profile_lock *of = &profile->lock[at % LW_PROFILE_LOCKS];
		uint64_t found;

		if (!lw_profile_has(profile, of, sizeof(*of)))
			return NULL;
		found = lw_load(&of->key, relaxed);

		/* Another thread may take this entry, also for the same key if it reads as well. */
		if (!found && !add)
			return NULL;
		if (!found && lw_try_cmpxchg(&of->key, &found, key, relaxed)) {
			lw_fetch_add(&profile->locks, 1, relaxed);
			return of;
		}
		if (found == key)
			return of;
	}
	return NULL;
}

/*
 * Returns whether an acquisition may take an entry for its lock or site. A quarter of the tables is
 * for those that are contended, however many others there are.
 */
static bool lw_may_add(struct lw_profile *profile, uint64_t begun)
{
	return begun || (lw_load(&profile->locks, relaxed) < LW_PROFILE_LOCKS / 4 * 3 &&
			 lw_load(&profile->sites, relaxed) < LW_PROFILE_SITES / 4 * 3);
}

/* Returns the number of a new site, from 1. 0: there is no room. */
static uint32_t lw_site_new(struct lw_profile *profile, const struct lw_profile_lock *of,
			    uint64_t caller)
{
	uint64_t taken = lw_load(&profile->sites, relaxed) < LW_PROFILE_SITES
				 ? lw_fetch_add(&profile->sites, 1, relaxed)
				 : LW_PROFILE_SITES;
	struct lw_profile_site *site = &profile->site[taken];

	if (taken >= LW_PROFILE_SITES || !lw_profile_has(profile, site, sizeof(*site)))
		return 0;
	site->lock = (uint32_t)(of - profile->lock);
	site->caller = caller;
	lw_profile_add_module_of(profile, caller);
	return (uint32_t)taken + 1;
}

/*
 * Returns the site of a lock for `caller`, moved to the front of the list, which this thread has
 * for itself. NULL: no room.
 */
static struct lw_profile_site *lw_site_alone(struct lw_profile *profile, struct lw_profile_lock *of,
					     uint64_t caller)
{
	const uint32_t first = lw_load(&of->first_site, relaxed);
	struct lw_profile_site *before = NULL;
	uint32_t number = first;

	while (number && profile->site[number - 1].caller != caller) {
		before = &profile->site[number - 1];
		number = before->next_site;
	}
	if (number && !before)
		return &profile->site[number - 1];
	if (number)
		before->next_site = profile->site[number - 1].next_site;
	else
		number = lw_site_new(profile, of, caller);
	if (!number)
		return NULL;
	profile->site[number - 1].next_site = first;
	lw_store(&of->first_site, number, relaxed);
	return &profile->site[number - 1];
}

/*
 * The same, but other readers use the list as well, so its order stays. Two that make the same site
 * at the same time both add it, and the command sums them up.
 */
static struct lw_profile_site *lw_site_shared(struct lw_profile *profile,
					      struct lw_profile_lock *of, uint64_t caller)
{
	/* acquire: the sites of the list */
	uint32_t first = lw_load(&of->first_site, acquire), number = first;
	struct lw_profile_site *site;

	while (number && profile->site[number - 1].caller != caller)
		number = profile->site[number - 1].next_site;
	if (number)
		return &profile->site[number - 1];
	number = lw_site_new(profile, of, caller);
	if (!number)
		return NULL;
	site = &profile->site[number - 1];
	do {
		site->next_site = first;
		/* release: the site */
	} while (!lw_try_cmpxchg(&of->first_site, &first, number, release));
	return site;
}

/* Acquisitions */

static void lw_count_lost(struct lw_profile *profile, uint64_t begun)
{
	lw_fetch_add(&profile->lost, 1, relaxed);
	if (begun)
		lw_fetch_add(&profile->lost_contended, 1, relaxed);
}

static void lw_count(struct lw_profile_site *site, uint32_t self, enum lw_profile_how how,
		     uint64_t begun, uint64_t since, bool is_shared)
{
	struct lw_profile_counter *threads = &site->threads[self % 256 / 64];
	const uint64_t bit = UINT64_C(1) << self % 64;

	lw_add(&site->acquisitions, 1, is_shared);
	if (!(lw_load(&threads->n, relaxed) & bit))
		lw_fetch_or(&threads->n, bit, relaxed);
	if (begun) {
		lw_add(&site->contended, 1, is_shared);
		lw_add_time(lw_profile_elapsed(begun, since), &site->waited, &site->waited_max,
			    is_shared);
	}
	if (how == LW_AFTER_CONDITION)
		lw_add(&site->after_condition, 1, is_shared);
}

/* Counts who held the lock before, of those that hold it alone. */
static void lw_count_hand_off(const struct lw_profile_lock *of, struct lw_profile_site *site,
			      uint32_t self)
{
	if (!of->last_thread)
		return;
	if (of->last_thread == self)
		site->from_same_thread++;
	else if (of->last_node == lw_current_node())
		site->from_same_node++;
	else
		site->from_other_node++;
}

/* Adds an acquisition that ends now to the ring of events. */
static void lw_add_event(struct lw_profile *profile, uint64_t key, uint64_t caller, uint64_t begun,
			 uint64_t since, uint64_t now)
{
	uint64_t at = lw_fetch_add(&profile->events, 1, relaxed);
	struct lw_profile_event *event = &profile->event[at % LW_PROFILE_EVENTS];

	if (!lw_profile_has(profile, event, sizeof(*event)))
		return;
	*event = (struct lw_profile_event){
		.key = key,
		.caller = caller,
		.begun = begun,
		.acquired = since,
		.released = now,
		.thread = lw_profile_thread,
		.node = lw_current_node(),
	};
}

/* Records the end of a hold time at a site. */
static void lw_held(struct lw_profile *profile, uint64_t key, struct lw_profile_site *site,
		    uint64_t begun, uint64_t since)
{
	uint64_t now = lw_profile_now();

	lw_add_time(lw_profile_elapsed(since, now), &site->held, &site->held_max,
		    lw_is_shared(key));
	if (lw_unlikely(lw_profile_own.has_events))
		lw_add_event(profile, key, site->caller, begun, since, now);
}

/* Returns what the entry of a lock says of a thread that acquired it at a site. */
static uint64_t lw_hold(const struct lw_profile *profile, const struct lw_profile_site *site)
{
	return (uint64_t)(site - profile->site + 1) << 32 | lw_profile_tid;
}

/*
 * Returns whether this thread had locked a recursive mutex before. A mutex that is freed while it
 * is locked leaves its entry to the next one at its address, so the entry alone does not tell.
 */
static bool lw_is_again(const struct lw_profile_lock *of, uint64_t key, uint32_t kind,
			uint32_t self)
{
	const pthread_mutex_t *mutex = (const void *)(uintptr_t)(key >> LW_PROFILE_MODE_BITS);

	return of && of->depth && of->holder == self && (kind & 3) == PTHREAD_MUTEX_RECURSIVE &&
	       mutex->__data.__count > 1;
}

static void lw_acquired_alone(struct lw_profile *profile, uint64_t key, uint32_t kind,
			      uint64_t caller, enum lw_profile_how how, uint64_t begun)
{
	struct lw_profile_lock *of = lw_profile_find(profile, key, lw_may_add(profile, begun));
	const uint32_t self = lw_profile_self(profile);
	struct lw_profile_site *site;
	uint64_t since;

	if (lw_is_again(of, key, kind, self)) {
		of->depth++;
		return;
	}
	site = of ? lw_site_alone(profile, of, caller) : NULL;
	if (!site) {
		if (of)
			of->depth = 0;
		lw_count_lost(profile, begun);
		return;
	}
	since = lw_profile_now();
	of->begun = begun;
	lw_store(&of->since, since, relaxed);
	lw_store(&of->hold, lw_hold(profile, site), relaxed);
	lw_count(site, self, how, begun, since, false);
	lw_count_hand_off(of, site, self);
	of->stack = lw_profile_stack_acquired(profile, site,
					      begun ? lw_profile_elapsed(begun, since) : 0);
	/* Copying is no part of the hold time. */
	if (lw_unlikely(of->stack))
		lw_store(&of->since, lw_profile_now(), relaxed);
	of->holder = self;
	of->depth = 1;
	lw_store(&of->kind, kind, relaxed);
}

/* A read that has not ended. */
struct lw_reading {
	uint64_t key; /* 0: this entry is free */
	uint64_t begun, since;
	struct lw_profile_site *site;
	uint32_t stack; /* number of the copy of the stack; 0: none */
};

/* The reads of this thread. A thread that reads more rwlocks at a time has no hold time of the
 * others. */
#define LW_READINGS 8
static __thread struct lw_reading lw_readings[LW_READINGS]
	__attribute__((tls_model("initial-exec")));

/* Returns the first read of this key; with the key 0, a free entry. NULL: there is none. */
static struct lw_reading *lw_reading(uint64_t key)
{
	for (int i = 0; i < LW_READINGS; i++) {
		if (lw_readings[i].key == key)
			return &lw_readings[i];
	}
	return NULL;
}

void lw_profile_forget_reads(void)
{
	memset(lw_readings, 0, sizeof(lw_readings));
}

static void lw_acquired_shared(struct lw_profile *profile, uint64_t key, uint32_t kind,
			       uint64_t caller, enum lw_profile_how how, uint64_t begun)
{
	struct lw_profile_lock *of = lw_profile_find(profile, key, lw_may_add(profile, begun));
	struct lw_profile_site *site = of ? lw_site_shared(profile, of, caller) : NULL;
	struct lw_reading *reading = lw_reading(0);
	const uint64_t since = lw_profile_now();

	if (!site) {
		lw_count_lost(profile, begun);
		return;
	}
	lw_count(site, lw_profile_self(profile), how, begun, since, true);
	/* Readers share the entry, so it is written only if that changes it. */
	if (lw_load(&of->kind, relaxed) != kind)
		lw_store(&of->kind, kind, relaxed);
	if (!reading)
		return;
	*reading = (struct lw_reading){
		key,
		begun,
		since,
		site,
		lw_profile_stack_acquired(profile, site,
					  begun ? lw_profile_elapsed(begun, since) : 0),
	};
	if (lw_unlikely(reading->stack))
		reading->since = lw_profile_now();
	if (!lw_load(&of->hold, relaxed)) {
		lw_store(&of->since, since, relaxed);
		lw_store(&of->hold, lw_hold(profile, site), relaxed);
	}
}

/* Steps: of a recursive mutex only those of the outermost acquisition. */
static void lw_step_of_lock(enum lw_profile_step_kind kind, uint64_t key, unsigned int tried,
			    uint64_t caller)
{
	const void *lock = (const void *)(uintptr_t)(key >> LW_PROFILE_MODE_BITS);
	const enum lw_profile_mode mode = key & LW_PROFILE_MODE_MASK;
	const pthread_mutex_t *mutex = lock;

	if (mode == LW_PROFILE_MUTEX && (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE &&
	    mutex->__data.__count > 1)
		return;
	lw_profile_add_step(kind, mode | tried, lock, caller);
}

void lw_profile_failed(uint64_t key, const void *caller)
{
	lw_profile_step(LW_STEP_FAILS, key & LW_PROFILE_MODE_MASK,
			(const void *)(uintptr_t)(key >> LW_PROFILE_MODE_BITS), caller);
}

void lw_profile_acquired(uint64_t key, uint32_t kind, const void *caller, enum lw_profile_how how,
			 uint64_t begun)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);

	if (!profile)
		return;
	if (lw_unlikely(lw_profile_steps != NULL))
		lw_step_of_lock(LW_STEP_ACQUIRES, key, how == LW_TRIED ? LW_PROFILE_STEP_TRIED : 0,
				(uintptr_t)caller);
	else if (lw_is_shared(key))
		lw_acquired_shared(profile, key, kind, (uintptr_t)caller, how, begun);
	else
		lw_acquired_alone(profile, key, kind, (uintptr_t)caller, how, begun);
}

void lw_profile_releases(uint64_t key)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	struct lw_profile_lock *of;

	if (lw_unlikely(lw_profile_steps != NULL)) {
		lw_step_of_lock(LW_STEP_RELEASES, key, 0, 0);
		return;
	}
	of = profile ? lw_profile_find(profile, key, false) : NULL;
	/* The caller may not hold an error-checking mutex. */
	if (!of || of->holder != lw_profile_thread || !of->depth || --of->depth)
		return;
	lw_held(profile, key, &profile->site[lw_load(&of->first_site, relaxed) - 1], of->begun,
		lw_load(&of->since, relaxed));
	lw_profile_stack_released(profile, of->stack);
	lw_store(&of->hold, 0, relaxed);
	of->last_thread = lw_profile_thread;
	of->last_node = lw_current_node();
}

void lw_profile_releases_rwlock(const void *rwlock)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	const uint64_t key = lw_profile_key(rwlock, LW_PROFILE_READ);
	struct lw_reading *reading = lw_reading(key);
	struct lw_profile_lock *of;

	if (!profile)
		return;
	if (!reading || lw_profile_steps) {
		lw_profile_releases(lw_profile_key(rwlock, LW_PROFILE_WRITE));
		return;
	}
	of = &profile->lock[reading->site->lock];
	if (lw_load(&of->hold, relaxed) == lw_hold(profile, reading->site))
		lw_store(&of->hold, 0, relaxed);
	lw_held(profile, key, reading->site, reading->begun, reading->since);
	lw_profile_stack_released(profile, reading->stack);
	reading->key = 0;
}
