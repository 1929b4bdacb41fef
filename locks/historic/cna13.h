/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CNA as version 13 of its series for Linux has it: 4 bytes, all zero when unlocked. Slow path:
 * cna13.c. Locking is an acquire operation, unlocking a release operation.
 */
#ifndef LW_CNA13_H
#define LW_CNA13_H

#include "lock_word.h"

struct lw_cna13 {
	union lw_word word;
};

/* The word was seen as `val`, not free. */
LW_EXPORT void lw_cna13_lock_slow(struct lw_cna13 *lock, uint32_t val);

static inline bool lw_cna13_trylock(struct lw_cna13 *lock)
{
	return lw_word_trylock(&lock->word);
}

static inline void lw_cna13_lock(struct lw_cna13 *lock)
{
	uint32_t val = 0;

	/* (0,0,0) -> (0,0,1) */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire)))
		lw_cna13_lock_slow(lock, val);
}

static inline void lw_cna13_unlock(struct lw_cna13 *lock)
{
	lw_word_unlock(&lock->word);
}

#endif
