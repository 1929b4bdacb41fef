/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queued spinlock: 4 bytes, all zero when unlocked, FIFO. Slow path: qspinlock.c. Locking is an
 * acquire operation, unlocking a release operation.
 */
#ifndef LW_QSPINLOCK_H
#define LW_QSPINLOCK_H

#include "lock_word.h"

struct lw_qspinlock {
	union lw_word word;
};

/* The word was seen as `val`, not free. */
LW_EXPORT void lw_qspinlock_lock_slow(struct lw_qspinlock *lock, uint32_t val);

static inline bool lw_qspinlock_trylock(struct lw_qspinlock *lock)
{
	return lw_word_trylock(&lock->word);
}

static inline void lw_qspinlock_lock(struct lw_qspinlock *lock)
{
	uint32_t val = 0;

	/* (0,0,0) -> (0,0,1) */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire)))
		lw_qspinlock_lock_slow(lock, val);
}

static inline void lw_qspinlock_unlock(struct lw_qspinlock *lock)
{
	lw_word_unlock(&lock->word);
}

#endif
