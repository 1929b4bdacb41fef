/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of held locks: each slot has one, with the locks that its thread holds or tries to
 * acquire, in the order in which it began. The last entry is the lock for which the thread waits,
 * if it waits.
 *
 *   [A]        holds A, or tries to acquire it
 *   [A, B]     has A, and holds B or tries to acquire it
 *   [A, B, A]  the same, and an interruption tries to acquire A too: that is a deadlock (AA)
 *
 * A thread enters a lock before it tries to acquire it, and removes it after it has released it or
 * given up. So an interruption at any point finds each lock that the interrupted code may hold.
 *
 * Only the slot's thread writes to its table. Entries are used from the first one on, without gaps,
 * and each step on them is a single store. An interruption leaves the table as it has found it, so
 * it may come between any two steps. A lock that finds no room in the table is not entered.
 *
 * Orders: an entry is entered by a release store and read by an acquire load. A thread that sees
 * the entry therefore sees which entries were removed before.
 */
#ifndef LW_HELD_LOCKS_H
#define LW_HELD_LOCKS_H

#include "resilience.h"

/* The locks that a table has room for. */
#define LW_HELD_PER_SLOT lw_constant(31, 4)

struct lw_held {
	lw_atomic(uintptr_t) locks[LW_HELD_PER_SLOT]; /* addresses; 0 behind the last */
};

/* The number of entries in our own table. */
static inline uint32_t lw_held_count(const struct lw_held *held)
{
	uint32_t n = 0;

	while (n < LW_HELD_PER_SLOT && lw_load(&held->locks[n], relaxed))
		n++;
	return n;
}

/*
 * Enter a lock in our own table, if there is one and it has room. Return the table, or NULL if the
 * lock has no entry: then nothing is detected, and nothing must be removed.
 */
static inline struct lw_held *lw_held_add(struct lw_held *held, const void *lock)
{
	uint32_t n = held ? lw_held_count(held) : LW_HELD_PER_SLOT;

	if (n < LW_HELD_PER_SLOT)
		/* 0 -> lock */
		lw_store(&held->locks[n], (uintptr_t)lock, release);
	else
		held = NULL;
	/* From this point, an interruption must see that we may hold the lock. */
	lw_barrier();
	return held;
}

/* Remove the last entry of a lock; those behind it move up. */
static inline void lw_held_remove(struct lw_held *held, const void *lock)
{
	uint32_t n, at;

	/* Until this point, an interruption must see that we may hold the lock. */
	lw_barrier();
	n = held ? lw_held_count(held) : 0;
	at = n;
	while (at > 0 && lw_load(&held->locks[at - 1], relaxed) != (uintptr_t)lock)
		at--;
	if (!at)
		return;
	for (; at < n; at++)
		lw_store(&held->locks[at - 1], lw_load(&held->locks[at], relaxed), release);
	/* lock, the last one or a copy of it -> 0 */
	lw_store(&held->locks[n - 1], 0, relaxed);
}

/* Do we have an entry for the lock, besides that of the acquisition under way? */
static inline bool lw_held_before(const struct lw_held *held, const void *lock)
{
	uint32_t n = held ? lw_held_count(held) : 0;

	for (uint32_t i = 0; i + 1 < n; i++) {
		if (lw_load(&held->locks[i], relaxed) == (uintptr_t)lock)
			return true;
	}
	return false;
}

/*
 * Does the other table end with a lock that we have too, and has it `lock` before that? Then its
 * thread waits for us, unless it has just given up or the table changes while we look.
 */
static inline bool lw_held_waits_for_us(const struct lw_held *own, const struct lw_held *other,
					const void *lock)
{
	uintptr_t entry, last = 0;
	bool has_lock = false;

	for (uint32_t i = 0; i < LW_HELD_PER_SLOT; i++) {
		entry = lw_load(&other->locks[i], acquire);
		if (!entry)
			break;
		has_lock |= last == (uintptr_t)lock;
		last = entry;
	}
	if (!has_lock || last == (uintptr_t)lock)
		return false;
	for (uint32_t i = 0; i < LW_HELD_PER_SLOT; i++) {
		entry = lw_load(&own->locks[i], relaxed);
		if (!entry || entry == last)
			return entry;
	}
	return false;
}

/*
 * We wait for `lock`. Has another thread entered it, and does that thread wait for a lock that we
 * have? It has to look the same twice: both entries were then there at one time.
 */
static inline bool lw_held_by_waiter(const struct lw_held *own, const void *lock)
{
	uint32_t slots;

	if (!own || lw_held_count(own) < 2)
		return false;
	slots = lw_slots();
	for (uint32_t slot = 0; (slot = lw_next_slot(slot)) <= slots;) {
		const struct lw_held *other = lw_slot_held(slot);

		if (other != own && lw_held_waits_for_us(own, other, lock) &&
		    lw_held_waits_for_us(own, other, lock))
			return true;
	}
	return false;
}

#endif
