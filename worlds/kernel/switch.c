// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Files in debugfs that choose the slow path and settings in a running kernel, so that
 * slow paths can be compared in one boot.
 */
#define pr_fmt(fmt) "lockworks: " fmt

#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/stop_machine.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "numa_spinlock.h"
#include "tunables.h"

static const char *slowpath_name(void)
{
	enum numa_spinlock_path path = NUMA_SPINLOCK_PATH(READ_ONCE(numa_spinlock_chosen));

#ifdef CONFIG_LOCKWORKS_GUEST
	if (guest_spinlock != GUEST_SPINLOCK_AUTO && guest_spinlock != GUEST_SPINLOCK_UNFAIR &&
	    path == NUMA_SPINLOCK_STOCK)
		return guest_spinlock_names[guest_spinlock];
#endif
	if (!numa_spinlock_is_queued())
		return "ticket";
	/* Paravirt guests do not reach the hook of CNA, so it was not enabled at boot. */
	return static_key_enabled(&numa_spinlock_key) ? numa_spinlock_names[path] : "paravirt";
}

static ssize_t slowpath_read(struct file *file, char __user *buffer, size_t count, loff_t *at)
{
	char text[16];
	int length = scnprintf(text, sizeof(text), "%s\n", slowpath_name());

	return simple_read_from_buffer(buffer, count, at, text, length);
}

static bool is_mutex(enum numa_spinlock_path path)
{
#ifdef CONFIG_LOCKWORKS_MUTEX
	return path == NUMA_SPINLOCK_MUTEX;
#else
	return false;
#endif
}

static int set_path(void *new)
{
	unsigned int old = numa_spinlock_chosen;
	enum numa_spinlock_path path = *(enum numa_spinlock_path *)new;
	bool after_mutex = NUMA_SPINLOCK_AFTER_MUTEX(old) || is_mutex(NUMA_SPINLOCK_PATH(old));

	/* The mutex knows its own bits. */
	WRITE_ONCE(numa_spinlock_chosen,
		   NUMA_SPINLOCK_CHOSEN(path, after_mutex && !is_mutex(path)));
	return 0;
}

static ssize_t slowpath_write(struct file *file, const char __user *buffer, size_t count,
			      loff_t *at)
{
	enum numa_spinlock_path path;
	char text[16] = "";
	int i;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, count))
		return -EFAULT;
	if (!static_key_enabled(&numa_spinlock_key))
		return -EOPNOTSUPP;
	i = sysfs_match_string(numa_spinlock_names, text);
	if (i < 0)
		return i;
	path = i;
	/*
	 * Waiters of different slow paths must not meet in one queue. While all CPUs are
	 * stopped, no task waits for a spinlock, since waiters have preemption disabled.
	 * An NMI handler may wait even then: do not switch while NMI handlers take locks.
	 */
	stop_machine(set_path, &path, NULL);
	return count;
}

static const struct file_operations slowpath_operations = {
	.open = simple_open,
	.read = slowpath_read,
	.write = slowpath_write,
	.llseek = default_llseek,
};

static int threshold_get(void *data, u64 *ms)
{
	*ms = READ_ONCE(numa_spinlock_tunables.numa_threshold_ms);
	return 0;
}

static int threshold_set(void *data, u64 ms)
{
	if (ms < LW_NUMA_THRESHOLD_MIN_MS || ms > LW_NUMA_THRESHOLD_MAX_MS)
		return -ERANGE;
	WRITE_ONCE(numa_spinlock_tunables.numa_threshold_ms, ms);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(threshold_operations, threshold_get, threshold_set, "%llu\n");

static int __init switch_init(void)
{
	struct dentry *directory = debugfs_create_dir("numa_spinlock", NULL);

	debugfs_create_file("slowpath", 0600, directory, NULL, &slowpath_operations);
	debugfs_create_file_unsafe("threshold", 0600, directory, NULL, &threshold_operations);
	debugfs_create_bool("shuffle_reduction", 0600, directory,
			    &numa_spinlock_tunables.shuffle_reduction);
#ifdef CONFIG_HQSPINLOCKS
	if (numa_spinlock_is_queued())
		debugfs_create_bool("hq", 0600, directory, &hqlock_on);
#endif
	return 0;
}
fs_initcall(switch_init);
