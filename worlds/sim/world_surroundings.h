/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The surroundings in the simulator: a CPU is a slot, and all else belongs to the run. */
#ifndef LW_WORLD_SURROUNDINGS_H
#define LW_WORLD_SURROUNDINGS_H

#include "hint.h"
#include "world.h"

struct lw_node;
struct lw_held;
struct lw_read;

uint32_t lw_sim_slot(void);
uint32_t lw_sim_slots(void);
struct lw_node *lw_sim_slot_nodes(uint32_t slot);
struct lw_read *lw_sim_slot_reads(uint32_t slot);
struct lw_held *lw_sim_slot_held(uint32_t slot);
uint16_t lw_sim_numa_node(void);
uint16_t lw_sim_slot_numa_node(uint32_t slot);
bool lw_sim_is_priority(void);
uint64_t lw_sim_clock(void);
uint32_t lw_sim_choose(uint32_t n);
const struct lw_tunables *lw_sim_tunables(void);
struct lw_node *lw_sim_node_queues(uint32_t numa_node);
struct lw_parked_head *lw_sim_parked_heads(void);
void lw_sim_count(uint32_t event, uint64_t n);
void lw_sim_count_max(uint32_t event, uint64_t value);

#define lw_slot_enter()		lw_sim_slot()
#define lw_slot_leave(slot)	((void)(slot))
#define lw_own_reads()		lw_sim_slot_reads(lw_sim_slot())
#define lw_slots()		lw_sim_slots()
#define lw_next_slot(slot)	((slot) + 1)
#define lw_slot_nodes(slot)	lw_sim_slot_nodes(slot)
#define lw_slot_reads(slot)	lw_sim_slot_reads(slot)
#define lw_own_held()		lw_sim_slot_held(lw_sim_slot())
#define lw_slot_held(slot)	lw_sim_slot_held(slot)
#define lw_numa_node()		lw_sim_numa_node()
#define lw_is_priority()	(lw_tunable(priority_waiters) && lw_sim_is_priority())
#define lw_clock()		lw_sim_clock()
#define lw_spin_budget(most)	(most)
#define lw_spin_report(success) ((void)(success))
#define lw_note_time(p, time)	lw_store(p, time, relaxed)
#define lw_noted_time(p)	lw_load(p, relaxed)
#define lw_choose(n)		lw_sim_choose(n)
#define lw_chance(times, of)	(lw_choose(of) < (times))
#define lw_tunable(name)	(lw_sim_tunables()->name)
#define lw_numa_aware(lock)	lw_tunable(numa_aware)
#define lw_node_queues(n)	lw_sim_node_queues(n)
/* Simulated memory begins at address 0. */
#define lw_identity(p)		     ((uint64_t)(uintptr_t)(p))
#define lw_limit_reached(limit)	     ((void)(limit), false)
#define lw_limits_exist()	     false
#define lw_hint(p, n)		     lw_hint_below(n, lw_load(p, relaxed))
#define lw_slot_abandon(slot, leave) ((void)(slot), (leave))
#define lw_slot_may_be_abandoned()   true
#define lw_slot_reclaim(slot)	     ((void)(slot))
#define lw_is_dead(node)	     false
#define lw_is_forked()		     false
#define lw_timestamp()		     lw_sim_clock()
#define LW_SIM_PARKED_HEADS_BITS     11
#define lw_parked_heads()	     lw_sim_parked_heads()
#define lw_parked_heads_bits()	     LW_SIM_PARKED_HEADS_BITS
#define lw_count(event)		     lw_sim_count(LW_EVENT_##event, 1)
#define lw_count_by(event, n)	     lw_sim_count(LW_EVENT_##event, n)
#define lw_count_max(event, value)   lw_sim_count_max(LW_EVENT_##event, value)
#define lw_count_handoff(slot)                                                                     \
	lw_sim_count(lw_sim_slot_numa_node(slot) == lw_sim_numa_node() ? LW_EVENT_local_handoffs   \
								       : LW_EVENT_remote_handoffs, \
		     1)
#define lw_count_pass(from, to)

#endif
