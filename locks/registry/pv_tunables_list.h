/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be set of the locks whose waiters halt, for tunables_list.h. Where the highest value
 * is 1, it is a switch. A look takes a pause instruction and a load, or, where it is at the lock
 * word, ever more pauses.
 */
LW_TUNABLE(pv_kick_at_unlock, 1, 1, 1,
	   "a halted waiter that is made queue head is kicked at the unlock, not before")
LW_TUNABLE(pv_kick_ahead, 0, 0, 8, "halted waiters behind the queue head that are kicked with it")
LW_TUNABLE(pv_wait_early, 1, 1, 1, "a waiter halts as soon as the one before it has halted")
LW_TUNABLE(pv_pending, 1, 1, 1, "the first to wait does so with the pending bit, without a queue")
LW_TUNABLE(pv_steal, 1, 1, 1, "arrivals take a free lock, though others queue")
LW_TUNABLE(pv_starvation_limit, 4, 4, UINT32_MAX,
	   "the queue head forbids stealing after so many halts in vain; the highest: never")
LW_TUNABLE(pv_latencies, 0, 0, 1,
	   "measure how long kicks and wake-ups take, of pv, pv42 and unfair")
LW_TUNABLE(pv_arrival_spin, 16, 256, UINT32_MAX,
	   "looks of one that arrives before it queues, if it may steal")
LW_TUNABLE(pv_spin, 500, 512, UINT32_MAX, "looks before a waiter halts")
LW_TUNABLE(pv42_spin, 200, 32768, UINT32_MAX, "looks before a waiter halts")
LW_TUNABLE(mutex_spin, 2000, 32768, UINT32_MAX, "looks before a waiter sleeps")
LW_TUNABLE(mutex_arrival_spin, 16, 16, UINT32_MAX,
	   "looks of one that arrives before it queues behind one that sleeps")
LW_TUNABLE(mutex_starvation_limit, 4, 4, UINT32_MAX,
	   "the queue head forbids stealing after so many sleeps in vain; the highest: never")
LW_TUNABLE(mutex_steal_window, 128, 128, UINT32_MAX,
	   "looks of a queue head that runs before it forbids stealing; 0: it does not")
LW_TUNABLE(mutex_group, 64, 64, UINT32_MAX,
	   "so many waiters in a row may be put before others for their NUMA node; 0: none")
LW_TUNABLE(unfair_park, 1, 0, 1, "waiters halt")
LW_TUNABLE(unfair_spin, 500, 2048, UINT32_MAX, "looks before a waiter halts, if it does")
LW_TUNABLE(unfair_arrival_spin, 16, 256, UINT32_MAX, "looks of one that arrives before it queues")
LW_TUNABLE(unfair_starvation_limit, 4, 1000, UINT32_MAX,
	   "the head forbids stealing after so many halts or watches in vain; the highest: never")
