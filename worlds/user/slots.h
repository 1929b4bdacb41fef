/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thread slots. A slot lends its queue nodes and event counters to one thread at a time.
 *
 * A thread takes a slot at its first contended acquisition and keeps it until it exits: the slot is
 * attached. Two kinds of threads only borrow a slot, and return it when their last slow path ends:
 * those that run before our constructors, and those that are exiting already.
 *
 * A waiter whose wait is cancelled may leave its first queue node in a queue, and its slot with it:
 * the slot is abandoned. The thread that takes the node out of the queue reclaims the slot.
 */
#ifndef LW_USER_SLOTS_H
#define LW_USER_SLOTS_H

#include "events.h"
#include "operations.h"

struct lw_held;
struct lw_read;

struct lw_user_thread {
	uint32_t slot;	       /* 0: none */
	uint32_t depth;	       /* uses of the slot now under way: signal handlers nest */
	uint32_t random;       /* state of lw_user_choose(); 0: not seeded */
	uint8_t spin_halvings; /* see lw_user_spin_budget() */
	uint8_t spin_trials;
	bool attached;
	bool exiting;
	bool priority;		/* CNA never passes over it */
	bool priority_declared; /* by lw_thread_set_priority() */
	bool realtime;		/* its scheduling class, as far as it is known */
	bool class_known;
	struct lw_read *reads; /* those of the slot, if it is attached; else NULL */
	struct lw_held *held;  /* likewise */
};

struct lw_user_counts {
	lw_atomic(uint64_t) events[LW_EVENT_COUNT];
} lw_aligned(64);

/*
 * Slots come in blocks. A block is mapped when its first slot is taken: a process may have little
 * address space, and may have to lock all of it in memory. The first block is always there.
 */
#define LW_BLOCK_SLOTS 64

struct lw_user_block {
	/* Event counters; threads without a slot share those of number 0. */
	struct lw_user_counts counts[LW_BLOCK_SLOTS];
	/* The types of these are in locks/parts: LW_NODES_PER_SLOT queue nodes for each slot, */
	unsigned char nodes[LW_BLOCK_SLOTS][256] lw_aligned(64);
	/* LW_READS_PER_SLOT announcements of readers, */
	unsigned char reads[LW_BLOCK_SLOTS][64];
	/* and the table of held locks. */
	unsigned char held[LW_BLOCK_SLOTS][256];
};

extern __thread struct lw_user_thread lw_user_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
struct lw_user_block_of {
	lw_atomic(struct lw_user_block *) mapped; /* NULL: not mapped yet */
};

extern struct lw_user_block_of lw_user_blocks[] __attribute__((visibility("hidden")));

/* Returns the block of a slot that a thread has taken, or of number 0. */
static inline struct lw_user_block *lw_user_block(uint32_t slot)
{
	return lw_load(&lw_user_blocks[slot / LW_BLOCK_SLOTS].mapped, dependency);
}

static inline struct lw_user_counts *lw_user_counts(uint32_t slot)
{
	return &lw_user_block(slot)->counts[slot % LW_BLOCK_SLOTS];
}

/* Maps zero bytes. Returns NULL if the system refuses. Keeps errno. */
void *lw_user_map(size_t size);

/* The threads that are in lw_pause_long() now. */
struct lw_user_pausing {
	lw_atomic(int32_t) threads;
};

extern struct lw_user_pausing lw_user_pausing __attribute__((visibility("hidden")));

/* Is this process the child of a fork? */
extern bool lw_user_is_forked __attribute__((visibility("hidden")));

/* Returns the highest slot number that has ever been used. */
uint32_t lw_user_slots(void);
/* The contract's lw_next_slot(). */
uint32_t lw_user_next_slot(uint32_t slot);
/* Takes a free slot for this thread. Returns its number, or 0 if none is free. */
uint32_t lw_user_slot_take(void);
/* Returns this thread's slot to the free list; its last slow path has ended. */
void lw_user_slot_give_back(void);
/*
 * Lets this thread keep its slot until it exits. Returns false, and the thread does not keep it, if
 * we cannot learn when the thread exits. A lock must not allocate memory: allocators have locks.
 */
