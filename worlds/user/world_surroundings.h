/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The surroundings in user space: a thread takes a CPU's place. What each of
 * these means is in surroundings.h.
 */
#ifndef LW_WORLD_SURROUNDINGS_H
#define LW_WORLD_SURROUNDINGS_H

#include <time.h>

#include "slots.h"
#include "topology.h"
#include "user_tunables.h"

static inline uint64_t lw_user_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) | 1;
}

#define lw_world_slot_enter()	  lw_user_slot_enter()
#define lw_world_slot_leave(slot) lw_user_slot_leave()
#define lw_world_slot_nodes(slot) (&lw_user_nodes[(slot)*LW_NODES_PER_SLOT])
#define lw_world_numa_node()	  lw_user_numa_node()
#define lw_world_is_priority()	  (lw_user_thread.priority)
#define lw_world_clock()	  lw_user_clock()
#define lw_world_choose(n)	  lw_user_choose(n)
/* A snapshot: each setting is one atomic load, so that setting them meanwhile is no race. */
#define lw_world_tunables()                                                                 \
	(&(const struct lw_tunables){                                                       \
		.numa_aware = lw_user_numa_aware(),                                         \
		.numa_threshold_ms = lw_load(&lw_user_settings.numa_threshold_ms, relaxed), \
		.shuffle_reduction = lw_load(&lw_user_settings.shuffle_reduction, relaxed), \
		.priority_waiters = lw_load(&lw_user_settings.priority_waiters, relaxed)})
#define lw_world_count(event)	     lw_user_count(LW_EVENT_##event)
#define lw_world_count_handoff(slot) ((void)(slot))

#endif
