// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pthread_spin_lock(): the time that all threads together wait, for all spinlocks together. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include <lockworks/lockworks.h>

#include "glibc.h"
#include "record.h"

LW_EXPORT int pthread_spin_lock(pthread_spinlock_t *spin)
{
	struct lw_profile *profile;
	uint64_t begun;
	int error;

	if (lw_is_too_early())
		return 0;
	error = lw_glibc()->spin_trylock(spin);
	if (error != EBUSY)
		return error;
	begun = lw_profile_now();
	error = lw_glibc()->spin_lock(spin);
	profile = lw_load(&lw_profile_own.record, acquire);
	if (profile)
		lw_fetch_add(&profile->spun, lw_profile_elapsed(begun, lw_profile_now()), relaxed);
	return error;
}
