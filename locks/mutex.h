/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mutex: 4 bytes, all zero at first. Waiters spin for a while and then park. Locking a free
 * mutex takes one atomic read-modify-write. Unlocking takes none in programs. Slow path and
 * description: mutex.c.
 *
 * lw_mutex_lock() and a successful lw_mutex_trylock() are acquire operations, lw_mutex_unlock() is
 * a release operation.
 */
#ifndef LW_MUTEX_H
#define LW_MUTEX_H

#include "lock_word.h"

/* Flags beside LW_PENDING: mutex.c has a table of who sets and clears them. */
#define LW_STARVED     0x1c00u			    /* no arriving thread acquires... */
#define LW_BYPASS      lw_constant(0x400u, 0x1800u) /* ...if so many have passed over the head */
#define LW_OPEN	       0x2000u	 /* others than the waiter that polls may acquire */
#define LW_RETAKEN     0x4000u	 /* the last holder has retaken the mutex */
#define LW_HEAD_ASLEEP LW_PARKED /* the queue head sleeps */
/* Flags that may stay set when nobody holds the mutex or waits for it. */
#define LW_MAY_STAY (LW_RETAKEN | LW_OPEN | LW_STARVED)
/*
 * `locked`, while the mutex is held: lw_cpu_mark() of the holder, which is odd, or LW_OFF_CPU once
 * a waiter has found that the holder does not run. A release clears bit 0 and leaves the rest.
 */
#define LW_OFF_CPU LW_CPU_MARK_NONE

struct lw_mutex {
	union lw_word word;
};

struct lw_wait_limit;

LW_EXPORT void lw_mutex_lock_slow(struct lw_mutex *mutex);
/* False if the wait limit was reached before the mutex was ours. NULL: no limit. */
LW_EXPORT bool lw_mutex_lock_limited(struct lw_mutex *mutex, const struct lw_wait_limit *limit);
LW_EXPORT void lw_mutex_unlock_slow(struct lw_mutex *mutex);
/* May others take a starved mutex? Its head has not come, or did not survive a fork. */
LW_EXPORT bool lw_mutex_is_left(union lw_word *word);

/* Is the mutex left to a waiter that has waited for too long? */
static inline bool lw_mutex_is_starved(uint32_t val)
{
	return (val & LW_STARVED) == LW_STARVED;
}

/*
 * The bits 0 to 15 of the mutex once this thread has acquired it, on arrival, when it has found
 * them to be `seen`; 0 if it may not. A free mutex is taken by who runs: by anybody if nobody
 * waits, or waits only behind a head that does not run, and else by the last holder; but by nobody
 * who comes now if a waiter starves, or if so many have passed over the head that it may.
 */
static inline uint32_t lw_mutex_next(uint32_t seen, uint32_t tail)
{
	uint32_t flags = seen & 0xff00, mark = lw_cpu_mark();

	if (seen & LW_LOCKED)
		return 0;
	if (!(flags & ~LW_MAY_STAY) && !tail)
		return lw_release_is_split() ? mark : LW_LOCKED;
	if (lw_mutex_is_starved(seen))
		return 0;
	if (!lw_waiters_park())
		return (flags & LW_OPEN) && lw_was_here(seen) ? flags | LW_RETAKEN | mark : 0;
	if ((flags & (LW_OPEN | LW_PENDING)) != LW_OPEN) {
		if (!lw_was_here(seen))
			return 0;
		flags |= LW_RETAKEN;
	}
	if (tail && (flags & LW_STARVED) + LW_BYPASS >= LW_STARVED)
		return 0;
	return (tail ? flags + LW_BYPASS : flags) | mark;
}

/*
 * Acquire a free mutex, if that is up to us. While no flag is set, no access is wider than the byte
 * store of the release before it, because some processors stall on such an access.
 */
static inline bool lw_mutex_take_idle(union lw_word *word)
{
	uint32_t idle = 0, flags, tail, next;
	uint16_t seen;
	uint8_t free;

	if (!lw_release_is_split())
		/* (0,0,0) -> (0,0,1) */
		return lw_try_cmpxchg(&word->val, &idle, LW_LOCKED, acquire);
	free = lw_field_load(word, locked, relaxed);
	flags = (uint32_t)lw_field_load(word, pending, relaxed) << 8;
	tail = lw_field_load(word, tail, relaxed);
	if (free & LW_LOCKED)
		return false;
	seen = (uint16_t)(flags | free);
	next = flags || tail ? lw_mutex_next(seen, tail) : lw_cpu_mark();
	/* (*,*,0) -> (*,*,1): waiters who have come meanwhile see that they are too late */
	if ((next & 0xff00) == flags)
		return next && lw_field_try_cmpxchg(word, locked, &free, (uint8_t)next, acquire);
	/* (*,*,0) -> (*,*,1) */
	return next && lw_field_try_cmpxchg(word, locked_pending, &seen, (uint16_t)next, acquire);
}

/* Acquire a mutex that nobody holds, unless a waiter has waited for too long. */
static inline bool lw_mutex_trylock(struct lw_mutex *mutex)
{
	union lw_word *word = &mutex->word;
	uint8_t free = lw_field_load(word, locked, relaxed);
	uint32_t val;

	if (free & LW_LOCKED)
		return false;
	if (!lw_waiters_park()) {
		/* A queue head runs, and acquires by a store. (0,0,0) -> (0,0,1) */
		val = lw_load(&word->val, relaxed);
		return !(val & ~(LW_MAY_STAY | (LW_LOCKED_MASK ^ LW_LOCKED))) &&
		       lw_try_cmpxchg(&word->val, &val, LW_LOCKED, acquire);
	}
	val = (uint32_t)lw_field_load(word, pending, relaxed) << 8;
	if (lw_mutex_is_starved(val) &&
	    ((val & LW_PENDING) || lw_field_load(word, tail, relaxed)) && !lw_mutex_is_left(word))
		return false;
	/* (*,*,0) -> (*,*,1) */
	if (!lw_field_try_cmpxchg(word, locked, &free, (uint8_t)lw_cpu_mark(), acquire))
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
	uint16_t seen;

	if (lw_waiters_park() && !lw_release_is_split()) {
		seen = lw_field_load(word, locked_pending, relaxed);
		while (!(seen & LW_HEAD_ASLEEP))
			if (lw_field_try_cmpxchg(word, locked_pending, &seen,
						 (uint16_t)(seen & ~LW_LOCKED), release))
				return true;
		return false;
	}
	if (lw_waiters_park() && (lw_field_load(word, pending, relaxed) & (LW_HEAD_ASLEEP >> 8)))
		return false;
	lw_field_store(word, locked, (uint8_t)(lw_field_load(word, locked, relaxed) & ~LW_LOCKED),
		       release);
	return true;
}

static inline void lw_mutex_unlock(struct lw_mutex *mutex)
{
	if (lw_unlikely(!lw_mutex_release(&mutex->word)))
		lw_mutex_unlock_slow(mutex);
	lw_slice_end();
}

#endif
