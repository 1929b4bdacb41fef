/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of single locks, by name: LW_TUNABLE(name, default, kernel_default, maximum,
 * meaning), which the including file defines. A name begins with the name of its lock and `_`. The
 * least value of each setting is 0. kernel_default is for kernels and for simulations of them.
 */
#include "hqlock_tunables_list.h"
#include "guest_tunables_list.h"
LW_TUNABLE(mutex_spin, 2000, 32768, UINT32_MAX, "polls before a waiter parks")
LW_TUNABLE(mutex_arrival_spin, 16, 16, UINT32_MAX,
	   "polls of an arriving thread before it queues behind a parked waiter")
LW_TUNABLE(mutex_starvation_limit, 4, 4, UINT32_MAX,
	   "parks of a queue head without success before it disables stealing; the highest: never")
LW_TUNABLE(mutex_steal_window, 128, 128, UINT32_MAX,
	   "polls of a running queue head before it disables stealing; 0: it does not")
LW_TUNABLE(mutex_group, 64, 64, UINT32_MAX,
	   "most waiters in a row that are moved ahead for their NUMA node; 0: none")
#ifdef LW_WITH_HISTORIC
#include <historic_tunables_list.h> /* only tools have it */
#endif

#undef LW_TUNABLE
