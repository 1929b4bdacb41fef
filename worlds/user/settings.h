/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of the user world: the tunables and how NUMA nodes are used. The environment sets
 * them when the program starts; the library's functions set them later.
 */
#ifndef LW_USER_SETTINGS_H
#define LW_USER_SETTINGS_H

#include "topology.h"
#include "tunables.h"

struct lw_user_settings {
	lw_atomic(uint32_t) numa_mode; /* enum lw_numa_mode */
	lw_atomic(uint32_t) numa_threshold_ms;
	lw_atomic(bool) shuffle_reduction;
	lw_atomic(bool) priority_waiters;
	/* The tunables of tunables_list.h, by name or by enum lw_tunable_id. */
	union {
		struct {
#define LW_TUNABLE(name, ...) lw_atomic(uint64_t) name;
#include "tunables_list.h"
		};
		lw_atomic(uint64_t) tunables[LW_TUNABLE_COUNT];
	};
};

extern struct lw_user_settings lw_user_settings __attribute__((visibility("hidden")));

/* Each of these sets one value. It returns false, and changes nothing, if that is not allowed. */
bool lw_user_set_numa_mode(unsigned int mode) __attribute__((visibility("hidden")));
bool lw_user_set_numa_threshold(unsigned long ms) __attribute__((visibility("hidden")));
bool lw_user_set_tunable(unsigned int id, uint64_t value) __attribute__((visibility("hidden")));

/* Writes `text` to `to`, of `size` bytes: shortened to fit, and without control characters. */
void lw_user_printable(char *to, size_t size, const char *text)
	__attribute__((visibility("hidden")));
/*
 * Writes a line of at most 1399 bytes to standard error, without stdio, which may allocate memory
 * and so acquire locks. Does not change errno.
 */
__attribute__((format(printf, 1, 2), visibility("hidden"))) void
lw_user_write_line(const char *format, ...);
/* Says in a line on standard error that a variable of the environment is ignored, and why. */
void lw_user_report_ignored(const char *name, const char *value, const char *why)
	__attribute__((visibility("hidden")));

/* The contract's lw_numa_aware(). */
static inline bool lw_user_numa_aware(void)
{
	uint32_t mode = lw_load(&lw_user_settings.numa_mode, relaxed);

	return mode == LW_NUMA_ON || (mode == LW_NUMA_AUTO && lw_user_domains() >= 2);
}

#endif
