/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The surroundings in user space, where a thread takes the place of a CPU. surroundings.h says what
 * each of them means.
 */
#ifndef LW_WORLD_SURROUNDINGS_H
#define LW_WORLD_SURROUNDINGS_H

#include <time.h>

#include "park.h"
#include "hint.h"
#include "node_queues.h"
#include "settings.h"
#include "slots.h"
#include "topology.h"

static inline uint64_t lw_user_nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The table of parked heads has 2^15 entries: at least one for each slot. */
#define LW_USER_PARKED_HEADS_BITS 15
struct lw_parked_head;
extern struct lw_parked_head *const lw_user_parked_heads __attribute__((visibility("hidden")));

#define lw_slot_enter()		lw_user_slot_enter()
#define lw_slot_leave(slot)	((void)(slot), lw_user_slot_leave())
#define lw_own_reads()		lw_user_thread.reads
#define lw_slots()		lw_user_slots()
#define lw_next_slot(slot)	lw_user_next_slot(slot)
#define lw_slot_nodes(slot)	((struct lw_node *)lw_user_block(slot)->nodes[(slot) % LW_BLOCK_SLOTS])
#define lw_slot_reads(slot)	((struct lw_read *)lw_user_block(slot)->reads[(slot) % LW_BLOCK_SLOTS])
#define lw_own_held()		lw_user_thread.held
#define lw_slot_held(slot)	((struct lw_held *)lw_user_block(slot)->held[(slot) % LW_BLOCK_SLOTS])
#define lw_numa_node()		lw_user_numa_node()
#define lw_is_priority()	(lw_tunable(priority_waiters) && lw_user_thread.priority)
#define lw_clock()		(lw_user_nanoseconds(CLOCK_MONOTONIC_COARSE) | 1)
#define lw_spin_budget(most)	lw_user_spin_budget(most)
#define lw_spin_report(success) lw_user_spin_report(success)
#define lw_note_time(p, time)	lw_store(p, time, relaxed)
#define lw_noted_time(p)	lw_load(p, relaxed)
#define lw_choose(n)		lw_user_choose(n)
#define lw_chance(times, of)	(lw_choose(of) < (times))
#define lw_tunable(name)	lw_load(&lw_user_settings.name, relaxed)
#define lw_hint(p, n)		lw_hint_below(n, lw_load(p, relaxed))
#define lw_numa_aware(lock)	lw_user_numa_aware()
#define lw_node_queues(n)	lw_user_node_queues(n)
/* Without the top byte of the address, in which some processors let programs keep a tag. */
#define lw_identity(p)		((uint64_t)(uintptr_t)(p) & (((uint64_t)1 << 56) - 1))
#define lw_limit_reached(limit) lw_user_limit_reached(limit)
#define lw_limits_exist()	true
#define lw_slot_abandon(slot, leave)                \
	__extension__({                             \
		bool lw_left;                       \
		lw_user_slot_hide();                \
		lw_left = (leave);                  \
		if (lw_left)                        \
			lw_user_slot_abandoned();   \
		else                                \
			lw_user_slot_restore(slot); \
		lw_left;                            \
	})
#define lw_slot_may_be_abandoned() lw_user_slot_may_be_abandoned()
#define lw_slot_reclaim(slot)	   lw_user_slot_reclaim(slot)
#define lw_is_dead(node)	   (lw_load(&(node)->locked, relaxed) == LW_NODE_DEAD)
#define lw_is_forked()		   lw_user_is_forked
#define lw_timestamp()		   lw_user_nanoseconds(CLOCK_MONOTONIC)
#define lw_parked_heads()	   lw_user_parked_heads
#define lw_parked_heads_bits()	   LW_USER_PARKED_HEADS_BITS
#define lw_count(event)		   lw_user_count(LW_EVENT_##event, 1)
#define lw_count_by(event, n)	   lw_user_count(LW_EVENT_##event, n)
#define lw_count_max(event, value) lw_user_count_max(LW_EVENT_##event, value)
#define lw_count_handoff(slot)	   ((void)(slot))
#define lw_count_pass(from, to)

#endif
