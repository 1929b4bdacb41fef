// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The default mutex of the GNU C library. A waiter does not spin: it marks the mutex and parks in
 * the kernel until the word changes.
 *
 * The states of the word:
 *
 * 0 free -> 1 held: compare-and-swap of an arriving thread
 * any -> 2 held, and a thread may be parked: exchange of a waiter; it has the mutex if it finds 0
 * 1 -> 0: exchange of the holder
 * 2 -> 0: exchange of the holder, which then wakes a thread
 *
 * A waiter cannot know whether it was the last one. So it acquires the mutex by writing 2, and its
 * release wakes a thread, which may be one call for nothing.
 *
 * Promises: mutual exclusion; no waiter is lost. A waiter parks only while the word is 2, and the
 * release that changes 2 wakes a thread. That thread writes 2 again on behalf of the others. A
 * running thread goes first, and how often a waiter is passed over has no bound.
 *
 * Orders: each operation that may acquire the mutex is an acquire, the exchange that releases it a
 * release. The records of the holder are relaxed, because only the holder accesses them.
 */
#include "futex.h"
#include "historic.h"
#include "lock_type.h"

#define LW_FUTEX_FREE	 0u
#define LW_FUTEX_HELD	 1u
#define LW_FUTEX_WAITERS 2u /* held, and a thread may be parked */

/* Waits for a mutex that was seen held. */
static void lw_futex_lock_slow(struct lw_futex *lock)
{
	/* A word that is 2 already need not be written. */
	bool is_marked = lw_load(&lock->state, relaxed) == LW_FUTEX_WAITERS;

	/* * -> 2 */
	while (is_marked || lw_xchg(&lock->state, LW_FUTEX_WAITERS, acquire) != LW_FUTEX_FREE) {
		lw_count(halts_in_queue);
		lw_park(&lock->state, LW_FUTEX_WAITERS, NULL);
		is_marked = false;
	}
}

/* Another thread may have freed the lock's memory by now, so nothing in it is accessed. */
static void lw_futex_unlock_slow(struct lw_futex *lock)
{
	lw_count(kicks_at_unlock);
	/* Any thread that is parked, so no slot. */
	lw_unpark(&lock->state, 0);
}

static void lw_futex_acquired(struct lw_futex *lock)
{
	lw_store(&lock->owner, lw_runner(), relaxed);
	lw_store(&lock->users, lw_load(&lock->users, relaxed) + 1, relaxed);
}

bool lw_futex_trylock(struct lw_futex *lock)
{
	uint32_t state = LW_FUTEX_FREE;

	/* 0 -> 1 */
	if (!lw_try_cmpxchg(&lock->state, &state, LW_FUTEX_HELD, acquire))
		return false;
	lw_futex_acquired(lock);
	return true;
}

void lw_futex_lock(struct lw_futex *lock)
{
	uint32_t state = LW_FUTEX_FREE;

	/* 0 -> 1 */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->state, &state, LW_FUTEX_HELD, acquire)))
		lw_futex_lock_slow(lock);
	lw_futex_acquired(lock);
}

void lw_futex_unlock(struct lw_futex *lock)
{
	lw_store(&lock->owner, 0, relaxed);
	lw_store(&lock->users, lw_load(&lock->users, relaxed) - 1, relaxed);
	/* 1 or 2 -> 0 */
	if (lw_unlikely(lw_xchg(&lock->state, LW_FUTEX_FREE, release) == LW_FUTEX_WAITERS))
		lw_futex_unlock_slow(lock);
}

LW_DESCRIBE(futex, struct lw_futex, .summary = "the default mutex of the GNU C library",
	    .traits = LW_HISTORIC,
	    .origin = "Drepper, \"Futexes Are Tricky\", 2004 to 2011; glibc");
