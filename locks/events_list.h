/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the locks count, the same in every world: LW_EVENT(name, meaning), defined
 * by who includes this.
 */
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

#undef LW_EVENT
