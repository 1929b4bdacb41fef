/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CNA, the compact NUMA-aware lock: 4 bytes, all zero when unlocked. Slow path: cna.c. Locking is
 * an acquire operation, unlocking a release operation.
 */
#ifndef LW_CNA_H
#define LW_CNA_H

#include "lock_word.h"

struct lw_cna {
	union lw_word word;
};

/* The word was seen as `val`, not free. */
LW_EXPORT void lw_cna_lock_slow(struct lw_cna *lock, uint32_t val);

static inline bool lw_cna_trylock(struct lw_cna *lock)
{
	return lw_word_trylock(&lock->word);
}

static inline void lw_cna_lock(struct lw_cna *lock)
{
	uint32_t val = 0;

	/* (0,0,0) -> (0,0,1) */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire)))
		lw_cna_lock_slow(lock, val);
}

static inline void lw_cna_unlock(struct lw_cna *lock)
{
	lw_word_unlock(&lock->word);
}

#endif
