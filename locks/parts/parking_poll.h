/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Polling the word of a lock whose waiters park. */
#ifndef LW_PARKING_POLL_H
#define LW_PARKING_POLL_H

#include "parking_word.h"
#include "surroundings.h"

/* Poll until the lock is free, or `polls` times. Returns the word of the last poll. */
static inline uint32_t lw_poll_lock(union lw_word *lock, uint32_t polls)
{
	uint32_t val = lw_await_ne_backoff(&lock->val, LW_LOCKED, LW_LOCKED, polls);

	if ((val & LW_LOCKED_MASK) == LW_UNLOCKING)
		val = lw_await_ne_soon(&lock->val, LW_LOCKED_MASK, LW_UNLOCKING, relaxed);
	if (val & LW_QUEUE_LOCKED)
		val = lw_await_eq_soon(&lock->val, LW_QUEUE_LOCKED, 0, relaxed);
	return val;
}

#endif
