/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Test-and-set, the unfair byte lock, in the form test and test-and-set: a waiter polls a shared
 * copy of the byte, and exchanges only when it has seen it clear.
 *
 *   0 free -- exchange --> 1 held -- store --> 0
 *
 * Promises: mutual exclusion. A wait has no bound.
 *
 * Orders: the exchange that reads 0 acquires what the store of 0 released.
 */
#ifndef LW_TAS_H
#define LW_TAS_H

#include "operations.h"

struct lw_tas {
	lw_atomic(uint8_t) locked;
};

static inline bool lw_tas_trylock(struct lw_tas *lock)
{
	/* 0 -> 1 */
	return lw_load(&lock->locked, relaxed) == 0 && lw_xchg(&lock->locked, 1, acquire) == 0;
}

static inline void lw_tas_lock(struct lw_tas *lock)
{
	/* 0 -> 1 */
	while (lw_xchg(&lock->locked, 1, acquire) != 0)
		lw_await_eq(&lock->locked, 0xff, 0, relaxed);
}

static inline void lw_tas_unlock(struct lw_tas *lock)
{
	/* 1 -> 0 */
	lw_store(&lock->locked, 0, release);
}

#endif
