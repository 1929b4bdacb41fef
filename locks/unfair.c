// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queued unfair lock: any thread that runs takes the lock when it is free.
 *
 *   free    (*,0,0) -- an arriving thread, the head, or a waiter near it --> held (*,0,1)
 *   held    (*,*,1) -- unlock, the queue head runs                       --> free (*,*,0)
 *   parked  (*,*,1) -- unlock: the queue head is woken --> (*,*,2)       --> free (*,*,0)
 *   starved (*,1,0) -- only the queue head acquires                      --> held (*,0,1)
 *
 * Arriving threads may steal, and so may queued waiters. A waiter tries more often, the closer it
 * is to the queue head. A waiter that steals leaves the queue from its place in the middle. So the
 * lock is never idle because a waiter does not run, few threads compete for it at a time, and the
 * waiters that do not steal are served in order.
 *
 * In a kernel this lock is for guests without paravirt spinlocks, and waiters only spin. In user
 * space they park (tunable unfair_park).
 *
 * No waiter starves. The queue head competes whenever it runs. After unfair_starvation_limit
 * defeats (parks, or unfair_spin polls) it sets the pending bit, which disables stealing until it
 * has acquired the lock.
 *
 * Promises: mutual exclusion; no waiter is lost, and none starves; correct without a free node.
 *
 * Orders: the compare-and-swap that acquires and the store that releases are an acquire and release
 * pair on `locked`. `parked` and the table (parking_word.h, parked_heads.h) and the queue
 * (parking_queue.h) have orders of their own, each explained there. A waiter that leaves the queue
 * from the middle changes its neighbours' links while it holds the lock. The next thread that does
 * so has acquired the lock after it, or holds the lock of the queue.
 */
#include "lock_type.h"
#include "parking.h"
#include "unfair.h"

static lw_always_inline struct lw_parking_policy lw_unfair_policy(void)
{
	return (struct lw_parking_policy){
		.spin = (uint32_t)lw_tunable(unfair_spin),
		.latencies = lw_tunable(pv_latencies),
		.stealing.on_arrival = true,
		.stealing.from_queue = true,
		.stealing.arrival_spin = (uint32_t)lw_tunable(unfair_arrival_spin),
		.stealing.starvation_limit = (uint32_t)lw_tunable(unfair_starvation_limit),
		.parking.enabled = lw_tunable(unfair_park),
		.parking.wake_at_unlock = true,
	};
}

bool lw_unfair_lock_limited(struct lw_unfair *lock, const struct lw_wait_limit *limit)
{
	const struct lw_parking_policy policy = lw_unfair_policy();

	return lw_parking_arrive(&lock->word, &policy) ||
	       lw_parking_wait(&lock->word, limit, lw_unfair_policy());
}

void lw_unfair_lock_slow(struct lw_unfair *lock)
{
	lw_unfair_lock_limited(lock, NULL);
}

void lw_unfair_unlock_slow(struct lw_unfair *lock)
{
	const struct lw_parking_policy policy = lw_unfair_policy();

	lw_parking_unlock_slow(&lock->word, &policy);
}

LW_DESCRIBE_LIMITED(unfair, struct lw_unfair,
		    .summary = "queued unfair lock: arrivals and waiters may steal",
		    .traits = LW_TAIL_WORD,
		    .origin = "Long, queued unfair lock, pvqspinlock series of 2014 and 2015");
