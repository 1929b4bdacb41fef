/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queued spinlock: 4 bytes, all zero when unlocked, FIFO. Slow path: qspinlock.c. Locking is an
 * acquire operation, unlocking a release operation.
 */
#ifndef LW_QSPINLOCK_H
#define LW_QSPINLOCK_H

#include "lock_word.h"

struct lw_qspinlock {
	union lw_word word;
};

/* The word was seen as `val`, not free. */
LW_EXPORT void lw_qspinlock_lock_slow(struct lw_qspinlock *lock, uint32_t val);

LW_DEFINE_QUEUED_FAST_PATH(qspinlock)

#endif
