// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The settings: their defaults, their bounds, and what the environment says when we start. A
 * process with more rights than its user, such as that of a set-user-ID program, does not read it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "settings.h"
#include "slice.h"

#define LW_STRING(x)  #x
#define LW_SPELLED(x) LW_STRING(x)

/* The variable of a tunable is this prefix and the tunable's name in capitals. */
#define LW_PREFIX "LOCKWORKS_"

extern char **environ;

struct lw_user_settings lw_user_settings = {
	.numa_mode = {LW_NUMA_AUTO},
	.numa_threshold_ms = {LW_NUMA_THRESHOLD_DEFAULT_MS},
	.shuffle_reduction = {true},
	.priority_waiters = {true},
#define LW_TUNABLE(name, default, ...) .name = {default},
#include "tunables_list.h"
};

/* Here, not in slice.c, which needs thread slots: the profiler has settings, and no slots. */
bool lw_slices_wanted;
ptrdiff_t lw_rseq_offset;

/* glibc 2.35 and later. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static __attribute__((constructor(101))) void lw_find_rseq(void)
{
	if (&__rseq_size && __rseq_size)
		lw_rseq_offset = __rseq_offset;
}

static const struct {
	const char *name;
	uint64_t maximum;
} lw_bounds[] = {
#define LW_TUNABLE(name, default, kernel_default, maximum, ...) {#name, maximum},
#include "tunables_list.h"
};

bool lw_user_set_numa_mode(unsigned int mode)
{
	if (mode != LW_NUMA_AUTO && mode != LW_NUMA_ON && mode != LW_NUMA_OFF)
		return false;
	lw_store(&lw_user_settings.numa_mode, mode, relaxed);
	return true;
}

bool lw_user_set_numa_threshold(unsigned long ms)
{
	if (ms < LW_NUMA_THRESHOLD_MIN_MS || ms > LW_NUMA_THRESHOLD_MAX_MS)
		return false;
	lw_store(&lw_user_settings.numa_threshold_ms, (uint32_t)ms, relaxed);
	return true;
}

bool lw_user_set_tunable(unsigned int id, uint64_t value)
{
	if (id >= LW_TUNABLE_COUNT || value > lw_bounds[id].maximum)
		return false;
	lw_store(&lw_user_settings.tunables[id], value, relaxed);
	if (id == LW_TUNABLE_mutex_slice)
		lw_user_set_slices(value);
	return true;
}

/* The environment */

void lw_user_printable(char *to, size_t size, const char *text)
{
	size_t length = 0;

	for (; *text && length + 1 < size; text++)
		to[length++] = (char)(*text >= ' ' && *text <= '~' ? *text : '?');
	to[length] = '\0';
	if (*text)
		memcpy(to + length - 3, "...", 3);
}

void lw_user_write_line(const char *format, ...)
{
	char line[1400];
	const int saved = errno;
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	if (length >= (int)sizeof(line))
		length = sizeof(line) - 1;
	/* Locks print lines too, and write() is a cancellation point. */
	if (length > 0 && syscall(SYS_write, STDERR_FILENO, line, (size_t)length) < 0)
		length = 0; /* nowhere else to report it */
	errno = saved;
}

void lw_user_report_ignored(const char *name, const char *value, const char *why)
{
	char shown_name[64], shown_value[64];

	lw_user_printable(shown_name, sizeof(shown_name), name);
	lw_user_printable(shown_value, sizeof(shown_value), value);
	lw_user_write_line("lockworks: %s=%s ignored: %s\n", shown_name, shown_value, why);
}

/* Reads a decimal number without a sign. Returns false if `text` is anything else. */
static bool lw_read_number(const char *text, uint64_t *number)
{
	char *end;

	/* strtoull() also takes a sign and white space; for a number too large it returns the
	 * greatest, which no setting allows. */
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end;
}

static void lw_read_mode(void)
{
	static const char name[] = "LOCKWORKS_NUMA_SPINLOCK";
	static const char *const modes[] = {
		[LW_NUMA_AUTO] = "auto", [LW_NUMA_ON] = "on", [LW_NUMA_OFF] = "off"};
	const char *value = getenv(name);

	if (!value)
		return;
	for (unsigned int mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
		if (strcmp(value, modes[mode]) == 0) {
			lw_user_set_numa_mode(mode);
			return;
		}
	}
	lw_user_report_ignored(name, value, "it must be auto, on or off");
}

