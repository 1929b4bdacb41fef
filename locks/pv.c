// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The paravirt queued spinlock: a queue whose waiters halt their virtual CPU. In the shared parts
 * (parking.h) that is to park.
 *
 *   free    (*,0,0) -- an arriving thread, or the queue head            --> held (*,0,1)
 *   held    (0,0,1) -- the first contender sets pending, then acquires   --> held (*,0,1)
 *   parked  (*,*,1) -- unlock: the queue head is kicked --> (*,*,2)      --> free (*,*,0)
 *   starved (*,1,0) -- only the queue head acquires                      --> held (*,0,1)
 *
 * The lock of Linux 4.2 is strictly FIFO, so it is idle while the next waiter wakes up, and a
 * waiter that has halted is kicked twice: to become queue head, and to acquire the lock. pv has the
 * improvements that were proposed for it in 2014 and 2015, each with a switch (tunables pv_...): a
 * single kick at the unlock, kicks ahead (off by default), early halts, the pending bit, and
 * stealing. An arriving thread steals a free lock, because a halted waiter takes long to wake up.
 * After pv_starvation_limit defeats the queue head sets the pending bit, which disables stealing.
 * Only a thread that already waited with the pending bit can then acquire the lock before it.
 *
 * Promises: mutual exclusion; no waiter is lost, and none starves; correct without a free queue
 * node.
 *
 * Orders: the compare-and-swap that acquires and the store that releases are an acquire and release
 * pair on `locked`, also for the waiter with the pending bit. `parked` and the table
 * (parking_word.h, parked_heads.h) and the queue (parking_queue.h) have orders of their own, each
 * explained there.
 */
#include "lock_type.h"
#include "parking.h"
#include "pv.h"

static lw_always_inline struct lw_parking_policy lw_pv_policy(void)
{
	bool steal = lw_tunable(pv_steal);

	return (struct lw_parking_policy){
		.spin = (uint32_t)lw_tunable(pv_spin),
		.pending_bit = lw_tunable(pv_pending),
		.latencies = lw_tunable(pv_latencies),
		.stealing.on_arrival = steal,
		.stealing.arrival_spin = steal ? (uint32_t)lw_tunable(pv_arrival_spin) : 0,
		.stealing.starvation_limit = steal ? (uint32_t)lw_tunable(pv_starvation_limit) : 0,
		.parking.enabled = true,
		.parking.early = lw_tunable(pv_wait_early),
		.parking.wake_at_unlock = lw_tunable(pv_kick_at_unlock),
		.parking.wake_ahead = (uint32_t)lw_tunable(pv_kick_ahead),
	};
}

bool lw_pv_lock_limited(struct lw_pv *lock, const struct lw_wait_limit *limit)
{
	const struct lw_parking_policy policy = lw_pv_policy();

	return lw_parking_arrive(&lock->word, &policy) ||
	       lw_parking_wait(&lock->word, limit, lw_pv_policy());
}

void lw_pv_lock_slow(struct lw_pv *lock)
{
	lw_pv_lock_limited(lock, NULL);
}

void lw_pv_unlock_slow(struct lw_pv *lock)
{
	const struct lw_parking_policy policy = lw_pv_policy();

	lw_parking_unlock_slow(&lock->word, &policy);
}

LW_DESCRIBE_LIMITED(pv, struct lw_pv,
		    .summary = "paravirt queued spinlock: waiters halt, arrivals may steal",
		    .traits = LW_TAIL_WORD,
		    .origin = "Long, pvqspinlock enhancements of 2014 and 2015");
