/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What can be set from outside, with the defaults and bounds that every world keeps. */
#ifndef LW_TUNABLES_H
#define LW_TUNABLES_H

#include "world.h"

#define LW_NUMA_THRESHOLD_MIN_MS     1
#define LW_NUMA_THRESHOLD_MAX_MS     100
#define LW_NUMA_THRESHOLD_DEFAULT_MS 10

#define LW_TUNABLE_MAX INT64_MAX
/* Counts of hand-offs end here. check: sooner. */
#ifndef LW_HANDOFFS_MAX
#define LW_HANDOFFS_MAX UINT16_MAX
#endif

/* What can be set by name, in the order of tunables_list.h. */
enum lw_tunable_id {
#define LW_TUNABLE(name, ...) LW_TUNABLE_##name,
#include "tunables_list.h"
	LW_TUNABLE_COUNT
};

/* Read with lw_tunable(name), but for numa_aware, which is lw_numa_aware(lock). */
struct lw_tunables {
	/* CNA, HQ: keep waiters of one node together. `auto` has been resolved by the world. */
	bool numa_aware;
	/* CNA: longest time that waiters of other nodes are passed over, milliseconds. */
	uint32_t numa_threshold_ms;
	/* CNA: while nobody is passed over, look at the queue at one hand-off in 128 only. */
	bool shuffle_reduction;
	/* CNA: never pass over priority waiters. */
	bool priority_waiters;
#define LW_TUNABLE(name, ...) uint64_t name;
#include "tunables_list.h"
};

/* In an initialiser; those that have names are in tunables_list.h. */
#define LW_TUNABLES_DEFAULT                                                    \
	.numa_aware = true, .numa_threshold_ms = LW_NUMA_THRESHOLD_DEFAULT_MS, \
	.shuffle_reduction = true, .priority_waiters = true

#endif
