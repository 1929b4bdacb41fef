// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The default mutex of the GNU C library. A waiter does not spin: it marks the mutex and parks in
 * the kernel until the word changes.
 *
 *   0 free -- compare-and-swap --> 1 held -- exchange by a waiter --> 2 held, a thread may be
 * parked ^  |                           |                                  |   ^ |  `------
 * exchange by a waiter, which has the mutex then --------+---'
 *   `------ exchange by the holder, which wakes one thread if it finds 2
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
#include "lock_type.h"

void lw_futex_lock_slow(struct lw_futex *lock)
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
void lw_futex_unlock_slow(struct lw_futex *lock)
{
	lw_count(kicks_at_unlock);
	/* Any thread that is parked, so no slot. */
	lw_unpark(&lock->state, 0);
}

LW_DESCRIBE(futex, struct lw_futex, .summary = "the default mutex of the GNU C library",
	    .traits = 0, .origin = "Drepper, \"Futexes Are Tricky\", 2004 to 2011; glibc");
