/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The second half of the contract: everything that the slow path of a lock may know of its
 * surroundings. The first half is in operations.h. world_surroundings_defaults.h has the
 * definitions that a world need not make.
 */
#ifndef LW_SURROUNDINGS_H
#define LW_SURROUNDINGS_H

#include "events.h"
#include "tunables.h"
#include "world_surroundings.h"
#include "world_surroundings_defaults.h"

struct lw_wait_limit;

/* Slots */

/*
 * The number of the slot whose queue nodes this CPU (kernel, sim, check) or thread (user) may use,
 * from 1; 0 if no slot is free (user). Leave the slot when queueing is over, also if it was 0.
 * kernel: preemption is disabled in between.
 */
#define lw_slot_enter()	    lw_world_slot_enter()
#define lw_slot_leave(slot) lw_world_slot_leave(slot)
/* The LW_NODES_PER_SLOT queue nodes of a slot. */
#define lw_slot_nodes(slot) lw_world_slot_nodes(slot)
/*
 * Abandon a slot if `leave`, an expression, is true: its first node stays in a queue, where another
 * thread will find it and return the slot. The slot's other nodes are unused.
 */
#define lw_slot_abandon(slot, leave) lw_world_slot_abandon(slot, leave)
/* May one more slot be abandoned? user: not while half of all slots are. */
#define lw_slot_may_be_abandoned() lw_world_slot_may_be_abandoned()
/* Return an abandoned slot. */
#define lw_slot_reclaim(slot) lw_world_slot_reclaim(slot)
/* Is this the queue node of a thread that did not survive a fork? Only ever true in user space. */
#define lw_is_dead(node) lw_world_is_dead(node)

/* Threads, CPUs and NUMA nodes */

/* The NUMA node, or another measure of what is near, that this CPU or thread is on now. */
#define lw_numa_node() lw_world_numa_node()
/*
 * Does this kind of lock (cna, hq or mutex) distinguish NUMA nodes now? kernel: set for each kind.
 * user, sim, check: set for all kinds together.
 */
#define lw_numa_aware(lock) lw_world_numa_aware(lock)
/*
 * Does this waiter have priority, so that it must not be delayed for the locality of others?
 * kernel: in interrupt context, with interrupts disabled, and in a real-time task. user: a
 * real-time thread, or a thread whose program has given it priority. sim and check: the threads to
 * which the workload or the check gives priority.
 */
#define lw_is_priority() lw_world_is_priority()
/*
 * The LW_NODE_QUEUES queues of a NUMA node, in its own memory, initialised with zeros. NULL while
 * they are not available.
 */
#define lw_node_queues(numa_node) lw_world_node_queues(numa_node)

/* Time, chance and settings */

/*
 * Nanoseconds of a coarse monotonic clock, never 0. kernel: jiffies. sim: virtual time. check: each
 * reading may be early or late, before or after any threshold; it is not monotonic there.
 */
#define lw_clock() lw_world_clock()
/* Nanoseconds of a precise clock, for statistics. check: 1. */
#define lw_timestamp() lw_world_timestamp()
/* A number from 0 to n - 1. user, kernel, sim: pseudo-random. check: every one is explored. */
#define lw_choose(n) lw_world_choose(n)
/*
 * True in `times` of `of` calls on average, by lw_choose(). check: both results are explored,
 * unless only one is possible.
 */
#define lw_chance(times, of) lw_world_chance(times, of)
/* The present value of a setting in tunables.h. sim: per run. check: per configuration. */
#define lw_tunable(name) lw_world_tunable(name)
/*
 * Has the wait limit been reached, by a timeout or a cancellation? NULL: never. user: see
 * lw_pv_lock_until(). kernel, sim: never. check: whenever the client allows it.
 */
#define lw_limit_reached(limit) lw_world_limit_reached(limit)
/* Can any lock have a wait limit? user, check: yes. */
#define lw_limits_exist() lw_world_limits_exist()

/* Memory */

/* A number that only this address has, 0 to 2^56 - 1. sim: the same in every run. */
#define lw_identity(p) lw_world_identity(p)
/* The same, scattered over 64 bits by the golden ratio (Fibonacci hashing). */
#define lw_scattered(p) (lw_identity(p) / sizeof(*(p)) * 0x9e3779b97f4a7c15)
/*
 * The value that *p seems to have, 0 to n - 1. The memory may be in another use by now, so the
 * value is a hint and may be wrong. check: every value is explored.
 */
#define lw_hint(p, n) lw_world_hint(p, n)
/* The 2^lw_parked_heads_bits() entries of parked_heads.h, all zero at first. */
#define lw_parked_heads()      lw_world_parked_heads()
#define lw_parked_heads_bits() lw_world_parked_heads_bits()

/* Statistics */

/* Count an event of events.h. check: note that it has happened. */
#define lw_count(event) lw_world_count(event)
/* Count an event n times, or add n of the units that it counts. */
#define lw_count_by(event, n) lw_world_count_by(event, n)
/* Record the highest value of an event that is a maximum. check: nothing. */
#define lw_count_max(event, value) lw_world_count_max(event, value)
/*
 * Count local_handoffs or remote_handoffs, from a waiter with a node of `slot` to this one. user,
 * check: nothing, since only the thread itself knows its NUMA node.
 */
#define lw_count_handoff(slot) lw_world_count_handoff(slot)

#endif