bool lw_user_slot_attach(bool may_allocate);
/*
 * Has lw_user_thread_exit() called when this thread exits. Returns false if that is not possible.
 * Each library has its own function for this.
 */
bool lw_user_hook_exit(bool may_allocate);
/* Returns this thread's slot. From now on the thread only borrows slots. */
void lw_user_thread_exit(void);
/* Ends lw_user_slot_hide() for a thread that has not abandoned its slot after all. */
void lw_user_slot_restore(uint32_t slot);
/* Ends lw_user_slot_hide() for a thread that has abandoned its slot. */
void lw_user_slot_abandoned(void);
/*
 * Returns whether this thread's slot may be abandoned: not while half of all slots are, or while
 * the thread reads a reader-writer lock, or has a resilient lock.
 */
bool lw_user_slot_may_be_abandoned(void);
/* Returns an abandoned slot to the free list. */
void lw_user_slot_reclaim(uint32_t slot);
/* Looks up this thread's scheduling class, which is its priority too unless that was declared. */
void lw_user_look_up_class(void);
/* Counts an event of a thread that has no slot yet. */
void lw_user_count_slow(enum lw_event event, uint64_t n);

/* Begins a slow path. Returns this thread's slot, or 0 if none is free. */
static inline uint32_t lw_user_slot_enter(void)
{
	lw_user_thread.depth++;
	/* A signal handler that runs from here on must not return the slot. */
	lw_barrier();
	return lw_user_thread.slot ? lw_user_thread.slot : lw_user_slot_take();
}

/* Ends a slow path. */
static inline void lw_user_slot_leave(void)
{
	lw_barrier();
	if (--lw_user_thread.depth == 0 && !lw_user_thread.attached)
		lw_user_slot_give_back();
}

/*
 * Hides this thread's slot from signal handlers, before the thread tries to abandon it. If that
 * succeeds, another thread may own the slot before we know. A signal handler takes another slot
 * then, which becomes this thread's slot if it has abandoned its own.
 */
static inline void lw_user_slot_hide(void)
{
	lw_user_thread.reads = NULL;
	lw_user_thread.held = NULL;
	lw_user_thread.slot = 0;
	lw_barrier();
}

/*
 * Counts an event n times. Only the slot's owner writes, so a load and a store suffice. An event in
 * a signal handler may get lost.
 */
static inline void lw_user_count(enum lw_event event, uint64_t n)
{
	uint32_t slot = lw_user_thread.slot;
	struct lw_user_counts *counts = lw_user_counts(slot);

	if (slot)
		lw_store(&counts->events[event], lw_load(&counts->events[event], relaxed) + n,
			 relaxed);
	else
		lw_user_count_slow(event, n);
}

/* Keeps the highest value. Threads without a slot share number 0, where one may get lost. */
static inline void lw_user_count_max(enum lw_event event, uint64_t value)
{
	struct lw_user_counts *counts = lw_user_counts(lw_user_thread.slot);

	if (lw_load(&counts->events[event], relaxed) < value)
		lw_store(&counts->events[event], value, relaxed);
}

/* The most halvings of a spin budget, and the number of waits among which one spins fully. */
#define LW_SPIN_HALVINGS 8
#define LW_SPIN_TRIALS	 64

/*
 * The contract's lw_spin_budget(): halved by each spin that brought nothing. A real-time thread
 * does not spin, because it might keep the CPU from a holder of lower priority.
 */
static inline uint32_t lw_user_spin_budget(uint32_t most)
{
	if (lw_user_thread.realtime)
		return 0;
	if (lw_user_thread.spin_halvings && ++lw_user_thread.spin_trials % LW_SPIN_TRIALS == 0)
		return most;
	return most >> lw_user_thread.spin_halvings;
}

/* The contract's lw_spin_report(). */
static inline void lw_user_spin_report(bool success)
{
	if (success)
		lw_user_thread.spin_halvings -= lw_user_thread.spin_halvings > 0;
	else
		lw_user_thread.spin_halvings += lw_user_thread.spin_halvings < LW_SPIN_HALVINGS;
}

/* Returns a pseudo-random number from 0 to n - 1, by Marsaglia's xorshift32 (2003). */
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
