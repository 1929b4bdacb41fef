/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the benchmark runs of a lock: one template for all, so that two locks
 * differ in nothing but the lock. The operations are inlined into the loops, as
 * far as the lock's header lets its users do that.
 */
#ifndef LW_BENCH_H
#define LW_BENCH_H

#include <stdint.h>
#include <stddef.h>

enum bench_order {
	BENCH_UNFAIR,  /* whoever comes at the right moment has it */
	BENCH_FIFO,    /* in the order in which the waiters queued */
	BENCH_BOUNDED, /* some waiters first, the others not much later */
};

/* What the lock protects, apart from each other so that compilers increment one at a time. */
struct bench_counters {
	uint64_t first, unused, second;
};

struct bench_lock {
	const char *name;
	const char *origin;
	uint32_t order; /* enum bench_order */
	uint32_t state_size;
	uint32_t thread_size; /* what each thread lends, such as a queue node */
	/* Make zeroed memory a lock. */
	void (*init)(void *state);
	/* Lock and unlock, n times. */
	void (*pure)(void *state, void *thread, uint64_t n);
	/* The same around two increments. */
	void (*counted)(void *state, void *thread, struct bench_counters *counters, uint64_t n);
	/* The same until *stop is not 0; gives how often. */
	uint64_t (*contended)(void *state, void *thread, struct bench_counters *counters,
			      const uint32_t *stop);
};

/* For locks that take nothing from their threads. */
struct bench_nothing {
	char unused;
};

#define BENCH_CODE static __attribute__((noinline, aligned(64)))

/*
 * Describe one lock. In INIT, BEGIN, LOCK and UNLOCK, `s` points to the state and
 * `t`, except in INIT, to what the thread lends; BEGIN runs once before a loop.
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

/* For locks that are one struct or union with zeroed memory unlocked, id##_lock() and
 * id##_unlock(). */
#define BENCH_PLAIN(kind, id, origin, order)                                           \
	BENCH_LOCK(id, origin, order, kind id, struct bench_nothing, (void)0, (void)0, \
		   id##_lock(s), id##_unlock(s))

#endif
