/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The pending bit of the queued spinlocks, with which the second contender waits: see qspinlock.c.
 */
#ifndef LW_PENDING_BIT_H
#define LW_PENDING_BIT_H

#include "lock_word.h"
#include "surroundings.h"

/* The number of polls for which an arrival waits for the pending waiter to take over the lock. */
#define LW_PENDING_LOOPS 512

/*
 * Acquire the lock, whose word was seen as `val`, not free, unless another thread has the pending
 * bit or queues. False: the caller has to queue.
 */
static lw_always_inline bool lw_pending_lock(union lw_word *lock, uint32_t val)
{
	if (lw_is_forked() || val & LW_TAIL_MASK)
		return false;
	/* (0,1,0): the pending waiter is about to take over */
	if ((val & ~LW_SERVICE_MASK) == LW_PENDING)
		val = lw_await_ne_bounded(&lock->val, ~LW_SERVICE_MASK, LW_PENDING,
					  LW_PENDING_LOOPS);
	if (val & (LW_TAIL_MASK | LW_PENDING))
		return false;

	/* (0,0,*) -> (0,1,*) */
	val = lw_fetch_or(&lock->val, LW_PENDING, acquire);
	if (val & (LW_TAIL_MASK | LW_PENDING)) {
		/* We have set the bit, but there is a queue: (n,1,*) -> (n,0,*) */
		if (!(val & LW_PENDING))
			lw_field_store(lock, pending, (uint8_t)((val & LW_SERVICE_MASK) >> 8),
				       relaxed);
		return false;
	}

	/* (*,1,1) -> (*,1,0) */
	if (val & LW_LOCKED_MASK)
		lw_await_eq(&lock->val, LW_LOCKED_MASK, 0, acquire);
	/* (*,1,0) -> (*,0,1): one store, while others may join the queue */
	lw_field_store(lock, locked_pending, (uint16_t)((val & LW_SERVICE_MASK) | LW_LOCKED),
		       relaxed);
	lw_count(pending_acquisitions);
	return true;
}

/*
 * The bits of the word that are clear when the queue head may acquire the lock. In the child of a
 * fork no thread sets the pending bit, so a bit that is set is that of a thread that did not
 * survive. It is cleared with the tail, by the last in the queue.
 */
static inline uint32_t lw_head_awaits(void)
{
	return lw_is_forked() ? LW_LOCKED_MASK : LW_LOCKED_PENDING_MASK;
}

#endif
