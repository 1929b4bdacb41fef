/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The settings of locks, with the defaults and bounds that every world keeps. */
#ifndef LW_TUNABLES_H
#define LW_TUNABLES_H

#include "world.h"

#define LW_NUMA_THRESHOLD_MIN_MS     1
#define LW_NUMA_THRESHOLD_MAX_MS     100
#define LW_NUMA_THRESHOLD_DEFAULT_MS 10

#define LW_TUNABLE_MAX INT64_MAX
/* The greatest number of hand-overs that locks count. */
#define LW_HANDOFFS_MAX lw_constant(UINT16_MAX, 2)

/* The settings that have names, in the order of tunables_list.h. */
enum lw_tunable_id {
#define LW_TUNABLE(name, ...) LW_TUNABLE_##name,
#include "tunables_list.h"
	LW_TUNABLE_COUNT
};

/* A lock reads these with lw_tunable(name), except numa_aware, which is lw_numa_aware(lock). */
struct lw_tunables {
	/* CNA, HQ, mutex: keep waiters of one NUMA node together. The world has resolved `auto`. */
	bool numa_aware;
	/* CNA: the longest time that waiters of other NUMA nodes are passed over, milliseconds. */
	uint32_t numa_threshold_ms;
	/* CNA: while no waiter is passed over, search the queue at one hand-over in 128 only. */
	bool shuffle_reduction;
	/* CNA: never pass over priority waiters. */
	bool priority_waiters;
#define LW_TUNABLE(name, ...) uint64_t name;
#include "tunables_list.h"
};

/* For an initialiser. The defaults of settings with names are in tunables_list.h. */
#define LW_TUNABLES_DEFAULT                                                    \
	.numa_aware = true, .numa_threshold_ms = LW_NUMA_THRESHOLD_DEFAULT_MS, \
	.shuffle_reduction = true, .priority_waiters = true

#endif
