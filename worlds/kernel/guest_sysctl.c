// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Settings of the spinlocks of guests: kernel.pv_* and kernel.unfair_*. */
#include <linux/init.h>

#include "tunables_sysctl.h"

enum {
#define LW_TUNABLE(tunable, ...) GUEST_##tunable,
#include "guest_tunables_list.h"
#undef LW_TUNABLE
	GUEST_TUNABLES
};

/* The release of an unfair lock kicks no waiter, so its waiters must not halt. */
#define LARGEST(tunable, largest) (LW_TUNABLE_##tunable == LW_TUNABLE_unfair_park ? 0 : (largest))

static SYSCTL_TUNABLES(GUEST_TUNABLES) guest_sysctl = {.entries = {
#define LW_TUNABLE(tunable, user_value, value, largest, ...) \
	SYSCTL_TUNABLE(tunable, value, LARGEST(tunable, largest)),
#include "guest_tunables_list.h"
						       }};

static int __init guest_sysctl_init(void)
{
	register_sysctl_init("kernel", guest_sysctl.entries);
	return 0;
}
fs_initcall(guest_sysctl_init);
