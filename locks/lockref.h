/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lockref: a lock and a count of references in one 8-byte word, written (lock, count). While the
 * lock is free the count changes by a compare-and-swap of the whole word. So the holder of the lock
 * is the only thread that changes the count.
 *
 *   (free, n) --- get, put -----> (free, n + 1), (free, n - 1)   compare-and-swap of the whole word
 *       |  ^
 *  lock |  | unlock                                              n >= 0, references held
 *       v  |
 *   (held, n) --- the holder ---> (held, m)                      plain store
 *       |
 *       |
 *       `-------- mark_dead ----> (held, dead)                   plain store; for good: no thread
 *                                                                gets a reference any more
 *
 * A thread that finds the lock held, or loses the race for the word too often, takes the lock and
 * changes the count as its holder.
 *
 * Promises: no get or put is lost; none happens while another thread holds the lock; no thread gets
 * a reference of a dead lockref, except by lw_lockref_X_get(); those of the lock.
 *
 * Orders: a get acquires, a put releases. A thread's accesses with its reference therefore come
 * before those of a thread that takes the lock, or puts the last reference, after the put. Accesses
 * of the lock's holders come before accesses with a later reference. The holder's store of the
 * count is relaxed: its unlock releases it, and a compare-and-swap of the whole word that sees the
 * lock free sees that count too.
 */
#ifndef LW_LOCKREF_H
#define LW_LOCKREF_H

#include "operations.h"

/* The number of races lost in a row after which a thread acquires the lock to change the count. */
#define LW_LOCKREF_TRIES 100
/* Any count below 0 is dead. This one stays below 0, whatever gets and puts follow. */
#define LW_LOCKREF_DEAD (-0x40000000)
/* The least count. */
#define LW_LOCKREF_ANY (-0x7fffffff - 1)

union lw_lockref {
	struct {
		lw_atomic(uint32_t) lock; /* a lock of 4 bytes at most lies here */
		lw_atomic(int32_t) count;
	};
	lw_atomic(uint64_t) word;
} lw_aligned(8);

/* A value of the word. */
union lw_lockref_value {
	struct {
		uint32_t lock;
		int32_t count;
	};
	uint64_t word;
};

/* The lock in a lockref: a compile-time constant, so that all calls are direct. */
struct lw_lockref_lock {
	bool (*is_unlocked)(uint32_t val);
	void (*lock)(void *lock);
	void (*unlock)(void *lock);
};

enum lw_lockref_result {
	LW_LOCKREF_DONE,
	LW_LOCKREF_REFUSED, /* the count was below `least` */
	LW_LOCKREF_BUSY,    /* the lock is held, or too many races were lost */
};

/*
 * Gives in *next the word that follows `now`, if the lock is free and the count at least `least`.
 */
static lw_always_inline enum lw_lockref_result lw_lockref_next(uint64_t now,
							       const struct lw_lockref_lock *lock,
							       int32_t least, int32_t change,
							       uint64_t *next)
{
	union lw_lockref_value value;

	value.word = now;
	if (!lock->is_unlocked(value.lock))
		return LW_LOCKREF_BUSY;
	if (value.count < least)
		return LW_LOCKREF_REFUSED;
	value.count = (int32_t)((uint32_t)value.count + (uint32_t)change);
	*next = value.word;
	return LW_LOCKREF_DONE;
}

static lw_always_inline enum lw_lockref_result
lw_lockref_raise(union lw_lockref *ref, const struct lw_lockref_lock *lock, int32_t least)
{
	uint64_t now = lw_load(&ref->word, relaxed), next;

	for (unsigned int tries = 0; tries < LW_LOCKREF_TRIES; tries++) {
		enum lw_lockref_result result = lw_lockref_next(now, lock, least, 1, &next);

		if (result != LW_LOCKREF_DONE)
			return result;
		/* (free, n) -> (free, n + 1) */
		if (lw_try_cmpxchg(&ref->word, &now, next, acquire))
			return LW_LOCKREF_DONE;
	}
	return LW_LOCKREF_BUSY;
}

/* Put a reference by a compare-and-swap. If that is DONE, *left is the new count. */
static lw_always_inline enum lw_lockref_result lw_lockref_lower(union lw_lockref *ref,
								const struct lw_lockref_lock *lock,
								int32_t least, int32_t *left)
{
	uint64_t now = lw_load(&ref->word, relaxed);
	union lw_lockref_value next;

	for (unsigned int tries = 0; tries < LW_LOCKREF_TRIES; tries++) {
		enum lw_lockref_result result = lw_lockref_next(now, lock, least, -1, &next.word);

		if (result != LW_LOCKREF_DONE)
			return result;
		/* (free, n) -> (free, n - 1) */
		if (lw_try_cmpxchg(&ref->word, &now, next.word, release)) {
			*left = next.count;
			return LW_LOCKREF_DONE;
		}
	}
	return LW_LOCKREF_BUSY;
}

/* The count; it does not change while the lock is held by the caller. */
static lw_always_inline int32_t lw_lockref_read_count(union lw_lockref *ref)
{
	return lw_load(&ref->count, relaxed);
}

/* By the lock's holder. */
static lw_always_inline void lw_lockref_write_count(union lw_lockref *ref, int32_t count)
{
	/* (held, *) -> (held, count) */
	lw_store(&ref->count, count, relaxed);
}

/* By the lock's holder. */
static lw_always_inline bool lw_lockref_change_held(union lw_lockref *ref, int32_t least,
						    int32_t change)
{
	int32_t count = lw_lockref_read_count(ref);

	if (count < least)
		return false;
	lw_lockref_write_count(ref, (int32_t)((uint32_t)count + (uint32_t)change));
	return true;
}

/*
 * Finish an attempt without the lock that had this result: if it was BUSY, repeat it with the lock.
 */
static lw_always_inline bool lw_lockref_settle(union lw_lockref *ref,
					       const struct lw_lockref_lock *lock,
					       enum lw_lockref_result result, int32_t least,
					       int32_t change)
{
	bool done;

	if (result != LW_LOCKREF_BUSY)
		return result == LW_LOCKREF_DONE;
	lock->lock(&ref->lock);
	done = lw_lockref_change_held(ref, least, change);
	lock->unlock(&ref->lock);
	return done;
}

/* Get a reference, if the count is at least `least`. */
static lw_always_inline bool lw_lockref_get_from(union lw_lockref *ref,
						 const struct lw_lockref_lock *lock, int32_t least)
{
	return lw_lockref_settle(ref, lock, lw_lockref_raise(ref, lock, least), least, 1);
}

/* Put a reference unless it is the last; otherwise, and if there is none, the lock is ours. */
static lw_always_inline bool lw_lockref_put_to_one(union lw_lockref *ref,
						   const struct lw_lockref_lock *lock)
{
	int32_t left;

	if (lw_lockref_lower(ref, lock, 2, &left) == LW_LOCKREF_DONE)
		return true;
	lock->lock(&ref->lock);
	if (!lw_lockref_change_held(ref, 2, -1))
		return false;
	lock->unlock(&ref->lock);
	return true;
}

/* Put a reference unless it is the last. */
static lw_always_inline bool lw_lockref_put_but_last(union lw_lockref *ref,
						     const struct lw_lockref_lock *lock)
{
	int32_t left;

	return lw_lockref_settle(ref, lock, lw_lockref_lower(ref, lock, 2, &left), 2, -1);
}

/* Put a reference if that can be done without the lock; gives the new count, or -1. */
static lw_always_inline int32_t lw_lockref_put_free(union lw_lockref *ref,
						    const struct lw_lockref_lock *lock)
{
	int32_t left;

	if (lw_lockref_lower(ref, lock, 1, &left) != LW_LOCKREF_DONE)
		return -1;
	/* The uses of all other references come before what we do after the last put. */
	if (left == 0)
		lw_fence(acquire);
	return left;
}

/* Static initialisers: n references, and an unlocked lock, all zero or of that word. */
/* clang-format off */
#define LW_LOCKREF_INIT_WITH(word, n) {{{{word}, {n}}}}
#define LW_LOCKREF_INIT(n)	      LW_LOCKREF_INIT_WITH(0, n)
/* clang-format on */

/*
 * Define union lw_lockref_<id>, which contains a lock of type lock_type that has lw_<id>_lock(),
 * lw_<id>_trylock() and lw_<id>_unlock(), and is unlocked when its 4 bytes are `word`; and the
 * operations on it:
 *
 *   init          n references, unlocked; nobody else uses it yet
 *   get           get a reference; the caller has one, or has the lockref to itself
 *   get_not_zero  get one if there is one; false if there is none, or it is dead
 *   get_not_dead  get one unless it is dead
 *   put_or_lock   put a reference and give true, unless it is the last (or there
 *                 is none): then false, the count is as it was and the lock is held
 *   put_not_zero  put a reference and give true; false if it is the last or none
 *   put_return    put a reference, also the last, and give the new count; -1 if the
 *                 lock is held, there is none, or others were faster 100 times; then
 *                 it is not put. Never waits.
 *   lock, trylock, unlock   those of the lock in it
 *   count         how many references; fixed while the lock is held, else a guess
 *   set_count, mark_dead    by the holder of the lock
 */
#define LW_DEFINE_LOCKREF(id, lock_type, word, unlocked)                                      \
	union lw_lockref_##id {                                                               \
		union lw_lockref ref;                                                         \
		lock_type lock;                                                               \
	};                                                                                    \
	static inline bool lw_lockref_##id##_is_unlocked(uint32_t val)                        \
	{                                                                                     \
		(void)val;                                                                    \
		return unlocked;                                                              \
	}                                                                                     \
	static inline void lw_lockref_##id##_take(void *lock)                                 \
	{                                                                                     \
		lw_##id##_lock((lock_type *)lock);                                            \
	}                                                                                     \
	static inline void lw_lockref_##id##_leave(void *lock)                                \
	{                                                                                     \
		lw_##id##_unlock((lock_type *)lock);                                          \
	}                                                                                     \
	static const struct lw_lockref_lock lw_lockref_##id##_inner = {                       \
		lw_lockref_##id##_is_unlocked,                                                \
		lw_lockref_##id##_take,                                                       \
		lw_lockref_##id##_leave,                                                      \
	};                                                                                    \
	static inline void lw_lockref_##id##_init(union lw_lockref_##id *ref, int32_t n)      \
	{                                                                                     \
		lw_store(&ref->ref.lock, word, relaxed);                                      \
		lw_store(&ref->ref.count, n, relaxed);                                        \
	}                                                                                     \
	static inline void lw_lockref_##id##_get(union lw_lockref_##id *ref)                  \
	{                                                                                     \
		lw_lockref_get_from(&ref->ref, &lw_lockref_##id##_inner, LW_LOCKREF_ANY);     \
	}                                                                                     \
	static inline bool lw_lockref_##id##_get_not_zero(union lw_lockref_##id *ref)         \
	{                                                                                     \
		return lw_lockref_get_from(&ref->ref, &lw_lockref_##id##_inner, 1);           \
	}                                                                                     \
	static inline bool lw_lockref_##id##_get_not_dead(union lw_lockref_##id *ref)         \
	{                                                                                     \
		return lw_lockref_get_from(&ref->ref, &lw_lockref_##id##_inner, 0);           \
	}                                                                                     \
	static inline bool lw_lockref_##id##_put_or_lock(union lw_lockref_##id *ref)          \
	{                                                                                     \
		return lw_lockref_put_to_one(&ref->ref, &lw_lockref_##id##_inner);            \
	}                                                                                     \
	static inline bool lw_lockref_##id##_put_not_zero(union lw_lockref_##id *ref)         \
	{                                                                                     \
		return lw_lockref_put_but_last(&ref->ref, &lw_lockref_##id##_inner);          \
	}                                                                                     \
	static inline int32_t lw_lockref_##id##_put_return(union lw_lockref_##id *ref)        \
	{                                                                                     \
		return lw_lockref_put_free(&ref->ref, &lw_lockref_##id##_inner);              \
	}                                                                                     \
	static inline void lw_lockref_##id##_lock(union lw_lockref_##id *ref)                 \
	{                                                                                     \
		lw_##id##_lock(&ref->lock);                                                   \
	}                                                                                     \
	static inline bool lw_lockref_##id##_trylock(union lw_lockref_##id *ref)              \
	{                                                                                     \
		return lw_##id##_trylock(&ref->lock);                                         \
	}                                                                                     \
	static inline void lw_lockref_##id##_unlock(union lw_lockref_##id *ref)               \
	{                                                                                     \
		lw_##id##_unlock(&ref->lock);                                                 \
	}                                                                                     \
	static inline int32_t lw_lockref_##id##_count(union lw_lockref_##id *ref)             \
	{                                                                                     \
		return lw_lockref_read_count(&ref->ref);                                      \
	}                                                                                     \
	static inline void lw_lockref_##id##_set_count(union lw_lockref_##id *ref, int32_t n) \
	{                                                                                     \
		lw_lockref_write_count(&ref->ref, n);                                         \
	}                                                                                     \
	static inline void lw_lockref_##id##_mark_dead(union lw_lockref_##id *ref)            \
	{                                                                                     \
		lw_lockref_write_count(&ref->ref, LW_LOCKREF_DEAD);                           \
	}

#endif
