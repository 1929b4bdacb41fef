/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The second half of the contract: everything that the slow path of a lock may know of its
 * surroundings. The first half is in operations.h.
 */
#ifndef LW_SURROUNDINGS_H
#define LW_SURROUNDINGS_H

#include "events.h"
#include "tunables.h"
#include "world_surroundings.h"

struct lw_wait_limit;

/*
 * Slots
 *
 * lw_slot_enter()
 *	The number of the slot whose queue nodes this CPU (kernel, sim, check) or thread (user) may
 *	use, from 1; 0 if no slot is free (user). kernel: preemption is disabled until
 *	lw_slot_leave().
 * lw_slot_leave(slot)
 *	Leave the slot that lw_slot_enter() has returned, also if that was 0.
 * lw_own_reads()
 *	lw_slot_reads() of our slot, if it stays ours while any of them is in use; else NULL. user:
 *	NULL until the thread has entered its slot once, and if it cannot keep the slot.
 * lw_slots()
 *	The highest number of a slot that has ever been entered. seq_cst.
 * lw_next_slot(slot)
 *	The next slot after `slot`, which may be 0, whose thread may have announced or entered a
 *	lock; beyond lw_slots() if there is none. seq_cst. user: leaves out most slots of threads
 *	that have ended.
 * lw_slot_nodes(slot), lw_slot_reads(slot)
 *	The LW_NODES_PER_SLOT queue nodes of a slot, and its LW_READS_PER_SLOT announcements of
 *	readers (reader_slots.h). They are all zero at first.
 * lw_slot_abandon(slot, leave)
 *	Evaluate the expression `leave`, and abandon the slot if it is true. The slot's first node
 *	then stays in a queue, where another thread will find it and return the slot. The slot's
 *	other nodes are unused. Returns the value of `leave`.
 * lw_slot_may_be_abandoned()
 *	May one more slot be abandoned? user: not while half of all slots are.
 * lw_slot_reclaim(slot)
 *	Return an abandoned slot.
 * lw_is_dead(node)
 *	Is this the queue node of a thread that did not survive a fork? Only ever true in user
 *	space, and in a check of forks.
 * lw_is_forked()
 *	Is this the child of a fork, where bits of a lock word may be those of threads that did not
 *	survive? Only ever true in user space, and in a check of forks.
 */
#if !defined(lw_slot_enter) || !defined(lw_slot_leave) || !defined(lw_slot_nodes) ||               \
	!defined(lw_own_reads) || !defined(lw_slots) || !defined(lw_slot_reads) ||                 \
	!defined(lw_next_slot) || !defined(lw_slot_abandon) ||                                     \
	!defined(lw_slot_may_be_abandoned) || !defined(lw_slot_reclaim) || !defined(lw_is_dead) || \
	!defined(lw_is_forked)
#error "world_surroundings.h lacks an operation on slots"
#endif

/*
 * Threads, CPUs and NUMA nodes
 *
 * lw_numa_node()
 *	The NUMA node that this CPU or thread is on now. user: a node as LOCKWORKS_NEAR defines it.
 * lw_numa_aware(lock)
 *	Does this kind of lock (cna, hq or mutex) distinguish NUMA nodes now? kernel: set for each
 *	kind. user, sim, check: set for all kinds together.
 * lw_is_priority()
 *	Does this waiter have priority, so that it must not be delayed for the locality of others?
 *	kernel: in interrupt context, with interrupts disabled, and in a real-time task. user: a
 *	real-time thread, or a thread whose program has given it priority. sim and check: the
 *	threads to which the workload or the check gives priority. Elsewhere than in the kernel,
 *	nobody if the tunable priority_waiters is off.
 * lw_node_queues(numa_node)
 *	The LW_NODE_QUEUES queues of a NUMA node, in its own memory, initialised with zeros. NULL
 *	while they are not available. user: NULL too in the child of a fork, if threads waited for
 *	locks at the fork. A tail that names such a queue is then that of a dead thread.
 */
#if !defined(lw_numa_node) || !defined(lw_numa_aware) || !defined(lw_is_priority) || \
	!defined(lw_node_queues)
#error "world_surroundings.h lacks an operation about threads or NUMA nodes"
#endif

