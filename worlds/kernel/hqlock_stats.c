// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/hqlock_stats: statistics of all HQ-spinlocks in the kernel together. */
#include <linux/init.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "hqlock_stats.h"

atomic_long_t hqlock_events[LW_EVENT_COUNT];
atomic_long_t hqlock_node_queues_used;
atomic_long_t hqlock_node_queues_most;

static void show(struct seq_file *file, const char *name, long value)
{
	seq_printf(file, "%-24s %ld\n", name, value);
}

static int hqlock_stats_show(struct seq_file *file, void *unused)
{
	show(file, "node_queues", atomic_long_read(&hqlock_node_queues_used));
	show(file, "node_queues_most", atomic_long_read(&hqlock_node_queues_most));
#define SHOW_EVENT(event) show(file, #event, atomic_long_read(&hqlock_events[LW_EVENT_##event]))
	SHOW_EVENT(longest_local_run);
	SHOW_EVENT(numa_mode_entered);
	SHOW_EVENT(numa_mode_left);
	return 0;
}

static int __init hqlock_stats_init(void)
{
	proc_create_single("hqlock_stats", 0444, NULL, hqlock_stats_show);
	return 0;
}
fs_initcall(hqlock_stats_init);
