/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the locks count, the same in every world: LW_EVENT(name, meaning), defined
 * by who includes this; LW_MAXIMUM likewise, where it makes a difference that of
 * these not the sum is kept but the highest value.
 */
#ifndef LW_MAXIMUM
#define LW_MAXIMUM LW_EVENT
#endif

LW_EVENT(pending_acquisitions, "acquired through the pending bit, without a queue node")
LW_EVENT(queued_acquisitions, "acquired through the queue")
LW_EVENT(nodeless_acquisitions, "acquired by trylock, for want of a queue node")
LW_EVENT(local_handoffs, "queue head handed to a waiter of the same node")
LW_EVENT(remote_handoffs, "queue head handed to a waiter of another node")
LW_EVENT(secondary_moves, "waiters moved to the secondary queue")
LW_EVENT(threshold_flushes, "secondary queue put first because it was too old")
LW_EVENT(empty_flushes, "secondary queue made primary because the primary was empty")
LW_EVENT(priority_waiters, "queued waiters that may not be delayed for others' locality")
LW_EVENT(shuffles_skipped, "hand-offs without a look at the queue, by shuffle reduction")
LW_EVENT(node_queues_taken, "NUMA nodes' queues taken by a lock")
LW_EVENT(node_queues_released,
	 "NUMA nodes' queues given back when nobody of the node waited any more")
LW_EVENT(node_queue_conflicts,
	 "waiters that queued by themselves, another lock having the queue of their node")
LW_EVENT(fairness_handoffs, "hand-offs to another node after too many local ones in a row")
LW_EVENT(numa_mode_entered, "locks whose waiters began to queue by node")
LW_EVENT(numa_mode_left, "locks whose waiters ceased to queue by node")
LW_EVENT(steals_on_arrival, "acquired on arrival though not at the first try, past those who queue")
LW_EVENT(steals_behind_head, "acquired by stealing, from the place behind the queue head")
LW_EVENT(steals_third, "acquired by stealing, from the third place of the queue, more or less")
LW_EVENT(steals_fourth, "acquired by stealing, from the fourth place, more or less")
LW_EVENT(steals_further_back, "acquired by stealing, from further back")
LW_EVENT(waiters_grouped, "waiters put before others for the NUMA node of the queue head")
LW_EVENT(halts_at_head, "halts of the queue head")
LW_EVENT(halts_in_queue, "halts of waiters behind it")
LW_EVENT(halts_early, "of these: since the waiter before had halted")
LW_EVENT(kicks_at_unlock, "queue heads kicked to get the lock")
LW_EVENT(kicks_at_handoff, "waiters kicked to be queue head")
LW_EVENT(kicks_ahead, "waiters kicked ahead of their turn")
LW_EVENT(spurious_wakeups, "wake-ups in which there was nothing to do yet")
LW_EVENT(waits_cancelled, "waits given up")
LW_EVENT(table_operations, "insertions into and removals from the table of parked heads")
LW_EVENT(table_hops, "entries passed over by these")
LW_EVENT(kick_nanoseconds, "time that kicks took, where it is measured")
LW_EVENT(wakeups, "wake-ups by kicks, where their latency is measured")
LW_EVENT(wakeup_nanoseconds, "time from these kicks until the waiters ran")
LW_MAXIMUM(longest_local_run, "most local hand-offs in a row, queueing by node")

#undef LW_EVENT
#undef LW_MAXIMUM
