/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What has been set by the environment or by call. */
#ifndef LW_USER_TUNABLES_H
#define LW_USER_TUNABLES_H

#include "topology.h"

struct lw_user_settings {
	lw_atomic(uint32_t) numa_mode; /* enum lw_numa_mode */
	lw_atomic(uint32_t) numa_threshold_ms;
	lw_atomic(bool) shuffle_reduction;
	lw_atomic(bool) priority_waiters;
	union {
		struct {
#define LW_TUNABLE(name, ...) lw_atomic(uint64_t) name;
#include "tunables_list.h"
		};
		lw_atomic(uint64_t) tunables[LW_TUNABLE_COUNT];
	};
};

extern struct lw_user_settings lw_user_settings __attribute__((visibility("hidden")));

static inline bool lw_user_numa_aware(void)
{
	uint32_t mode = lw_load(&lw_user_settings.numa_mode, relaxed);

	return mode == LW_NUMA_ON || (mode == LW_NUMA_AUTO && lw_user_domains() >= 2);
}

#endif
