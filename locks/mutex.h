/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mutex of programs: 4 bytes, all zero when unlocked. Waiters spin for a while and then park.
 * In programs, locking a free mutex takes one atomic read-modify-write, and unlocking it takes
 * none. Slow path: mutex.c.
 *
 * lw_mutex_lock() is an acquire operation, lw_mutex_unlock() a release operation.
 */
#ifndef LW_MUTEX_H
#define LW_MUTEX_H

#include "parking_word.h"

struct lw_mutex {
	union lw_word word;
};

struct lw_wait_limit;

LW_EXPORT void lw_mutex_lock_slow(struct lw_mutex *mutex);
/* False if the wait limit was reached before the mutex was ours. NULL: no limit. */
LW_EXPORT bool lw_mutex_lock_limited(struct lw_mutex *mutex, const struct lw_wait_limit *limit);
LW_EXPORT void lw_mutex_unlock_slow(struct lw_mutex *mutex);

static inline bool lw_mutex_trylock(struct lw_mutex *mutex)
{
	return lw_word_take(&mutex->word);
}

static inline void lw_mutex_lock(struct lw_mutex *mutex)
{
	if (lw_unlikely(!lw_word_take(&mutex->word)))
		lw_mutex_lock_slow(mutex);
}

static inline void lw_mutex_unlock(struct lw_mutex *mutex)
{
	if (lw_unlikely(lw_word_release(&mutex->word)))
		lw_mutex_unlock_slow(mutex);
}

#endif
