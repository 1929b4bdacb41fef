// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The least that any lock costs: a compare-and-swap to acquire, a store to release.
 * It excludes, but it is no lock for programs: every waiter writes to the lock again
 * and again.
 */
#include <stdbool.h>

#include "bench.h"

static inline void bare_lock(uint32_t *word)
{
	uint32_t expected = 0;

	while (__builtin_expect(!__atomic_compare_exchange_n(word, &expected, 1, false,
							     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
				0)) {
		expected = 0;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
	}
}

static inline void bare_unlock(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

BENCH_LOCK(bare, "compare-and-swap, store", BENCH_UNFAIR, uint32_t, struct bench_nothing, (void)0,
	   (void)0, bare_lock(s), bare_unlock(s))

const struct bench_lock *const bench_bare_locks[] = {&bench_bare, NULL};
