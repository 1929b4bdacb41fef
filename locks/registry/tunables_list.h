/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of single locks, by name: LW_TUNABLE(name, default, kernel_default, maximum,
 * meaning), which the including file defines. A name begins with the name of its lock and `_`. The
 * least value of each setting is 0. kernel_default is for kernels and for simulations of them.
 */
#include "hqlock_tunables_list.h"
#include "parking_tunables_list.h"
LW_TUNABLE(pvticket_spin, 200, 32768, UINT32_MAX, "polls before a waiter halts")
LW_TUNABLE(mutex37_spin, 16, UINT32_MAX, UINT32_MAX,
	   "rounds of 64 polls before a waiter parks while the owner runs; also of mutex310")

#undef LW_TUNABLE
