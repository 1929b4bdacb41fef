/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The events that locks count, the same in every world: LW_EVENT(name, meaning), which the
 * including file defines. LW_MAXIMUM is for events of which the highest value is kept, not the sum.
 * A file that treats both alike need not define it.
 *
 * "Halt" and "kick" are the words of the paravirt literature. In a program a waiter parks and is
 * woken.
 */
#ifndef LW_MAXIMUM
#define LW_MAXIMUM LW_EVENT
#endif

LW_EVENT(pending_acquisitions, "acquisitions through the pending bit, without a queue node")
LW_EVENT(queued_acquisitions, "acquisitions through the queue")
LW_EVENT(nodeless_acquisitions,
	 "acquisitions by trying until the lock was free, for lack of a queue node")
LW_EVENT(local_handoffs, "hand-overs of the queue head's role within a NUMA node")
LW_EVENT(remote_handoffs, "hand-overs of the queue head's role to another NUMA node")
LW_EVENT(secondary_moves, "waiters moved to the secondary queue")
LW_EVENT(threshold_flushes, "secondary queues put first because they were too old")
LW_EVENT(empty_flushes, "secondary queues made primary because the primary queue was empty")
LW_EVENT(priority_waiters, "queued waiters that may not be delayed for the locality of others")
LW_EVENT(shuffles_skipped, "hand-overs without a search of the queue, by shuffle reduction")
LW_EVENT(node_queues_taken, "queues of NUMA nodes taken by a lock")
LW_EVENT(node_queues_released, "queues of NUMA nodes freed when no waiter of the node was left")
LW_EVENT(node_queue_conflicts,
	 "waiters that queued alone because another lock used the queue of their NUMA node")
LW_EVENT(fairness_handoffs, "hand-overs to another NUMA node after too many local ones in a row")
LW_EVENT(numa_mode_entered, "changes of a lock to queueing by NUMA node")
LW_EVENT(numa_mode_left, "changes of a lock back from queueing by NUMA node")
LW_EVENT(queued_reads, "acquisitions by readers that waited in the queue of writers")
LW_EVENT(steals_on_arrival, "acquisitions by stealing, on arrival but not at the first attempt")
LW_EVENT(retakes, "acquisitions by the last holder, ahead of waiters, not at the first attempt")
LW_EVENT(steals_behind_head, "acquisitions by stealing, from the place behind the queue head")
LW_EVENT(steals_third, "acquisitions by stealing, from about the third place of the queue")
LW_EVENT(steals_fourth, "acquisitions by stealing, from about the fourth place of the queue")
LW_EVENT(steals_further_back, "acquisitions by stealing, from a place further back")
LW_EVENT(halts_at_head, "halts of the queue head")
LW_EVENT(halts_in_queue, "halts of waiters behind the queue head")
LW_EVENT(halts_early, "halts of waiters behind the queue head because the predecessor had halted")
LW_EVENT(kicks_at_unlock, "queue heads kicked by an unlock, to get the lock")
LW_EVENT(kicks_at_handoff, "waiters kicked by their predecessor, to be queue head")
LW_EVENT(kicks_ahead, "waiters kicked ahead of their turn")
LW_EVENT(spurious_wakeups, "wake-ups that came before there was anything to do")
LW_EVENT(slices_granted, "time slices that ended while a lock was held, and were extended")
LW_EVENT(slices_yielded, "CPUs given back after the release, before the extension had passed")
LW_EVENT(slices_expired, "extensions that ended before the release, or by a system call")
LW_EVENT(waits_cancelled, "waits that ended at their limit, without the lock")
LW_EVENT(table_operations, "insertions into and removals from the table of parked heads")
LW_EVENT(table_hops, "entries that operations on that table passed over")
LW_EVENT(kick_nanoseconds, "time that kicks took, where it is measured")
LW_EVENT(wakeups, "wake-ups by a kick, where their latency is measured")
LW_EVENT(wakeup_nanoseconds, "time from the kick until the waiter ran, summed over wakeups")
LW_MAXIMUM(longest_local_run, "most local hand-overs in a row, while queueing by NUMA node")

#undef LW_EVENT
#undef LW_MAXIMUM
