/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The paravirt queued spinlock, whose waiters halt: 4 bytes, all zero when unlocked. Slow path:
 * pv.c. Locking is an acquire operation, unlocking a release operation.
 */
#ifndef LW_PV_H
#define LW_PV_H

#include "lock_word.h"

struct lw_pv {
	union lw_word word;
};

struct lw_wait_limit;

LW_EXPORT void lw_pv_lock_slow(struct lw_pv *lock);
/* False if the wait limit was reached before the lock was ours. NULL: no limit. */
LW_EXPORT bool lw_pv_lock_limited(struct lw_pv *lock, const struct lw_wait_limit *limit);
LW_EXPORT void lw_pv_unlock_slow(struct lw_pv *lock);

static inline bool lw_pv_trylock(struct lw_pv *lock)
{
	return lw_word_trytake(&lock->word);
}

static inline void lw_pv_lock(struct lw_pv *lock)
{
	if (lw_unlikely(!lw_word_take(&lock->word)))
		lw_pv_lock_slow(lock);
}

static inline void lw_pv_unlock(struct lw_pv *lock)
{
	if (lw_unlikely(lw_word_release(&lock->word)))
		lw_pv_unlock_slow(lock);
}

#endif
