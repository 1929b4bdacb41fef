/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mutex: 4 bytes, all zero when unlocked. Waiters spin for a while and then park. Locking a
 * free mutex takes one atomic read-modify-write. Unlocking takes none in programs. Slow path and
 * description: mutex.c.
 *
 * lw_mutex_lock() and a successful lw_mutex_trylock() are acquire operations, lw_mutex_unlock() is
 * a release operation.
 */
#ifndef LW_MUTEX_H
#define LW_MUTEX_H

#include "lock_word.h"

/* Flags beside LW_PENDING: mutex.c has a table of who sets and clears them. */
#define LW_OWNER_SHIFT 10
#define LW_OWNER_MASK  0x1c00u /* name of the last holder, if it may retake the mutex */
#define LW_OPEN	       0x2000u /* the queue head sleeps or wakes up: any thread may acquire */
#define LW_RETAKEN     0x4000u /* the last holder has retaken the mutex */
#define LW_HEAD_ASLEEP 0x8000u /* the queue head sleeps */
#define LW_ASLEEP_OPEN (LW_HEAD_ASLEEP | LW_OPEN)
/* The last holder, as far as the word knows it. */
#define LW_LAST_HOLDER (LW_OWNER_MASK | LW_RETAKEN)

struct lw_mutex {
	union lw_word word;
};

struct lw_wait_limit;

LW_EXPORT void lw_mutex_lock_slow(struct lw_mutex *mutex);
/* False if the wait limit was reached before the mutex was ours. NULL: no limit. */
LW_EXPORT bool lw_mutex_lock_limited(struct lw_mutex *mutex, const struct lw_wait_limit *limit);
LW_EXPORT void lw_mutex_unlock_slow(struct lw_mutex *mutex);

/*
 * Acquire a mutex that nobody holds or waits for. Where lw_release_is_split(), no access is wider
 * than the byte store of the release before it, because some processors stall on such an access.
 */
static inline bool lw_mutex_take_idle(union lw_word *word)
{
	uint32_t val = 0;
	uint8_t free = 0, flags;

	if (!lw_release_is_split())
		/* (0,0,0) -> (0,0,1) */
		return lw_try_cmpxchg(&word->val, &val, LW_LOCKED, acquire);
	/* Others may wait only behind a head that sleeps. */
	flags = lw_field_load(word, pending, relaxed);
	if (flags ? flags != LW_ASLEEP_OPEN >> 8 : lw_field_load(word, tail, relaxed))
		return false;
	if (lw_field_load(word, locked, relaxed))
		return false;
	/* (*,*,0) -> (*,*,1): waiters who have come meanwhile see that they are too late */
	return lw_field_try_cmpxchg(word, locked, &free, LW_LOCKED, acquire);
}

/* Acquire a mutex that nobody holds. Waiters that do not run do not matter. */
static inline bool lw_mutex_trylock(struct lw_mutex *mutex)
{
	union lw_word *word = &mutex->word;
	uint32_t val;
	uint8_t free = 0;

	if (!lw_waiters_park()) {
		/* A queue head runs, and acquires by a store. (0,0,0) -> (0,0,1) */
		val = lw_load(&word->val, relaxed);
		return !(val & ~LW_LAST_HOLDER) &&
		       lw_try_cmpxchg(&word->val, &val, LW_LOCKED, acquire);
	}
	/* (*,*,0) -> (*,*,1) */
	if (lw_field_load(word, locked, relaxed) ||
	    !lw_field_try_cmpxchg(word, locked, &free, LW_LOCKED, acquire))
		return false;
	lw_slice_request();
	return true;
}

static inline void lw_mutex_lock(struct lw_mutex *mutex)
{
	if (lw_unlikely(!lw_mutex_take_idle(&mutex->word)))
		lw_mutex_lock_slow(mutex);
	lw_slice_request();
}

/*
 * (*,*,1) -> (*,*,0). False if the queue head sleeps. Where lw_release_is_split(), a head that
 * falls asleep after the load is missed. It does not rely on being woken; see lw_park_bounded().
 */
static inline bool lw_mutex_release(union lw_word *word)
{
	uint16_t seen = LW_LOCKED;

	if (lw_waiters_park() && !lw_release_is_split()) {
		do {
			if (lw_field_try_cmpxchg(word, locked_pending, &seen,
						 (uint16_t)(seen & ~LW_LOCKED_MASK), release))
				return true;
		} while (!(seen & LW_HEAD_ASLEEP));
		return false;
	}
	if (lw_waiters_park() && (lw_field_load(word, pending, relaxed) & (LW_HEAD_ASLEEP >> 8)))
		return false;
	lw_word_unlock(word);
	return true;
}

static inline void lw_mutex_unlock(struct lw_mutex *mutex)
{
	if (lw_unlikely(!lw_mutex_release(&mutex->word)))
		lw_mutex_unlock_slow(mutex);
	lw_slice_end();
}

#endif
