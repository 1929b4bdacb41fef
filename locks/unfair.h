/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queued unfair lock, which arriving threads and waiters may steal: 4 bytes, all zero when
 * unlocked. Slow path: unfair.c. Locking is an acquire operation, unlocking a release operation.
 */
#ifndef LW_UNFAIR_H
#define LW_UNFAIR_H

#include "lock_word.h"

struct lw_unfair {
	union lw_word word;
};

struct lw_wait_limit;

LW_EXPORT void lw_unfair_lock_slow(struct lw_unfair *lock);
/* False if the wait limit was reached before the lock was ours. NULL: no limit. */
LW_EXPORT bool lw_unfair_lock_limited(struct lw_unfair *lock, const struct lw_wait_limit *limit);
LW_EXPORT void lw_unfair_unlock_slow(struct lw_unfair *lock);

static inline bool lw_unfair_trylock(struct lw_unfair *lock)
{
	return lw_word_trytake(&lock->word);
}

static inline void lw_unfair_lock(struct lw_unfair *lock)
{
	if (lw_unlikely(!lw_word_take(&lock->word)))
		lw_unfair_lock_slow(lock);
}

static inline void lw_unfair_unlock(struct lw_unfair *lock)
{
	if (lw_unlikely(lw_word_release(&lock->word)))
		lw_unfair_unlock_slow(lock);
}

#endif
