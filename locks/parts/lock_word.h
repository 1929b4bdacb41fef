/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The 4-byte word of the queued locks, written (tail, pending, locked):
 *
 *   bits  0-7   locked   1 while held
 *   bit   8     pending  the second contender waits here, without a queue node
 *   bits  9-13  service  what the lock is, see hq.h; 0 in all others
 *   bit  14     queue    the queue is locked, see halting.h; 0 in all others
 *   bit  15     parked   the queue head is halted, see halting.h; 0 in all others
 *   bits 16-17  tail     nesting index of the last waiter's queue node
 *   bits 18-31  tail     slot of the last waiter, 0 when nobody queues
 *
 * | piece   | set by                      | cleared by                             |
 * |---------|-----------------------------|----------------------------------------|
 * | locked  | whoever acquires            | the holder                             |
 * | pending | anyone, by fetch-or         | its owner, when it acquires or gives up |
 * | tail    | anyone who queues, exchange | the queue head, when it is the last     |
 * | queue   | who is about to change the queue | the same, when it has             |
 * | parked  | the queue head or the holder | whoever takes the head out of its table |
 * | service | whoever takes the lock by a compare-and-swap with the pending byte   ||
 *
 * The pending byte is stored with the service bits in it. Such a store loses no
 * change of theirs: they do not change while the pending bit is set.
 *
 * An unlocked lock is all zero but for its service bits. The highest slots
 * are kept free: as tails they are the queues of NUMA nodes (hq.c).
 */
#ifndef LW_LOCK_WORD_H
#define LW_LOCK_WORD_H

#include "operations.h"

union lw_word {
	lw_atomic(uint32_t) val;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	struct {
		lw_atomic(uint8_t) locked;
		lw_atomic(uint8_t) pending;
	};
	struct {
		lw_atomic(uint16_t) locked_pending;
		lw_atomic(uint16_t) tail;
	};
#else
	struct {
		lw_atomic(uint16_t) tail;
		lw_atomic(uint16_t) locked_pending;
	};
	struct {
		lw_atomic(uint16_t) unused;
		lw_atomic(uint8_t) pending;
		lw_atomic(uint8_t) locked;
	};
#endif
};

#define LW_LOCKED 1u
/* Of a lock whose waiters halt: about to be released, by who wakes the queue head */
#define LW_UNLOCKING	       2u
#define LW_LOCKED_MASK	       0xffu
#define LW_PENDING	       0x100u
#define LW_SERVICE_MASK	       0x3e00u
#define LW_QUEUE_LOCKED	       0x4000u
#define LW_PARKED	       0x8000u
#define LW_LOCKED_PENDING_MASK (LW_LOCKED_MASK | LW_PENDING)
#define LW_TAIL_SHIFT	       16
#define LW_TAIL_INDEX_MASK     3u
#define LW_TAIL_SLOT_SHIFT     18
#define LW_TAIL_MASK	       0xffff0000u
#define LW_NODES_PER_SLOT      4
#define LW_MAX_NUMA_NODES      1024u

#define LW_MAX_SLOTS ((1u << (32 - LW_TAIL_SLOT_SHIFT)) - 1 - LW_MAX_NUMA_NODES / LW_NODES_PER_SLOT)

/* Nobody holds the lock, nor waits for it. */
static inline bool lw_word_is_free(uint32_t val)
{
	return !(val & ~LW_SERVICE_MASK);
}

/* (0,0,0) -> (0,0,1) */
static inline bool lw_word_trylock(union lw_word *lock)
{
	uint32_t val = lw_load(&lock->val, relaxed);

	return lw_word_is_free(val) && lw_try_cmpxchg(&lock->val, &val, val | LW_LOCKED, acquire);
}

/*
 * lw_word_take() where lw_release_is_split(): no access is wider than the release before it, where
 * some processors stall. Who makes it pending between the two is overtaken, once by each who had
 * looked.
 */
static inline bool lw_word_take_split(union lw_word *lock)
{
	uint8_t free = 0;

	/* (*,0,0) */
	if (lw_field_load(lock, pending, relaxed) || lw_field_load(lock, locked, relaxed))
		return false;
	/* (*,*,0) -> (*,*,1) */
	return lw_field_try_cmpxchg(lock, locked, &free, LW_LOCKED, acquire);
}

/* (*,0,0) -> (*,0,1), though others queue, unless the head of the queue is seen to be parked */
static inline bool lw_word_take(union lw_word *lock)
{
	uint16_t free = 0;

	if (lw_release_is_split())
		return lw_word_take_split(lock);
	return lw_field_try_cmpxchg(lock, locked_pending, &free, LW_LOCKED, acquire);
}

/* The same, if the word, seen as `val`, lets those hope who arrive. */
static inline bool lw_word_steal(union lw_word *lock, uint32_t val)
{
	return !(val & (LW_LOCKED_PENDING_MASK | LW_PARKED)) && lw_word_take(lock);
}

/* lw_word_take(), but with no line taken from its owner when the lock is held. */
static inline bool lw_word_trytake(union lw_word *lock)
{
	return !lw_field_load(lock, locked, relaxed) && lw_word_take(lock);
}

/* The word was seen as `val`, with locked 0 and not parked: (*,*,0) -> (*,0,1) */
static inline bool lw_word_acquire(union lw_word *lock, uint32_t val)
{
	uint16_t free = (uint16_t)(val & LW_PENDING);

	return lw_field_try_cmpxchg(lock, locked_pending, &free, LW_LOCKED, acquire);
}

/* (*,*,1) -> (*,*,0), after which the lock may be gone */
static inline void lw_word_unlock(union lw_word *lock)
{
	lw_field_store(lock, locked, 0, release);
}

/*
 * The release that goes with these. True if the queue head was parked: then it is not any more, and
 * it is for us to wake it and to release the lock, for which nobody takes it. Where
 * lw_release_is_split(), a head that parks after our look is missed, and must not rely on being
 * woken, see lw_park_bounded().
 */
static inline bool lw_word_release(union lw_word *lock)
{
	uint16_t seen = LW_LOCKED, next;

	if (lw_release_is_split() && !(lw_field_load(lock, pending, relaxed) & (LW_PARKED >> 8))) {
		lw_word_unlock(lock);
		return false;
	}
	/* (*,*,1) -> (*,*,0), after which the lock may be gone; or parked (*,*,1) -> (*,*,2) */
	do {
		next = seen ^ LW_LOCKED;
		if (seen & LW_PARKED)
			next ^= LW_PARKED | LW_UNLOCKING;
	} while (lw_unlikely(!lw_field_try_cmpxchg(lock, locked_pending, &seen, next, acq_rel)));
	return seen & LW_PARKED;
}

#endif
