/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of mutex.c that condition variables use.
 *
 * A mutex that we serve is a pthread_mutex_t. It uses the members of glibc's layout as follows:
 *
 *   __lock   the lock, of 4 bytes at most
 *   __count  how often its holder has acquired it, if it is recursive
 *   __owner  the thread that holds it, by its number, as debuggers read it; 0 if it is free
 *   __nusers threads that wait for a condition variable, and will acquire the mutex again
 *   __kind   what glibc stores there, because static initialisers do: the type. Further bits say
 *            that the mutex is robust, shared between processes or has a protocol. We do not
 *            serve these. LW_KIND_WAKE is ours.
 *   __list   the waiter of a condition variable that is woken when the mutex is released
 */
#ifndef LW_PRELOAD_MUTEX_PARTS_H
#define LW_PRELOAD_MUTEX_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "cond.h"

/* glibc sets this bit if PTHREAD_MUTEX_NORMAL was requested by name. */
#define LW_KIND_NO_ELISION 512

/* Its holder has signalled a waiter that will acquire the mutex, and that the unlock wakes. */
#define LW_KIND_WAKE 1024

static inline int lw_mutex_kind(const pthread_mutex_t *mutex)
{
	return __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
}

/* Returns whether we serve this mutex, rather than glibc. */
static inline bool lw_mutex_is_ours(const pthread_mutex_t *mutex)
{
	return (lw_mutex_kind(mutex) & ~(LW_KIND_NO_ELISION | LW_KIND_WAKE | 3)) == 0;
}

/* The kernel's number of this thread; 0 until it is first needed. */
extern __thread pid_t lw_own_tid __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline int lw_self(void)
{
	if (lw_unlikely(!lw_own_tid))
		lw_own_tid = gettid();
	return lw_own_tid;
}

/* Returns whether this thread may unlock the mutex. */
bool lw_mutex_is_held(pthread_mutex_t *mutex);
/*
 * Releases the mutex, however often this thread has acquired it. Returns how often, for
 * lw_mutex_take_whole().
 */
unsigned int lw_mutex_release_whole(pthread_mutex_t *mutex);
/* Acquires the mutex as often as it was held before lw_mutex_release_whole(). */
void lw_mutex_take_whole(pthread_mutex_t *mutex, unsigned int count);
/*
 * Has the unlock of the mutex wake a waiter that has been notified. Returns false if this thread
 * does not hold the mutex, or another waiter will be woken: the caller must wake it then.
 */
bool lw_mutex_wake_at_unlock(pthread_mutex_t *mutex, struct lw_cond_waiter *waiter);
/* Returns whether this thread is known to hold the mutex. */
bool lw_mutex_is_mine(pthread_mutex_t *mutex);

#endif