static void lw_read_threshold(void)
{
	static const char name[] = "LOCKWORKS_NUMA_SPINLOCK_THRESHOLD";
	const char *value = getenv(name);
	uint64_t ms;

	if (!value || (lw_read_number(value, &ms) && lw_user_set_numa_threshold(ms)))
		return;
	lw_user_report_ignored(name, value,
			       "it must be " LW_SPELLED(LW_NUMA_THRESHOLD_MIN_MS) " to " LW_SPELLED(
				       LW_NUMA_THRESHOLD_MAX_MS) " milliseconds");
}

/* Returns the value to which the variable `name` sets a switch, or `otherwise`. */
static bool lw_read_switch(const char *name, bool otherwise)
{
	const char *value = getenv(name);

	if (!value)
		return otherwise;
	if (strcmp(value, "on") == 0)
		return true;
	if (strcmp(value, "off") == 0)
		return false;
	lw_user_report_ignored(name, value, "it must be on or off");
	return otherwise;
}

#define LW_READ_SWITCH(setting, name)       \
	lw_store(&lw_user_settings.setting, \
		 lw_read_switch(name, lw_load(&lw_user_settings.setting, relaxed)), relaxed)

/* As long as the longest variable of a tunable. */
union lw_longest_variable {
#define LW_TUNABLE(name, ...) char name[sizeof(LW_PREFIX #name)];
#include "tunables_list.h"
};

/* Writes the name of a tunable's variable to `to`. Returns its length. */
static size_t lw_spell_variable(char to[sizeof(union lw_longest_variable)], unsigned int id)
{
	int length = sprintf(to, LW_PREFIX "%s", lw_bounds[id].name);

	for (int i = 0; i < length; i++)
		to[i] = (char)toupper((unsigned char)to[i]);
	return (size_t)length;
}

/*
 * Reports a variable that begins like the variables of some tunables, but is none of them. The user
 * may have meant one of these.
 */
static void lw_report_unknown(const char *variable, const char *value)
{
	static const char unknown[] = "no such tunable; there are ";
	size_t lock = strlen(LW_PREFIX) + strcspn(variable + strlen(LW_PREFIX), "_") + 1;
	char name[sizeof(union lw_longest_variable)], why[1024];
	size_t length = strlen(unknown);

	memcpy(why, unknown, sizeof(unknown));

	for (unsigned int id = 0; id < LW_TUNABLE_COUNT && length < sizeof(why); id++) {
		lw_spell_variable(name, id);
		if (strncmp(name, variable, lock) == 0)
			length += (size_t)snprintf(why + length, sizeof(why) - length, "%s%s",
						   length > strlen(unknown) ? ", " : "", name);
	}
	if (length > strlen(unknown))
		lw_user_report_ignored(variable, value, why);
}

/* Sets a tunable from `assignment`, NAME=VALUE, whose name begins with LW_PREFIX. */
static void lw_read_tunable(const char *assignment)
{
	const char *value = strchr(assignment, '=');
	char variable[128], name[sizeof(union lw_longest_variable)], why[64];
	unsigned int id = 0;
	uint64_t number;

	if (!value++)
		return;
	/* Longer names are those of no tunable. */
	snprintf(variable, sizeof(variable), "%.*s", (int)(value - 1 - assignment), assignment);
	while (id < LW_TUNABLE_COUNT && (lw_spell_variable(name, id), strcmp(name, variable) != 0))
		id++;
	if (id == LW_TUNABLE_COUNT) {
		lw_report_unknown(variable, value);
	} else if (!lw_read_number(value, &number) || !lw_user_set_tunable(id, number)) {
		snprintf(why, sizeof(why), "it must be 0 to %" PRIu64, lw_bounds[id].maximum);
		lw_user_report_ignored(variable, value, why);
	}
}

__attribute__((constructor(101))) static void lw_settings_start(void)
{
	if (getauxval(AT_SECURE))
		return;
	lw_read_mode();
	lw_read_threshold();
	LW_READ_SWITCH(shuffle_reduction, "LOCKWORKS_SHUFFLE_REDUCTION");
	LW_READ_SWITCH(priority_waiters, "LOCKWORKS_PRIORITY_WAITERS");
	for (char **variable = environ; variable && *variable; variable++)
		if (strncmp(*variable, LW_PREFIX, strlen(LW_PREFIX)) == 0)
			lw_read_tunable(*variable);
}
