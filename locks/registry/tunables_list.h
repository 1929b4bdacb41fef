/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of single locks, by name: LW_TUNABLE(name, default, kernel_default, maximum,
 * checked, meaning), which the including file defines. A name begins with the name of its lock and
 * `_`; the lock's description says which it reads. The least value of each setting is 0.
 * kernel_default is for kernels and for simulations of them. `checked` is for the checker: so low
 * that it matters to a few threads, in few states.
 */
#include "hqlock_tunables_list.h"
#include "guest_tunables_list.h"
LW_TUNABLE(mutex_spin, 2000, 512, UINT32_MAX, 1, "polls before a waiter parks")
LW_TUNABLE(mutex_trials, 156, 156, 10000, 0,
	   "odds, in 1/10000, that the last holder may retake the mutex; not where waiters park")
LW_TUNABLE(mutex_slice, 0, 0, 1, 0,
	   "a holder asks for an extension of its time slice (Linux 7.0 or later)")
LW_TUNABLE(rwlock_spread_after, 64, 64, 128, 1,
	   "reads in a row without a write before readers use their own slots; 0: never")
LW_TUNABLE(rwlock_gather, 64, 64, UINT32_MAX, 2,
	   "of so many writes, one lets readers be counted in the lock again")
LW_TUNABLE(rqspinlock_timeout, 1000, 250, 3600000, 250,
	   "milliseconds after which a waiter that polls the lock gives up; 0: never")
#ifdef LW_WITH_HISTORIC
#include <historic_tunables_list.h> /* only tools have it */
#endif

#undef LW_TUNABLE
