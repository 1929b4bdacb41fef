/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The resilient queued spinlock: 4 bytes, all zero when unlocked. An acquisition fails rather than
 * to wait for ever: see rqspinlock.c. Locking is an acquire operation, unlocking a release
 * operation.
 */
#ifndef LW_RQSPINLOCK_H
#define LW_RQSPINLOCK_H

#include "lock_word.h"

struct lw_rqspinlock {
	union lw_word word;
};

/* The result of an acquisition. */
enum lw_rqspinlock_result {
	LW_RQ_ACQUIRED = 0,
	/* The thread has the lock already, or an interruption finds that the interrupted code may.
	 */
	LW_RQ_AA = 1,
	/* Another thread has the lock, and waits for one that this thread has. */
	LW_RQ_ABBA = 2,
	LW_RQ_TIMEOUT = 3,
};

/* Acquire the lock, unless that fails: an enum lw_rqspinlock_result. */
LW_EXPORT int lw_rqspinlock_acquire(struct lw_rqspinlock *lock);
/* Acquire the lock. Repeats acquisitions that fail, so this waits for ever in a deadlock. */
LW_EXPORT void lw_rqspinlock_lock(struct lw_rqspinlock *lock);
LW_EXPORT bool lw_rqspinlock_trylock(struct lw_rqspinlock *lock);
LW_EXPORT void lw_rqspinlock_unlock(struct lw_rqspinlock *lock);

#endif
