// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The paravirt queued spinlock as it was in Linux 4.2, before the improvements of pv (pv.c). No
 * thread steals, and no contender waits with the pending bit. The lock is strictly FIFO among
 * queued waiters, so it is idle while the next waiter wakes up. A waiter that has halted is kicked
 * twice: when it becomes queue head, and, if it has halted again, to acquire the lock.
 *
 *   free    (*,0,0) -- an arriving thread, if nobody queues; the queue head  --> held (*,0,1)
 *   parked  (*,0,1) -- unlock: the queue head is kicked --> (*,0,2)          --> free (*,0,0)
 *
 * Promises: mutual exclusion; FIFO among queued waiters; no waiter is lost; correct without a free
 * queue node.
 *
 * Orders: those of pv.
 */
#include "lock_type.h"
#include "parking.h"
#include "pv42.h"

static lw_always_inline struct lw_parking_policy lw_pv42_policy(void)
{
	return (struct lw_parking_policy){
		.spin = (uint32_t)lw_tunable(pv42_spin),
		.latencies = lw_tunable(pv_latencies),
		.stealing.starvation_limit = LW_NO_STARVATION_LIMIT,
		.parking.enabled = true,
	};
}

void lw_pv42_lock_slow(struct lw_pv42 *lock)
{
	uint32_t tail = lw_node_take(NULL);

	if (!tail) {
		lw_spin_nodeless(&lock->word);
		return;
	}
	lw_parking_queue(&lock->word, tail, lw_decode_tail(tail), NULL, lw_pv42_policy());
	lw_node_return(tail);
}

void lw_pv42_unlock_slow(struct lw_pv42 *lock)
{
	const struct lw_parking_policy policy = lw_pv42_policy();

	lw_parking_unlock_slow(&lock->word, &policy);
}

LW_DESCRIBE(pv42, struct lw_pv42, .summary = "paravirt queued spinlock as it was in Linux 4.2",
	    .traits = LW_FIFO | LW_TAIL_WORD | LW_HISTORIC,
	    .origin = "Long and Zijlstra, Linux 4.2");