/*
 * Time, chance and settings
 *
 * lw_spin_budget(most)
 *	The number of polls, `most` at most, that it is worth for this thread to spin before it
 *	parks. user: half as many after each spin that brought nothing, twice as many after one that
 *	did, and now and then `most`; 0 for a real-time thread. kernel, sim, check: `most`.
 * lw_spin_report(success)
 *	Did a spin by that budget bring what the thread waited for?
 *
 * lw_clock()
 *	A coarse monotonic clock, never 0. user, sim: nanoseconds. kernel: jiffies. check: each
 *	reading may be early or late, before or after any threshold; it is not monotonic there.
 * lw_clock_after(ms)
 *	What lw_clock() is after so many milliseconds.
 * lw_timestamp()
 *	Nanoseconds of a precise clock, which costs more to read. check: 1.
 * lw_has_passed(since, nanoseconds)
 *	Have they passed since that timestamp? check: both answers.
 * lw_note_time(p, time), lw_noted_time(p)
 *	Note a time in memory that several locks share, and read the last one. Advice. check: that
 *	of reading is always early.
 * lw_choose(n)
 *	A number from 0 to n - 1. user, kernel, sim: pseudo-random. check: every one is explored.
 * lw_chance(times, of)
 *	True in `times` of `of` calls on average, by lw_choose(). check: both results are explored,
 *	unless only one is possible.
 * lw_tunable(name)
 *	The present value of a setting in tunables.h. sim: per run. check: per configuration.
 * lw_limit_reached(limit)
 *	Has the wait limit been reached, by a timeout or a cancellation? NULL: never. user: see
 *	lw_pv_lock_until(). kernel, sim: never. check: whenever the client allows it.
 * lw_limits_exist()
 *	Can any lock have a wait limit? user: yes. check: where waiters may park.
 */
#if !defined(lw_clock) || !defined(lw_timestamp) || !defined(lw_note_time) || \
	!defined(lw_noted_time) || !defined(lw_choose) || !defined(lw_chance)
#error "world_surroundings.h lacks an operation on time or chance"
#endif
#ifndef lw_clock_after
#define lw_clock_after(ms) (lw_clock() + (uint64_t)(ms)*1000000)
#endif
#ifndef lw_has_passed
/* Another thread may have noted a later time. */
#define lw_has_passed(since, nanoseconds) \
	((int64_t)(lw_timestamp() - (since)) > (int64_t)(nanoseconds))
#endif
#if !defined(lw_tunable) || !defined(lw_limit_reached) || !defined(lw_limits_exist)
#error "world_surroundings.h lacks an operation on settings or wait limits"
#endif

/*
 * Memory
 *
 * lw_identity(p)
 *	A number that only this address has, 0 to 2^56 - 1. sim: the same in every run.
 * lw_hint(p, n)
 *	The value that *p seems to have, 0 to n - 1. The memory may be in another use by now, so the
 *	value is a hint and may be wrong. check: every value is explored.
 * lw_parked_heads()
 *	The 2^lw_parked_heads_bits() entries of parked_heads.h, all zero at first.
 */
#if !defined(lw_identity) || !defined(lw_hint) || !defined(lw_parked_heads) || \
	!defined(lw_parked_heads_bits)
#error "world_surroundings.h lacks an operation on addresses or tables"
#endif
/* lw_identity(), scattered over 64 bits by the golden ratio (Fibonacci hashing). */
#define lw_scattered(p) (lw_identity(p) / sizeof(*(p)) * 0x9e3779b97f4a7c15)

/*
 * Statistics
 *
 * lw_count(event)
 *	Count an event of events.h. check: note that it has happened.
 * lw_count_by(event, n)
 *	Count an event n times, or add n of the units that it counts.
 * lw_count_max(event, value)
 *	Record the highest value of an event that is a maximum. check: nothing.
 * lw_count_handoff(slot)
 *	Count local_handoffs or remote_handoffs, from a waiter with a node of `slot` to this one.
 *	user, check: nothing, since only the thread itself knows its NUMA node.
 * lw_count_pass(from, to)
 *	Count local_handoffs if the two NUMA nodes are the same, and remote_handoffs if not.
 *	kernel: if it counts lock events. Elsewhere nothing, and the arguments are not evaluated.
 */
#if !defined(lw_count) || !defined(lw_count_by) || !defined(lw_count_max) || \
	!defined(lw_count_handoff) || !defined(lw_count_pass)
#error "world_surroundings.h lacks an operation that counts"
#endif

#endif
