/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mutex of the GNU C library, in its default kind: 16 bytes, all zero when unlocked. For
 * comparison, where the library's own cannot run, as in the simulator. Slow path: futex.c, which
 * also explains states and orders.
 */
#ifndef LW_FUTEX_H
#define LW_FUTEX_H

#include "surroundings.h"

#define LW_FUTEX_FREE	 0u
#define LW_FUTEX_HELD	 1u
#define LW_FUTEX_WAITERS 2u /* held, and a thread may be parked */

struct lw_futex {
	lw_atomic(uint32_t) state;
	/* Records for other kinds of the mutex, which the holder keeps in the default kind too. */
	lw_atomic(uint32_t) users;
	lw_atomic(uintptr_t) owner;
};

/* The mutex was seen held. Wait for it. */
LW_EXPORT void lw_futex_lock_slow(struct lw_futex *lock);
/* The mutex was released, and a thread may be parked. Wake one. */
LW_EXPORT void lw_futex_unlock_slow(struct lw_futex *lock);

static inline bool lw_futex_acquired(struct lw_futex *lock)
{
	lw_store(&lock->owner, lw_runner(), relaxed);
	lw_store(&lock->users, lw_load(&lock->users, relaxed) + 1, relaxed);
	return true;
}

static inline bool lw_futex_trylock(struct lw_futex *lock)
{
	uint32_t state = LW_FUTEX_FREE;

	/* 0 -> 1 */
	return lw_try_cmpxchg(&lock->state, &state, LW_FUTEX_HELD, acquire) &&
	       lw_futex_acquired(lock);
}

static inline void lw_futex_lock(struct lw_futex *lock)
{
	uint32_t state = LW_FUTEX_FREE;

	/* 0 -> 1 */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->state, &state, LW_FUTEX_HELD, acquire)))
		lw_futex_lock_slow(lock);
	lw_futex_acquired(lock);
}

static inline void lw_futex_unlock(struct lw_futex *lock)
{
	lw_store(&lock->owner, 0, relaxed);
	lw_store(&lock->users, lw_load(&lock->users, relaxed) - 1, relaxed);
	/* 1 or 2 -> 0 */
	if (lw_unlikely(lw_xchg(&lock->state, LW_FUTEX_FREE, release) == LW_FUTEX_WAITERS))
		lw_futex_unlock_slow(lock);
}

#endif
