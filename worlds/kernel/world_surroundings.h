/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The surroundings of the locks in Linux. A CPU is a slot; its queue nodes are for the
 * contexts that nest on it. The meaning of each definition is in surroundings.h.
 */
#ifndef LW_WORLD_SURROUNDINGS_H
#define LW_WORLD_SURROUNDINGS_H

#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/prio.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "../lock_events.h"
#include "hint.h"
#include "numa_spinlock.h"
#include "hqlock_stats.h"

struct lw_node;
struct lw_read;

/* Defined where struct lw_node is known. */
static __always_inline struct lw_node *lw_kernel_nodes_of(unsigned int cpu);
#ifdef CONFIG_LOCKWORKS_RWLOCK
/* Defined in lockworks_rwlock.c. */
static __always_inline struct lw_read *lw_kernel_own_reads(void);
static __always_inline struct lw_read *lw_kernel_reads_of(unsigned int cpu);
#endif

/*
 * Whether the waiter has priority: it is in interrupt context, has interrupts disabled, or is a
 * real-time or deadline task, or a task that priority inheritance has made one for now.
 */
static inline bool lw_kernel_is_priority(void)
{
	return !in_task() || irqs_disabled() || READ_ONCE(current->prio) < MAX_RT_PRIO;
}

/* Tells the compiler that there is a slot, whatever the CPU. */
static __always_inline u32 lw_kernel_slot(void)
{
	u32 slot = smp_processor_id() + 1;

	if (!slot)
		__builtin_unreachable();
	return slot;
}

static DEFINE_PER_CPU(u32, lw_kernel_random);

/* If an interrupt comes between the read and the write, a number may appear twice. */
static inline u32 lw_kernel_choose(u32 n)
{
	/* A linear congruential generator; its factors are in Numerical Recipes. */
	u32 x = raw_cpu_read(lw_kernel_random) * 1664525 + 1013904223;

	raw_cpu_write(lw_kernel_random, x);
	return (u32)((u64)x * n >> 32); /* its high bits are the random ones */
}

#define lw_slot_enter()	    lw_kernel_slot()
#define lw_slot_leave(slot) ((void)(slot))
/* A reader does not leave its CPU. */
#define lw_own_reads()	    lw_kernel_own_reads()
#define lw_slots()	    ((uint32_t)nr_cpu_ids)
#define lw_next_slot(slot)  ((slot) + 1)
#define lw_slot_nodes(slot) lw_kernel_nodes_of((slot)-1)
#define lw_slot_reads(slot) lw_kernel_reads_of((slot)-1)
#define lw_numa_node()	    ((uint16_t)numa_node_id())
#define lw_is_priority()    lw_kernel_is_priority()
/* Times in milliseconds are rounded up to jiffies. */
#define lw_clock() ((uint64_t)jiffies)
/* Without a call of a function, for which lw_cna_lock_slow() would have to save registers. */
#define lw_clock_after(ms)	(lw_clock() + DIV_ROUND_UP((uint64_t)(ms)*HZ, MSEC_PER_SEC))
#define lw_spin_budget(most)	(most)
#define lw_spin_report(success) ((void)(success))
#define lw_note_time(p, time)	lw_store(p, time, relaxed)
#define lw_noted_time(p)	lw_load(p, relaxed)
#define lw_choose(n)		lw_kernel_choose(n)
#define lw_chance(times, of)	(lw_choose(of) < (times))
#define lw_tunable(name)	READ_ONCE(numa_spinlock_tunables.name)
/* Slow paths are called only while they are chosen, but that of HQ even while HQ is off. */
#define LW_KERNEL_NUMA_AWARE_cna   true
#define LW_KERNEL_NUMA_AWARE_hq	   READ_ONCE(hqlock_on)
#define LW_KERNEL_NUMA_AWARE_mutex true
#define lw_numa_aware(lock)	   LW_KERNEL_NUMA_AWARE_##lock
/* Queues are never freed. A CPU without a NUMA node has none. */
#define lw_node_queues(node) ((node) < MAX_NUMNODES ? READ_ONCE(hqlock_node_queues[node]) : NULL)
/* Bits 56 to 63 of a kernel address are a tag, or the same in all addresses. */
#define lw_identity(p) (GENMASK_ULL(55, 0) & (uintptr_t)(p))
/* Comparable between CPUs if their clocks are synchronised. */
#define lw_timestamp()		sched_clock()
#define lw_limit_reached(limit) ((void)(limit), false)
#define lw_limits_exist()	false
#define lw_hint(p, n)		lw_hint_below(n, lw_load(p, relaxed))
/* No wait is cancelled, so no queue node is abandoned. */
#define lw_slot_abandon(slot, leave) ((void)(slot), (leave))
#define lw_slot_may_be_abandoned()   true
#define lw_slot_reclaim(slot)	     ((void)(slot))
#define lw_is_dead(node)	     false
#define lw_is_forked()		     false
#define lw_parked_heads()	     guest_parked_heads
#define lw_parked_heads_bits()	     guest_parked_heads_bits
/* The block makes this a statement even where lockevent_inc() is empty. */
#define lw_count(event)                         \
	({                                      \
		lockevent_inc(event);           \
		hqlock_count(LW_EVENT_##event); \
	})
/* lockevent_add() takes an int. */
#define lw_count_by(event, n) ({ lockevent_add(event, (int)min_t(u64, n, INT_MAX)); })
/* Lock events are sums, so they cannot record a maximum. */
#define lw_count_max(event, value) hqlock_count_max(LW_EVENT_##event, value)
#define lw_count_handoff(slot)	   lw_count_pass(cpu_to_node((slot)-1), numa_node_id())
#define lw_count_pass(from, to)                            \
	do {                                               \
		if (!IS_ENABLED(CONFIG_LOCK_EVENT_COUNTS)) \
			break;                             \
		if ((from) == (to))                        \
			lw_count(local_handoffs);          \
		else                                       \
			lw_count(remote_handoffs);         \
	} while (0)

#endif
