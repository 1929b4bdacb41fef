/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What condition variables need of mutexes.
 *
 * A mutex of ours is a pthread_mutex_t, and has in the members of glibc
 *
 *   __lock   the lock, of 4 bytes at most
 *   __count  how often it is held, if it is recursive
 *   __owner  the thread that holds it, if it is recursive or checks for errors; 0 if none does
 *   __kind   what glibc has there, since static initialisers put it there: what type it is, or that
 *            it is shared between processes, robust, or has a protocol, and so is not ours
 */
#ifndef LW_PRELOAD_MUTEX_PARTS_H
#define LW_PRELOAD_MUTEX_PARTS_H

#include <pthread.h>
#include <stdbool.h>

/* What glibc adds to PTHREAD_MUTEX_NORMAL where that was asked for by name. */
#define LW_KIND_NO_ELISION 512

static inline bool lw_mutex_is_ours(const pthread_mutex_t *mutex)
{
	return (mutex->__data.__kind & ~LW_KIND_NO_ELISION & ~3) == 0;
}

/* May this thread unlock it? */
bool lw_mutex_is_held(pthread_mutex_t *mutex);
/* Release it, however often it is held; gives how often, for lw_mutex_take_whole(). */
unsigned int lw_mutex_release_whole(pthread_mutex_t *mutex);
void lw_mutex_take_whole(pthread_mutex_t *mutex, unsigned int count);

#endif
