// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The locks of the C library. */
#define _GNU_SOURCE
#include <pthread.h>

#include "bench.h"

#define POSIX "C library"

BENCH_LOCK(pthread_spin, POSIX, BENCH_UNFAIR, pthread_spinlock_t, struct bench_nothing,
	   pthread_spin_init(s, PTHREAD_PROCESS_PRIVATE), (void)0, pthread_spin_lock(s),
	   pthread_spin_unlock(s))
BENCH_LOCK(pthread_mutex, POSIX, BENCH_UNFAIR, pthread_mutex_t, struct bench_nothing,
	   pthread_mutex_init(s, NULL), (void)0, pthread_mutex_lock(s), pthread_mutex_unlock(s))

const struct bench_lock *const bench_posix_locks[] = {
	&bench_pthread_spin,
	&bench_pthread_mutex,
	NULL,
};
