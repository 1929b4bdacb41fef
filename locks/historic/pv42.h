/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The paravirt queued spinlock of Linux 4.2: 4 bytes, all zero when unlocked. Slow path: pv42.c.
 */
#ifndef LW_PV42_H
#define LW_PV42_H

#include "lock_word.h"

struct lw_pv42 {
	union lw_word word;
};

LW_EXPORT void lw_pv42_lock_slow(struct lw_pv42 *lock);
LW_EXPORT void lw_pv42_unlock_slow(struct lw_pv42 *lock);

static inline bool lw_pv42_trylock(struct lw_pv42 *lock)
{
	return lw_word_trylock(&lock->word);
}

static inline void lw_pv42_lock(struct lw_pv42 *lock)
{
	uint32_t val = 0;

	/* (0,0,0) -> (0,0,1) */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire)))
		lw_pv42_lock_slow(lock);
}

static inline void lw_pv42_unlock(struct lw_pv42 *lock)
{
	if (lw_unlikely(lw_word_release(&lock->word)))
		lw_pv42_unlock_slow(lock);
}

#endif
