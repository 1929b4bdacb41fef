// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Getting and putting references: lockrefs, and what they are compared with. That is an atomic
 * count, and a lock with the count that it protects. */
#define _GNU_SOURCE
#include <pthread.h>

#include <lockworks/lockworks.h>

#include "bench.h"

/*
 * Like BENCH_LOCK, with GET and PUT instead of LOCK and UNLOCK. References protect nothing, so
 * the counters only count the operations.
 */
#define BENCH_REFERENCES(id, name_, origin_, order_, state_type, INIT, GET, PUT)                  \
	static void bench_##id##_init(void *state)                                                \
	{                                                                                         \
		state_type *s = state;                                                            \
		INIT;                                                                             \
	}                                                                                         \
	BENCH_CODE void bench_##id##_pure(void *state, void *thread, uint64_t n)                  \
	{                                                                                         \
		state_type *s = state;                                                            \
		(void)thread;                                                                     \
		for (uint64_t i = 0; i < n; i++) {                                                \
			GET;                                                                      \
			PUT;                                                                      \
		}                                                                                 \
	}                                                                                         \
	static void bench_##id##_counted(void *state, void *thread,                               \
					 struct bench_counters *counters, uint64_t n)             \
	{                                                                                         \
		bench_##id##_pure(state, thread, n);                                              \
		counters->first += n;                                                             \
		counters->second += n;                                                            \
	}                                                                                         \
	BENCH_CODE uint64_t bench_##id##_contended(                                               \
		void *state, void *thread, struct bench_counters *counters, const uint32_t *stop) \
	{                                                                                         \
		state_type *s = state;                                                            \
		uint64_t operations = 0;                                                          \
		(void)thread;                                                                     \
		while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {                                \
			GET;                                                                      \
			PUT;                                                                      \
			operations++;                                                             \
		}                                                                                 \
		__atomic_fetch_add(&counters->first, operations, __ATOMIC_RELAXED);               \
		__atomic_fetch_add(&counters->second, operations, __ATOMIC_RELAXED);              \
		return operations;                                                                \
	}                                                                                         \
	static const struct bench_lock bench_##id = {                                             \
		.name = name_,                                                                    \
		.origin = origin_,                                                                \
		.order = order_,                                                                  \
		.state_size = sizeof(state_type),                                                 \
		.thread_size = sizeof(struct bench_nothing),                                      \
		.init = bench_##id##_init,                                                        \
		.pure = bench_##id##_pure,                                                        \
		.counted = bench_##id##_counted,                                                  \
		.contended = bench_##id##_contended,                                              \
	};

BENCH_REFERENCES(atomic, "atomic", "fetch-and-add", BENCH_UNFAIR, int32_t, *s = 1,
		 __atomic_fetch_add(s, 1, __ATOMIC_RELAXED),
		 __atomic_fetch_sub(s, 1, __ATOMIC_RELEASE))

/* A lockref whose last reference is never put. A get or put therefore acquires the lock only
 * after it has lost too many races for the word. */
#define LOCKREF(id)                                                                  \
	BENCH_REFERENCES(lockref_##id, "lw_lockref_" #id, "Lockworks", BENCH_UNFAIR, \
			 union lw_lockref_##id, lw_lockref_##id##_init(s, 1),        \
			 lw_lockref_##id##_get(s), (void)lw_lockref_##id##_put_or_lock(s))

LOCKREF(qspinlock)
LOCKREF(cna)
LOCKREF(hq)
LOCKREF(tas)
LOCKREF(ticket)

/* A count that a lock protects. Each get and put acquires the lock, and a put keeps the last
 * reference. */
#define LOCKED(id, order, origin, lock_type, INIT, LOCK, UNLOCK)                               \
	struct locked_##id {                                                                   \
		lock_type lock;                                                                \
		int32_t count;                                                                 \
	};                                                                                     \
	static inline void locked_##id##_get(struct locked_##id *s)                            \
	{                                                                                      \
		LOCK(&s->lock);                                                                \
		s->count++;                                                                    \
		UNLOCK(&s->lock);                                                              \
	}                                                                                      \
	static inline void locked_##id##_put(struct locked_##id *s)                            \
	{                                                                                      \
		LOCK(&s->lock);                                                                \
		if (s->count > 1)                                                              \
			s->count--;                                                            \
		UNLOCK(&s->lock);                                                              \
	}                                                                                      \
	BENCH_REFERENCES(locked_##id, #id " + count", origin, order, struct locked_##id, INIT; \
			 s->count = 1, locked_##id##_get(s), locked_##id##_put(s))

LOCKED(lw_qspinlock, BENCH_FIFO, "Lockworks", struct lw_qspinlock, (void)0, lw_qspinlock_lock,
       lw_qspinlock_unlock)
LOCKED(lw_cna, BENCH_BOUNDED, "Lockworks", struct lw_cna, (void)0, lw_cna_lock, lw_cna_unlock)
LOCKED(lw_hq, BENCH_BOUNDED, "Lockworks", struct lw_hq, s->lock = (struct lw_hq)LW_HQ_INIT,
       lw_hq_lock, lw_hq_unlock)
LOCKED(lw_tas, BENCH_UNFAIR, "Lockworks", struct lw_tas, (void)0, lw_tas_lock, lw_tas_unlock)
LOCKED(lw_ticket, BENCH_FIFO, "Lockworks", union lw_ticket, (void)0, lw_ticket_lock,
       lw_ticket_unlock)
LOCKED(pthread_mutex, BENCH_UNFAIR, "C library", pthread_mutex_t,
       pthread_mutex_init(&s->lock, NULL), pthread_mutex_lock, pthread_mutex_unlock)

const struct bench_lock *const bench_references[] = {
	&bench_atomic,
	&bench_lockref_qspinlock,
	&bench_lockref_cna,
	&bench_lockref_hq,
	&bench_lockref_tas,
	&bench_lockref_ticket,
	&bench_locked_lw_qspinlock,
	&bench_locked_lw_cna,
	&bench_locked_lw_hq,
	&bench_locked_lw_tas,
	&bench_locked_lw_ticket,
	&bench_locked_pthread_mutex,
	NULL,
};
