/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be set of the locks whose waiters halt, for tunables_list.h. Of those up to 1,
 * 1 is on.
 */
LW_TUNABLE(pv_kick_at_unlock, 1, 1, 1, "the unlocker wakes a halted queue head, not the hand-off")
LW_TUNABLE(pv_kick_ahead, 0, 2, 16, "waiters behind the queue head that are woken beforehand")
LW_TUNABLE(pv_wait_early, 1, 1, 1, "waiters halt at once while the one before them is halted")
LW_TUNABLE(pv_latencies, 0, 0, 1, "measure how long kicks and wake-ups take")
LW_TUNABLE(pv_pending, 1, 1, 1, "the first waiter spins on the pending bit and does not queue")
LW_TUNABLE(pv_steal, 1, 1, 1, "arrivals may take a free lock while others queue")
LW_TUNABLE(pv_spin, 200, 32768, 1000000, "looks at the lock before a waiter halts")
LW_TUNABLE(unfair_park, 1, 0, 1, "waiters halt")
LW_TUNABLE(unfair_spin, 200, 32768, 1000000, "looks at the lock before a waiter halts, if it does")
