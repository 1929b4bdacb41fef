/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slow path of the queued spinlocks (qspinlock, cna, hq): the second contender waits with the
 * pending bit, all others wait in the queue.
 *
 *   (0,0,1) -- second contender --> (0,1,1) --> (0,1,0) --> (0,0,1)     pending bit
 *      |
 *      `------ third and later ---> (n,*,*)                             queue
 *
 * With the pending bit the second contender needs no queue node, whose lines may not be in the
 * cache.
 */
#ifndef LW_PENDING_BIT_H
#define LW_PENDING_BIT_H

#include "queue_slot.h"

/* The number of polls for which an arrival waits for the pending waiter to take over the lock. */
#define LW_PENDING_LOOPS 512

/* Acquire the lock, whose word was seen as `val`, not free. */
static lw_always_inline void lw_pending_or_queue(union lw_word *lock, uint32_t val,
						 const struct lw_wait_policy *policy)
{
	/* (0,1,0): the pending waiter is about to take over */
	if ((val & ~LW_SERVICE_MASK) == LW_PENDING)
		val = lw_await_ne_bounded(&lock->val, ~LW_SERVICE_MASK, LW_PENDING,
					  LW_PENDING_LOOPS);

	if (!(val & (LW_TAIL_MASK | LW_PENDING))) {
		/* (0,0,*) -> (0,1,*) */
		val = lw_fetch_or(&lock->val, LW_PENDING, acquire);
		if (!(val & (LW_TAIL_MASK | LW_PENDING))) {
			/* (*,1,1) -> (*,1,0) */
			if (val & LW_LOCKED_MASK)
				lw_await_eq(&lock->val, LW_LOCKED_MASK, 0, acquire);
			/* (*,1,0) -> (*,0,1): one store, while others may join the queue */
			lw_field_store(lock, locked_pending,
				       (uint16_t)((val & LW_SERVICE_MASK) | LW_LOCKED), relaxed);
			lw_count(pending_acquisitions);
			return;
		}
		/* We set the bit although there was a queue: (n,1,*) -> (n,0,*) */
		if (!(val & LW_PENDING))
			lw_field_store(lock, pending, (uint8_t)((val & LW_SERVICE_MASK) >> 8),
				       relaxed);
	}

	lw_wait(lock, NULL, policy);
}

#endif
