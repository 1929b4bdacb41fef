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

/* What the variable of a tunable begins with. */
#define LW_VARIABLE "LOCKWORKS_"

extern char **environ;

struct lw_user_settings lw_user_settings = {
	.numa_mode = {LW_NUMA_AUTO},
	.numa_threshold_ms = {LW_NUMA_THRESHOLD_DEFAULT_MS},
	.shuffle_reduction = {true},
	.priority_waiters = {true},
#define LW_TUNABLE(name, default, ...) .name = {default},
#include "tunables_list.h"
};

const struct lw_tunable_description lw_tunables[] = {
#define LW_TUNABLE(name, ...) {#name, __VA_ARGS__},
#include "tunables_list.h"
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

int lw_set_tunable(enum lw_tunable_id id, uint64_t value)
{
	if ((unsigned int)id >= LW_TUNABLE_COUNT || value > lw_tunables[id].maximum)
		return EINVAL;
	lw_store(&lw_user_settings.tunables[id], value, relaxed);
	return 0;
}

uint64_t lw_tunable_value(enum lw_tunable_id id)
{
	if ((unsigned int)id >= LW_TUNABLE_COUNT)
		return 0;
	return lw_load(&lw_user_settings.tunables[id], relaxed);
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

/* As long as the longest variable of a tunable. */
union lw_longest_variable {
#define LW_TUNABLE(name, ...) char name[sizeof(LW_VARIABLE #name)];
#include "tunables_list.h"
};

/* The variable of a tunable, in `to`; gives its length. */
static size_t lw_spell_variable(char to[sizeof(union lw_longest_variable)],
				const struct lw_tunable_description *tunable)
{
	int length = sprintf(to, LW_VARIABLE "%s", tunable->name);

	for (int i = 0; i < length; i++)
		to[i] = (char)toupper((unsigned char)to[i]);
	return (size_t)length;
}

/* No tunable's, but if it begins like some, one of these may have been meant. */
static void lw_refuse_unknown(const char *variable)
{
	size_t lock = strlen(LW_VARIABLE) + strcspn(variable + strlen(LW_VARIABLE), "_=") + 1;
	char name[sizeof(union lw_longest_variable)], alike[1024];
	size_t length = 0;

	for (unsigned int id = 0; id < LW_TUNABLE_COUNT && length < sizeof(alike); id++) {
		lw_spell_variable(name, &lw_tunables[id]);
		if (strncmp(name, variable, lock) == 0)
			length += (size_t)snprintf(alike + length, sizeof(alike) - length, "%s%s",
						   length ? ", " : "", name);
	}
	if (length)
		dprintf(STDERR_FILENO, "lockworks: %s ignored: no such tunable; there are %s\n",
			variable, alike);
}

/* A variable that begins with LW_VARIABLE, with its value. */
static void lw_set_tunable_from(const char *variable)
{
	const char *value = strchr(variable, '=');
	char name[sizeof(union lw_longest_variable)];
	unsigned long long number;
	unsigned int id = 0;
	char *end;

	if (!value)
		return;
	while (id < LW_TUNABLE_COUNT &&
	       (lw_spell_variable(name, &lw_tunables[id]) != (size_t)(value - variable) ||
		memcmp(name, variable, (size_t)(value - variable)) != 0))
		id++;
	if (id == LW_TUNABLE_COUNT) {
		lw_refuse_unknown(variable);
		return;
	}
	value++;
	number = strtoull(value, &end, 10);
	/* strtoull() takes a sign and white space too; what is too large it makes ULLONG_MAX */
	if (*value < '0' || *value > '9' || *end || lw_set_tunable((enum lw_tunable_id)id, number))
		dprintf(STDERR_FILENO, "lockworks: %s ignored: it must be 0 to %" PRIu64 "\n",
			variable, lw_tunables[id].maximum);
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
	for (char **variable = environ; variable && *variable; variable++)
		if (strncmp(*variable, LW_VARIABLE, strlen(LW_VARIABLE)) == 0)
			lw_set_tunable_from(*variable);
}
