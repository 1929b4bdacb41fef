/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The historic locks, for locks_list.h. They are kept for comparison with published figures, in the
 * simulator, the checker, torture and benchmarks. Programs and kernels do not have them.
 */
LW_LOCK(byte)
LW_LOCK(cna13)
LW_LOCK(pvticket)
LW_LOCK(pv42)
LW_LOCK(mutex37)
LW_LOCK(mutex310)
LW_LOCK(futex)
