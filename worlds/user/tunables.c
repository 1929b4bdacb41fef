// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The tunables: set by the environment at start, by call at any time. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tunables.h"
#include "user_tunables.h"

#define LW_STRING(x)  #x
#define LW_SPELLED(x) LW_STRING(x)

struct lw_user_settings lw_user_settings = {
	.numa_mode = {LW_NUMA_AUTO},
	.numa_threshold_ms = {LW_NUMA_THRESHOLD_DEFAULT_MS},
	.shuffle_reduction = {true},
	.priority_waiters = {true},
#define LW_HQLOCK_TUNABLE(name, default, ...) .hqlock_##name = {default},
#include "hqlock_tunables_list.h"
};

const struct lw_hqlock_tunable_description lw_hqlock_tunables[] = {
#define LW_HQLOCK_TUNABLE(name, default, maximum, meaning) {#name, default, maximum, meaning},
#include "hqlock_tunables_list.h"
};

int lw_set_numa_spinlock(enum lw_numa_mode mode)
{
	if (mode != LW_NUMA_AUTO && mode != LW_NUMA_ON && mode != LW_NUMA_OFF)
		return EINVAL;
	lw_store(&lw_user_settings.numa_mode, mode, relaxed);
	return 0;
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
	if (ms < LW_NUMA_THRESHOLD_MIN_MS || ms > LW_NUMA_THRESHOLD_MAX_MS)
		return EINVAL;
	lw_store(&lw_user_settings.numa_threshold_ms, ms, relaxed);
	return 0;
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

int lw_set_hqlock(enum lw_hqlock_tunable tunable, uint64_t value)
{
	if ((unsigned int)tunable >= LW_HQLOCK_TUNABLE_COUNT ||
	    value > lw_hqlock_tunables[tunable].maximum)
		return EINVAL;
	lw_store(&lw_user_settings.hqlock[tunable], value, relaxed);
	return 0;
}

uint64_t lw_hqlock(enum lw_hqlock_tunable tunable)
{
	if ((unsigned int)tunable >= LW_HQLOCK_TUNABLE_COUNT)
		return 0;
	return lw_load(&lw_user_settings.hqlock[tunable], relaxed);
}

static void lw_set_mode_from(const char *name, const char *value)
{
	static const char *const modes[] = {
		[LW_NUMA_AUTO] = "auto", [LW_NUMA_ON] = "on", [LW_NUMA_OFF] = "off"};

	for (unsigned int mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
		if (strcmp(value, modes[mode]) == 0) {
			lw_set_numa_spinlock((enum lw_numa_mode)mode);
			return;
		}
	}
	dprintf(STDERR_FILENO, "lockworks: %s=%s ignored: it must be auto, on or off\n", name,
		value);
}

static void lw_set_threshold_from(const char *name, const char *value)
{
	char *end;
	unsigned long ms = strtoul(value, &end, 10);

	/* strtoul() takes a sign and white space too */
	if (*value < '0' || *value > '9' || *end || ms > LW_NUMA_THRESHOLD_MAX_MS ||
	    lw_set_numa_spinlock_threshold((unsigned int)ms))
		dprintf(STDERR_FILENO,
			"lockworks: %s=%s ignored: it must be " LW_SPELLED(
				LW_NUMA_THRESHOLD_MIN_MS) " to " LW_SPELLED(LW_NUMA_THRESHOLD_MAX_MS) " milliseconds\n",
			name, value);
}

static void lw_set_switch_from(const char *name, const char *value, void (*set)(bool on))
{
	if (strcmp(value, "on") == 0)
		set(true);
	else if (strcmp(value, "off") == 0)
		set(false);
	else
		dprintf(STDERR_FILENO, "lockworks: %s=%s ignored: it must be on or off\n", name,
			value);
}

static void lw_set_hqlock_from_environment(enum lw_hqlock_tunable tunable)
{
	const struct lw_hqlock_tunable_description *described = &lw_hqlock_tunables[tunable];
	char name[64] = "LOCKWORKS_HQLOCK_", *at = strchr(name, '\0');
	const char *value;
	unsigned long long number;
	char *end;

	for (const char *from = described->name; *from; from++)
		*at++ = (char)toupper((unsigned char)*from);
	*at = '\0';
	value = getenv(name);
	if (!value)
		return;
	number = strtoull(value, &end, 10);
	/* strtoull() takes a sign and white space too; what is too large it makes ULLONG_MAX */
	if (*value < '0' || *value > '9' || *end || lw_set_hqlock(tunable, number))
		dprintf(STDERR_FILENO, "lockworks: %s=%s ignored: it must be 0 to %" PRIu64 "\n",
			name, value, described->maximum);
}

__attribute__((constructor(101))) static void lw_tunables_start(void)
{
	static const char mode[] = "LOCKWORKS_NUMA_SPINLOCK";
	static const char threshold[] = "LOCKWORKS_NUMA_SPINLOCK_THRESHOLD";
	static const char shuffle[] = "LOCKWORKS_SHUFFLE_REDUCTION";
	static const char priority[] = "LOCKWORKS_PRIORITY_WAITERS";

	if (getenv(mode))
		lw_set_mode_from(mode, getenv(mode));
	if (getenv(threshold))
		lw_set_threshold_from(threshold, getenv(threshold));
	if (getenv(shuffle))
		lw_set_switch_from(shuffle, getenv(shuffle), lw_set_shuffle_reduction);
	if (getenv(priority))
		lw_set_switch_from(priority, getenv(priority), lw_set_priority_waiters);
	for (unsigned int i = 0; i < LW_HQLOCK_TUNABLE_COUNT; i++)
		lw_set_hqlock_from_environment((enum lw_hqlock_tunable)i);
}
