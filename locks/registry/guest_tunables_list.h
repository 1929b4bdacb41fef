/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings of the locks of guests, whose waiters park (pv, unfair), for
 * tunables_list.h. A setting whose highest value is 1 is a switch. A poll is a pause instruction
 * and a load. At the lock word, a poll has several pauses, and their number grows.
 */
LW_TUNABLE(pv_kick_at_unlock, 1, 1, 1, 1,
	   "a halted waiter that becomes queue head is kicked at the unlock, not before")
LW_TUNABLE(pv_kick_ahead, 0, 0, 8, 1,
	   "halted waiters behind the queue head that are kicked with it")
LW_TUNABLE(pv_wait_early, 1, 1, 1, 1, "a waiter halts as soon as its predecessor has halted")
LW_TUNABLE(pv_pending, 1, 1, 1, 1,
	   "the first contender waits with the pending bit, without a queue node")
LW_TUNABLE(pv_steal, 1, 1, 1, 1, "arriving threads take a free lock, though others queue")
LW_TUNABLE(pv_starvation_limit, 4, 4, UINT32_MAX, 1,
	   "halts of a queue head without success before it disables stealing; the highest: never")
LW_TUNABLE(pv_latencies, 0, 0, 1, 0, "measure how long kicks and wake-ups take, in pv and unfair")
LW_TUNABLE(pv_arrival_spin, 16, 256, UINT32_MAX, 0,
	   "polls of an arriving thread before it queues, if it may steal")
LW_TUNABLE(pv_spin, 500, 512, UINT32_MAX, 1, "polls before a waiter halts")
LW_TUNABLE(unfair_park, 1, 0, 1, 1, "waiters park")
LW_TUNABLE(unfair_spin, 500, 2048, UINT32_MAX, 1, "polls before a waiter parks, if it does")
LW_TUNABLE(unfair_arrival_spin, 16, 256, UINT32_MAX, 0,
	   "polls of an arriving thread before it queues")
LW_TUNABLE(unfair_starvation_limit, 4, 1000, UINT32_MAX, 1,
	   "defeats of a queue head before it disables stealing; the highest: never")
