// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What can be set of HQ-spinlocks: kernel.hqlock_* */
#include <linux/build_bug.h>
#include <linux/init.h>
#include <linux/sysctl.h>

#include "numa_spinlock.h"
#include "tunables.h"

enum {
	HQLOCK_TUNABLES = 0
#define LW_TUNABLE(...) +1
#include "hqlock_tunables_list.h"
#undef LW_TUNABLE
};

/*
 * Linux 6.12 counts the entries, 6.1 looks for one without a name behind them. In
 * tunables_list.h, these are the first.
 */
static struct {
	struct ctl_table entries[HQLOCK_TUNABLES];
	struct ctl_table end;
} hqlock_sysctl = {
#define LW_TUNABLE(tunable, user_value, value, largest, ...)                                    \
	.entries[LW_TUNABLE_##tunable] = {                                                      \
		.procname = #tunable,                                                           \
		.data = &numa_spinlock_tunables.tunable,                                        \
		.maxlen = sizeof(numa_spinlock_tunables.tunable),                               \
		.mode = 0644,                                                                   \
		.proc_handler = proc_doulongvec_minmax,                                         \
		.extra2 = &(unsigned long){(largest) + BUILD_BUG_ON_ZERO((value) > (largest))}, \
	},
#include "hqlock_tunables_list.h"
};

static int __init hqlock_sysctl_init(void)
{
	register_sysctl_init("kernel", hqlock_sysctl.entries);
	return 0;
}
fs_initcall(hqlock_sysctl_init);
