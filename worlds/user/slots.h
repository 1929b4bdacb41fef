/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thread slots: a slot lends its queue nodes and event counters to one thread.
 *
 * A thread takes its slot at its first contended acquisition and keeps it until
 * it exits (attached). A thread that cannot be seen to exit, since constructors
 * have not run yet or it is already exiting, only borrows one, until no
 * acquisition of its is in the slow path.
 */
#ifndef LW_USER_SLOTS_H
#define LW_USER_SLOTS_H

#include "events.h"
#include "operations.h"

struct lw_user_thread {
	uint32_t slot;	 /* 0: none */
	uint32_t depth;	 /* uses of the slot now under way: signal handlers nest */
	uint32_t random; /* state of lw_user_choose(); 0: not seeded */
	bool attached;
	bool exiting;
	bool priority;
	bool priority_known;
};

struct lw_user_counts {
	lw_atomic(uint64_t) events[LW_EVENT_COUNT];
} lw_aligned(64);

struct lw_node;
struct lw_slot_wanted;

extern __thread struct lw_user_thread lw_user_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
/* LW_NODES_PER_SLOT for each slot. */
extern struct lw_node *const lw_user_nodes __attribute__((visibility("hidden")));
/* One for each slot; number 0 is shared by the threads that have none. */
extern struct lw_user_counts lw_user_counts[] __attribute__((visibility("hidden")));

/* What each slot is parked for, where it says so. */
extern struct lw_slot_wanted *const lw_user_wanted __attribute__((visibility("hidden")));

uint32_t lw_user_slots(void);
uint32_t lw_user_slot_take(void);
void lw_user_slot_give_back(void);
void lw_user_slot_keep(uint32_t slot);
void lw_user_slot_left(void);
bool lw_user_slot_may_be_abandoned(void);
void lw_user_slot_reclaim(uint32_t slot);
void lw_user_count_slow(enum lw_event event, uint64_t n);

static inline uint32_t lw_user_slot_enter(void)
{
	lw_user_thread.depth++;
	/* A signal handler from here on must not give the slot back. */
	lw_barrier();
	return lw_user_thread.slot ? lw_user_thread.slot : lw_user_slot_take();
}

static inline void lw_user_slot_leave(void)
{
	lw_barrier();
	if (--lw_user_thread.depth == 0 && !lw_user_thread.attached)
		lw_user_slot_give_back();
}

/*
 * The slot may be another's before we know that we have left it, so a signal handler must
 * not find it from here on. It would take another, which is ours then, if we do leave.
 */
static inline void lw_user_slot_part(void)
{
	lw_user_thread.slot = 0;
	lw_barrier();
}

/* Only the owner writes, so load and store do; one event in a signal handler may get lost. */
static inline void lw_user_count(enum lw_event event, uint64_t n)
{
	uint32_t slot = lw_user_thread.slot;

	if (slot)
		lw_store(&lw_user_counts[slot].events[event],
			 lw_load(&lw_user_counts[slot].events[event], relaxed) + n, relaxed);
	else
		lw_user_count_slow(event, n);
}

static inline void lw_user_count_max(enum lw_event event, uint64_t value)
{
	/* Those without a slot share number 0; one of theirs may get lost. */
	struct lw_user_counts *counts = &lw_user_counts[lw_user_thread.slot];

	if (lw_load(&counts->events[event], relaxed) < value)
		lw_store(&counts->events[event], value, relaxed);
}

/* xorshift32 */
static inline uint32_t lw_user_choose(uint32_t n)
{
	uint32_t x = lw_user_thread.random;

	if (!x)
		x = (uint32_t)((uintptr_t)&lw_user_thread >> 4) * UINT32_C(0x9e3779b9) | 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	lw_user_thread.random = x;
	return (uint32_t)((uint64_t)x * n >> 32);
}

#endif
