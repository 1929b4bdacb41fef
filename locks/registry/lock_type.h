/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The description of a lock, from which all tools know it: an lw_lock_type, which LW_DESCRIBE() or
 * one of its variants defines at the end of the lock's C file.
 */
#ifndef LW_LOCK_TYPE_H
#define LW_LOCK_TYPE_H

#include "world.h"

/* Properties of a lock. */
enum lw_lock_trait {
	LW_FIFO = 1,	     /* it serves waiters in the order of their arrival */
	LW_SPINS = 2,	     /* its waiters never park: slow with more threads than CPUs */
	LW_NUMA_AWARE = 4,   /* it prefers waiters of the holder's NUMA node, within a bound */
	LW_BROKEN = 8,	     /* it does not exclude, so every tool must report it */
	LW_TAIL_WORD = 16,   /* its first four bytes are a union lw_word (lock_word.h) */
	LW_MUTEX_WORD = 128, /* that word has the flags of a mutex (mutex.h) */
	/*
	 * Not even a trylock is allowed in an interrupt or signal handler if the interrupted code
	 * may hold the lock or wait for it.
	 */
	LW_NOT_IN_HANDLERS = 32,
	LW_HISTORIC = 64,   /* it is kept for comparison (locks/historic/) */
	LW_RESILIENT = 256, /* one of its acquisitions can fail (resilience.h) */
};

struct lw_wait_limit;

/* One interface to all locks. */
struct lw_lock_type {
	const char *name;
	const char *summary;
	const char *origin; /* where the algorithm comes from */
	/* how the names of its tunables begin, with spaces between; NULL: it has none */
	const char *tunables;
	size_t size; /* bytes of the lock */
	/* bytes that the caller lends from lock to unlock, 64-aligned; may be 0 */
	size_t node_size;
	unsigned int traits;
	uint32_t unlocked; /* first four bytes of an unlocked lock, if not 0; the others are 0 */
	void (*lock)(void *lock, void *node);
	bool (*trylock)(void *lock, void *node);
	void (*unlock)(void *lock, void *node);
	/*
	 * Lock, or return false if the wait limit is reached first. NULL: the lock has no limits.
	 */
	bool (*lock_limited)(void *lock, const struct lw_wait_limit *limit);
	/* The same for readers, which hold the lock together. NULL: the lock has no readers. */
	void (*read_lock)(void *lock);
	bool (*read_trylock)(void *lock);
	void (*read_unlock)(void *lock);
	bool (*read_lock_limited)(void *lock, const struct lw_wait_limit *limit);
};

/* Describe a lock of this C type, whose operations on `lock` and `node` are these expressions. */
#define LW_DESCRIBE_OPS(id, type, LOCK, TRYLOCK, UNLOCK, ...)                                    \
	static void lw_##id##_type_lock(void *lock, void *node)                                  \
	{                                                                                        \
		(void)node;                                                                      \
		LOCK;                                                                            \
	}                                                                                        \
	static bool lw_##id##_type_trylock(void *lock, void *node)                               \
	{                                                                                        \
		(void)node;                                                                      \
		return TRYLOCK;                                                                  \
	}                                                                                        \
	static void lw_##id##_type_unlock(void *lock, void *node)                                \
	{                                                                                        \
		(void)node;                                                                      \
		UNLOCK;                                                                          \
	}                                                                                        \
	LW_EXPORT const struct lw_lock_type lw_##id##_type = {.name = #id,                       \
							      .size = sizeof(type),              \
							      .lock = lw_##id##_type_lock,       \
							      .trylock = lw_##id##_type_trylock, \
							      .unlock = lw_##id##_type_unlock,   \
							      __VA_ARGS__}

/* Describe a lock that has lw_<id>_lock(lock), lw_<id>_trylock(lock) and lw_<id>_unlock(lock). */
#define LW_DESCRIBE(id, type, ...)                                                               \
	LW_DESCRIBE_OPS(id, type, lw_##id##_lock((type *)lock), lw_##id##_trylock((type *)lock), \
			lw_##id##_unlock((type *)lock), __VA_ARGS__)

/* The same, for a lock that has lw_<id>_lock_limited() too. */
#define LW_DESCRIBE_LIMITED(id, type, ...)                                                     \
	static bool lw_##id##_type_lock_limited(void *lock, const struct lw_wait_limit *limit) \
	{                                                                                      \
		return lw_##id##_lock_limited((type *)lock, limit);                            \
	}                                                                                      \
	LW_DESCRIBE(id, type, .lock_limited = lw_##id##_type_lock_limited, __VA_ARGS__)

/* Describe a lock whose operations take a node that the caller lends: lw_<id>_lock(lock, node). */
#define LW_DESCRIBE_WITH_NODE(id, type, node_type, ...)                            \
	LW_DESCRIBE_OPS(id, type, lw_##id##_lock((type *)lock, (node_type *)node), \
			lw_##id##_trylock((type *)lock, (node_type *)node),        \
			lw_##id##_unlock((type *)lock, (node_type *)node),         \
			.node_size = sizeof(node_type), __VA_ARGS__)

#endif
