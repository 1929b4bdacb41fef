/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * HQ-spinlock, the hierarchical queued spinlock: 4 bytes. Slow path: hq.c. Locking is an acquire
 * operation, unlocking a release operation.
 *
 * Unlocking does not clear its service bits, so the word of an unlocked lock is not zero, as it is
 * in other locks:
 *
 *   bit 9      LW_HQ         the lock is an HQ-spinlock
 *   bit 10     LW_HQ_NUMA    NUMA mode: waiters queue with those of their NUMA node
 *   bits 11-13 LW_HQ_DOUBTS  how often NUMA mode was left because plain mode is faster
 *
 * All functions here treat a word without LW_HQ as a plain queued spinlock.
 */
#ifndef LW_HQ_H
#define LW_HQ_H

#include "lock_word.h"

#define LW_HQ	     0x200u
#define LW_HQ_NUMA   0x400u
#define LW_HQ_DOUBT  0x800u /* one of them */
#define LW_HQ_DOUBTS 0x3800u

struct lw_hq {
	union lw_word word;
};

LW_EXPORT void lw_hq_lock_slow(struct lw_hq *lock, uint32_t val);

static inline bool lw_hq_trylock(struct lw_hq *lock)
{
	return lw_word_trylock(&lock->word);
}

static inline void lw_hq_lock(struct lw_hq *lock)
{
	uint32_t val = LW_HQ;

	/* (0,0,0) -> (0,0,1) */
	if (lw_unlikely(!lw_try_cmpxchg(&lock->word.val, &val, LW_HQ | LW_LOCKED, acquire)))
		lw_hq_lock_slow(lock, val);
}

static inline void lw_hq_unlock(struct lw_hq *lock)
{
	lw_word_unlock(&lock->word);
}

#endif
