/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be set of single locks by name: LW_TUNABLE(name, default, kernel_default,
 * maximum, meaning), defined by who includes this. A name begins with its lock's and `_`;
 * the least value is 0 for all. kernel_default is for kernels and for what models them.
 */
#include "hqlock_tunables_list.h"
#include "pv_tunables_list.h"
LW_TUNABLE(pvticket_spin, 200, 32768, UINT32_MAX, "looks before a waiter halts")
LW_TUNABLE(mutex37_spin, 16, UINT32_MAX, UINT32_MAX,
	   "rounds of 64 looks before a waiter sleeps, though the owner may run; mutex310, too")

#undef LW_TUNABLE
