/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The surroundings in the model checker. Each thread is a CPU with a slot. The engine decides
 * everything else.
 */
#ifndef LW_WORLD_SURROUNDINGS_H
#define LW_WORLD_SURROUNDINGS_H

#include "world.h"

struct lw_node;
struct lw_held;
struct lw_read;

/* The events counted since the last operation, one bit for each event. */
extern _Thread_local uint64_t lw_check_events;

uint32_t lw_check_slot_enter(void);
void lw_check_slot_leave(uint32_t slot);
struct lw_read *lw_check_own_reads(void);
uint32_t lw_check_slots(void);
struct lw_node *lw_check_slot_nodes(uint32_t slot);
struct lw_read *lw_check_slot_reads(uint32_t slot);
struct lw_held *lw_check_own_held(void);
struct lw_held *lw_check_slot_held(uint32_t slot);
void *lw_check_lent_node(uint32_t i);

uint16_t lw_check_numa_node(void);
bool lw_check_is_priority(void);
const struct lw_tunables *lw_check_tunables(void);
/* NULL after lw_check_node_queues_end(). */
struct lw_node *lw_check_node_queues(uint32_t numa_node);
void lw_check_node_queues_end(void);
/* The number that stands for a lock's address; all locks share the queue of each NUMA node. */
uint64_t lw_check_identity(uintptr_t p);
struct lw_parked_head *lw_check_parked_heads(void);

/* May a thread fork in this check? */
bool lw_check_forks(void);
/* Is the running thread in the child of a fork? */
bool lw_check_is_forked(void);
/* In that child the slot is free: a new thread gets it. */
void lw_check_slot_free(uint32_t slot);

/*
 * A thread that abandons its slot is also the slot's next owner, once another thread has reclaimed
 * the slot. `kept` stands for all that an owner keeps with its slot, such as event counts. The
 * check reports a data race unless the abandonment happens before the reclaim.
 */
struct lw_check_slot {
	lw_atomic(uint32_t)
		is_free; /* 1 when reclaimed; uninitialised from the next acquisition on */
	uint32_t kept;
};
struct lw_check_slot *lw_check_slot(uint32_t slot);

/* The owner's last access to its slot before it abandons the slot. */
static inline void lw_check_slot_part(uint32_t number)
{
	struct lw_check_slot *slot = lw_check_slot(number);

	lw_plain_write(&slot->kept, 0);
}

/* Wait, as its next owner, until the slot is reclaimed. */
static inline void lw_check_slot_take_over(uint32_t number)
{
	struct lw_check_slot *slot = lw_check_slot(number);

	(void)lw_await_eq(&slot->is_free, ~0u, 1, acquire);
	lw_plain_write(&slot->kept, 0);
}

/* Reclaim an abandoned slot. */
static inline void lw_check_slot_give_back(uint32_t number)
{
	struct lw_check_slot *slot = lw_check_slot(number);

	lw_plain_write(&slot->kept, 0);
	lw_store(&slot->is_free, 1, release);
}

#define lw_slot_enter()		lw_check_slot_enter()
#define lw_slot_leave(slot)	lw_check_slot_leave(slot)
#define lw_own_reads()		lw_check_own_reads()
#define lw_slots()		lw_check_slots()
#define lw_next_slot(slot)	((slot) + 1)
#define lw_slot_nodes(slot)	lw_check_slot_nodes(slot)
#define lw_slot_reads(slot)	lw_check_slot_reads(slot)
#define lw_own_held()		lw_check_own_held()
#define lw_slot_held(slot)	lw_check_slot_held(slot)
#define lw_numa_node()		lw_check_numa_node()
#define lw_is_priority()	(lw_tunable(priority_waiters) && lw_check_is_priority())
#define lw_clock()		LW_CHECK_OPERATE(CLOCK, "", 0, relaxed, 0, 0, 0)
#define lw_clock_after(ms)	((void)(ms), LW_CHECK_EARLY)
#define lw_spin_budget(most)	(most)
#define lw_spin_report(success) ((void)(success))
#define lw_note_time(p, time)	((void)(p), (void)sizeof(time))
#define lw_noted_time(p)	((void)(p), LW_CHECK_EARLY)
#define lw_choose(n)		((uint32_t)LW_CHECK_OPERATE(CHOOSE, "", 0, relaxed, 0, n, 0))
#define lw_chance(times, of)	((times) >= (of) || ((times) > 0 && lw_choose(2)))
#define lw_tunable(name)	(lw_check_tunables()->name)
#define lw_numa_aware(lock)	lw_tunable(numa_aware)
#define lw_node_queues(n)	lw_check_node_queues(n)
#define lw_identity(p)		lw_check_identity((uintptr_t)(p))
/* A wait with a limit may end at every poll, or never. */
#define lw_limit_reached(limit) ((limit) && lw_choose(2))
#define lw_limits_exist()	lw_check_waiters_park()
#define lw_slot_abandon(slot, leave)                   \
	({                                             \
		bool lw_left;                          \
                                                       \
		lw_check_slot_part(slot);              \
		lw_left = (leave);                     \
		if (lw_left)                           \
			lw_check_slot_take_over(slot); \
		lw_left;                               \
	})
#define lw_slot_may_be_abandoned() true
#define lw_slot_reclaim(slot)	   lw_check_slot_give_back(slot)
#define lw_is_dead(node)	   (lw_check_forks() && lw_load(&(node)->locked, relaxed) == LW_NODE_DEAD)
#define lw_is_forked()		   lw_check_is_forked()
#define lw_hint(p, n)		   ((void)(p), (n) > 1 ? lw_choose(n) : 0)
#define lw_timestamp()		   LW_CHECK_EARLY
#define lw_has_passed(since, ns)   ((void)(since), (void)(ns), lw_clock() > LW_CHECK_EARLY)
/* The engine does not let deadlines pass while there is a deadlock that a thread can detect. */
#define lw_deadline(ms)	     ((void)(ms), LW_CHECK_EARLY)
#define lw_is_past(deadline) (lw_clock() > (deadline))
#define LW_CHECK_EARLY	     ((uint64_t)1) /* the time at which clocks start */
/* A table so small that locks share its entries. */
#define lw_parked_heads()	   lw_check_parked_heads()
#define lw_parked_heads_bits()	   1u
#define lw_count_by(event, n)	   ((void)(n), lw_count(event))
#define lw_count(event)		   ((void)(lw_check_events |= (uint64_t)1 << LW_EVENT_##event))
#define lw_count_max(event, value) ((void)(value))
#define lw_count_handoff(slot)	   ((void)(slot))
#define lw_count_pass(from, to)

#endif
