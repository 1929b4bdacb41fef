// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The mutex of programs: a queue whose waiters spin, then park. Arriving threads may steal. Waiters
 * are grouped by NUMA node.
 *
 *   free    (*,0,0) -- any thread that runs: compare-and-swap --> held (*,0,1)
 *   held    (*,*,1) -- unlock, the queue head runs            --> free (*,*,0)
 *   parked  (*,*,1) -- unlock                                 --> (*,*,2) --> (*,*,0), head woken
 *   favoured (*,1,0) -- only the queue head acquires          --> held (*,0,1)
 *
 * A thread that runs takes a free mutex although others queue: a parked thread takes long to wake,
 * and the mutex would be idle meanwhile. The queue head disables stealing when it has spun for
 * mutex_steal_window polls, until it parks, or when it has had mutex_starvation_limit defeats. The
 * mutex then goes to the queue head.
 *
 * Waiters spin for mutex_spin polls, or less if their predecessor has parked, then they park. A
 * thread that would queue behind a parked waiter first spins for mutex_arrival_spin polls, about as
 * long as a short critical section, because a queue of parked waiters drains slower than it fills.
 *
 * The queue head moves a spinning waiter of its own NUMA node to the place behind it, so that mutex
 * and data stay on the node. At most mutex_group waiters in a row are moved ahead of another
 * waiter.
 *
 * Cost in programs, in read-modify-writes: one to lock a free mutex, none to unlock it. A waiter
 * that queues and does not park makes two, and one more if it disables stealing; its predecessor
 * makes one to hand over the head's role.
 *
 * Promises: mutual exclusion; no waiter is lost; no waiter starves, because of the starvation
 * limit; correct without a free queue node.
 *
 * Orders: the compare-and-swap that acquires and the store that releases are an acquire and release
 * pair on `locked`. `pending` is advice to arriving threads, so it needs no order. `parked` and the
 * table (parking_word.h, parked_heads.h), the queue (parking_queue.h) and grouping
 * (parking_locality.h) have orders of their own, each explained there.
 */
#include "lock_type.h"
#include "mutex.h"
#include "parking.h"

static lw_always_inline struct lw_parking_policy lw_mutex_policy(void)
{
	return (struct lw_parking_policy){
		.spin = (uint32_t)lw_tunable(mutex_spin),
		.latencies = lw_tunable(pv_latencies),
		.stealing.on_arrival = true,
		.stealing.arrival_spin = (uint32_t)lw_tunable(mutex_arrival_spin),
		.stealing.arrival_spin_if_parked = true,
		.stealing.window = (uint32_t)lw_tunable(mutex_steal_window),
		.stealing.starvation_limit = (uint32_t)lw_tunable(mutex_starvation_limit),
		.parking.enabled = true,
		.parking.early = true,
		.parking.wake_at_unlock = true,
		.locality.possible = true,
		.locality.group = lw_numa_aware(mutex) ? (uint32_t)lw_tunable(mutex_group) : 0,
	};
}

bool lw_mutex_lock_limited(struct lw_mutex *mutex, const struct lw_wait_limit *limit)
{
	const struct lw_parking_policy policy = lw_mutex_policy();

	return lw_parking_arrive(&mutex->word, &policy) ||
	       lw_parking_wait(&mutex->word, limit, lw_mutex_policy());
}

void lw_mutex_lock_slow(struct lw_mutex *mutex)
{
	lw_mutex_lock_limited(mutex, NULL);
}

void lw_mutex_unlock_slow(struct lw_mutex *mutex)
{
	const struct lw_parking_policy policy = lw_mutex_policy();

	lw_parking_unlock_slow(&mutex->word, &policy);
}

LW_DESCRIBE_LIMITED(mutex, struct lw_mutex,
		    .summary = "waiters spin, then park; arrivals may steal; NUMA-aware",
		    .traits = LW_TAIL_WORD | LW_NUMA_AWARE,
		    .origin = "Long's pvqspinlock of 2015 as a mutex; grouping after Kashyap and "
			      "others, ShflLock, 2019");
