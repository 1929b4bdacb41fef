/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings of locks as entries of /proc/sys/kernel. */
#ifndef LW_TUNABLES_SYSCTL_H
#define LW_TUNABLES_SYSCTL_H

#include <linux/build_bug.h>
#include <linux/sysctl.h>

#include "numa_spinlock.h"
#include "tunables.h"

/* Linux 6.12 is given the number of entries. Linux 6.1 stops at an entry without a name. */
#define SYSCTL_TUNABLES(entries_count)                     \
	struct {                                           \
		struct ctl_table entries[(entries_count)]; \
		struct ctl_table end;                      \
	}

/* An entry for a setting in these struct lw_tunables. */
#define SYSCTL_TUNABLE_IN(tunables, tunable, value, largest)                                    \
	{                                                                                       \
		.procname = #tunable, .data = &(tunables).tunable,                              \
		.maxlen = sizeof((tunables).tunable), .mode = 0644,                             \
		.proc_handler = proc_doulongvec_minmax,                                         \
		.extra2 = &(unsigned long){(largest) + BUILD_BUG_ON_ZERO((value) > (largest))}, \
	}

#define SYSCTL_TUNABLE(tunable, value, largest) \
	SYSCTL_TUNABLE_IN(numa_spinlock_tunables, tunable, value, largest)

#endif
