/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lock word of the locks whose waiters park: acquiring and releasing.
 *
 * `parked` says that the queue head is parked and has an entry in the table of parked heads. No
 * thread that sees `parked` acquires the lock. The thread that clears it also removes the head
 * from the table: either the head itself, when it wakes early, or the thread that unlocks.
 *
 *              acquire                    head parks
 *   (*,*,0) ------------> (*,*,1) --------------------------> parked (*,*,1)
 *      ^        unlock       |     <-- head wakes early --           |
 *      |<--------------------'                                       |
 *      `------------ (*,*,2) <-------------- unlock -----------------'
 *                       removes the head from the table, wakes it
 *
 * `locked` is 2 (LW_UNLOCKING) while the thread that unlocks prepares to wake the head.
 *
 * `pending` says that arriving threads must not steal the lock. A thread that waits without a queue
 * node sets it, or the queue head does. The bit is only advice: the lock is always acquired by a
 * compare-and-swap that expects `locked` to be 0.
 *
 * An unlock has to release the lock and to see `parked` in one atomic step. Where
 * lw_release_is_split(), in user space, it is a load followed by a store, because a
 * compare-and-swap would cost most in programs whose waiters never park. A head that parks between
 * the two is missed: the word is then parked (*,*,0), which no thread acquires. Therefore a head
 * that has just parked polls for longer than such a store takes to become visible, and parks for a
 * bounded time only. This is a 1-0 protocol (Dice 2001).
 *
 * Orders:
 *
 *   - `locked`: each acquisition is a compare-and-swap that acquires, each release a store or a
 *     compare-and-swap that releases. So a holder sees all that the holders before it wrote.
 *   - `parked`, set by the head itself: the compare-and-swap of lw_head_enter_table() releases. It
 *     publishes the head's entry in the table and the state PARKED_HEAD. The compare-and-swap of
 *     lw_word_release() therefore acquires too. Without either order the thread that unlocks finds
 *     no entry and wakes nobody, or its store of HEAD is overwritten by that of PARKED_HEAD.
 *   - `parked`, set by the holder for its successor (lw_make_head): the fetch-or is relaxed. Only
 *     the holder itself clears the bit, or the head, which has then read PARKED_HEAD with acquire.
 *     The holder stores PARKED_HEAD after the bit and the entry, by a release.
 *   - `parked`, cleared by the head (lw_head_leave_table): the head knows the entry already: it has
 *     made it, or has read PARKED_HEAD. So relaxed would suffice for this fetch-and.
 *   - `pending` is advice, so its changes are relaxed. So are polls: a compare-and-swap follows.
 *   - The load of a release in two steps is relaxed: a head that it misses wakes by itself.
 */
#ifndef LW_PARKING_WORD_H
#define LW_PARKING_WORD_H

#include "lock_word.h"

/*
 * lw_word_take() where lw_release_is_split(). No access is wider than the byte store of the release
 * before it, because some processors stall on such an access. If another thread sets `pending`
 * between our two steps, we take the lock nevertheless, though only this once.
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

/* (*,0,0) -> (*,0,1): take a free lock though others may queue. Fails if `parked` is set. */
static inline bool lw_word_take(union lw_word *lock)
{
	uint16_t free = 0;

	if (lw_release_is_split())
		return lw_word_take_split(lock);
	return lw_field_try_cmpxchg(lock, locked_pending, &free, LW_LOCKED, acquire);
}

/* lw_word_take(), if the word, which was seen as `val`, allows stealing. */
static inline bool lw_word_steal(union lw_word *lock, uint32_t val)
{
	return !(val & (LW_LOCKED_PENDING_MASK | LW_PARKED)) && lw_word_take(lock);
}

/* lw_word_take(), but a held lock is only read: its cache line stays with its owner. */
static inline bool lw_word_trytake(union lw_word *lock)
{
	return !lw_field_load(lock, locked, relaxed) && lw_word_take(lock);
}

/* (*,*,0) -> (*,0,1). The word was seen as `val`, with `locked` 0 and `parked` clear. */
static inline bool lw_word_acquire(union lw_word *lock, uint32_t val)
{
	uint16_t free = (uint16_t)(val & LW_PENDING);

	return lw_field_try_cmpxchg(lock, locked_pending, &free, LW_LOCKED, acquire);
}

/*
 * Release the lock. True if the queue head was parked. Then `parked` is clear, no thread can
 * acquire the lock, and the caller has to wake the head and to finish the release.
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
