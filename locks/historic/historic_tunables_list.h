/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The settings of the historic locks, for tunables_list.h. */
LW_TUNABLE(pv42_spin, 200, 32768, UINT32_MAX, 1, "polls before a waiter halts")
LW_TUNABLE(pvticket_spin, 200, 32768, UINT32_MAX, 1, "polls before a waiter halts")
LW_TUNABLE(mutex37_spin, 16, UINT32_MAX, UINT32_MAX, 1,
	   "rounds of 64 polls before a waiter parks while the owner runs; also of mutex310")
