/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mutexes and conditions of C11. In glibc they have the layout of the POSIX types. */
#ifndef LW_INTERPOSE_C11_H
#define LW_INTERPOSE_C11_H

#include <errno.h>
#include <pthread.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "cnd_t is a pthread_cond_t");

static inline pthread_mutex_t *lw_mutex_of(mtx_t *mtx)
{
	return (pthread_mutex_t *)mtx;
}

static inline pthread_cond_t *lw_cond_of(cnd_t *cnd)
{
	return (pthread_cond_t *)cnd;
}

/* Returns the result that C11 has for an error number of POSIX. */
static inline int lw_thrd(int error)
{
	switch (error) {
	case 0:
		return thrd_success;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	case ENOMEM:
		return thrd_nomem;
	}
	return thrd_error;
}

#endif
