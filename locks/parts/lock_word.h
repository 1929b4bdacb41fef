/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The 4-byte word of the queued locks, written (tail, pending, locked), with * for any value:
 *
 *   bits  0-7   locked   1 while the lock is held; in a mutex the mark of the holder's CPU, which
 *                        is odd (mutex.h)
 *   bit   8     pending  the second contender waits here, without a queue node
 *   bits  9-15           of one lock or family of locks; 0 in all others:
 *     hq          bits  9-13  service  the kind of the lock (hq.h)
 *     pv, unfair  bit  14     queue    the queue is locked (unfair.c)
 *                 bit  15     parked   the queue head is parked (parking.h)
 *     mutex       bits 10-12  starved  only waiters acquire, or a number of bypasses (mutex.c)
 *                 bits 13-15  flags    OPEN, RETAKEN and ASLEEP (mutex.c)
 *   bits 16-17  tail     nesting index of the last waiter's queue node
 *   bits 18-31  tail     slot of the last waiter; 0 when nobody queues
 *
 * The threads that change each piece, and whether the piece may stay clear:
 *
 * | piece   | set by                        | cleared by                    | may stay clear |
 * |---------|-------------------------------|-------------------------------|----------------|
 * | locked  | the thread that acquires the  | the holder                    | no             |
 * |         | lock                          |                               |                |
 * | pending | any thread, by a fetch-or;    | its owner, when it acquires   | yes, it is an  |
 * |         | who sets it owns it           | the lock or leaves: always    | advantage only |
 * | tail    | any thread that queues, by an | the queue head, unless it has | no             |
 * |         | exchange                      | a successor                   |                |
 * | queue   | the thread that is about to   | the same thread, afterwards:  | no             |
 * |         | change the queue              | always                        |                |
 * | parked  | the queue head, or the holder | the thread that removes the   | yes, then the  |
 * |         | on its behalf                 | head from the table of parked | head does not  |
 * |         |                               | heads                         | park           |
 * | service | the thread that acquires the  | the same                      | yes, then only |
 * |         | lock, by a compare-and-swap   |                               | speed is lost  |
 * |         | of the pending byte           |                               |                |
 *
 * A store to the pending byte writes the service bits too. The thread that stores has read them,
 * and no other thread changes them meanwhile: it would need a compare-and-swap of the byte with the
 * pending bit clear.
 *
 * The word of an unlocked lock is zero except for its service bits. That of a mutex may keep the
 * mark of the last holder's CPU, and flags (LW_MAY_STAY). The highest slots are reserved: as
 * tails they stand for the queues of NUMA nodes (node_queue.h).
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

#define LW_LOCKED	       1u
#define LW_UNLOCKING	       2u /* stealing.h */
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

/* True if no thread holds the lock or waits for it. */
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

/* (*,*,1) -> (*,*,0). After that, another thread may free the lock's memory. */
static inline void lw_word_unlock(union lw_word *lock)
{
	lw_field_store(lock, locked, 0, release);
}

/*
 * The locks whose waiters steal (stealing.h): pv, pv42 and unfair
 */

/*
 * (*,0,0) -> (*,0,1): take a free lock, though others may queue. Fails if `parked` is set.
 *
 * Where lw_release_is_split(), no access is wider than the byte store of the release before it,
 * because some processors stall on such an access. If another thread sets `pending` between our two
 * steps, we take the lock nevertheless, though only this once.
 */
static inline bool lw_word_take(union lw_word *lock)
{
	uint16_t idle = 0;
	uint8_t free = 0;

	if (!lw_release_is_split())
		return lw_field_try_cmpxchg(lock, locked_pending, &idle, LW_LOCKED, acquire);
	if (lw_field_load(lock, pending, relaxed) || lw_field_load(lock, locked, relaxed))
		return false;
	/* (*,*,0) -> (*,*,1) */
	return lw_field_try_cmpxchg(lock, locked, &free, LW_LOCKED, acquire);
}

/* lw_word_take(), but a held lock is only read: its cache line stays with its owner. */
static inline bool lw_word_trytake(union lw_word *lock)
{
	return !lw_field_load(lock, locked, relaxed) && lw_word_take(lock);
}

/*
 * Release the lock. True if the queue head is parked. Then `parked` is clear, no thread can acquire
 * the lock, and the caller has to wake the head and to finish the release.
 *
 * Where lw_release_is_split(), a head that parks after the load is missed. It must not rely on
 * being woken; see lw_park_bounded().
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
