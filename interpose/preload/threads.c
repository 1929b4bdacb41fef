// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* mtx_*() and cnd_*() of C11. In glibc they have the layout of the POSIX types. */
#define _GNU_SOURCE
#include "c11.h"
#include "glibc.h"
#include "lock_type.h"
#include "mutex_parts.h"

LW_EXPORT int mtx_init(mtx_t *mtx, int type)
{
	lw_mutex_init(lw_mutex_of(mtx), NULL, LW_CALLER);
	if (type & mtx_recursive)
		lw_mutex_of(mtx)->__data.__kind |= PTHREAD_MUTEX_RECURSIVE;
	return thrd_success;
}

LW_EXPORT void mtx_destroy(mtx_t *mtx)
{
	pthread_mutex_destroy(lw_mutex_of(mtx));
}

LW_EXPORT int mtx_lock(mtx_t *mtx)
{
	lw_mutex_decide(lw_mutex_of(mtx), LW_CALLER);
	return lw_thrd(pthread_mutex_lock(lw_mutex_of(mtx)));
}

LW_EXPORT int mtx_trylock(mtx_t *mtx)
{
	lw_mutex_decide(lw_mutex_of(mtx), LW_CALLER);
	return lw_thrd(pthread_mutex_trylock(lw_mutex_of(mtx)));
}

/* `deadline` is by TIME_UTC, which is CLOCK_REALTIME. */
LW_EXPORT int mtx_timedlock(mtx_t *restrict mtx, const struct timespec *restrict deadline)
{
	lw_mutex_decide(lw_mutex_of(mtx), LW_CALLER);
	return lw_thrd(pthread_mutex_timedlock(lw_mutex_of(mtx), deadline));
}

LW_EXPORT int mtx_unlock(mtx_t *mtx)
{
	return lw_thrd(pthread_mutex_unlock(lw_mutex_of(mtx)));
}

LW_EXPORT int cnd_init(cnd_t *cnd)
{
	return lw_thrd(pthread_cond_init(lw_cond_of(cnd), NULL));
}

LW_EXPORT void cnd_destroy(cnd_t *cnd)
{
	pthread_cond_destroy(lw_cond_of(cnd));
}

LW_EXPORT int cnd_wait(cnd_t *cnd, mtx_t *mtx)
{
	return lw_thrd(pthread_cond_wait(lw_cond_of(cnd), lw_mutex_of(mtx)));
}

LW_EXPORT int cnd_timedwait(cnd_t *restrict cnd, mtx_t *restrict mtx,
			    const struct timespec *restrict deadline)
{
	return lw_thrd(pthread_cond_timedwait(lw_cond_of(cnd), lw_mutex_of(mtx), deadline));
}

LW_EXPORT int cnd_signal(cnd_t *cnd)
{
	return lw_thrd(pthread_cond_signal(lw_cond_of(cnd)));
}

LW_EXPORT int cnd_broadcast(cnd_t *cnd)
{
	return lw_thrd(pthread_cond_broadcast(lw_cond_of(cnd)));
}
