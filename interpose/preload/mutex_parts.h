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
 *            serve these. LW_KIND_WAKE is ours. With a plan, LW_KIND_SERVED or LW_KIND_LEFT says
 *            what was decided, and the bits from LW_KIND_LOCK on which lock serves it. glibc
 *            ignores these bits.
 *   __list   the waiter of a condition variable that is woken when the mutex is released
 */
#ifndef LW_PRELOAD_MUTEX_PARTS_H
#define LW_PRELOAD_MUTEX_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "choice.h"
#include "cond.h"

/* glibc sets this bit if PTHREAD_MUTEX_NORMAL was requested by name. */
#define LW_KIND_NO_ELISION 512

/* Its holder has signalled a waiter that will acquire the mutex, and that the unlock wakes. */
#define LW_KIND_WAKE 1024

/* The plan has a lock for it. */
#define LW_KIND_SERVED 2048

/* The plan leaves it to glibc. */
#define LW_KIND_LEFT 4096

/* Times the number of the lock that serves it, which is below 256. */
#define LW_KIND_LOCK  65536
#define LW_KIND_LOCKS (255 * LW_KIND_LOCK)

/* The type of a normal mutex that is served by the lock of this number. */
static inline int lw_planned_kind(unsigned int lock)
{
	return LW_KIND_SERVED | (int)lock * LW_KIND_LOCK;
}

static inline int lw_mutex_kind(const pthread_mutex_t *mutex)
{
	return __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
}

/* Returns whether we serve this mutex, rather than glibc. */
static inline bool lw_mutex_is_ours(const pthread_mutex_t *mutex)
{
	const int any = LW_KIND_NO_ELISION | LW_KIND_WAKE | LW_KIND_LOCKS | 3;

	return (lw_mutex_kind(mutex) & ~any) == lw_load(&lw_choice.mark, relaxed);
}

/* Decides who serves a mutex that a call locks, if a plan has not decided yet. */
void lw_mutex_decide(pthread_mutex_t *mutex, const void *caller);
/* As pthread_mutex_init(), called from there. */
int lw_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr, const void *caller);

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
