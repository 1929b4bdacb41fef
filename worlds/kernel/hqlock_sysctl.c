// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Settings of HQ-spinlocks: kernel.hqlock_* */
#include <linux/init.h>

#include "tunables_sysctl.h"

enum {
#define LW_TUNABLE(tunable, ...) HQLOCK_##tunable,
#include "hqlock_tunables_list.h"
#undef LW_TUNABLE
	HQLOCK_TUNABLES
};

static SYSCTL_TUNABLES(HQLOCK_TUNABLES) hqlock_sysctl = {.entries = {
#define LW_TUNABLE(tunable, user_value, value, largest, ...) \
	SYSCTL_TUNABLE(tunable, value, largest),
#include "hqlock_tunables_list.h"
							 }};

static int __init hqlock_sysctl_init(void)
{
	register_sysctl_init("kernel", hqlock_sysctl.entries);
	return 0;
}
fs_initcall(hqlock_sysctl_init);
