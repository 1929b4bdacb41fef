/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ticket lock in a file of its own, for `lockworks check --source examples/check/mylock.c`.
 *
 * A thread draws a ticket, and waits until its number is served. The unlock serves the next one.
 */
#include "lock_type.h"

struct lw_mylock {
	lw_atomic(uint32_t) next;
	lw_atomic(uint32_t) served;
};

static void lw_mylock_lock(struct lw_mylock *lock)
{
	uint32_t mine = lw_fetch_add(&lock->next, 1, relaxed);

	lw_await_eq(&lock->served, ~0u, mine, acquire);
}

static bool lw_mylock_trylock(struct lw_mylock *lock)
{
	uint32_t served = lw_load(&lock->served, acquire);

	/* If the number that is served is the next one, nobody holds the lock. */
	return lw_try_cmpxchg(&lock->next, &served, served + 1, relaxed);
}

static void lw_mylock_unlock(struct lw_mylock *lock)
{
	uint32_t mine = lw_load(&lock->served, relaxed);

	lw_store(&lock->served, mine + 1, release);
}

LW_DESCRIBE(mylock, struct lw_mylock, .summary = "ticket lock", .traits = LW_FIFO | LW_SPINS,
	    .origin = "an example");
