// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The locks of the C library. */
#define _GNU_SOURCE
#include <pthread.h>

#include "peer.h"

#define POSIX "C library"

PEER(pthread_spin, POSIX, BENCH_UNFAIR, pthread_spinlock_t, struct bench_nothing,
     pthread_spin_init(s, PTHREAD_PROCESS_PRIVATE), (void)0, pthread_spin_lock(s),
     pthread_spin_unlock(s))
PEER(pthread_mutex, POSIX, BENCH_UNFAIR, pthread_mutex_t, struct bench_nothing,
     pthread_mutex_init(s, NULL), (void)0, pthread_mutex_lock(s), pthread_mutex_unlock(s))
static void adaptive_init(pthread_mutex_t *mutex)
{
	*mutex = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
}

PEER(pthread_adaptive, POSIX, BENCH_UNFAIR, pthread_mutex_t, struct bench_nothing, adaptive_init(s),
     (void)0, pthread_mutex_lock(s), pthread_mutex_unlock(s))

static void rwlock_read_lock(void *state)
{
	pthread_rwlock_rdlock((pthread_rwlock_t *)state);
}

static void rwlock_read_unlock(void *state)
{
	pthread_rwlock_unlock((pthread_rwlock_t *)state);
}

PEER(pthread_rwlock, POSIX, BENCH_UNFAIR, pthread_rwlock_t, struct bench_nothing,
     pthread_rwlock_init(s, NULL), (void)0, pthread_rwlock_wrlock(s), pthread_rwlock_unlock(s),
     .read_lock = rwlock_read_lock, .read_unlock = rwlock_read_unlock)

const struct peer *const peer_posix[] = {
	&pthread_spin_peer, &pthread_mutex_peer, &pthread_adaptive_peer, &pthread_rwlock_peer, NULL,
};
