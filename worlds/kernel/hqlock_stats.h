/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The counters of HQ-spinlocks that /proc/hqlock_stats prints. */
#ifndef LW_HQLOCK_STATS_H
#define LW_HQLOCK_STATS_H

#include "events.h"

#ifdef CONFIG_HQSPINLOCKS_DEBUG
#include <linux/atomic.h>

extern atomic_long_t hqlock_events[LW_EVENT_COUNT];
extern atomic_long_t hqlock_node_queues_used;
/* Wrong by a few at most, because a queue is counted just after it was taken or released. */
extern atomic_long_t hqlock_node_queues_most;

static inline void hqlock_keep_max(atomic_long_t *most, long value)
{
	long old = atomic_long_read(most);

	while (value > old && !atomic_long_try_cmpxchg_relaxed(most, &old, value))
		;
}

static __always_inline void hqlock_count(enum lw_event event)
{
	switch (event) {
	case LW_EVENT_node_queues_taken:
		hqlock_keep_max(&hqlock_node_queues_most,
				atomic_long_inc_return_relaxed(&hqlock_node_queues_used));
		break;
	case LW_EVENT_node_queues_released:
		atomic_long_dec(&hqlock_node_queues_used);
		break;
	case LW_EVENT_numa_mode_entered:
	case LW_EVENT_numa_mode_left:
		atomic_long_inc(&hqlock_events[event]);
		break;
	default:
		break;
	}
}

static __always_inline void hqlock_count_max(enum lw_event event, long value)
{
	hqlock_keep_max(&hqlock_events[event], value);
}
#else
static __always_inline void hqlock_count(enum lw_event event)
{
}

static __always_inline void hqlock_count_max(enum lw_event event, long value)
{
}
#endif

#endif
