/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The paravirt queued spinlock, whose waiters halt: 4 bytes. Fast path here, slow path in
 * halting.h and pv.c. And pv42, what it was like in Linux 4.2.
 */
#ifndef LW_PV_H
#define LW_PV_H

#include "lock_word.h"

struct lw_pv {
	union lw_word word;
};

struct lw_pv42 {
	union lw_word word;
};

struct lw_wait_limit;

LW_EXPORT void lw_pv_lock_slow(struct lw_pv *lock);
/* False if `limit` has ended before the lock was free. */
LW_EXPORT bool lw_pv_lock_limited(struct lw_pv *lock, const struct lw_wait_limit *limit);
LW_EXPORT void lw_pv_unlock_slow(struct lw_pv *lock);
LW_EXPORT void lw_pv42_lock_slow(struct lw_pv42 *lock);
LW_EXPORT void lw_pv42_unlock_slow(struct lw_pv42 *lock);

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
