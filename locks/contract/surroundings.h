/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operation set, second half: what the slow path of a lock may know of its
 * surroundings. The first half is in operations.h.
 */
#ifndef LW_SURROUNDINGS_H
#define LW_SURROUNDINGS_H

#include "events.h"
#include "tunables.h"
#include "world_surroundings.h"

struct lw_wait_limit;

struct lw_slot_wanted {
	lw_atomic(uint32_t) what; /* 0 at first */
};

/*
 * The slot whose queue nodes this CPU (kernel, sim, check) or thread (user)
 * may use, from 1; 0 when user has none left. Leave it when queueing is over,
 * also if it was 0.
 * In the kernel, preemption is off in between.
 */
#define lw_slot_enter()	    lw_world_slot_enter()
#define lw_slot_leave(slot) lw_world_slot_leave(slot)
/* The LW_NODES_PER_SLOT queue nodes of a slot. */
#define lw_slot_nodes(slot) lw_world_slot_nodes(slot)
/* Slots are 1 to this, at least those that have been entered. Not in the kernel. */
#define lw_slots() lw_world_slots()
/* Where a slot says what it is parked for, a struct lw_slot_wanted. Not in the kernel. */
#define lw_slot_wanted(slot) lw_world_slot_wanted(slot)
/*
 * A number that stands for this CPU or thread, never 0, and whether the one with that number runs
 * at this moment, rather than sleep or wait for a CPU. Not in the kernel. user: nobody knows, so
 * it is taken to run. check: both are explored.
 */
#define lw_runner()	      lw_world_runner()
#define lw_is_running(runner) lw_world_is_running(runner)
/*
 * Is somebody waiting for the CPU that we spin on? Not in the kernel. user: nobody knows, so no.
 * check: both are explored.
 */
#define lw_should_yield() lw_world_should_yield()
/* NUMA node, or whatever else counts as near, that this CPU or thread is on now. */
#define lw_numa_node() lw_world_numa_node()
/*
 * Must this waiter not be delayed for the sake of others' locality? kernel:
 * interrupt context, interrupts off or a real-time task. user: a real-time
 * thread or one declared so. sim and check: as the workload says.
 */
#define lw_is_priority() lw_world_is_priority()
/*
 * Nanoseconds of a coarse monotonic clock, never 0. kernel: jiffies. sim:
 * virtual time. check: every look may find it early or late, before or after
 * any threshold; it is not monotonic there.
 */
#define lw_clock() lw_world_clock()
/* 0 .. n-1. user, kernel, sim: pseudo-random. check: every one is explored. */
#define lw_choose(n) lw_world_choose(n)
/*
 * True `times` of `of` times, by lw_choose(). check: both are explored, unless it is
 * never or always.
 */
#define lw_chance(times, of) lw_world_chance(times, of)
/* The value of a setting of tunables.h now. sim: per run. check: per configuration. */
#define lw_tunable(name) lw_world_tunable(name)
/*
 * Whether waiters of a kind of lock (cna, hq or mutex) are to be told apart by NUMA node now.
 * kernel: set for each kind. user, sim, check: set for all kinds together.
 */
#define lw_numa_aware(lock) lw_world_numa_aware(lock)
/*
 * The LW_NODE_QUEUES queues of a NUMA node, in its own memory, all zero at
 * first. NULL when they cannot be had, which may change.
 */
#define lw_node_queues(numa_node) lw_world_node_queues(numa_node)
/*
 * A number that stands for this memory and no other, from 0 to 2^56 - 1. sim: the
 * same in every run.
 */
#define lw_identity(p) lw_world_identity(p)
/* The same, scattered over 64 bits by the golden ratio (Fibonacci hashing). */
#define lw_scattered(p) (lw_identity(p) / sizeof(*(p)) * 0x9e3779b97f4a7c15)
/*
 * Has the time come, or has somebody asked, to give up waiting? NULL: never. user: see
 * lw_pv_lock_until(). kernel, sim: never. check: whenever the client may.
 */
#define lw_limit_reached(limit) lw_world_limit_reached(limit)
/* May that be, for any lock? user, check: yes. */
#ifdef lw_world_limits_exist
#define lw_limits_exist() lw_world_limits_exist()
#else
#define lw_limits_exist() false
#endif
/*
 * Part with a slot, if `leave`, an expression, is true: it leaves the slot's first node in a
 * queue, where somebody will find it and give the slot back. The others are unused.
 */
#define lw_slot_abandon(slot, leave) lw_world_slot_abandon(slot, leave)
/* May one more be left so? user: not while half of all are. */
#ifdef lw_world_slot_may_be_abandoned
#define lw_slot_may_be_abandoned() lw_world_slot_may_be_abandoned()
#else
#define lw_slot_may_be_abandoned() true
#endif
#define lw_slot_reclaim(slot) lw_world_slot_reclaim(slot)
/* Has a fork left behind the thread whose node this is? Only ever true in user space. */
#define lw_is_dead(node) lw_world_is_dead(node)
/*
 * What *p seems to be, of 0 to n - 1. p may be another's by now: a hint, which may be
 * anything. check: every one is explored.
 */
#ifndef lw_world_hint
static inline uint32_t lw_below(uint32_t n, uint32_t seen)
{
	return seen < n ? seen : n - 1;
}
#define lw_world_hint(p, n) lw_below(n, lw_load(p, relaxed))
#endif
#define lw_hint(p, n) lw_world_hint(p, n)
/* Nanoseconds of a precise clock, for statistics. check: 1. */
#define lw_timestamp() lw_world_timestamp()
/* The 2^lw_parked_heads_bits() entries of parked_heads.h, all zero at first. */
#define lw_parked_heads()      lw_world_parked_heads()
#define lw_parked_heads_bits() lw_world_parked_heads_bits()
/* Count an event of events.h. check: note that it has happened. */
#define lw_count(event) lw_world_count(event)
/* Count it n times, or n of what it counts. */
#define lw_count_by(event, n) lw_world_count_by(event, n)
/* Keep the highest value. check: nothing. */
#define lw_count_max(event, value) lw_world_count_max(event, value)
/*
 * Count local_handoffs or remote_handoffs, from a waiter with a node of `slot`
 * to this one. user, check: nothing, a thread's NUMA node is known to itself only.
 */
#define lw_count_handoff(slot) lw_world_count_handoff(slot)

#endif
