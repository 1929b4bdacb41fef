// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The tunables by call. The user world sets them from the environment when the program starts. */
#include <errno.h>

#include <lockworks/lockworks.h>

#include "settings.h"

const struct lw_tunable_description lw_tunables[] = {
#define LW_TUNABLE(name, default, kernel_default, maximum, checked, meaning) \
	{#name, default, kernel_default, maximum, meaning},
#include "tunables_list.h"
};

static int lw_result(bool allowed)
{
	return allowed ? 0 : EINVAL;
}

int lw_set_numa_spinlock(enum lw_numa_mode mode)
{
	return lw_result(lw_user_set_numa_mode(mode));
}

enum lw_numa_mode lw_numa_spinlock(void)
{
	return (enum lw_numa_mode)lw_load(&lw_user_settings.numa_mode, relaxed);
}

bool lw_numa_spinlock_active(void)
{
	return lw_user_numa_aware();
}

int lw_set_numa_spinlock_threshold(unsigned int ms)
{
	return lw_result(lw_user_set_numa_threshold(ms));
}

unsigned int lw_numa_spinlock_threshold(void)
{
	return lw_load(&lw_user_settings.numa_threshold_ms, relaxed);
}

void lw_set_shuffle_reduction(bool on)
{
	lw_store(&lw_user_settings.shuffle_reduction, on, relaxed);
}

bool lw_shuffle_reduction(void)
{
	return lw_load(&lw_user_settings.shuffle_reduction, relaxed);
}

void lw_set_priority_waiters(bool on)
{
	lw_store(&lw_user_settings.priority_waiters, on, relaxed);
}

bool lw_priority_waiters(void)
{
	return lw_load(&lw_user_settings.priority_waiters, relaxed);
}

int lw_set_tunable(enum lw_tunable_id id, uint64_t value)
{
	return lw_result(lw_user_set_tunable((unsigned int)id, value));
}

uint64_t lw_tunable_value(enum lw_tunable_id id)
{
	if ((unsigned int)id >= LW_TUNABLE_COUNT)
		return 0;
	return lw_load(&lw_user_settings.tunables[id], relaxed);
}
