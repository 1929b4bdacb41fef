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
LW_MAXIMUM(longest_local_run, "most local hand-offs in a row, queueing by node")

#undef LW_EVENT
#undef LW_MAXIMUM
