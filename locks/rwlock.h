/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reader-writer lock: 8 bytes, all zero when unlocked. Any number of readers hold it together,
 * or one writer holds it alone. Waiters spin for a while and then park. Description: rwlock.c.
 *
 *   lw_rwlock_lock()             hold it alone
 *   lw_rwlock_read_lock()        hold it with other readers. A thread that reads may do so again,
 *                                also while a writer waits; each acquisition is released once.
 *   lw_rwlock_upgradable_lock()  hold it with readers, but with no other upgradable holder and no
 *                                writer: it may be upgraded later
 *
 * Another thread may release a reader than the one that acquired it. Acquisitions and upgrades are
 * acquire operations, releases and downgrades release operations.
 */
#ifndef LW_RWLOCK_H
#define LW_RWLOCK_H

#include "mutex.h"

/* Pieces of `readers`: rwlock.c has a table of them. */
#define LW_RWLOCK_RUN	  0x000000ffu
#define LW_RWLOCK_WRITER  0x00000100u
#define LW_RWLOCK_HELD	  0x00000200u
#define LW_RWLOCK_AWAITED 0x00000400u
#define LW_RWLOCK_SPREAD  0x00000800u
#define LW_RWLOCK_ONE	  0x00001000u /* of COUNT */
#define LW_RWLOCK_COUNT	  0xfffff000u

struct lw_rwlock {
	struct lw_mutex queue; /* of writers, and readers that wait */
	/* The pieces above. */
	lw_atomic(uint32_t) readers;
};

/* The readers that the word counts, less announced ones that other threads have released. */
static inline int32_t lw_rwlock_count(uint32_t readers)
{
	return (int32_t)(readers & LW_RWLOCK_COUNT) / (int32_t)LW_RWLOCK_ONE;
}

struct lw_wait_limit;

LW_EXPORT void lw_rwlock_lock(struct lw_rwlock *lock);
/* False if the lock is held, or another thread is about to acquire it. */
LW_EXPORT bool lw_rwlock_trylock(struct lw_rwlock *lock);
LW_EXPORT void lw_rwlock_unlock(struct lw_rwlock *lock);
/* False if the wait limit was reached before the lock was ours. NULL: no limit. */
LW_EXPORT bool lw_rwlock_lock_limited(struct lw_rwlock *lock, const struct lw_wait_limit *limit);

LW_EXPORT void lw_rwlock_read_lock(struct lw_rwlock *lock);
/* False if a writer holds the lock, or waits for it and this thread is not a reader already. */
LW_EXPORT bool lw_rwlock_read_trylock(struct lw_rwlock *lock);
LW_EXPORT void lw_rwlock_read_unlock(struct lw_rwlock *lock);
LW_EXPORT bool lw_rwlock_read_lock_limited(struct lw_rwlock *lock,
					   const struct lw_wait_limit *limit);

LW_EXPORT void lw_rwlock_upgradable_lock(struct lw_rwlock *lock);
LW_EXPORT bool lw_rwlock_upgradable_trylock(struct lw_rwlock *lock);
LW_EXPORT void lw_rwlock_upgradable_unlock(struct lw_rwlock *lock);
/* From upgradable to alone: waits for the readers. */
LW_EXPORT void lw_rwlock_upgrade(struct lw_rwlock *lock);
/* The same, if no other thread reads. */
LW_EXPORT bool lw_rwlock_try_upgrade(struct lw_rwlock *lock);
/* From alone to reader, and to upgradable; and from upgradable to reader. */
LW_EXPORT void lw_rwlock_downgrade(struct lw_rwlock *lock);
LW_EXPORT void lw_rwlock_downgrade_to_upgradable(struct lw_rwlock *lock);
LW_EXPORT void lw_rwlock_upgradable_downgrade(struct lw_rwlock *lock);

#endif
