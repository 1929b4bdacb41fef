// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>

#include <lockworks/lockworks.h>

#include "conditions.h"
#include "steps.h"

__thread struct lw_profile_woken lw_profile_woken;

/* Returns the entry of a condition at a place, which it makes if there is none. NULL: no room. */
static struct lw_profile_condition *lw_condition(const pthread_cond_t *cond, const void *caller,
						 bool is_signal)
{
	struct lw_profile *profile = lw_load(&lw_profile_own.record, acquire);
	const uint64_t key = (uintptr_t)cond, at_caller = (uintptr_t)caller;
	uint64_t at = (key ^ at_caller * 3 ^ is_signal) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	if (!profile)
		return NULL;
	for (int probes = 0; probes < 64; probes++, at++) {
		struct lw_profile_condition *of = &profile->condition[at % LW_PROFILE_CONDITIONS];
		uint32_t state;

		if (!lw_profile_has(profile, of, sizeof(*of)))
			break;
		/* acquire: an entry that is complete */
		state = lw_load(&of->state, acquire);
		if (state == 0 && lw_try_cmpxchg(&of->state, &state, 1, relaxed)) {
			of->is_signal = is_signal;
			of->cond = key;
			of->caller = at_caller;
			lw_profile_add_module_of(profile, at_caller);
			/* release: the entry */
			lw_store(&of->state, 2, release);
			return of;
		}
		/* One that another thread is about to complete may be the same. The command sums
		 * the two up. */
		if (state == 2 && of->cond == key && of->caller == at_caller &&
		    of->is_signal == is_signal)
			return of;
	}
	lw_fetch_add(&profile->lost_conditions, 1, relaxed);
	return NULL;
}

void lw_profile_waits_for(const pthread_cond_t *cond, const pthread_mutex_t *mutex,
			  const void *caller)
{
	const struct lw_profile_woken woken = lw_profile_woken;
	struct lw_profile_condition *of;

	if (lw_unlikely(lw_profile_steps != NULL)) {
		lw_profile_step(LW_STEP_AWAITS, 0, cond, caller);
		return;
	}
	lw_profile_forget_woken(mutex);
	if (woken.cond != cond || woken.mutex != mutex)
		return;
	of = lw_condition(cond, caller, false);
	if (of)
		lw_fetch_add(&of->for_nothing, 1, relaxed);
}

void lw_profile_waited_for(const pthread_cond_t *cond, const pthread_mutex_t *mutex,
			   const void *caller, uint64_t time, int error)
{
	struct lw_profile_condition *of;
	uint64_t longest;

	if (lw_unlikely(lw_profile_steps != NULL)) {
		lw_profile_step(error == ETIMEDOUT ? LW_STEP_EXPIRED : LW_STEP_WOKEN, 0, cond,
				caller);
		return;
	}
	if (error != 0 && error != ETIMEDOUT)
		return;
	if (error == 0)
		lw_profile_woken = (struct lw_profile_woken){cond, mutex};
	of = lw_condition(cond, caller, false);
	if (!of)
		return;
	lw_fetch_add(&of->calls, 1, relaxed);
	if (error == ETIMEDOUT)
		lw_fetch_add(&of->timed_out, 1, relaxed);
	lw_fetch_add(&of->waited, time, relaxed);
	longest = lw_load(&of->waited_max, relaxed);
	while (longest < time && !lw_try_cmpxchg(&of->waited_max, &longest, time, relaxed)) {
	}
}

void lw_profile_signals(const pthread_cond_t *cond, const void *caller, bool is_broadcast)
{
	struct lw_profile_condition *of;

	if (lw_unlikely(lw_profile_steps != NULL)) {
		lw_profile_step(is_broadcast ? LW_STEP_BROADCASTS : LW_STEP_SIGNALS, 0, cond,
				caller);
		return;
	}
	of = lw_condition(cond, caller, true);

	if (of)
		lw_fetch_add(&of->calls, 1, relaxed);
}
