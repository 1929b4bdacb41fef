/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A counter behind a lock of each kind, whose fast paths are compiled here. */
#include <lockworks/lockworks.h>

static struct lw_mutex mutex = LW_MUTEX_INIT;
static struct lw_hq hq = LW_HQ_INIT;
static struct lw_rwlock rwlock = LW_RWLOCK_INIT;
static long count;

long count_up(void)
{
	long now;

	lw_mutex_lock(&mutex);
	lw_hq_lock(&hq);
	lw_rwlock_lock(&rwlock);
	now = ++count;
	lw_rwlock_unlock(&rwlock);
	lw_hq_unlock(&hq);
	lw_mutex_unlock(&mutex);
	return now;
}
