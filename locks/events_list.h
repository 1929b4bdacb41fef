/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the locks count, the same in every world: X(name, meaning). */
#ifndef LW_EVENTS_LIST_H
#define LW_EVENTS_LIST_H

#define LW_EVENTS(X)                                                                       \
	X(pending_acquisitions, "acquired through the pending bit, without a queue node")  \
	X(queued_acquisitions, "acquired through the queue")                               \
	X(nodeless_acquisitions, "acquired by trylock, for want of a queue node")          \
	X(local_handoffs, "queue head handed to a waiter of the same node")                \
	X(remote_handoffs, "queue head handed to a waiter of another node")                \
	X(secondary_moves, "waiters moved to the secondary queue")                         \
	X(threshold_flushes, "secondary queue put first because it was too old")           \
	X(empty_flushes, "secondary queue made primary because the primary was empty")     \
	X(priority_waiters, "queued waiters that may not be delayed for others' locality") \
	X(shuffles_skipped, "hand-offs without a look at the queue, by shuffle reduction")

#endif
