/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The loops around a lock that the benchmark measures. One template makes them for
 * every lock, so that two measurements differ only in the lock. The lock's operations
 * are inlined into the loops if its header defines them inline.
 */
#ifndef LW_BENCH_H
#define LW_BENCH_H

#include <stdint.h>
#include <stddef.h>

enum bench_order {
	BENCH_UNFAIR,  /* waiters acquire the lock in no order */
	BENCH_FIFO,    /* waiters acquire it in the order in which they queued */
	BENCH_BOUNDED, /* the lock prefers some waiters, within a bound */
};

/* The counters that the lock protects. They are apart so that compilers do not combine the
 * increments into one vector instruction. */
struct bench_counters {
	uint64_t first, unused, second;
};

/* One lock and its loops. `state` is the lock; `thread` is the memory that a thread lends. */
struct bench_lock {
	const char *name;
	const char *origin;
	uint32_t order; /* enum bench_order */
	uint32_t state_size;
	uint32_t thread_size; /* size of what each thread lends, such as a queue node */
	/* Initialise a lock in zeroed memory. */
	void (*init)(void *state);
	/* Lock and unlock n times. */
	void (*pure)(void *state, void *thread, uint64_t n);
	/* Lock, increment both counters and unlock, n times. */
	void (*counted)(void *state, void *thread, struct bench_counters *counters, uint64_t n);
	/* Do as `counted` until *stop is not 0, and return the number of acquisitions. */
	uint64_t (*contended)(void *state, void *thread, struct bench_counters *counters,
			      const uint32_t *stop);
};

/* The thread type of a lock to which threads lend nothing. */
struct bench_nothing {
	char unused;
};

#define BENCH_CODE static __attribute__((noinline, aligned(64)))

/*
 * Define the loops and the description of one lock. In INIT, BEGIN, LOCK and UNLOCK,
 * `s` points to the lock. In all but INIT, `t` points to what the thread lends. BEGIN
 * runs once before each loop.
 */
#define BENCH_LOCK(id, origin_, order_, state_type, thread_type, INIT, BEGIN, LOCK, UNLOCK)       \
	static void bench_##id##_init(void *state)                                                \
	{                                                                                         \
		state_type *s = (state_type *)state;                                              \
		(void)s;                                                                          \
		INIT;                                                                             \
	}                                                                                         \
	BENCH_CODE void bench_##id##_pure(void *state, void *thread, uint64_t n)                  \
	{                                                                                         \
		state_type *s = (state_type *)state;                                              \
		thread_type *t = (thread_type *)thread;                                           \
		(void)t;                                                                          \
		BEGIN;                                                                            \
		for (uint64_t i = 0; i < n; i++) {                                                \
			LOCK;                                                                     \
			UNLOCK;                                                                   \
		}                                                                                 \
	}                                                                                         \
	BENCH_CODE void bench_##id##_counted(void *state, void *thread,                           \
					     struct bench_counters *counters, uint64_t n)         \
	{                                                                                         \
		state_type *s = (state_type *)state;                                              \
		thread_type *t = (thread_type *)thread;                                           \
		(void)t;                                                                          \
		BEGIN;                                                                            \
		for (uint64_t i = 0; i < n; i++) {                                                \
			LOCK;                                                                     \
			counters->first++;                                                        \
			counters->second++;                                                       \
			UNLOCK;                                                                   \
		}                                                                                 \
	}                                                                                         \
	BENCH_CODE uint64_t bench_##id##_contended(                                               \
		void *state, void *thread, struct bench_counters *counters, const uint32_t *stop) \
	{                                                                                         \
		state_type *s = (state_type *)state;                                              \
		thread_type *t = (thread_type *)thread;                                           \
		uint64_t operations = 0;                                                          \
		(void)t;                                                                          \
		BEGIN;                                                                            \
		while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {                                \
			LOCK;                                                                     \
			counters->first++;                                                        \
			counters->second++;                                                       \
			UNLOCK;                                                                   \
			operations++;                                                             \
		}                                                                                 \
		return operations;                                                                \
	}                                                                                         \
	static const struct bench_lock bench_##id = {                                             \
		.name = #id,                                                                      \
		.origin = origin_,                                                                \
		.order = order_,                                                                  \
		.state_size = sizeof(state_type),                                                 \
		.thread_size = sizeof(thread_type),                                               \
		.init = bench_##id##_init,                                                        \
		.pure = bench_##id##_pure,                                                        \
		.counted = bench_##id##_counted,                                                  \
		.contended = bench_##id##_contended,                                              \
	};

/* Define them for a lock that is one struct or union, is unlocked when zeroed, and has the
 * functions id##_lock() and id##_unlock(). */
#define BENCH_PLAIN(kind, id, origin, order)                                           \
	BENCH_LOCK(id, origin, order, kind id, struct bench_nothing, (void)0, (void)0, \
		   id##_lock(s), id##_unlock(s))

#endif
